"""MODS 3 (https://www.loc.gov/standards/mods/), read only: the description that most METS files of libraries
embed. Local names are used, so that all versions can be read.
"""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata.languages import two_letters
from webdepot.exchange.metadata.markup import children, find, local, text_of

FOREIGN = "mods"
"""Kind of a sender's record in `CatalogueRecord.foreign`."""
_CREATORS = {"", "aut", "author", "cre", "creator", "dis", "dissertant"}
_DAY = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?")


def from_element(root: etree._Element) -> tuple[RecordLevel, dict[str, Any]]:
    """The level of a `mods` element, and its fields for the catalogue."""
    title = _own_title(root)
    names = [(_name(each), _role(each)) for each in children(root, "name")]
    identifiers = [(each.get("type", "").lower(), text_of(each)) for each in children(root, "identifier")]
    genres = [text_of(each) for each in children(root, "genre") if text_of(each)]
    values: dict[str, Any] = {
        "urn": next((value for kind, value in identifiers if kind == "urn"), ""),
        "title": " ".join(filter(None, (text_of(find(title, "nonSort")), text_of(find(title, "title")))))
        if title is not None
        else "",
        "subtitle": text_of(find(title, "subTitle")) if title is not None else "",
        "creators": tuple(name for name, role in names if name and role in _CREATORS),
        "contributors": tuple(name for name, role in names if name and role not in _CREATORS),
        "publisher": "; ".join(_origin(root, "publisher")),
        "date": next((day[0] for text in _dates(root) if (day := _DAY.search(text))), ""),
        "languages": tuple(
            dict.fromkeys(
                two_letters(text_of(term))
                for each in children(root, "language")
                for term in children(each, "languageTerm")
                if term.get("type", "code") == "code" and text_of(term)
            )
        ),
        "abstract": "\n".join(text_of(each) for each in children(root, "abstract")),
        "keywords": tuple(
            text_of(topic)
            for each in children(root, "subject")
            for topic in children(each)
            if local(topic) in ("topic", "geographic", "temporal") and text_of(topic)
        ),
        "ddc": tuple(
            text_of(each)
            for each in children(root, "classification")
            if each.get("authority", "").lower() == "ddc"
        ),
        "genre": genres[0] if genres else "",
        "identifiers": tuple(
            f"{kind}:{value}"
            for kind, value in identifiers
            if value and kind in ("doi", "isbn", "issn", "hdl")
        ),
        "rights": "; ".join(text_of(each) for each in children(root, "accessCondition") if text_of(each)),
    }
    return _level(genres), {name: value for name, value in values.items() if value}


def host_of(root: etree._Element) -> dict[str, str]:
    """The journal that an article is in: title, issn, volume, issue, date; empty if there is none."""
    for related in children(root, "relatedItem"):
        if related.get("type") != "host":
            continue
        title = _own_title(related)
        values = {
            "title": text_of(find(title, "title")) if title is not None else "",
            "issn": next(
                (text_of(each) for each in children(related, "identifier") if each.get("type") == "issn"), ""
            ),
        }
        for holder in (related, root):
            for part in children(holder, "part"):
                for detail in children(part, "detail"):
                    if detail.get("type") in ("volume", "issue"):
                        values.setdefault(str(detail.get("type")), text_of(find(detail, "number")))
                values.setdefault("date", text_of(find(part, "date")))
        return {name: value for name, value in values.items() if value}
    return {}


def _own_title(root: etree._Element) -> etree._Element | None:
    titles = list(children(root, "titleInfo"))
    return next((each for each in titles if not each.get("type")), titles[0] if titles else None)


def _name(element: etree._Element) -> str:
    parts = {part.get("type", ""): text_of(part) for part in children(element, "namePart") if text_of(part)}
    if parts.get("family"):
        return ", ".join(filter(None, (parts["family"], parts.get("given", ""))))
    return parts.get("", "") or text_of(find(element, "displayForm"))


def _role(element: etree._Element) -> str:
    for role in children(element, "role"):
        for term in children(role, "roleTerm"):
            return text_of(term).lower()
    return ""


def _origin(root: etree._Element, *names: str) -> Iterator[str]:
    for origin in children(root, "originInfo"):
        for element in children(origin):
            if local(element) in names and text_of(element):
                yield text_of(element)


def _dates(root: etree._Element) -> Iterator[str]:
    for name in ("dateIssued", "dateCreated", "copyrightDate"):
        yield from _origin(root, name)


def _level(genres: list[str]) -> RecordLevel:
    text = " ".join(genres).lower()
    if re.search("thesis|dissertation|habilitation", text):
        return RecordLevel.THESIS
    if "article" in text:
        return RecordLevel.ARTICLE
    return RecordLevel.JOURNAL if re.search("journal|periodical", text) else RecordLevel.MONOGRAPH
