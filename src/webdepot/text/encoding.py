"""The text of a page: by byte-order mark, charset of the header, charset of the page, UTF-8, or windows-1252.

The order and the meaning of labels follow the WHATWG (https://encoding.spec.whatwg.org,
https://html.spec.whatwg.org, 13.2.3.2): browsers read a page labelled ISO-8859-1 as windows-1252. `decode`
never fails. `with_query_in` is for the links of a page, whose queries are in the encoding of the page.
"""

import codecs
import re
from functools import lru_cache
from urllib.parse import quote

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_HEADER = re.compile(r"charset\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)
_DECLARED = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*+=\s*+["']?\s*+([\w.:-]+)|<\?xml[^>]{0,100}?encoding\s*+=\s*+["']([\w.:-]+)""",
    re.IGNORECASE,
)
_PRESCAN_BYTES = 4096
_BROWSER_ENCODINGS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
_PLAIN_IN_QUERY = "".join(set(map(chr, range(0x21, 0x7F))) - set("\"#<>'"))
"""The second byte of an East Asian letter may be one of these; browsers leave it as it is."""


def decode(data: bytes, content_type: str) -> tuple[str, str]:
    """The text and the name of its encoding."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace"), name
    name = _declared(data, content_type)
    if name:
        return data.decode(name, "replace"), name
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # A limit may have cut the last character.
        if error.reason == "unexpected end of data":
            return data.decode("utf-8", "replace"), "utf-8"
        return data.decode("cp1252", "replace"), "cp1252"


def with_query_in(reference: str, encoding: str) -> str:
    """A reference with the letters outside ASCII of its query escaped in the page's encoding (URL Standard,
    5.3). In the rest of an address they are always in UTF-8.
    """
    if encoding == "utf-8" or encoding.startswith("utf-16") or "?" not in reference:
        return reference
    path, _, rest = reference.partition("?")
    query, mark, fragment = rest.partition("#")
    quoted = "".join(letter if letter.isascii() else _quoted(letter, encoding) for letter in query)
    return f"{path}?{quoted}{mark}{fragment}"


def _quoted(letter: str, encoding: str) -> str:
    try:
        return quote(letter.encode(encoding), safe=_PLAIN_IN_QUERY)
    except UnicodeEncodeError:
        return quote(f"&#{ord(letter)};", safe="")


def _declared(data: bytes, content_type: str) -> str:
    header = _HEADER.search(content_type)
    if header and (name := python_name(header[1])):
        return name
    own = _DECLARED.search(data, 0, _PRESCAN_BYTES)
    name = python_name((own[1] or own[2]).decode("ascii")) if own else ""
    # A page whose declaration can be read as ASCII is not in UTF-16.
    return "utf-8" if name.startswith("utf-16") else name


@lru_cache(maxsize=256)
def python_name(label: str) -> str:
    """Python's name of the encoding that browsers use for a label; empty for an unknown label."""
    try:
        info = codecs.lookup(label.strip().lower().removeprefix("x-"))
    except (LookupError, ValueError):
        return ""
    # Python also has codecs that are not character sets (rot13, base64, punycode).
    if not info._is_text_encoding or info.name in (
        "rot13",
        "punycode",
        "idna",
        "unicode_escape",
        "raw_unicode_escape",
        "undefined",
        "utf-7",
    ):
        return ""
    return _BROWSER_ENCODINGS.get(info.name, info.name)
