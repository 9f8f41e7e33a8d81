"""A page on its way to the replay worker in the browser, changed where wabac.js 2.27 would damage it:

    byte-order mark   wabac.js recodes the page to UTF-8 without declaring it: we declare it in the media type
    UTF-16, JIS       wabac.js reads every page byte by byte unless it is in UTF-8: these are recoded
    <embed>           wabac.js waits for an end tag, which this element never has, takes that of the next
                      script instead and loses the rest of the page: we add an end tag
    _parent           wabac.js makes it the outermost page, as `_top`: written `_Parent`, which means the same
                      in browsers, it is left for `archived_page.js`
    letters outside   in pages of another encoding wabac.js reads addresses as UTF-8, and every character
    ASCII             reference in a tag as one byte: addresses are escaped, references replaced by the letter

    import map        wabac.js rewrites what relative addresses lead to as scripts, not as modules: they are
                      made absolute

Everything else keeps its bytes and its encoding: scripts and style sheets without an encoding of their own
have that of the page, and so do the queries of its forms.
"""

import html
import json
import re
from urllib.parse import quote, urljoin

from webdepot.text.encoding import decode, with_query_in
from webdepot.text.entities import unescape
from webdepot.url import find_canonical

MOST_BYTES = 16 << 20
"""A longer page is sent unchanged."""
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_RECODED = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp", "hz"})
"""Encodings in which a byte below 128 may be a part of another character."""
_ADDRESSES = frozenset(
    rb"""
    href src action formaction background poster data cite longdesc codebase archive lowsrc dynsrc xlink:href
    """.split()
)
_LISTS = frozenset({b"srcset", b"imagesrcset"})

_EMBED = re.compile(rb"(<embed\b[^<>]*+>)(?!\s*+</embed)", re.IGNORECASE)
_PARENT = re.compile(
    rb"""(<(?:a|area|base|form|input|button)\s[^<>]*?(?<=[\s"'])(?:form)?target\s*+=\s*+["']?)_parent\b""",
    re.IGNORECASE,
)
_BASE = re.compile(rb"""<base\s[^<>]*?(?<=[\s"'])href\s*+=\s*+["']?([^"'\s<>]++)""", re.IGNORECASE)
_IMPORT_MAP = re.compile(
    rb"""(<script\s[^<>]*?(?<=[\s"'])type\s*+=\s*+["']?importmap\b[^<>]*+>)([^<]*+)(?=</script)""",
    re.IGNORECASE,
)
_TAG = re.compile(rb"<[a-zA-Z][^<>]*+>")
_ATTRIBUTE = re.compile(
    rb"""(?<![^\s"'/])(?P<name>[^\s"'<>/=]++)(?P<is>\s*+=\s*+)(?P<value>"[^"]*+"|'[^']*+'|[^\s"'<>]++)"""
)
_REFRESH = re.compile(r"\A\s*+[\d.]++\s*+[;,]\s*+url", re.IGNORECASE)


def prepared(page: bytes, content_type: str, url: str) -> tuple[bytes, str]:
    """The page and its media type as wabac.js can read them. `content_type` is the archived header, `url` the
    page's address.
    """
    if len(page) > MOST_BYTES:
        return page, content_type
    text, encoding = decode(page, content_type)
    if page.startswith(_MARKS) or encoding in _RECODED:
        page, encoding = text.encode("utf-8", "replace"), "utf-8"
        content_type = f"{content_type.partition(';')[0].strip()}; charset=utf-8"
    if encoding != "utf-8":
        page = _TAG.sub(lambda tag: _in_encoding(tag[0], encoding), page)
    page = _EMBED.sub(rb"\1</embed>", page)
    page = _PARENT.sub(rb"\1_Parent", page)
    base = _BASE.search(page)
    base_url = find_canonical(unescape(base[1].decode("latin-1")), url) if base else None
    page = _IMPORT_MAP.sub(lambda match: match[1] + _whole(match[2], base_url or url), page)
    return page, content_type


def _whole(import_map: bytes, base: str) -> bytes:
    """An import map (https://html.spec.whatwg.org/#import-maps) without relative addresses; anything else is
    unchanged.
    """

    def whole(address: object) -> object:
        is_relative = isinstance(address, str) and address.startswith(("./", "../"))
        return urljoin(base, str(address)) if is_relative else address

    def with_whole(addresses: object) -> object:
        if not isinstance(addresses, dict):
            return addresses
        return {
            whole(name): with_whole(value) if isinstance(value, dict) else whole(value)
            for name, value in addresses.items()
        }

    try:
        table = json.loads(import_map)
        changed = {name: with_whole(value) for name, value in table.items()}
    except (ValueError, AttributeError, RecursionError):
        return import_map
    return json.dumps(changed).replace("<", "\\u003c").encode("ascii")


def _in_encoding(tag: bytes, encoding: str) -> bytes:
    """A tag of a page in this encoding, with attributes that wabac.js leaves as they are."""
    if tag.isascii() and b"&" not in tag:
        return tag
    return _ATTRIBUTE.sub(lambda attribute: _attribute(attribute, encoding), tag)


def _attribute(attribute: re.Match[bytes], encoding: str) -> bytes:
    value, name = attribute["value"], attribute["name"].lower()
    text = unescape(value.strip(value[:1] if value[:1] in (b'"', b"'") else b"").decode(encoding, "replace"))
    if text.isascii():
        return attribute[0]
    if name in _LISTS:
        text = _escaped(text)
    elif name in _ADDRESSES or (name == b"content" and _REFRESH.match(text)):
        text = _escaped(with_query_in(text, encoding))
    elif b"&" not in value:
        return attribute[0]
    try:
        changed = html.escape(text).encode(encoding)
    except UnicodeEncodeError:
        return attribute[0]
    return attribute["name"] + attribute["is"] + b'"' + changed + b'"'


def _escaped(address: str) -> str:
    return "".join(letter if letter.isascii() else quote(letter) for letter in address)
