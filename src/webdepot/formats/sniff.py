"""Guess a format from the first bytes, where signatures do not help: PRONOM has no signatures for style
sheets, scripts, JSON and plain text, and misses SVG, XML and HTML with an unusual beginning; truncated files
lack the end that its signatures require.

Each function reads only the first bytes and returns a guess. The order of the tests for markup follows the
MIME Sniffing standard (https://mimesniff.spec.whatwg.org) where it applies.
"""

import codecs
import json
import re
from dataclasses import dataclass, replace

HEAD_BYTES = 65_536
LONGEST_JSON_BYTES = 4 << 20
CONTROL_CHARACTERS = 1445
"""Number of characters that are searched for binary ones (MIME Sniffing, 5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatGuess:
    """A guess at a format: PRONOM identifier, name, version, media type, and the reason as text."""

    puid: str
    name: str
    version: str = ""
    mime: str
    because: str
    whole: bool = True
    """False if the beginning is that of the format but its end is missing."""
    loose: bool = False
    """True for a fragment of HTML, or XML elements without a declaration."""


_PDF = {
    "1.0": "fmt/14",
    "1.1": "fmt/15",
    "1.2": "fmt/16",
    "1.3": "fmt/17",
    "1.4": "fmt/18",
    "1.5": "fmt/19",
    "1.6": "fmt/20",
    "1.7": "fmt/276",
    "2.0": "fmt/1129",
}
_MAGIC = (
    (rb"\x89PNG\r\n\x1a\n", "fmt/11", "Portable Network Graphics", "1.0", "image/png", False),
    (rb"GIF87a", "fmt/3", "Graphics Interchange Format", "87a", "image/gif", False),
    (rb"GIF89a", "fmt/4", "Graphics Interchange Format", "89a", "image/gif", False),
    (
        rb"\xff\xd8\xff\xe0..JFIF\0\x01\x00",
        "fmt/42",
        "JPEG File Interchange Format",
        "1.00",
        "image/jpeg",
        False,
    ),
    (
        rb"\xff\xd8\xff\xe0..JFIF\0\x01\x01",
        "fmt/43",
        "JPEG File Interchange Format",
        "1.01",
        "image/jpeg",
        False,
    ),
    (
        rb"\xff\xd8\xff\xe0..JFIF\0\x01\x02",
        "fmt/44",
        "JPEG File Interchange Format",
        "1.02",
        "image/jpeg",
        False,
    ),
    (rb"\xff\xd8\xff", "fmt/41", "Raw JPEG Stream", "", "image/jpeg", False),
    (
        rb"\0\0\x01\0[\x01-\x40]\0.{4}[\0-\x04]\0",
        "x-fmt/418",
        "Icon file format",
        "",
        "image/vnd.microsoft.icon",
        True,
    ),
    (
        rb"ID3[\x02-\x04]|\xff[\xfa\xfb\xf2\xf3][\x10-\xeb]",
        "fmt/134",
        "MPEG 1/2 Audio Layer 3",
        "",
        "audio/mpeg",
        True,
    ),
    (
        rb".{8}[\0\x01]\0[\x01\x02]\0.{22}LP",
        "",
        "Embedded OpenType",
        "",
        "application/vnd.ms-fontobject",
        True,
    ),
    (rb"\x1a\x45\xdf\xa3.{0,60}?webm", "fmt/573", "WebM", "", "video/webm", True),
    (rb"\x1a\x45\xdf\xa3.{0,60}?matroska", "fmt/569", "Matroska", "", "video/x-matroska", True),
    (rb"OggS\0", "fmt/944", "Ogg Multimedia Container", "", "application/ogg", False),
    (rb"....ftyp", "fmt/199", "MPEG-4 Media File", "", "video/mp4", False),
    (rb"FORM....AIFF", "x-fmt/135", "Audio Interchange File Format", "1.2", "audio/x-aiff", False),
    (rb"FORM....AIFC", "x-fmt/136", "Audio Interchange File Format (compressed)", "", "audio/x-aiff", False),
    (rb"II\*\0|MM\0\*", "fmt/353", "Tagged Image File Format", "", "image/tiff", False),
    (rb"\0\0\0\x0cjP  \r\n\x87\n", "x-fmt/392", "JP2 (JPEG 2000 part 1)", "", "image/jp2", False),
    (rb"wOFF", "fmt/616", "WOFF (Web Open Font Format)", "1.0", "font/woff", False),
    (rb"wOF2", "fmt/1172", "WOFF (Web Open Font Format)", "2.0", "font/woff2", False),
    (rb"OTTO\0", "fmt/520", "OpenType Font File", "", "font/otf", False),
    (rb"\0\x01\0\0\0[\x04-\x40]", "x-fmt/453", "TrueType Font", "", "font/ttf", False),
    (rb"\x1f\x8b\x08", "x-fmt/266", "GZIP Format", "", "application/gzip", False),
    (rb"fLaC\0", "fmt/279", "FLAC (Free Lossless Audio Codec)", "", "audio/flac", False),
    (rb"RIFF....WEBP", "", "WebP", "", "image/webp", False),
    (rb"RIFF....WAVE", "fmt/6", "Waveform Audio", "", "audio/x-wav", False),
    (rb"PK\x03\x04", "x-fmt/263", "ZIP Format", "", "application/zip", False),
)
_ANY_MAGIC = re.compile(b"|".join(b"(%b)" % row[0] for row in _MAGIC), re.S)
"""One group for each row: the number of the group that matched is the number of the row."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BINARY = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SKIPPED = re.compile(r"\s+|<!--.*?(?:-->|\Z)|<\?(?!php|=).*?(?:\?>|\Z)", re.S)
_DOCTYPE = re.compile(r"<!doctype\s+([a-z:_][\w:.-]*)([^>\[]*)(?:\[.*?\]\s*)?>?", re.I | re.S)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.-]*(?::[\w.-]+)?)((?:\s[^<>]*)?)/?>?", re.S)
_HTML_TAGS = frozenset(
    ("html", "head", "body", "title", "script", "style", "link", "meta", "base", "iframe", "frameset",
     "noscript", "object", "embed", "applet", "h1", "h2", "h3", "h4", "h5", "h6", "div", "font", "table",
     "tr", "td", "a", "br", "p", "img", "form", "ul", "ol", "li", "dl", "span", "center", "b", "i", "strong",
     "em", "main", "section", "article", "header", "footer", "nav", "button", "input", "select", "label",
     "pre", "blockquote", "hr")
)  # fmt: skip
# These are searched in hostile bytes: each alternative is bounded, so that the time stays linear.
_CSS = re.compile(
    r"@(?:import|charset|media|font-face|namespace|keyframes|supports|page|layer)\b"
    r"|\{\s*(?:[\w-]{1,100}\s{0,20}:|\})"
)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.S)
_JS = re.compile(
    r"""\b(?:var|let|const|function|return|typeof|window|document|import|export|class|async|new)\b"""
    r"""|=>|["']use strict["']"""
    r"""|[\w$\])]\s{0,20}(?:\(|=[^=])|^\s{0,200}(?:/\*|//)""",
    re.M,
)


def binary(head: bytes) -> FormatGuess | None:
    """A binary format by its first bytes, for files that match none of PRONOM's signatures."""
    at = head.find(b"%PDF-", 0, 1032)
    if at >= 0 and (number := head[at + 5 : at + 8].decode("latin-1")) in _PDF:
        return _pdf(number)
    match = _ANY_MAGIC.match(head)
    if not match:
        return None
    _, puid, name, version, mime, whole = _MAGIC[int(match.lastindex or 1) - 1]
    because = (
        f"it begins like {name}" if whole else f"it begins like {name}, but its end is missing or damaged"
    )
    return FormatGuess(puid=puid, name=name, version=version, mime=mime, because=because, whole=whole)


def _pdf(number: str) -> FormatGuess:
    because = "it begins like Acrobat PDF, but its end is missing or damaged"
    return FormatGuess(
        puid=_PDF[number],
        name="Acrobat PDF",
        version=number,
        mime="application/pdf",
        because=because,
        whole=False,
    )


def text_of(head: bytes) -> str | None:
    """The bytes as text; None if they are not text. Text is UTF-8, UTF-16 with a byte order mark, or an 8-bit
    encoding without control characters.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return head[len(mark) :].decode(encoding, "replace")
    if b"\0" in head:  # checked first: decoding binary data as text is slow
        return None
    # The head may end within a character (`False`: more may come); that does not mean another encoding.
    text, length = codecs.utf_8_decode(head, "ignore", False)
    stray = 0 if length == len(text) else length - len(text.encode())
    # Like browsers, search for control characters only at the beginning; scripts may have some in strings
    # later on.
    if _BINARY.search(text[:CONTROL_CHARACTERS]) or stray > max(8, len(head) * 0.3):
        return None
    return text if not stray else head.decode("windows-1252", "replace")


def markup(text: str, *, expects_xml: bool = False) -> FormatGuess | None:
    """HTML, SVG or other XML by document type or first element, after any comments.

    `expects_xml` means that the name or the server says XML, so that elements that HTML also has (`a`,
    `link`, `title`) do not make it HTML.
    """
    rest, declared = text[:HEAD_BYTES], text.lstrip().startswith("<?xml")
    while skipped := _SKIPPED.match(rest):
        rest = rest[skipped.end() :]
    doctype = _DOCTYPE.match(rest)
    if doctype and doctype.group(1).lower() == "html":
        return _html(doctype.group(2), declared)
    if doctype:
        rest = rest[doctype.end() :]
        while skipped := _SKIPPED.match(rest):
            rest = rest[skipped.end() :]
    element = _ELEMENT.match(rest)
    if not element:
        return _xml("") if declared else None
    name, attributes = element.group(1), element.group(2)
    local = name.rpartition(":")[2]
    if local == "svg":
        return _svg(attributes)
    if local.lower() == "html" and "http://www.w3.org/1999/xhtml" in attributes and declared:
        # Only a document type would give the XHTML version; PRONOM has no entry for XHTML in general.
        return _looks(
            "fmt/101",
            "Extensible Markup Language",
            "1.0",
            "application/xhtml+xml",
            "its first element is html in the XHTML namespace",
        )
    is_root = local.lower() == "html"
    if (
        local.lower() in _HTML_TAGS
        and ":" not in name
        and (not expects_xml or is_root)
        and (not declared or (is_root and not expects_xml))
    ):
        seen = _looks(
            "fmt/96", "Hypertext Markup Language", "", "text/html", f"its first element is {local.lower()}"
        )
        return replace(seen, loose=local.lower() not in ("html", "head", "body", "title", "frameset"))
    if declared or doctype or expects_xml or "xmlns" in attributes or text.rstrip().endswith(">"):
        return replace(_xml(local), loose=not (declared or doctype or expects_xml))
    return None


def json_text(text: str, *, is_all: bool) -> FormatGuess | None:
    """JSON that parses as a whole, or the beginning of a longer one that looks like it."""
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return None
    if is_all:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None
        return _looks(
            "fmt/817",
            "JSON Data Interchange Format",
            "",
            "application/json",
            "all of it is JSON",
        )
    if re.match(r'\s*(?:\{\s*"(?:[^"\\]|\\.){0,2000}"\s*:|\[\s*[\[{"\d-])', text):
        return _looks(
            "fmt/817", "JSON Data Interchange Format", "", "application/json", "it begins like JSON"
        )
    return None


def is_css(text: str) -> bool:
    """Whether it has rules like a style sheet, or nothing but comments."""
    bare = _CSS_COMMENT.sub("", text)
    return not bare.strip() or bool(_CSS.search(bare))


def is_javascript(text: str) -> bool:
    """Whether it has JavaScript keywords or operators and is not markup. `<!--` also begins a comment in old
    scripts.
    """
    start = text.lstrip()[:4]
    return (start[:1] != "<" or start == "<!--") and bool(_JS.search(text))


def _html(public: str, declared: bool) -> FormatGuess:
    for mark, puid, version in (("XHTML 1.1", "fmt/103", "1.1"), ("XHTML 1.0", "fmt/102", "1.0")):
        if mark in public:
            mime = "application/xhtml+xml" if declared else "text/html"
            return _looks(
                puid, "Extensible Hypertext Markup Language", version, mime, f"its document type names {mark}"
            )
    for mark, puid, version in (
        ("HTML 4.01", "fmt/100", "4.01"),
        ("HTML 4.0", "fmt/99", "4.0"),
        ("HTML 3.2", "fmt/98", "3.2"),
        ("HTML 2.0", "fmt/97", "2.0"),
    ):
        if mark in public:
            return _looks(
                puid, "Hypertext Markup Language", version, "text/html", f"its document type names {mark}"
            )
    if "PUBLIC" in public.upper():
        return _looks("fmt/96", "Hypertext Markup Language", "", "text/html", "its document type is html")
    return _looks(
        "fmt/471", "Hypertext Markup Language", "5", "text/html", "its document type is that of HTML5"
    )


def _svg(attributes: str) -> FormatGuess:
    version = re.search(r"\bversion\s*=\s*[\"']([\d.]+)", attributes)
    # The document type of SVG 1.1 sets the default of the attribute, so a file without it counts as 1.1.
    number = version.group(1) if version else "1.1"
    puid = {"1.0": "fmt/91", "1.2": "fmt/413"}.get(number, "fmt/92")
    return _looks(puid, "Scalable Vector Graphics", number, "image/svg+xml", "its first element is svg")


def _xml(local: str) -> FormatGuess:
    mime = {"rss": "application/rss+xml", "feed": "application/atom+xml", "RDF": "application/rdf+xml"}.get(
        local, "application/xml"
    )
    return _looks(
        "fmt/101",
        "Extensible Markup Language",
        "1.0",
        mime,
        f"it is XML with the first element {local}" if local else "it begins with an XML declaration",
    )


def _looks(puid: str, name: str, version: str, mime: str, because: str) -> FormatGuess:
    return FormatGuess(puid=puid, name=name, version=version, mime=mime, because=because)
