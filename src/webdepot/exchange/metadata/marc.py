"""MARCXML (MARC 21 bibliographic): the format that current library catalogues load.

https://www.loc.gov/standards/marcxml/. A site is an integrating resource (leader/07 i); a slice is a part of
it and links to it in 773. Addresses are in 856 with a machine-readable label in $x, as in German
repositories: Resolving-URL, Frontdoor-URL, Transfer-URL.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lxml import etree

from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.metadata.languages import three_letters, two_letters
from webdepot.exchange.metadata.markup import XSI, add, text_of
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer

MARC = "http://www.loc.gov/MARC21/slim"
FOREIGN = "marc"
"""Kind of a sender's record in `CatalogueRecord.foreign`."""
SCHEMA = "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd"
# Leader/06 and /07: type of record, and whether it is a monograph, a component part or continuing.
_LEADER = {
    RecordLevel.SITE: "ai",
    RecordLevel.SLICE: "ai",
    RecordLevel.JOURNAL: "as",
    RecordLevel.ISSUE: "ab",
    RecordLevel.ARTICLE: "ab",
    RecordLevel.MONOGRAPH: "am",
    RecordLevel.THESIS: "am",
}
_Field = tuple[str, str, str, Sequence[tuple[str, str]]]


def to_element(
    levels: Sequence[CatalogueRecord], transfer: Transfer | None, *, addresses: ObjectAddresses
) -> etree._Element:
    """The lowest of these levels as a `record`."""
    own, above = levels[-1], levels[-2] if len(levels) > 1 else None
    root = etree.Element(f"{{{MARC}}}record", nsmap={None: MARC, "xsi": XSI})
    root.set(f"{{{XSI}}}schemaLocation", f"{MARC} {SCHEMA}")
    root.set("type", "Bibliographic")
    status = "n" if own.created_at == own.changed_at else "c"
    add(root, f"{{{MARC}}}leader", f"00000{status}{_LEADER[own.level]} a2200000uu 4500")
    add(root, f"{{{MARC}}}controlfield", own.key, tag="001")
    if addresses.code:
        add(root, f"{{{MARC}}}controlfield", addresses.code, tag="003")
    add(root, f"{{{MARC}}}controlfield", f"{own.changed_at:%Y%m%d%H%M%S}.0", tag="005")
    add(root, f"{{{MARC}}}controlfield", "cr||||||||||||", tag="007")
    add(root, f"{{{MARC}}}controlfield", _coded(levels), tag="008")
    for tag, first, second, subfields in _fields(levels, above, transfer, addresses):
        element = add(root, f"{{{MARC}}}datafield", None, tag=tag, ind1=first, ind2=second)
        for code, text in subfields:
            add(element, f"{{{MARC}}}subfield", text, code=code)
    return root


def _inherited(levels: Sequence[CatalogueRecord], name: str) -> str:
    return next((str(value) for each in reversed(levels) if (value := getattr(each, name))), "")


def _gathered(levels: Sequence[CatalogueRecord], name: str) -> tuple[str, ...]:
    return next((value for each in reversed(levels) if (value := getattr(each, name))), ())


def _coded(levels: Sequence[CatalogueRecord]) -> str:
    """Field 008: forty characters; `|` where the value is unknown. The positions of continuing resources:
    15 place, 21 type (`w`: a web site that is updated), 23 form (`o`: online), 35 language, 39 source.
    """
    own = levels[-1]
    year = (own.date or own.run_from or "")[:4]
    first = year if year.isdigit() and len(year) == 4 else "||||"
    languages = _gathered(levels, "languages")
    spoken = three_letters(languages[0])[:3].ljust(3, "|") if languages else "|||"
    kind = "w" if own.level in (RecordLevel.SITE, RecordLevel.SLICE) else "|"
    coded = f"{own.created_at:%y%m%d}|{first}||||xx |||{kind}|o{'|' * 11}{spoken}|c"
    return coded[:40].ljust(40, "|")


def _fields(
    levels: Sequence[CatalogueRecord],
    above: CatalogueRecord | None,
    transfer: Transfer | None,
    addresses: ObjectAddresses,
) -> Iterator[_Field]:
    own = levels[-1]
    for kind, tag in (("isbn", "020"), ("issn", "022")):
        yield from ((tag, " ", " ", (("a", value),)) for value in _identifiers(own, kind))
    yield "024", "7", " ", (("a", own.urn), ("2", "urn"))
    for kind in ("doi", "hdl"):
        yield from (("024", "7", " ", (("a", value), ("2", kind))) for value in _identifiers(own, kind))
    if addresses.code:
        yield "040", " ", " ", (("a", addresses.code),)
    if languages := _gathered(levels, "languages"):
        yield "041", " ", " ", tuple(("a", three_letters(code)) for code in languages)
    yield from (("082", "0", "4", (("a", notation),)) for notation in _gathered(levels, "ddc"))
    yield from _names(levels)
    parts = [
        ("a", own.title),
        ("b", own.subtitle),
        ("n", own.part),
        ("c", own.responsibility or _inherited(levels, "responsibility")),
    ]
    yield "245", "1" if _gathered(levels, "creators") else "0", "0", _filled(parts)
    published = _filled(
        [
            ("a", _inherited(levels, "place")),
            ("b", _inherited(levels, "publisher")),
            ("c", own.date or own.run_from),
        ]
    )
    if published:
        yield "264", " ", "1", published
    if own.run_from:
        yield "362", "1", " ", (("a", f"{own.run_from} - {own.run_to}".strip()),)
    if abstract := own.abstract or _inherited(levels, "abstract"):
        yield "520", " ", " ", (("a", abstract),)
    if rights := _inherited(levels, "rights"):
        yield "540", " ", " ", (("a", rights),)
    yield from (("653", " ", " ", (("a", word),)) for word in _gathered(levels, "keywords"))
    if genre := _inherited(levels, "genre"):
        yield "655", " ", "4", (("a", genre),)
    if above is not None:
        yield "773", "0", " ", (("t", above.title), ("w", above.key), ("o", above.urn))
    yield from _addresses(levels, transfer, addresses)


def _names(levels: Sequence[CatalogueRecord]) -> Iterator[_Field]:
    """The first creator is the main entry; names with a comma are persons."""
    for number, name in enumerate(_gathered(levels, "creators")):
        is_person = "," in name
        tag = ("100" if is_person else "110") if number == 0 else ("700" if is_person else "710")
        yield tag, "1" if is_person else "2", " ", (("a", name),)
    for name in _gathered(levels, "contributors"):
        is_person = "," in name
        yield (
            "700" if is_person else "710",
            "1" if is_person else "2",
            " ",
            (("a", name), ("e", "contributor")),
        )


def _addresses(
    levels: Sequence[CatalogueRecord], transfer: Transfer | None, addresses: ObjectAddresses
) -> Iterator[_Field]:
    own = levels[-1]
    yield "856", "4", "0", (("u", addresses.resolver(own.urn)), ("x", "Resolving-URL"))
    yield "856", "4", "0", (("u", addresses.front_page(own.key)), ("x", "Frontdoor-URL"))
    if transfer is not None:
        size = str(transfer.size_bytes)
        yield (
            "856",
            "4",
            "0",
            (
                ("u", addresses.transfer(own.key, transfer.form)),
                ("q", "application/zip"),
                ("s", size),
                ("x", "Transfer-URL"),
            ),
        )
    yield from (
        ("856", "4", "2", (("u", url), ("x", "Original-URL"))) for url in _gathered(levels, "addresses")
    )


def _identifiers(record: CatalogueRecord, kind: str) -> list[str]:
    return [value.partition(":")[2] for value in record.identifiers if value.startswith(f"{kind}:")]


def _filled(parts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((code, text) for code, text in parts if text)


def from_element(root: etree._Element) -> tuple[RecordLevel, dict[str, Any]]:
    """The level of a `record`, and its fields for the catalogue (with `urn` if it has one)."""
    fields = [
        (
            each.get("tag", ""),
            [(sub.get("code", ""), text_of(sub)) for sub in each.iterfind(f"{{{MARC}}}subfield")],
        )
        for each in root.iterfind(f"{{{MARC}}}datafield")
    ]

    def every(tags: str, codes: str) -> tuple[str, ...]:
        return tuple(
            text
            for tag, subs in fields
            if tag in tags.split()
            for code, text in subs
            if code in codes and text
        )

    numbers = {
        dict(subs).get("2", "").lower(): value
        for tag, subs in fields
        if tag == "024"
        for code, value in subs
        if code == "a" and value
    }
    places = [dict(subs) for tag, subs in fields if tag == "856"]
    values: dict[str, Any] = {
        "urn": numbers.pop("urn", ""),
        "title": _unpunctuated(next(iter(every("245", "a")), "")),
        "subtitle": _unpunctuated(" ".join(every("245", "b"))),
        "responsibility": " ".join(every("245", "c")),
        "part": " ".join(every("245", "np")),
        "creators": tuple(map(_unpunctuated, every("100 110 111", "a"))),
        "contributors": tuple(map(_unpunctuated, every("700 710 711", "a"))),
        "place": _unpunctuated(next(iter(every("260 264", "a")), "")),
        "publisher": _unpunctuated(next(iter((*every("260 264", "b"), *every("502", "c"))), "")),
        "date": next(
            (year[0] for text in every("260 264 502", "cd") if (year := re.search("[0-9]{4}", text))), ""
        ),
        "languages": tuple(dict.fromkeys(map(two_letters, every("041", "a")))),
        "ddc": every("082", "a"),
        "abstract": "\n".join(every("520", "a")),
        "rights": "; ".join(every("540", "a")),
        "keywords": tuple(map(_unpunctuated, every("650 653", "a"))),
        "genre": _unpunctuated(next(iter(every("655", "a")), "")),
        "identifiers": (
            *(f"{kind}:{value}" for kind, value in numbers.items() if kind),
            *(f"isbn:{value}" for value in every("020", "a")),
            *(f"issn:{value}" for value in every("022", "a")),
        ),
        "addresses": tuple(
            parts["u"] for parts in places if "u" in parts and parts.get("x", "") in ("", "Original-URL")
        ),
    }
    return _level(root, bool(every("502", "abcd"))), {name: value for name, value in values.items() if value}


def _level(root: etree._Element, is_thesis: bool) -> RecordLevel:
    kind = (text_of(root.find(f"{{{MARC}}}leader")) + " " * 8)[7]
    return (
        RecordLevel.THESIS
        if is_thesis
        else {"s": RecordLevel.JOURNAL, "b": RecordLevel.ARTICLE, "a": RecordLevel.ARTICLE}.get(
            kind, RecordLevel.MONOGRAPH
        )
    )


def _unpunctuated(text: str) -> str:
    """The text without the punctuation that ISBD puts between the parts of a record."""
    stripped = text.strip()
    return stripped[:-1].rstrip() if stripped.endswith(("/", ":", ";", ",", "=")) else stripped
