"""Descriptions that come with files, recognised by their root element: Dublin Core (also that of DSpace),
MARCXML, MODS, MABxml, JATS, and METS that embeds one of them.

An article is described with the levels above it, its journal and issue, as far as its record names them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import dublin_core, jats, mab, marc, markup, mods, regbib
from webdepot.exchange.metadata.regbib import METS, DeliveredLevel

_PLAIN_DOCTYPE = re.compile(
    rb"\A((?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?)<!DOCTYPE\s[^>\[]*>", re.IGNORECASE
)
_VOLUME = re.compile(r"([0-9]+)")
# Counted, not `*`: nothing is tried more than a few times at each place.
_ISSUE = re.compile(r"(?:no|nr|iss[a-z]{0,5}|heft|h|number)\.?\s{0,3}([0-9][0-9/–-]{0,20})", re.IGNORECASE)
_RESTRICTED = re.compile(r"(?:closed|restricted|embargoed)access\b", re.IGNORECASE)


def parse(data: bytes, *, what: str) -> etree._Element:
    """The root element; InputError if it is not safe, well-formed XML. A document type that only names an
    outside definition, as JATS files have it, is left out; it is never read.
    """
    return markup.parse(_PLAIN_DOCTYPE.sub(rb"\1", data[:4096]) + data[4096:], what=what)


def levels_of(root: etree._Element) -> tuple[DeliveredLevel, ...]:
    """The levels that a document describes, from the top down; empty if it is not a known description."""
    name = markup.local(root)
    if root.tag == f"{{{METS}}}mets":
        return regbib.levels_of(root) or _first(map(_of_section, _sections(root)))
    if name in ("collection", "modsCollection", "datei"):
        return _first(map(levels_of, markup.children(root)))
    return _of_section(root) if name in ("record", "mods", "datensatz", "article") else _of_dublin_core(root)


def is_content(root: etree._Element) -> bool:
    """Whether a description is also a file of the object itself."""
    return markup.local(root) == "article"


def below_journal(own: DeliveredLevel, host: Mapping[str, str]) -> tuple[DeliveredLevel, ...]:
    """An article with the levels above it; alone if its journal is not known. `host` has the title of the
    journal, issn, volume, issue, date and publisher, as far as known.
    """
    if not host.get("title"):
        return (own,)
    journal: dict[str, Any] = {"title": host["title"]}
    if host.get("issn"):
        journal["identifiers"] = (f"issn:{host['issn']}",)
    if host.get("publisher"):
        journal["publisher"] = host["publisher"]
    levels = [DeliveredLevel(level=RecordLevel.JOURNAL, fields=journal, xml="", kind="")]
    part = _issue_name(host)
    if part:
        issue = {"title": host["title"], "part": part} | ({"date": host["date"]} if host.get("date") else {})
        levels.append(DeliveredLevel(level=RecordLevel.ISSUE, fields=issue, xml="", kind=""))
    article = DeliveredLevel(level=RecordLevel.ARTICLE, fields=own.fields, xml=own.xml, kind=own.kind)
    return (*levels, article)


def with_access(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with restricted access if the statement of rights says so (COAR, OpenAIRE)."""
    is_restricted = _RESTRICTED.search(re.sub(r"[\s_-]", "", str(fields.get("rights", ""))))
    return {**fields, "access": "restricted"} if is_restricted else fields


def _issue_name(host: Mapping[str, str]) -> str:
    """`12 (2004), 3`"""
    volume = " ".join(
        filter(None, (host.get("volume", ""), f"({host['date'][:4]})" if host.get("date") else ""))
    )
    return (
        ", ".join(filter(None, (volume, host.get("issue", ""))))
        if host.get("volume") or host.get("issue")
        else ""
    )


def _first(candidates: Iterator[tuple[DeliveredLevel, ...]]) -> tuple[DeliveredLevel, ...]:
    return next((levels for levels in candidates if levels), ())


def _sections(root: etree._Element) -> Iterator[etree._Element]:
    for content in root.iterfind(f"{{{METS}}}dmdSec/{{{METS}}}mdWrap/{{{METS}}}xmlData"):
        inside = list(markup.children(content))
        is_bare = any(markup.namespace(each) == dublin_core.DC for each in inside)
        yield from [content] if is_bare else inside


def _of_section(element: etree._Element) -> tuple[DeliveredLevel, ...]:
    name = markup.local(element)
    if element.tag == f"{{{marc.MARC}}}record":
        level, fields = marc.from_element(element)
        return below_journal(_level(level, fields, element, marc.FOREIGN), _host_of_marc(element))
    if name == "mods":
        level, fields = mods.from_element(element)
        return below_journal(_level(level, fields, element, mods.FOREIGN), mods.host_of(element))
    if name == "datensatz" and element.tag == f"{{{mab.MAB}}}datensatz":
        fields = mab.from_element(element)
        return (_level(regbib.level_of(element), fields, element, mab.FOREIGN),)
    if name == "article" and markup.find(element, "front", "article-meta") is not None:
        level, fields = jats.from_element(element)
        return below_journal(
            DeliveredLevel(level=level, fields=fields, xml="", kind=""), jats.host_of(element)
        )
    return _of_dublin_core(element)


def _of_dublin_core(root: etree._Element) -> tuple[DeliveredLevel, ...]:
    read = _of_dspace(root) if markup.local(root) == "dublin_core" else dublin_core.from_element(root)
    if not read.title:
        return ()
    level, fields = dublin_core.to_fields(read)
    return (_level(level, fields, root, dublin_core.FOREIGN),)


def _of_dspace(root: etree._Element) -> dublin_core.DublinCore:
    """`dublin_core.xml` of DSpace's simple archive format: `<dcvalue element="date" qualifier="issued">`."""
    renamed = {"contributor.author": "creator", "contributor.advisor": "contributor"}
    values: dict[str, tuple[str, ...]] = {}
    for each in markup.children(root, "dcvalue"):
        element, qualifier = each.get("element", ""), each.get("qualifier", "none")
        name = renamed.get(f"{element}.{qualifier}", element)
        if name in dublin_core.DublinCore.__dataclass_fields__ and (text := markup.text_of(each)):
            is_first = (element, qualifier) in (("date", "issued"), ("title", "none"))
            before = values.get(name, ())
            values[name] = (text, *before) if is_first else (*before, text)
    return dublin_core.DublinCore(**values)


def _host_of_marc(record: etree._Element) -> dict[str, str]:
    """The journal in field 773: title, ISSN, and `Vol. 12, no. 3 (2004), p. 1`."""
    for field in record.iterfind(f"{{{marc.MARC}}}datafield[@tag='773']"):
        parts = {
            each.get("code", ""): markup.text_of(each) for each in field.iterfind(f"{{{marc.MARC}}}subfield")
        }
        place = parts.get("g", "")
        volume, issue, year = _VOLUME.search(place), _ISSUE.search(place), re.search("[12][0-9]{3}", place)
        host = {
            "title": parts.get("t", "").rstrip(" .,"),
            "issn": parts.get("x", ""),
            "volume": volume[1] if volume and volume[1] != (year[0] if year else "") else "",
            "issue": issue[1] if issue else "",
            "date": year[0] if year else "",
        }
        return {name: value for name, value in host.items() if value}
    return {}


def _level(level: RecordLevel, fields: dict[str, Any], element: etree._Element, kind: str) -> DeliveredLevel:
    return DeliveredLevel(level=level, fields=fields, xml=markup.verbatim(element), kind=kind)
