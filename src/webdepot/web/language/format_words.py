"""Names of file formats as readers know them: "HTML 5", "PDF 1.4", "Word", instead of the names of PRONOM and
media types.
"""

import re

from webdepot.web.language.language import Language

_BY_NAME = (
    ("Extensible Hypertext Markup Language", "XHTML"),
    ("Hypertext Markup Language", "HTML"),
    ("Portable Document Format", "PDF"),
    ("PDF", "PDF"),
)
"""Parts of names of PRONOM; the version is added to the short name."""
_BY_MIME = {
    "text/html": "HTML",
    "application/xhtml+xml": "XHTML",
    "application/pdf": "PDF",
    "text/plain": "text",
    "application/msword": "word",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.oasis.opendocument.text": "word",
    "application/vnd.ms-excel": "sheet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "sheet",
    "application/vnd.oasis.opendocument.spreadsheet": "sheet",
    "application/vnd.ms-powerpoint": "slides",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "slides",
    "application/rss+xml": "feed",
    "application/atom+xml": "feed",
    "application/json": "JSON",
    "application/xml": "XML",
    "text/xml": "XML",
    "text/css": "CSS",
}
"""Media type to a name, or in small letters to the end of a key of the texts."""
_VERSION = re.compile(r"(?<![\w.])(\d+(?:\.\d+)*)(?![\w.])")


def of_format(spoken: Language, name: str, mime: str) -> str:
    """A short name: `name` is that of PRONOM with its version, empty if the file was not identified."""
    for part, short in _BY_NAME:
        if part in name:
            versions = _VERSION.findall(name)
            return f"{short} {versions[-1]}" if versions else short
    known = _BY_MIME.get(mime, "")
    if known.islower():
        return spoken.texts[f"browse.format_{known}"]
    return known or name or mime
