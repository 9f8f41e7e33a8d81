"""How a version is cited, for programs that keep literature: BibTeX and RIS
(https://en.wikipedia.org/wiki/RIS_(file_format)).

Words for people are the face's own: they stand in the reader's language.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from webdepot.times import moment_of
from webdepot.url import host_of

_BIBTEX_SIGNS = {
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


class Form(StrEnum):
    BIBTEX = "bibtex"
    RIS = "ris"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One version of a page and everything that names it."""

    title: str
    """Of the page; its address where it has none."""
    url: str
    timestamp: str
    archive: str
    """Name of the institution's archive."""
    address: str
    """Where the version is shown."""
    urn: str = ""
    """Of the harvest that brought it; empty where it has none."""


def written(citation: Citation, form: Form) -> str:
    return _bibtex(citation) if form is Form.BIBTEX else _ris(citation)


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
    return "".join(_BIBTEX_SIGNS.get(sign, sign) for sign in _one_line(text))


def _one_line(text: str) -> str:
    """A title with a line end would begin a field of its own."""
    return _LINE_END.sub(" ", text).strip()
