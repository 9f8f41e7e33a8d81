"""Media types as servers send them: which ones mean the same, which say nothing, and whether a server was
wrong.

Registered names: https://www.iana.org/assignments/media-types. Servers use many unregistered ones.
"""

import re

_ESSENCE = re.compile(r"(?=.{3,127}\Z)[^\s/]*/[^\s/]*\Z", re.S)
_SAME = (
    ("text/html", "application/xhtml+xml"),
    (
        "application/javascript",
        "text/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "text/ecmascript",
        "text/x-javascript",
    ),
    ("application/xml", "text/xml"),
    ("application/json", "text/json", "text/x-json"),
    ("image/jpeg", "image/jpg", "image/pjpeg", "image/jfif"),
    ("image/png", "image/x-png", "image/vnd.mozilla.apng", "image/apng"),
    ("image/x-icon", "image/vnd.microsoft.icon", "image/ico"),
    ("image/bmp", "image/x-ms-bmp", "image/x-bmp"),
    ("image/svg+xml", "image/svg"),
    ("application/pdf", "application/x-pdf"),
    ("application/zip", "application/x-zip-compressed", "application/x-zip"),
    ("application/gzip", "application/x-gzip", "application/x-tgz", "application/x-compressed-tar"),
    ("audio/x-wav", "audio/wav", "audio/wave", "audio/vnd.wave"),
    ("audio/mpeg", "audio/mp3", "audio/x-mp3", "audio/mpeg3"),
    ("audio/x-aiff", "audio/aiff"),
    ("video/mp4", "audio/mp4", "application/mp4", "audio/x-m4a", "video/x-m4v"),
    ("video/quicktime", "video/mp4"),
    ("application/ogg", "audio/ogg", "video/ogg"),
    ("video/webm", "audio/webm", "video/x-matroska"),
    ("application/rtf", "text/rtf"),
    ("application/x-shockwave-flash", "application/vnd.adobe.flash.movie"),
    ("font/woff", "application/font-woff", "application/x-font-woff", "font/x-woff"),
    ("font/woff2", "application/font-woff2", "application/x-font-woff2"),
    (
        "font/ttf",
        "application/x-font-ttf",
        "application/x-font-truetype",
        "font/sfnt",
        "application/font-sfnt",
        "font/truetype",
    ),
    (
        "font/otf",
        "application/x-font-opentype",
        "application/vnd.ms-opentype",
        "font/opentype",
        "font/sfnt",
        "application/font-sfnt",
    ),
    ("application/vnd.ms-fontobject", "font/eot"),
    ("text/csv", "application/csv", "text/comma-separated-values"),
    ("text/markdown", "text/x-markdown"),
)
_CANONICAL = {name: names[0] for names in reversed(_SAME) for name in names}
_SAME_AS = {
    name: frozenset(other for names in _SAME if name in names for other in names)
    for names in _SAME
    for name in names
}
_SAYS_NOTHING = frozenset(
    ("", "unk", "*/*", "application/octet-stream", "binary/octet-stream", "application/unknown",
     "application/x-unknown", "unknown/unknown", "content/unknown", "application/force-download",
     "application/download", "application/x-download")
)  # fmt: skip
_NEEDS_ITS_OWN = frozenset(("text/html", "text/css", "application/javascript", "image/svg+xml"))
"""Browsers treat these differently if a server calls them plain text, so that type is wrong for them, not
merely vague.
"""


def essence(content_type: str) -> str:
    """The media type without parameters: `text/html` for `Text/HTML; charset=utf-8`; empty if it is none."""
    mime = content_type.partition(";")[0].partition(",")[0].strip().lower()
    return mime if _ESSENCE.match(mime) else ""


def says_nothing(mime: str) -> bool:
    return mime in _SAYS_NOTHING


def agree(stated: str, actual: str) -> bool:
    """Whether the media type that a server stated fits the actual one."""
    if says_nothing(stated) or not actual or stated == actual:
        return True
    if stated == "text/plain" and is_text(actual) and canonical(actual) not in _NEEDS_ITS_OWN:
        return True
    if actual in _SAME_AS.get(stated, ()):
        return True
    return _family(stated) is not None and _family(stated) == _family(actual)


def canonical(mime: str) -> str:
    """The preferred one of the media types that mean the same."""
    return _CANONICAL.get(mime, mime)


def is_text(mime: str) -> bool:
    return (
        mime.startswith("text/")
        or canonical(mime) in ("application/javascript",)
        or _family(mime) is not None
    )


def is_xml(mime: str) -> bool:
    return _family(mime) == "xml"


def _family(mime: str) -> str | None:
    """`xml` or `json` for the hundreds of media types based on them; None for others."""
    if mime.endswith("+xml") or mime in ("application/xml", "text/xml"):
        return None if mime == "image/svg+xml" else "xml"
    return "json" if mime.endswith("+json") or mime in ("application/json", "text/json") else None
