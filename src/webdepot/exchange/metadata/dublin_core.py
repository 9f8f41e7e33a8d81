"""Dublin Core as `oai_dc`: the format that every OAI-PMH repository must offer, and the simplest description
in a package.

http://www.openarchives.org/OAI/2.0/oai_dc.xsd: fifteen elements, each repeatable, all optional, in any order.
Characters that XML 1.0 forbids (control characters in crawled titles) are left out when writing, since one of
them would break a whole response.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from lxml import etree

from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel, sets_of
from webdepot.exchange.metadata.languages import two_letters
from webdepot.exchange.metadata.markup import plain

OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
LOCATION = f"{OAI_DC} http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
FOREIGN = "dc"
"""Kind of a sender's record in `CatalogueRecord.foreign`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DublinCore:
    """The fifteen elements, each as often as needed."""

    title: tuple[str, ...] = ()
    creator: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    description: tuple[str, ...] = ()
    publisher: tuple[str, ...] = ()
    contributor: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    format: tuple[str, ...] = ()
    identifier: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    relation: tuple[str, ...] = ()
    coverage: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()


def of_levels(levels: Sequence[CatalogueRecord], *, identifiers: Sequence[str] = ()) -> DublinCore:
    """The lowest of these levels (top first); elements that it lacks come from the levels above."""
    own, above = levels[-1], levels[:-1]

    def inherited(name: str) -> str:
        return next((value for each in reversed(levels) if (value := getattr(each, name))), "")

    def gathered(name: str) -> tuple[str, ...]:
        return next((value for each in reversed(levels) if (value := getattr(each, name))), ())

    is_web = own.level in (RecordLevel.SITE, RecordLevel.SLICE)
    kinds = [spec for spec in sets_of(own) if spec.startswith("doc-type:")]
    return DublinCore(
        title=_given(own.title) + _given(own.subtitle),
        creator=gathered("creators"),
        subject=tuple(
            dict.fromkeys((*gathered("keywords"), *(f"ddc:{notation}" for notation in gathered("ddc"))))
        ),
        description=_given(own.abstract or inherited("abstract")),
        publisher=_given(inherited("publisher")),
        contributor=gathered("contributors"),
        date=_given(own.date or own.run_from),
        type=(*kinds, "InteractiveResource" if is_web else "Text"),
        format=("application/warc",) if own.level is RecordLevel.SLICE else (),
        identifier=(*_given(own.urn), *identifiers, *own.identifiers),
        source=tuple(dict.fromkeys(gathered("addresses"))),
        language=gathered("languages"),
        relation=tuple(each.urn for each in reversed(above)),
        coverage=_given(inherited("place")),
        rights=_given(inherited("rights")),
    )


def to_xml(record: DublinCore) -> bytes:
    """An `oai_dc:dc` document in UTF-8; empty values are left out."""
    data: bytes = etree.tostring(
        to_element(record), xml_declaration=True, encoding="UTF-8", pretty_print=True
    )
    return data


def to_element(record: DublinCore) -> etree._Element:
    root = etree.Element(f"{{{OAI_DC}}}dc", nsmap={"oai_dc": OAI_DC, "dc": DC, "xsi": XSI})
    root.set(f"{{{XSI}}}schemaLocation", LOCATION)
    for item in fields(record):
        for value in getattr(record, item.name):
            if text := plain(value).strip():
                etree.SubElement(root, f"{{{DC}}}{item.name}").text = text
    return root


def from_element(root: etree._Element) -> DublinCore:
    """The Dublin Core elements anywhere below an element."""
    known = {f"{{{DC}}}{item.name}": item.name for item in fields(DublinCore)}
    values: dict[str, tuple[str, ...]] = {}
    for element in root.iter():
        name = known.get(element.tag)
        text = "".join(element.itertext()).strip() if name else ""
        if name and text:
            values[name] = (*values.get(name, ()), text)
    return DublinCore(**values)


def to_fields(record: DublinCore) -> tuple[RecordLevel, dict[str, Any]]:
    """The level of a foreign record, and its fields for the catalogue (with `urn` if it names one)."""
    types = " ".join(record.type).lower()
    level = (
        RecordLevel.THESIS if re.search("thesis|dissertation|habilitation", types) else RecordLevel.MONOGRAPH
    )
    names = [value for value in record.identifier if value.lower().startswith("urn:nbn:")]
    values: dict[str, Any] = {
        "urn": names[0] if names else "",
        "title": record.title[0] if record.title else "",
        "subtitle": " ".join(record.title[1:]),
        "creators": record.creator,
        "contributors": record.contributor,
        "publisher": "; ".join(record.publisher),
        "keywords": tuple(value for value in record.subject if not value.startswith("ddc:")),
        "ddc": tuple(value.removeprefix("ddc:") for value in record.subject if value.startswith("ddc:")),
        "abstract": "\n".join(record.description),
        "languages": tuple(map(two_letters, record.language)),
        "date": next(
            (value for value in record.date if re.match(r"[0-9]{4}(?:-[0-9]{2}){0,2}\Z", value)), ""
        ),
        "identifiers": tuple(
            value for value in record.identifier if value not in names[:1] and not value.startswith("http")
        ),
        "addresses": tuple(value for value in record.identifier if value.startswith(("http://", "https://"))),
        "rights": "; ".join(record.rights),
    }
    return level, {name: value for name, value in values.items() if value}


def _given(value: str) -> tuple[str, ...]:
    return (value,) if value else ()
