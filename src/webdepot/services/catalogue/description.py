"""Describing a site: what its own start page says, completed by a person; and the record in the formats of
others (mission K22, X10).
"""

from collections.abc import Iterable
from enum import StrEnum

from lxml import etree

from webdepot.access.policy import Reader
from webdepot.access.replay.rewrite import text_of
from webdepot.archive import Archive
from webdepot.errors import InputError, WebdepotError
from webdepot.exchange.addresses import Addresses
from webdepot.exchange.catalogue import Record, Source
from webdepot.exchange.metadata import dublin_core, marc, schema_org
from webdepot.model import EVERYTHING, TargetId
from webdepot.services.access import replay
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
"""What a person fills in; other fields come from the harvest."""
LISTED = frozenset({"creators", "contributors", "keywords", "ddc", "languages"})


class Form(StrEnum):
    """Forms of others in which a record is written."""

    MARCXML = "marcxml"
    DUBLIN_CORE = "dc"
    JSON_LD = "jsonld"


def own_words(archive: Archive, target: TargetId) -> Values:
    """What the start page of a site says of itself in its newest version; nothing where it is not kept or
    cannot be read.
    """
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
        if found := site_metadata.words_of(text, archive.config.archive.languages):
            return found
    return {}


def draft(archive: Archive, target: TargetId) -> tuple[Record, Values, frozenset[str]]:
    """The record of a site, the values for its form, and which of them are the site's own words, not looked
    at by anybody yet.
    """
    record = records.site_record(archive, targets.get(archive, target).target)
    own = own_words(archive, target)
    values: dict[str, str | tuple[str, ...]] = {}
    taken: set[str] = set()
    for name in FIELDS:
        kept, source = getattr(record, name), record.sources.get(name)
        # The program's own title is the host or the name of the nomination: the site knows better, a person
        # best.
        is_offered = name in own and (not kept or source is None)
        values[name] = own[name] if is_offered else kept
        if is_offered or (kept and source == Source.SITE):
            taken.add(name)
    return record, values, frozenset(taken)


def save(archive: Archive, target: TargetId, given: Values, *, by: str = "") -> Record:
    """Write what a person filled in. What they left as the site says it is kept as the site's own words."""
    record, offered, taken = draft(archive, target)
    checked = {name: records.checked(name, value) for name, value in given.items() if name in FIELDS}
    own = {
        name: value
        for name, value in checked.items()
        if name in taken and value == records.checked(name, offered[name])
    }
    person = {name: value for name, value in checked.items() if name not in own}
    if own:
        record = records.write(archive, record.key, own, source=Source.SITE, by=by)
    record = records.write(archive, record.key, person, source=Source.PERSON, by=by) if person else record
    return (
        records.restrict(archive, record.key, str(given["access"]), by=by) if given.get("access") else record
    )


def may_be_named(archive: Archive, record: Record) -> bool:
    """Whether the publisher's URN can still take the place of ours: nobody was told of any slice yet."""
    return not records.view(archive, record.key).children


def take_over(archive: Archive, target: TargetId, *, by: str = "") -> Record:
    """Fill the record from the site's own words in its newest version; what a person or a partner wrote
    stays.

    Harvests do so by themselves when they are kept (`titles`); this is for sites that were kept before, and
    for imported ones.
    """
    record = records.site_record(archive, targets.get(archive, target).target)
    said = site_metadata.filled(record, own_words(archive, target))
    changed = {name: getattr(said, name) for name in FIELDS if getattr(said, name) != getattr(record, name)}
    return records.write(archive, record.key, changed, source=Source.SITE, by=by) if changed else record


def given_in(texts: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Fields written as `name=value`; a name with several values comes several times. InputError names the
    fields that there are.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or name not in FIELDS:
            raise InputError(
                f"{text[:60]!r} is no field with its value. Write it like genre=museum. Fields: {', '.join(FIELDS)}."
            )
        found.setdefault(name, []).append(value.strip())
    twice = [name for name, values in found.items() if len(values) > 1 and name not in LISTED]
    if twice:
        raise InputError(f"{twice[0]} has one value only.")
    return {name: tuple(values) if name in LISTED else values[0] for name, values in found.items()}


def addresses_of(archive: Archive, portal_url: str) -> Addresses:
    return Addresses(
        portal_url=portal_url,
        institution=archive.config.archive.name,
        code=archive.config.exchange.institution_code,
    )


def as_marcxml(archive: Archive, key: str, *, portal_url: str) -> bytes:
    seen = records.view(archive, key)
    transfer = records.find_transfer(archive, key) if seen.record.is_object else None
    made = marc.to_element(seen.levels, transfer, addresses=addresses_of(archive, portal_url))
    data: bytes = etree.tostring(made, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return data


def as_dublin_core(archive: Archive, key: str, *, portal_url: str) -> bytes:
    seen = records.view(archive, key)
    return dublin_core.to_xml(dublin_core.of_levels(seen.levels, identifiers=(f"{portal_url}/title/{key}",)))


def as_json_ld(archive: Archive, key: str, *, portal_url: str) -> str:
    seen = records.view(archive, key)
    return schema_org.to_script(
        schema_org.to_object(seen.levels, seen.children, addresses=addresses_of(archive, portal_url))
    )


def as_text(archive: Archive, key: str, form: Form, *, portal_url: str) -> str:
    match form:
        case Form.MARCXML:
            return as_marcxml(archive, key, portal_url=portal_url).decode()
        case Form.DUBLIN_CORE:
            return as_dublin_core(archive, key, portal_url=portal_url).decode()
        case Form.JSON_LD:
            return as_json_ld(archive, key, portal_url=portal_url) + "\n"
