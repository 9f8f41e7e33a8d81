"""Rewriting on the server, for clients without a service worker (plain HTTP, private windows, text browsers):
a page as a still picture.

Addresses in attributes, `srcset`, style sheets and refreshes are led into the archive; scripts stay in the
page and are not run, which the policy of the answer sees to. What no pattern here knows is refused by the same policy: nothing leaves for the live web.

1. `text_of` decodes a page as a browser would;
2. `html` passes over its tokens once (https://html.spec.whatwg.org/#tokenization, by turbohtml in C) and
   writes only those tags anew that have an address in them;
3. `css` does the same for style sheets.

`Lead` makes the address in the archive of an absolute one, or None for what is none (`mailto:`, `data:`).
"""

import html as entities
import re
from collections.abc import Callable, Iterator
from typing import Any

from webdepot.url import find_canonical

MOST_BYTES = 8 << 20
"""A page or style sheet that is larger is sent as it is."""
_DEEPEST_SRCDOC = 3
Lead = Callable[[str], str | None]

_ADDRESSES = frozenset(
    "href src poster background data action formaction manifest icon xlink:href lowsrc dynsrc longdesc cite codebase usemap profile".split()  # noqa: SIM905
)
_LISTS = frozenset({"srcset", "imagesrcset"})
_REMOVED = frozenset({"integrity", "ping", "nonce", "crossorigin"})
"""What would be wrong of a rewritten part, or tell somebody of a click."""
_NOT_LINKS = frozenset({("object", "codebase"), ("applet", "codebase")})
_OWN_PLACES = frozenset({"_top", "_parent", "_blank"})
_REFRESH = re.compile(
    r"""(\s*[\d.]*\s*[;,]?\s*(?:url\s*=\s*)?)(["']?)(.*?)\2\s*\Z""", re.IGNORECASE | re.DOTALL
)
_CANDIDATE = re.compile(r"(\s*)([^\s,][^\s]*[^\s,]|[^\s,])((?:\s+[^,]*)?(?:,|\Z))")
# Each alternative can match in one way only, so the time is linear in the length.
_CSS = re.compile(
    r"""(?P<comment>/\*.*?(?:\*/|\Z))
    |(?P<import>@import\s+)(?P<quote>["'])(?P<imported>[^"'\n\\]*)(?P=quote)
    |(?P<url>url\(\s*)(?P<mark>["']?)(?P<address>[^"'()\s\\]*)(?P=mark)(?=\s*\))""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{2,40})", re.IGNORECASE)


def text_of(data: bytes, content_type: str) -> str:
    """Decoded by what the server says, the page says, or its bytes look like."""
    # Four megabytes that a server of raw captures does not need.
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

    if data[:3] == b"\xef\xbb\xbf":
        return data[3:].decode("utf-8", "replace")
    found = _CHARSET.search(content_type) or _CHARSET.search(data[:2048].decode("latin-1"))
    # The names browsers know (https://encoding.spec.whatwg.org); any other name is no help.
    encoding = (map_encoding_to_html5(found[1], fallback_utf8=False) if found else None) or detect_encoding(
        data
    )
    text: str = bytes_to_str(data, encoding, fallback_encodings=("utf-8", "windows-1252"), errors="replace")
    return text


def html(text: str, url: str, lead: Lead, *, depth: int = 0) -> str:
    """A page with its addresses led into the archive; everything else stays as it is."""
    return "".join(_pieces(text, url, lead, depth))


def css(text: str, url: str, lead: Lead) -> str:
    """A style sheet, or a style attribute, with its addresses led into the archive."""

    def led(found: re.Match[str]) -> str:
        if found["comment"]:
            return found[0]
        if found["import"]:
            return f"{found['import']}{found['quote']}{_led(found['imported'], url, lead)}{found['quote']}"
        address = _led(found["address"], url, lead) if found["address"] else ""
        if not address:
            return found[0]
        # Addresses of ours may hold brackets, which only a quoted one may.
        quote = found["mark"] or "'"
        return found["url"] + quote + address.replace("'", "%27") + quote

    return _CSS.sub(led, text) if "url(" in text.lower() or "@import" in text.lower() else text


def srcset(value: str, url: str, lead: Lead) -> str:
    """A list of pictures with their widths or densities."""
    return _CANDIDATE.sub(
        lambda found: f"{found[1]}{_led(found[2], url, lead).replace(',', '%2C')}{found[3]}", value
    )


def refresh(value: str, url: str, lead: Lead) -> str:
    """`5; url=…`, of a meta tag or a header."""
    found = _REFRESH.match(value)
    if not found or not found[3]:
        return value
    return f"{found[1]}{_led(found[3], url, lead)}"


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
            said = token.data or ""
            yield css(said, base, lead) if is_style else said
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
    """What stands there instead; None where it goes."""
    if name in _REMOVED:
        return None
    if name in _LISTS:
        return srcset(value, base, lead)
    if name == "style":
        return css(value, base, lead)
    if name == "target":
        # Out of its frame is out of the archive.
        return "_self" if value.strip().lower() in _OWN_PLACES else value
    if name == "srcdoc" and depth < _DEEPEST_SRCDOC:
        return html(value, base, lead, depth=depth + 1)
    if tag == "meta":
        return _meta(name, value, attributes, base, lead)
    if name in _ADDRESSES and (tag, name) not in _NOT_LINKS and not (name == "data" and tag != "object"):
        return _led(value, base, lead)
    return value


def _meta(name: str, value: str, attributes: dict[str, str], base: str, lead: Lead) -> str | None:
    said = attributes.get("http-equiv", "").strip().lower()
    if name == "content" and said == "refresh":
        return refresh(value, base, lead)
    if name == "http-equiv" and said in ("content-security-policy", "set-cookie", "x-dns-prefetch-control"):
        return f"x-archive-orig-{said}"
    if name == "charset" or (name == "content" and said == "content-type"):
        return "utf-8" if name == "charset" else _CHARSET.sub("charset=utf-8", value)
    return value


def _led(address: str, base: str, lead: Lead) -> str:
    """The address in the archive; what names a place in the same page, or is no address of the web, stays."""
    stripped = address.strip()
    if not stripped or stripped.startswith("#"):
        return address
    absolute = find_canonical(stripped, base)
    led = lead(absolute) if absolute else None
    if led is None:
        return address
    _, mark, fragment = stripped.partition("#")
    return f"{led}{mark}{fragment}"
