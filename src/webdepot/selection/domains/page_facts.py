"""The facts about its owner in a page: title, JSON-LD, imprint, VAT ids, analytics ids, and its links.

`read` takes the body and the HTTP head of a page and returns `facts.PageFacts`. HTML is parsed by turbohtml,
as a browser would; every list has a limit, so that a hostile page stays small. schema.org:
https://schema.org/Organization
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import turbohtml

from webdepot.container.http import HttpHead, content_decoded, transfer_decoded
from webdepot.selection.domains import imprint
from webdepot.selection.domains.facts import PageFacts, is_below, registrable
from webdepot.selection.domains.lookup.registrant import mail_domains_in
from webdepot.selection.domains.names import looks_like_organisation
from webdepot.text.entities import unescape
from webdepot.url import find_canonical, host_of

LIMIT_BYTES = 1 << 20
MOST_LINKS = 600
MOST_NEAR = 150
_MOST_JSON_NODES = 2000
_HTML = re.compile(rb"(?i)<(?:!doctype|html|head|body|title|meta|a|p|div|h1)\b")
_CHARSET = re.compile(rb"(?i)charset\s*=\s*[\"']?([A-Za-z0-9_.:-]+)")
_HIDDEN = re.compile(r"(?is)<(script|style|noscript|template|svg)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)")
_BLOCK = re.compile(
    r"(?i)<(?:br|/?p|/?div|/?li|/?ul|/?ol|/?h[1-6]|/?tr|/?td|/?th|/?table|/?dt|/?dd|/?section|/?footer|"
    r"/?header|/?address|"
    r"/?article|/?main|/?nav|/?title)\b[^<>]*>"
)
_TAG = re.compile(r"<[^<>]*>")
_IMPRINT = re.compile(
    r"(?i)impressum|imprint|legal[ _-]?notice|site[ _-]?notice|mentions[ _-]?l[ée]gales|colofon|"
    r"anbieterkennzeichnung"
)
_HEADING = re.compile(r"(?i)\A\W*(?:impressum|imprint|legal notice|mentions légales|colofon)\W*\Z")
_ABOUT = re.compile(r"(?i)\b(?:about(?: us)?|über uns|ueber[ -]uns|kontakt|contact|legal)\b")
_TRACKER = re.compile(
    r"\b(UA-\d{4,10}-\d{1,3}|G-[A-Z0-9]{8,12}|GTM-[A-Z0-9]{5,8}|ca-pub-\d{10,20})\b|(?i:(?:matomo|"
    r"piwik)[^\"'<>\s]{0,60}(?:id|siteid)\W{1,4}(\d+))"
)
_COPYRIGHT = re.compile(
    r"(?:©|\(c\)|&copy;|Copyright)\s*+(?:\d{4}(?:\s*+[-–]\s*+\d{2,4})?)?\s*+(?:by\s++)?([^\n|•·]{3,120})"
)
_ORGANISATION = re.compile(
    r"(?i)organi[sz]ation\Z|university\Z|corporation\Z|library\Z|museum\Z|hospital\Z|business\Z|ngo\Z|"
    r"school\Z"
)


def read(url: str, head: HttpHead, body: BinaryIO, *, as_imprint: bool = False) -> PageFacts:
    """The facts on a page; a response that is not HTML gives only its status and redirect."""
    redirect = (
        find_canonical(head.get("location") or "", url)
        if 300 <= head.status < 400 and head.get("location")
        else None
    )
    data = content_decoded(transfer_decoded(body, head), head, limit_bytes=LIMIT_BYTES).read(LIMIT_BYTES)
    kind = (head.get("content-type") or "").partition(";")[0].strip().lower()
    text = _decoded(data, head.get("content-type") or "")
    if kind.startswith("text/plain"):
        return PageFacts(
            url=url, status=head.status, redirect=redirect or "", mail_domains=_contact_domains(text)
        )
    if "html" not in kind and not _HTML.search(data[:2000]):
        return PageFacts(url=url, status=head.status, redirect=redirect or "")
    return parse_html(url, text, status=head.status, redirect=redirect or "", as_imprint=as_imprint)


def parse_html(
    url: str, text: str, *, status: int = 200, redirect: str = "", as_imprint: bool = False
) -> PageFacts:
    """The facts on an HTML page."""
    document = turbohtml.parse(text, positions=False)
    title = document.select_one("title")
    structured = _Structured()
    for script in document.select("script[type='application/ld+json' i]")[:20]:
        structured.take(script.text)
    lines = lines_of(text)
    links, imprint_url = _links(document, url)
    # A site with only one page has its imprint there, below a heading.
    heading = (
        next((at for at, line in enumerate(lines) if _HEADING.match(line)), None) if not imprint_url else None
    )
    own_imprint = (
        imprint.read(lines) if as_imprint else imprint.read(lines[heading:]) if heading is not None else None
    )
    refresh = document.select_one("meta[http-equiv='refresh' i]")
    if refresh is not None and not redirect:
        redirect = _refresh(refresh.attr("content") or "", url)
    copyright_names = tuple(name for name in (_copyright(line) for line in lines) if name)
    return PageFacts(
        url=url,
        status=status,
        redirect=redirect,
        title=" ".join(title.text.split())[:200] if title is not None else "",
        operators=own_imprint.operators if own_imprint else (),
        persons=bool(own_imprint and own_imprint.persons),
        others=own_imprint.others if own_imprint else (),
        parents=tuple(structured.parents[:5]),
        units=tuple(structured.units[:50]),
        aliases=tuple(structured.aliases[:10]),
        structured=tuple(dict.fromkeys(structured.names))[:5],
        copyright=copyright_names[:3],
        mail_domains=own_imprint.mail_domains if own_imprint else tuple(structured.mails),
        vat_ids=own_imprint.vat_ids if own_imprint else tuple(structured.vats),
        trackers=tuple(dict.fromkeys(tracker for tracker, _ in _TRACKER.findall(text) if tracker))[:5],
        addresses=own_imprint.addresses if own_imprint else (),
        links=links,
        imprint=imprint_url,
    )


def lines_of(text: str) -> list[str]:
    """The visible text of a page, line by line."""
    plain = _TAG.sub(" ", _BLOCK.sub("\n", _HIDDEN.sub(" ", text)))
    return [line for line in (" ".join(line.split()) for line in unescape(plain).split("\n")) if line]


def _links(document: turbohtml.Document, url: str) -> tuple[tuple[str, ...], str]:
    """The links of a page: one address for each other site, then those of its own site; and its imprint."""
    near: dict[str, None] = {}
    far: dict[str, str] = {}
    imprints: list[tuple[int, str]] = []
    home = registrable(host_of(url).partition(":")[0])
    for anchor in document.select(
        "a[href], area[href], link[rel~='canonical' i][href], frame[src], iframe[src]"
    )[:5000]:
        raw = (anchor.attr("href") or anchor.attr("src") or "").strip()
        target = find_canonical(raw, url) if raw else None
        if target is None or not target.startswith("http"):
            continue
        host = host_of(target).partition(":")[0]
        label = f"{anchor.text} {anchor.attr('title') or ''}"[:200]
        if _IMPRINT.search(label) or _IMPRINT.search(target.rpartition("//")[2].partition("/")[2]):
            imprints.append((0 if _IMPRINT.search(label) else 1, target))
        elif _ABOUT.search(label) and is_below(host, home):
            imprints.append((2, target))
        if is_below(host, home):
            near[target] = None
        else:
            far.setdefault(host_of(target), target)
    chosen = min(imprints, key=lambda item: item[0], default=(0, ""))[1]
    return (*list(far.values())[:MOST_LINKS], *list(near)[:MOST_NEAR]), chosen


class _Structured:
    """Names of organisations in JSON-LD, by their role."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[str] = []
        self.units: list[str] = []
        self.aliases: list[str] = []
        self.mails: list[str] = []
        self.vats: list[str] = []
        self._nodes = 0

    def take(self, text: str) -> None:
        try:
            data = json.loads(text[:200_000])
        except (ValueError, RecursionError):
            return
        for node in _listed(data):
            self._node(node, depth=0)

    def _node(self, node: Any, depth: int) -> None:
        self._nodes += 1
        if not isinstance(node, dict) or depth > 6 or self._nodes > _MOST_JSON_NODES:
            return
        for inner in _listed(node.get("@graph")):
            self._node(inner, depth + 1)
        if any(_ORGANISATION.search(kind) for kind in _listed(node.get("@type")) if isinstance(kind, str)):
            self._organisation(node)
        for key in (
            "publisher",
            "author",
            "provider",
            "sourceOrganization",
            "copyrightHolder",
            "maintainer",
            "isPartOf",
        ):
            for inner in _listed(node.get(key)):
                self._node(inner, depth + 1)

    def _organisation(self, node: dict[str, Any]) -> None:
        self.names.extend(_names(node.get("name")) or _names(node.get("legalName")))
        self.aliases.extend((*_names(node.get("alternateName")), *_names(node.get("legalName"))))
        self.vats.extend(vat for text in _names(node.get("vatID")) for vat in imprint.vat_ids_in(text))
        self.mails.extend(domain for text in _names(node.get("email")) for domain in mail_domains_in(text))
        for key, into in (
            ("parentOrganization", self.parents),
            ("subOrganization", self.units),
            ("department", self.units),
        ):
            for inner in _listed(node.get(key)):
                into.extend(_names(inner.get("name")) if isinstance(inner, dict) else _names(inner))


def _listed(raw: Any) -> list[Any]:
    return raw[:200] if isinstance(raw, list) else [] if raw is None else [raw]


def _names(raw: Any) -> list[str]:
    return [
        " ".join(text.split())[:200]
        for text in _listed(raw)
        if isinstance(text, str) and text.strip() and "://" not in text
    ]


def _copyright(line: str) -> str:
    match = _COPYRIGHT.search(line)
    name = re.split(r"(?i)\ball rights|alle rechte|\. ", match[1])[0].strip(" .,-–") if match else ""
    return name if looks_like_organisation(name) else ""


def _refresh(content: str, url: str) -> str:
    match = re.search(r"(?i)url\s*=\s*[\"']?([^\"'\s>]+)", content[:2000])
    return (find_canonical(match[1], url) or "") if match else ""


def _contact_domains(text: str) -> tuple[str, ...]:
    """Mail domains, or hosts of web forms, in the Contact lines of a security.txt (RFC 9116)."""
    domains: list[str] = []
    for line in _contact_lines(text):
        domains.extend(mail_domains_in(line))
        host = host_of(line.strip()) if "://" in line else ""
        if host:
            domains.append(host.partition(":")[0].lower())
    return tuple(dict.fromkeys(domains))[:5]


def _contact_lines(text: str) -> Iterator[str]:
    for line in text.splitlines()[:200]:
        key, _, value = line.partition(":")
        if key.strip().lower() == "contact":
            yield value


def _decoded(data: bytes, content_type: str) -> str:
    declared = _CHARSET.search(content_type.encode("latin-1", "replace")) or _CHARSET.search(data[:2048])
    for name in (declared[1].decode("ascii", "replace") if declared else "utf-8", "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    return data.decode("cp1252", "replace")
