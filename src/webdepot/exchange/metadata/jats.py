"""JATS (https://jats.nlm.nih.gov/), read only: the XML of journal articles. The file is the article itself as
well as its description.
"""

import re
from typing import Any

from lxml import etree

from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata.languages import two_letters
from webdepot.exchange.metadata.markup import children, find, text_of

_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def from_element(root: etree._Element) -> tuple[RecordLevel, dict[str, Any]]:
    """The fields of an `article` for the catalogue."""
    meta = find(root, "front", "article-meta")
    if meta is None:
        return RecordLevel.ARTICLE, {}
    numbers = {each.get("pub-id-type", ""): text_of(each) for each in children(meta, "article-id")}
    title = find(meta, "title-group", "article-title")
    values: dict[str, Any] = {
        "title": text_of(title),
        "subtitle": text_of(find(meta, "title-group", "subtitle")),
        "creators": tuple(
            name
            for group in children(meta, "contrib-group")
            for each in children(group, "contrib")
            if each.get("contrib-type", "author") == "author" and (name := _name(each))
        ),
        "date": _date(meta),
        "abstract": "\n".join(text_of(each) for each in children(meta, "abstract")),
        "keywords": tuple(
            text_of(word)
            for group in children(meta, "kwd-group")
            for word in children(group, "kwd")
            if text_of(word)
        ),
        "languages": (two_letters(root.get(_XML_LANG, "")),) if root.get(_XML_LANG) else (),
        "identifiers": (f"doi:{numbers['doi']}",) if numbers.get("doi") else (),
        "rights": text_of(find(meta, "permissions", "license"))
        or text_of(find(meta, "permissions", "copyright-statement")),
    }
    return RecordLevel.ARTICLE, {name: value for name, value in values.items() if value}


def host_of(root: etree._Element) -> dict[str, str]:
    """The journal: title, issn, volume, issue, date, publisher."""
    journal, meta = find(root, "front", "journal-meta"), find(root, "front", "article-meta")
    if journal is None or meta is None:
        return {}
    title = find(journal, "journal-title-group", "journal-title")
    values = {
        "title": text_of(title if title is not None else find(journal, "journal-title")),
        "issn": next((text_of(each) for each in children(journal, "issn") if text_of(each)), ""),
        "publisher": text_of(find(journal, "publisher", "publisher-name")),
        "volume": text_of(find(meta, "volume")),
        "issue": text_of(find(meta, "issue")),
        "date": _date(meta)[:4],
    }
    return {name: value for name, value in values.items() if value}


def _name(contributor: etree._Element) -> str:
    name = find(contributor, "name")
    if name is None:
        return text_of(find(contributor, "collab"))
    return ", ".join(filter(None, (text_of(find(name, "surname")), text_of(find(name, "given-names")))))


def _date(meta: etree._Element) -> str:
    for published in children(meta, "pub-date"):
        year, month, day = (text_of(find(published, each)) for each in ("year", "month", "day"))
        if re.fullmatch("[0-9]{4}", year):
            parts = [year]
            for part in (month, day):
                if not re.fullmatch("[0-9]{1,2}", part):
                    break
                parts.append(part.zfill(2))
            return "-".join(parts)
    return ""
