"""Citations of a version for reference managers: BibTeX and RIS
(https://en.wikipedia.org/wiki/RIS_(file_format)).

Citations for people are written by the interface, in the reader's language.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from webdepot.times import moment_of
from webdepot.url import host_of

_BIBTEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
}
_LINE_END = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+")


class CitationForm(StrEnum):
    BIBTEX = "bibtex"
    RIS = "ris"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One version of a page and everything that identifies it."""

    title: str
    """The title of the page, or its address if it has none."""
    url: str
    timestamp: str
    archive: str
    """Name of the institution's archive."""
    address: str
    """Where the version is shown."""
    urn: str = ""
    """URN of the harvest that captured it; empty if it has none."""


def write(citation: Citation, form: CitationForm) -> str:
    """The citation as text in this form."""
    return _bibtex(citation) if form is CitationForm.BIBTEX else _ris(citation)


def _bibtex(citation: Citation) -> str:
    day = moment_of(citation.timestamp).date()
    name = re.sub(r"[^a-z0-9]", "", host_of(citation.url).lower()) + citation.timestamp
    fields = {
        "title": _escaped(citation.title),
        "howpublished": f"\\url{{{_one_line(citation.url)}}}",
        "year": str(day.year),
        "month": str(day.month),
        "note": _escaped(
            f"Archived {day.isoformat()} by {citation.archive}"
            + (f", {citation.urn}" if citation.urn else "")
        ),
        "url": _one_line(citation.address),
    }
    lines = ",\n".join(f"  {key} = {{{value}}}" for key, value in fields.items())
    return f"@misc{{{name},\n{lines}\n}}\n"


def _ris(citation: Citation) -> str:
    day = moment_of(citation.timestamp).date()
    lines = [
        ("TY", "ELEC"),
        ("TI", citation.title),
        ("PY", f"{day.year:04d}"),
        ("DA", day.strftime("%Y/%m/%d")),
        ("DB", citation.archive),
        ("UR", citation.address),
        ("L2", citation.url),
        *([("N1", citation.urn)] if citation.urn else []),
        ("ER", ""),
    ]
    return "".join(f"{tag}  - {_one_line(value)}\r\n" for tag, value in lines)


def _escaped(text: str) -> str:
    return "".join(_BIBTEX_ESCAPES.get(char, char) for char in _one_line(text))


def _one_line(text: str) -> str:
    """The text on one line: a line break in a title would start a new field."""
    return _LINE_END.sub(" ", text).strip()
