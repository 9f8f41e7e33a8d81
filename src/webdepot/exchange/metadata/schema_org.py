"""A catalogue record as schema.org JSON-LD (https://schema.org), for the page of a title and for programs
that read it.

A site is a `WebSite` with its slices as parts, like a journal with its issues; a slice is a `WebSite` that is
part of it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.object_addresses import ObjectAddresses

_TYPES = {
    RecordLevel.SITE: "WebSite",
    RecordLevel.SLICE: "WebSite",
    RecordLevel.JOURNAL: "Periodical",
    RecordLevel.ISSUE: "PublicationIssue",
    RecordLevel.ARTICLE: "ScholarlyArticle",
    RecordLevel.MONOGRAPH: "Book",
    RecordLevel.THESIS: "Thesis",
}
MOST_PARTS = 1000


def to_object(
    levels: Sequence[CatalogueRecord], children: Sequence[CatalogueRecord], *, addresses: ObjectAddresses
) -> dict[str, Any]:
    """The lowest of these levels; fields that it lacks come from the levels above."""
    own, page = levels[-1], addresses.front_page(levels[-1].key)

    def inherited(name: str) -> Any:
        return next((value for record in reversed(levels) if (value := getattr(record, name))), None)

    document: Mapping[str, Any] = {
        "@context": "https://schema.org",
        "@type": _TYPES[own.level],
        "@id": page,
        "name": f"{own.title}, {own.part}" if own.part else own.title,
        "alternativeHeadline": own.subtitle,
        "author": [{"@type": "Thing", "name": name} for name in inherited("creators") or ()],
        "contributor": [{"@type": "Thing", "name": name} for name in inherited("contributors") or ()],
        "publisher": {"@type": "Organization", "name": inherited("publisher")}
        if inherited("publisher")
        else None,
        "locationCreated": {"@type": "Place", "name": inherited("place")} if inherited("place") else None,
        "genre": inherited("genre"),
        "keywords": list(inherited("keywords") or ()),
        "abstract": inherited("abstract"),
        "inLanguage": list(inherited("languages") or ()),
        "temporalCoverage": f"{own.run_from}/{own.run_to or '..'}" if own.run_from else None,
        "dateCreated": own.date,
        "usageInfo": inherited("rights"),
        "identifier": [own.urn, *own.identifiers],
        "url": list(inherited("addresses") or ()),
        "archivedAt": page,
        "isPartOf": {
            "@type": _TYPES[levels[-2].level],
            "@id": addresses.front_page(levels[-2].key),
            "name": levels[-2].title,
        }
        if len(levels) > 1
        else None,
        "hasPart": [_part(child, addresses) for child in children[:MOST_PARTS] if child.withdrawn_at is None],
        "maintainer": {"@type": "ArchiveOrganization", "name": addresses.institution}
        if addresses.institution
        else None,
    }
    return {name: value for name, value in document.items() if value}


def _part(child: CatalogueRecord, addresses: ObjectAddresses) -> dict[str, Any]:
    part = {
        "@type": _TYPES[child.level],
        "@id": addresses.front_page(child.key),
        "name": child.part or child.title,
        "dateCreated": child.date,
    }
    return {name: value for name, value in part.items() if value}


def to_script(document: Mapping[str, Any]) -> str:
    """JSON that is safe inside a `<script>`: nothing in it ends the element or begins a comment."""
    text = json.dumps(document, ensure_ascii=False, indent=1)
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
