"""Describe a site: the metadata of its own start page, completed by a person; and export its record as
MARCXML, Dublin Core or JSON-LD.
"""

from collections.abc import Iterable
from enum import StrEnum

from lxml import etree

from webdepot.access.policy import Reader
from webdepot.access.replay.server_rewrite import text_of
from webdepot.archive import Archive
from webdepot.errors import InputError, WebdepotError
from webdepot.exchange.catalogue import CatalogueRecord, Source
from webdepot.exchange.metadata import dublin_core, marc, schema_org
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.model import EVERYTHING, TargetId
from webdepot.services.access.replay import replay
from webdepot.services.catalogue import records
from webdepot.services.depot import site_metadata
from webdepot.services.depot.site_metadata import Values
from webdepot.services.selection import targets
from webdepot.times import to_timestamp

FIELDS = (
    "title",
    "subtitle",
    "creators",
    "contributors",
    "publisher",
    "place",
    "country",
    "genre",
    "keywords",
    "ddc",
    "abstract",
    "languages",
    "run_from",
    "run_to",
    "rights",
)
"""The fields that a person can fill; the others come from the harvest."""
LISTED = frozenset({"creators", "contributors", "keywords", "ddc", "languages"})
"""Fields with several values."""


class RecordForm(StrEnum):
    """Formats in which a record can be exported."""

    MARCXML = "marcxml"
    DUBLIN_CORE = "dc"
    JSON_LD = "jsonld"


def site_values(archive: Archive, target: TargetId) -> Values:
    """The metadata on the newest version of a site's start page; empty if it cannot be read."""
    dossier = targets.get(archive, target)
    now = to_timestamp(archive.clock())
    for seed in dossier.target.seeds[:3]:
        try:
            opened = replay.open_capture(
                archive, seed, now, collection=EVERYTHING, reader=Reader.staff(archive.agent)
            )
        except (WebdepotError, OSError):
            continue
        try:
            kind = opened.head.get("content-type") if opened.head else ""
            text = text_of(replay.content_of(opened).read(site_metadata.READ_BYTES), kind or "")
        except (WebdepotError, OSError, ValueError, EOFError):
            continue
        finally:
            opened.close()
        if values := site_metadata.read_values(text, archive.config.archive.languages):
            return values
    return {}


def draft(archive: Archive, target: TargetId) -> tuple[CatalogueRecord, Values, frozenset[str]]:
    """The record of a site, the values for its form, and the names of those taken from the site itself."""
    record = records.site_record(archive, targets.get(archive, target).target)
    own = site_values(archive, target)
    values: dict[str, str | tuple[str, ...]] = {}
    from_site: set[str] = set()
    for name in FIELDS:
        kept, source = getattr(record, name), record.sources.get(name)
        # A value without a source is the program's own, such as the host as title: the site's is better, and
        # a person's best.
        is_offered = name in own and (not kept or source is None)
        values[name] = own[name] if is_offered else kept
        if is_offered or (kept and source == Source.SITE):
            from_site.add(name)
    return record, values, frozenset(from_site)


def save(archive: Archive, target: TargetId, values: Values, *, by: str = "") -> CatalogueRecord:
    """Write the values of a person. The site stays the source of those that the person did not change."""
    record, offered, from_site = draft(archive, target)
    checked = {name: records.checked(name, value) for name, value in values.items() if name in FIELDS}
    own = {
        name: value
        for name, value in checked.items()
        if name in from_site and value == records.checked(name, offered[name])
    }
    person = {name: value for name, value in checked.items() if name not in own}
    if own:
        record = records.write(archive, record.key, own, source=Source.SITE, by=by)
    record = records.write(archive, record.key, person, source=Source.PERSON, by=by) if person else record
    if values.get("access"):
        return records.restrict(archive, record.key, str(values["access"]), by=by)
    return record


def may_assign_urn(archive: Archive, record: CatalogueRecord) -> bool:
    """Whether the publisher's URN can still replace ours: no harvest was published under ours yet."""
    return not records.view(archive, record.key).children


def take_over(archive: Archive, target: TargetId, *, by: str = "") -> CatalogueRecord:
    """Fill the record from the metadata on the site's newest start page; what a person or partner wrote
    stays.

    A deposit does this automatically (`deposit_records`); this function is for sites deposited before that
    existed, and for imports.
    """
    record = records.site_record(archive, targets.get(archive, target).target)
    filled = site_metadata.fill(record, site_values(archive, target))
    changed = {
        name: getattr(filled, name) for name in FIELDS if getattr(filled, name) != getattr(record, name)
    }
    return records.write(archive, record.key, changed, source=Source.SITE, by=by) if changed else record


def parse_fields(texts: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Fields written as `name=value`, repeated for several values; InputError lists the known fields."""
    fields: dict[str, list[str]] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or name not in FIELDS:
            raise InputError(
                f"{text[:60]!r} is not a field with its value. Write it like genre=museum. "
                f"Fields: {', '.join(FIELDS)}."
            )
        fields.setdefault(name, []).append(value.strip())
    twice = [name for name, values in fields.items() if len(values) > 1 and name not in LISTED]
    if twice:
        raise InputError(f"{twice[0]} can have only one value.")
    return {name: tuple(values) if name in LISTED else values[0] for name, values in fields.items()}


def addresses_of(archive: Archive, portal_url: str) -> ObjectAddresses:
    return ObjectAddresses(
        portal_url=portal_url,
        institution=archive.config.archive.name,
        code=archive.config.exchange.institution_code,
    )


def as_marcxml(archive: Archive, key: str, *, portal_url: str) -> bytes:
    view = records.view(archive, key)
    transfer = records.find_transfer(archive, key) if view.record.is_object else None
    element = marc.to_element(view.levels, transfer, addresses=addresses_of(archive, portal_url))
    data: bytes = etree.tostring(element, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return data


def as_dublin_core(archive: Archive, key: str, *, portal_url: str) -> bytes:
    view = records.view(archive, key)
    return dublin_core.to_xml(dublin_core.of_levels(view.levels, identifiers=(f"{portal_url}/title/{key}",)))


def as_json_ld(archive: Archive, key: str, *, portal_url: str) -> str:
    view = records.view(archive, key)
    return schema_org.to_script(
        schema_org.to_object(view.levels, view.children, addresses=addresses_of(archive, portal_url))
    )


def as_text(archive: Archive, key: str, form: RecordForm, *, portal_url: str) -> str:
    match form:
        case RecordForm.MARCXML:
            return as_marcxml(archive, key, portal_url=portal_url).decode()
        case RecordForm.DUBLIN_CORE:
            return as_dublin_core(archive, key, portal_url=portal_url).decode()
        case RecordForm.JSON_LD:
            return as_json_ld(archive, key, portal_url=portal_url) + "\n"
