"""Rewriting on the server, for clients without a service worker (plain HTTP, private windows, text browsers):
the page without scripts.

Addresses in attributes, `srcset`, style sheets and refreshes are replaced by archived ones; scripts stay in
the page but are not run, because the Content-Security-Policy of the answer forbids it (`still_policy`).
Addresses that are not recognised here are blocked by the same policy: no request goes to the live web.

1. `text_of` decodes a page as a browser would;
2. `html` reads its tokens once (https://html.spec.whatwg.org/#tokenization, by turbohtml in C) and rewrites
   only the tags that contain an address;
3. `css` does the same for style sheets.

`Lead` gives the archived address for an absolute one, or None for schemes that are not archived (`mailto:`,
`data:`).
"""

import html as entities
import re
from collections.abc import Callable, Iterator
from typing import Any

from webdepot.url import find_canonical

MOST_BYTES = 8 << 20
"""A larger page or style sheet is sent unchanged."""
_DEEPEST_SRCDOC = 3
Lead = Callable[[str], str | None]

_ADDRESSES = frozenset(
    """
    href src poster background data action formaction manifest icon xlink:href lowsrc dynsrc longdesc cite
    codebase usemap profile
    """.split()  # noqa: SIM905
)
_LISTS = frozenset({"srcset", "imagesrcset"})
_REMOVED = frozenset({"integrity", "ping", "nonce", "crossorigin"})
"""Attributes that would be wrong for a rewritten part, or report a click to somebody."""
_NOT_LINKS = frozenset({("object", "codebase"), ("applet", "codebase")})
_OWN_PLACES = frozenset({"_top", "_parent", "_blank"})
_REFRESH = re.compile(r"""([\d.]*+\s*+[;,]?\s*+(?:url\s*+=\s*+)?)(["']?)(.*)""", re.IGNORECASE | re.DOTALL)
_CANDIDATE = re.compile(r"(?<!\s)(\s*+)([^\s,][^\s]*[^\s,]|[^\s,])((?:\s+[^,]*)?(?:,|\Z))")
# Each alternative can match in one way only, so the time is linear in the length.
_CSS = re.compile(
    r"""(?P<comment>/\*.*?(?:\*/|\Z))
    |(?P<import>@import\s++)(?P<quote>["'])(?P<imported>[^"'\n\\]*)(?P=quote)
    |(?P<url>url\(\s*+)(?P<mark>["']?)(?P<address>[^"'()\s\\]*+)(?P=mark)(?=\s*+\))""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?\s*+([a-zA-Z0-9_.:-]{2,40})", re.IGNORECASE)


def text_of(data: bytes, content_type: str) -> str:
    """The text of a page, decoded by the charset that the server or the page names, else by a guess."""
    # Imported here because it takes 4 MB of memory, which a server of raw captures does not need.
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

    if data[:3] == b"\xef\xbb\xbf":
        return data[3:].decode("utf-8", "replace")
    charset = _CHARSET.search(content_type) or _CHARSET.search(data[:2048].decode("latin-1"))
    # Only names that browsers know (https://encoding.spec.whatwg.org).
    named = map_encoding_to_html5(charset[1], fallback_utf8=False) if charset else None
    encoding = named or detect_encoding(data)
    text: str = bytes_to_str(data, encoding, fallback_encodings=("utf-8", "windows-1252"), errors="replace")
    return text


def html(text: str, url: str, lead: Lead, *, depth: int = 0) -> str:
    """A page with archived addresses; everything else is unchanged."""
    return "".join(_pieces(text, url, lead, depth))


def css(text: str, url: str, lead: Lead) -> str:
    """A style sheet, or a style attribute, with archived addresses."""

    def rewrite(match: re.Match[str]) -> str:
        if match["comment"]:
            return match[0]
        if match["import"]:
            return f"{match['import']}{match['quote']}{_led(match['imported'], url, lead)}{match['quote']}"
        address = _led(match["address"], url, lead) if match["address"] else ""
        if not address:
            return match[0]
        # Our addresses may contain brackets, which are allowed only in quotes.
        quote = match["mark"] or "'"
        return match["url"] + quote + address.replace("'", "%27") + quote

    return _CSS.sub(rewrite, text) if "url(" in text.lower() or "@import" in text.lower() else text


def srcset(value: str, url: str, lead: Lead) -> str:
    """A srcset, a list of images with widths or densities, with archived addresses."""
    return _CANDIDATE.sub(
        lambda match: f"{match[1]}{_led(match[2], url, lead).replace(',', '%2C')}{match[3]}", value
    )


def refresh(value: str, url: str, lead: Lead) -> str:
    """A refresh (`5; url=…`) of a meta tag or a header, with the archived address."""
    match = _REFRESH.match(value.strip())
    if not match or not match[3]:
        return value
    before, quote, address = match.groups()
    address = address.removesuffix(quote).rstrip() if address.endswith(quote) else f"{quote}{address}"
    return f"{before}{_led(address, url, lead)}"


def _pieces(text: str, url: str, lead: Lead, depth: int) -> Iterator[str]:
    import turbohtml

    base, is_style = url, False
    for token in turbohtml.tokenize(text, resolve_references=False, capture_source=True):
        kind = int(token.type)
        if kind == _START and token.attrs:
            attributes = dict(reversed(token.attrs))
            if token.tag == "base" and attributes.get("href"):
                base = find_canonical(attributes["href"], url) or url
            yield _tag(token, attributes, base, lead, depth)
        elif kind == _TEXT:
            text_node = token.data or ""
            yield css(text_node, base, lead) if is_style else text_node
        else:
            yield token.source if token.source is not None else (token.data or "")
        if kind == _START:
            is_style = token.tag == "style"
        elif kind == _END:
            is_style = False


_TEXT, _START, _END = 0, 1, 2


def _tag(token: Any, attributes: dict[str, str], base: str, lead: Lead, depth: int) -> str:
    changed: dict[str, str | None] = {}
    for name, value in attributes.items():
        new = _attribute(token.tag, name, value, attributes, base, lead, depth)
        if new != value:
            changed[name] = new
    if not changed:
        return str(token.source)
    kept = []
    for name, value in token.attrs:
        new = changed.get(name, value)
        if new is not None:
            kept.append(f' {name}="{entities.escape(new)}"')
    return f"<{token.tag}{''.join(kept)}{' /' if token.self_closing else ''}>"


def _attribute(
    tag: str, name: str, value: str, attributes: dict[str, str], base: str, lead: Lead, depth: int
) -> str | None:
    """The new value of an attribute; None if it is removed."""
    if name in _REMOVED:
        return None
    if name in _LISTS:
        return srcset(value, base, lead)
    if name == "style":
        return css(value, base, lead)
    if name == "target":
        # Leaving the frame would leave the archive.
        return "_self" if value.strip().lower() in _OWN_PLACES else value
    if name == "srcdoc" and depth < _DEEPEST_SRCDOC:
        return html(value, base, lead, depth=depth + 1)
    if tag == "meta":
        return _meta(name, value, attributes, base, lead)
    if name in _ADDRESSES and (tag, name) not in _NOT_LINKS and not (name == "data" and tag != "object"):
        return _led(value, base, lead)
    return value


def _meta(name: str, value: str, attributes: dict[str, str], base: str, lead: Lead) -> str | None:
    directive = attributes.get("http-equiv", "").strip().lower()
    if name == "content" and directive == "refresh":
        return refresh(value, base, lead)
    if name == "http-equiv" and directive in (
        "content-security-policy",
        "set-cookie",
        "x-dns-prefetch-control",
    ):
        return f"x-archive-orig-{directive}"
    if name == "charset" or (name == "content" and directive == "content-type"):
        return "utf-8" if name == "charset" else _CHARSET.sub("charset=utf-8", value)
    return value


def _led(address: str, base: str, lead: Lead) -> str:
    """The archived address; fragments of the same page and other schemes are unchanged."""
    stripped = address.strip()
    if not stripped or stripped.startswith("#"):
        return address
    absolute = find_canonical(stripped, base)
    led = lead(absolute) if absolute else None
    if led is None:
        return address
    _, mark, fragment = stripped.partition("#")
    return f"{led}{mark}{fragment}"
