"""MABxml: records in MAB2, the exchange format of German libraries before MARC, as the LZA-RegBib profile
requires it.

Namespace and rules: mabxml-1.xsd (2004). An undefined indicator is one space, never empty; field numbers have
three digits. Each level is one `datensatz`: main record (`typ` h) at the top, `u` or `y` below, which names
the record above in field 010. Every level has its URN in 552b.

Writing: a partner's record that no person has changed here is sent exactly as received. Any other record is
written from the fields of the catalogue, followed by those fields of the partner that the catalogue does not
have.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lxml import etree

from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel, Source
from webdepot.exchange.metadata import markup
from webdepot.exchange.metadata.languages import three_letters, two_letters
from webdepot.exchange.metadata.markup import add
from webdepot.exchange.object_addresses import ObjectAddresses

MAB = "http://www.ddb.de/professionell/mabxml/mabxml-1.xsd"
FOREIGN = "mab"
LONGEST_RUN = 100
_RUN = re.compile(r"([0-9]{4}(?:-[0-9-]+)?)\s*-\s*([0-9]{4}[0-9-]*)?\Z")
"""Kind of a partner's record in `CatalogueRecord.foreign`."""
_TYPES = {RecordLevel.SLICE: "u", RecordLevel.ISSUE: "u", RecordLevel.ARTICLE: "y"}
_CONTINUING = {RecordLevel.SITE: "iws||||ak|||l||", RecordLevel.JOURNAL: "p||||||||||||||"}
_LIMITED = {
    RecordLevel.SLICE: "hw||||l|",
    RecordLevel.ISSUE: "||||||||",
    RecordLevel.ARTICLE: "a|||||||",
    RecordLevel.MONOGRAPH: "m|||||||",
    RecordLevel.THESIS: "m|||||||",
}
_PERSONS = tuple(f"{number:03d}" for number in range(100, 197, 4))
_BODIES = tuple(f"{number:03d}" for number in range(200, 297, 4))
_GENRE, _RIGHTS, _OTHER_ID = "Gattung: ", "Rechte: ", "Kennung: "
_IDENTIFIERS = {"doi": ("552", "a"), "hdl": ("552", "c"), "isbn": ("540", "a"), "issn": ("542", "a")}
_ORIGINAL, _ARCHIVE = "Original", "Archiv"
_OTHERS = (
    "001 002 003 004 010 030 036 037 050 051 052 058 070 089 090 331 334 335 359 405 410 412 425 426"
    " 501 540 542 552 652 655 700 710 750"
)
_WRITTEN = frozenset((*_OTHERS.split(), *_PERSONS, *_BODIES))


def to_element(
    record: CatalogueRecord, *, above: CatalogueRecord | None, identifier: str, addresses: ObjectAddresses
) -> etree._Element:
    """The record as a `datensatz`; `identifier` is its XML ID, which must be unique in the document."""
    foreign = _foreign(record)
    if foreign is not None and Source.PERSON.value not in record.sources.values():
        foreign.set("id", identifier)
        return foreign
    status = "n" if record.created_at == record.changed_at else "c"
    attributes = {
        "id": identifier,
        "typ": _TYPES.get(record.level, "h"),
        "status": status,
        "mabVersion": "M2.0",
    }
    root = etree.Element(f"{{{MAB}}}datensatz", attributes, nsmap={None: MAB})
    for number, indicator, value in sorted(_fields(record, above, addresses), key=lambda each: each[0]):
        element = add(root, f"{{{MAB}}}feld", None, nr=number, ind=indicator)
        if isinstance(value, str):
            element.text = markup.plain(value)
        else:
            for code, text in value:
                add(element, f"{{{MAB}}}uf", text, code=code)
    if foreign is not None:
        for field in markup.children(foreign, "feld"):
            if field.get("nr", "") not in _WRITTEN:
                root.append(field)
        root[:] = sorted(root, key=lambda field: field.get("nr", ""))
    return root


def _foreign(record: CatalogueRecord) -> etree._Element | None:
    xml = next((each["xml"] for each in record.foreign if each.get("kind") == FOREIGN), "")
    return markup.parse(xml.encode(), what="the partner's record") if xml else None


_Value = str | Sequence[tuple[str, str]]


def _fields(
    record: CatalogueRecord, above: CatalogueRecord | None, addresses: ObjectAddresses
) -> Iterator[tuple[str, str, _Value]]:
    yield "001", " ", record.key
    yield "002", "a", f"{record.created_at:%Y%m%d}"
    yield "004", " ", f"{record.changed_at:%Y%m%d}"
    if above is not None:
        yield "010", " ", above.key
    yield "030", " ", "h|zuz||||||37"
    yield from _given("036", "a", record.country.upper())
    for code in record.languages:
        yield "037", "b", three_letters(code)
    yield "050", " ", "||||||||g|||||"
    if record.level in _CONTINUING:
        yield "052", " ", _CONTINUING[record.level]
    else:
        yield "051", " ", _LIMITED[record.level]
    yield "058", " ", "cr||||||||||||"
    yield from _given("070", "a", addresses.code)
    yield from _given("089", " ", record.part)
    yield from _given("090", " ", re.sub(r"[^0-9]", "", record.date) if record.part else "")
    yield from _names(record)
    yield "331", " ", record.title
    yield "334", " ", "Elektronische Ressource"
    yield from _given("335", " ", record.subtitle)
    yield from _given("359", " ", record.responsibility)
    yield from _published(record)
    yield from _identified(record)
    yield "652", "a", (("a", "Online-Ressource"),)
    for url in record.addresses:
        yield "655", "e", (("u", url), ("x", _ORIGINAL))
    yield "655", "e", (("u", addresses.front_page(record.key)), ("x", _ARCHIVE))
    for notation in record.ddc:
        yield "700", "b", notation
    for word in record.keywords:
        yield "710", " ", word
    yield from _given("750", " ", record.abstract)


def _names(record: CatalogueRecord) -> Iterator[tuple[str, str, _Value]]:
    """Names with a comma are persons, others corporate bodies; contributors have the indicator b."""
    persons, bodies = iter(_PERSONS), iter(_BODIES)
    for names, indicator in ((record.creators, " "), (record.contributors, "b")):
        for name in names:
            number = next(persons if "," in name else bodies, "")
            if number:
                yield number, indicator, name


def _published(record: CatalogueRecord) -> Iterator[tuple[str, str, _Value]]:
    if record.run_from:
        yield "405", " ", f"{record.run_from} - {record.run_to}".strip()
    yield from _given("410", " ", record.place)
    yield from _given("412", " ", record.publisher)
    yield from _given("425", "a", record.date[:4])
    yield from _given("425", "b", record.run_from[:4])
    yield from _given("425", "c", record.run_to[:4])
    yield from _given("426", "a", re.sub(r"[^0-9]", "", record.date) if len(record.date) >= 7 else "")


def _identified(record: CatalogueRecord) -> Iterator[tuple[str, str, _Value]]:
    yield "552", "b", record.urn
    for identifier in record.identifiers:
        kind, _, value = identifier.partition(":")
        if kind in _IDENTIFIERS and value:
            yield (*_IDENTIFIERS[kind], value)
        else:
            yield "501", " ", _OTHER_ID + identifier
    yield from _given("501", " ", _GENRE + record.genre if record.genre else "")
    yield from _given("501", " ", _RIGHTS + record.rights if record.rights else "")


def _given(number: str, indicator: str, value: str) -> Iterator[tuple[str, str, _Value]]:
    if value:
        yield number, indicator, value


def from_element(root: etree._Element) -> dict[str, Any]:
    """The fields of a `datensatz` for the catalogue, with the sender's `key` and `parent`; `urn` may be
    missing.
    """
    fields: dict[str, Any] = {}
    lists: dict[str, list[str]] = {}
    for field in markup.children(root, "feld"):
        number, indicator = field.get("nr", ""), field.get("ind", " ")
        _read(number, indicator, field, fields, lists)
    run = _RUN.match(fields.pop("run", "")[:LONGEST_RUN])
    if run:
        fields["run_from"], fields["run_to"] = run[1], run[2] or ""
    day = fields.pop("day", "") or fields.pop("year", "")
    fields.pop("year", None)
    if day:
        fields["date"] = "-".join(part for part in (day[:4], day[4:6], day[6:8]) if part)
    return fields | {name: tuple(dict.fromkeys(values)) for name, values in lists.items()}


_SINGLE = {
    ("001", " "): "key",
    ("010", " "): "parent",
    ("036", "a"): "country",
    ("089", " "): "part",
    ("331", " "): "title",
    ("335", " "): "subtitle",
    ("359", " "): "responsibility",
    ("405", " "): "run",
    ("410", " "): "place",
    ("412", " "): "publisher",
    ("425", "a"): "year",
    ("425", "b"): "run_from",
    ("425", "c"): "run_to",
    ("426", "a"): "day",
    ("552", "b"): "urn",
    ("750", " "): "abstract",
    ("750", "b"): "abstract",
}
_REPEATED = {("700", "b"): "ddc", ("710", " "): "keywords", ("720", " "): "keywords"}


def _read(
    number: str, indicator: str, field: etree._Element, fields: dict[str, Any], lists: dict[str, list[str]]
) -> None:
    text = markup.text_of(field)
    if not text:
        return
    if (number, indicator) in _SINGLE:
        fields.setdefault(_SINGLE[number, indicator], text)
    elif (number, indicator) in _REPEATED:
        lists.setdefault(_REPEATED[number, indicator], []).append(text)
    elif number == "037":
        lists.setdefault("languages", []).append(two_letters(text))
    elif number in _PERSONS or number in _BODIES:
        # MAB also uses `b` (other) for the first body of a site; a name without others is the creator.
        lists.setdefault(
            "contributors" if indicator == "b" and lists.get("creators") else "creators", []
        ).append(text)
    elif number == "655":
        _read_address(field, lists)
    elif number == "501":
        _read_note(text, fields, lists)
    else:
        kind = next((name for name, place in _IDENTIFIERS.items() if place == (number, indicator)), "")
        if kind:
            lists.setdefault("identifiers", []).append(f"{kind}:{text}")


def _read_address(field: etree._Element, lists: dict[str, list[str]]) -> None:
    parts = {sub.get("code", ""): markup.text_of(sub) for sub in markup.children(field, "uf")}
    if parts.get("u") and parts.get("x", _ORIGINAL) != _ARCHIVE:
        lists.setdefault("addresses", []).append(parts["u"])


def _read_note(text: str, fields: dict[str, Any], lists: dict[str, list[str]]) -> None:
    for prefix, name in ((_GENRE, "genre"), (_RIGHTS, "rights")):
        if text.startswith(prefix):
            fields.setdefault(name, text.removeprefix(prefix))
    if text.startswith(_OTHER_ID):
        lists.setdefault("identifiers", []).append(text.removeprefix(_OTHER_ID))
