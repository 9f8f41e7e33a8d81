"""Answers of OAI-PMH 2.0 from the catalogue: six verbs, five formats, deleted records kept for ever.

Every record of the catalogue is an item; `oai_mets_lmer` and `mets_premis` exist for those with files.
Protocol errors are answers too. The specification wants errors in arguments and verbs to be told without
repeating them, and everything else with what was asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from lxml import etree
from sqlalchemy import Connection

from webdepot.exchange import catalogue, transfer
from webdepot.exchange.addresses import Addresses
from webdepot.exchange.catalogue import Record
from webdepot.exchange.metadata import dublin_core, epicur, marc, markup, mets_premis, regbib
from webdepot.exchange.metadata.lmer import Version
from webdepot.exchange.metadata.markup import XSI, add
from webdepot.exchange.oai import protocol, window
from webdepot.exchange.oai.protocol import OAI, Arguments, Code, ListPosition, OaiError, OaiVerb
from webdepot.exchange.oai.window import RecordWindow
from webdepot.exchange.transfer import Transfer
from webdepot.times import to_iso

IDENTIFIER = "http://www.openarchives.org/OAI/2.0/oai-identifier"
PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"
STYLESHEET = "/-/static/oai.xsl"
MOST_FILES_IN_ANSWER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Who answers."""

    name: str
    base_url: str
    domain: str
    """In identifiers: oai:DOMAIN:key."""
    admin_email: str
    addresses: Addresses
    secret: bytes
    """For signing tokens; the same after a restart."""
    page_size: int = 100
    token_life: timedelta = timedelta(hours=48)
    with_provenance: bool = False
    lmer: Version = Version.NEW
    unpacked: bool = False
    """Objects are offered as trees of files, as far as they can be."""
    may_tell: Callable[[Transfer], bool] = lambda tree: True
    """Whether whoever asks may know the addresses of the files in a tree; the object is offered in containers
    otherwise.
    """

    def identifier(self, key: str) -> str:
        return f"oai:{self.domain}:{key}"

    def find_key(self, identifier: str) -> str:
        """The key in one of our identifiers; empty when it is none."""
        prefix = f"oai:{self.domain}:"
        return identifier.removeprefix(prefix) if identifier.startswith(prefix) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFormat:
    prefix: str
    schema: str
    namespace: str
    objects_only: bool
    write: Callable[[Sequence[Record], Transfer | None, Repository], etree._Element]


def _oai_dc(levels: Sequence[Record], made: Transfer | None, repository: Repository) -> etree._Element:
    own = levels[-1]
    identifiers = (repository.addresses.front_page(own.key),)
    return dublin_core.to_element(dublin_core.of_levels(levels, identifiers=identifiers))


def _oai_mets_lmer(levels: Sequence[Record], made: Transfer | None, repository: Repository) -> etree._Element:
    return regbib.to_element(
        levels, _required(made, levels), addresses=repository.addresses, version=repository.lmer
    )


def _mets_premis(levels: Sequence[Record], made: Transfer | None, repository: Repository) -> etree._Element:
    return mets_premis.to_element(levels, _required(made, levels), addresses=repository.addresses)


def _marc21(levels: Sequence[Record], made: Transfer | None, repository: Repository) -> etree._Element:
    return marc.to_element(levels, made, addresses=repository.addresses)


def _epicur(levels: Sequence[Record], made: Transfer | None, repository: Repository) -> etree._Element:
    return epicur.to_element(levels[-1], made, addresses=repository.addresses)


def _required(made: Transfer | None, levels: Sequence[Record]) -> Transfer:
    if made is None:
        raise OaiError(
            (Code.CANNOT_DISSEMINATE_FORMAT, f"{levels[-1].key} has no files that can be handed over.")
        )
    return made


FORMATS: Mapping[str, MetadataFormat] = {
    each.prefix: each
    for each in (
        MetadataFormat(
            prefix="oai_dc",
            schema="http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
            namespace=dublin_core.OAI_DC,
            objects_only=False,
            write=_oai_dc,
        ),
        MetadataFormat(
            prefix="oai_mets_lmer",
            schema=regbib.SCHEMA,
            namespace=regbib.METS,
            objects_only=True,
            write=_oai_mets_lmer,
        ),
        MetadataFormat(
            prefix="marc21", schema=marc.SCHEMA, namespace=marc.MARC, objects_only=False, write=_marc21
        ),
        MetadataFormat(
            prefix="epicur", schema=epicur.SCHEMA, namespace=epicur.EPICUR, objects_only=False, write=_epicur
        ),
        MetadataFormat(
            prefix="mets_premis",
            schema=regbib.SCHEMA,
            namespace=regbib.METS,
            objects_only=True,
            write=_mets_premis,
        ),
    )
}


def respond(
    pairs: Sequence[tuple[str, str]], repository: Repository, connection: Connection, now: datetime
) -> bytes:
    """The answer to a request, always a document: also to one that is wrong."""
    root = etree.Element(f"{{{OAI}}}OAI-PMH", nsmap={None: OAI, "xsi": XSI})
    root.set(f"{{{XSI}}}schemaLocation", f"{OAI} {protocol.SCHEMA}")
    add(root, f"{{{OAI}}}responseDate", to_iso(now))
    request = add(root, f"{{{OAI}}}request", repository.base_url)
    try:
        arguments = protocol.parse(pairs)
        answer = _VERBS[arguments.verb](arguments, repository, connection, now)
    except OaiError as refused:
        if not {code for code, _ in refused.errors} & {Code.BAD_VERB, Code.BAD_ARGUMENT}:
            _repeat(request, pairs)
        for code, words in refused.errors:
            add(root, f"{{{OAI}}}error", words, code=code.value)
    else:
        _repeat(request, pairs)
        root.append(answer)
    instruction = etree.ProcessingInstruction("xml-stylesheet", f'type="text/xsl" href="{STYLESHEET}"')
    root.addprevious(instruction)
    data: bytes = etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8")
    return data


def _repeat(request: etree._Element, pairs: Sequence[tuple[str, str]]) -> None:
    for name, value in pairs:
        request.set(name, markup.plain(value))


def _identify(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    made = etree.Element(f"{{{OAI}}}Identify")
    earliest = window.earliest(connection) or now
    facts = (
        ("repositoryName", repository.name),
        ("baseURL", repository.base_url),
        ("protocolVersion", "2.0"),
        ("adminEmail", repository.admin_email),
        ("earliestDatestamp", to_iso(earliest)),
        ("deletedRecord", "persistent"),
        ("granularity", "YYYY-MM-DDThh:mm:ssZ"),
        ("compression", "gzip"),
    )
    for name, value in facts:
        add(made, f"{{{OAI}}}{name}", value)
    described = etree.SubElement(
        add(made, f"{{{OAI}}}description"), f"{{{IDENTIFIER}}}oai-identifier", nsmap={None: IDENTIFIER}
    )
    described.set(
        f"{{{XSI}}}schemaLocation", f"{IDENTIFIER} http://www.openarchives.org/OAI/2.0/oai-identifier.xsd"
    )
    for name, value in (
        ("scheme", "oai"),
        ("repositoryIdentifier", repository.domain),
        ("delimiter", ":"),
        ("sampleIdentifier", repository.identifier("site-1")),
    ):
        add(described, f"{{{IDENTIFIER}}}{name}", value)
    return made


def _list_metadata_formats(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    record = _get(arguments, repository, connection) if arguments.identifier else None
    made = etree.Element(f"{{{OAI}}}ListMetadataFormats")
    for each in FORMATS.values():
        if record is None or record.is_object or not each.objects_only:
            entry = add(made, f"{{{OAI}}}metadataFormat")
            add(entry, f"{{{OAI}}}metadataPrefix", each.prefix)
            add(entry, f"{{{OAI}}}schema", each.schema)
            add(entry, f"{{{OAI}}}metadataNamespace", each.namespace)
    return made


def _list_sets(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    if arguments.token is not None:
        raise OaiError((Code.BAD_RESUMPTION_TOKEN, "Sets are listed in one answer."))
    made = etree.Element(f"{{{OAI}}}ListSets")
    for spec in window.specs(connection) or ["open_access"]:
        entry = add(made, f"{{{OAI}}}set")
        add(entry, f"{{{OAI}}}setSpec", spec)
        add(entry, f"{{{OAI}}}setName", _set_name(spec))
    return made


def _set_name(spec: str) -> str:
    kind, _, value = spec.partition(":")
    words = {
        "open_access": "Free for everybody",
        "collection": "Collection",
        "site": "Site",
        "partner": "Taken over from partner",
        "ddc": "Dewey Decimal Classification",
        "doc-type": "Kind of document",
        "status-type": "Status",
    }.get(kind, kind)
    return f"{words}: {value}" if value else words


def _get_record(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    kind = _format(arguments.prefix)
    record = _get(arguments, repository, connection)
    if kind.objects_only and not record.is_object:
        raise OaiError(
            (Code.CANNOT_DISSEMINATE_FORMAT, f"{record.key} has no files and so no {kind.prefix}.")
        )
    made = etree.Element(f"{{{OAI}}}GetRecord")
    _write_records(made, [record], kind, repository, connection)
    return made


def _list(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    """ListIdentifiers and ListRecords: one page and the token for the next."""
    if arguments.token is not None:
        position = protocol.from_token(arguments.token, arguments.verb, repository.secret, now)
        after, sent = (position.last_at, position.last_key), position.sent
    else:
        position, after, sent = _first(arguments, repository, now), None, 0
    kind = _format(position.prefix)
    wanted = RecordWindow(
        set_spec=position.set_spec,
        since=position.since,
        until=position.until,
        objects_only=kind.objects_only,
        unpacked=repository.unpacked,
    )
    found = window.page(connection, wanted, after=after, limit=repository.page_size + 1)
    shown = found[: repository.page_size]
    if not shown:
        raise OaiError((Code.NO_RECORDS_MATCH, "No record lies in what was asked for."))
    if arguments.verb is OaiVerb.LIST_RECORDS and kind.objects_only:
        shown = _bounded(shown, _handed_over(shown, repository, connection))
    made = etree.Element(f"{{{OAI}}}{arguments.verb.value}")
    if arguments.verb is OaiVerb.LIST_RECORDS:
        _write_records(made, shown, kind, repository, connection)
    else:
        for record in shown:
            made.append(_header(record, repository))
    if len(found) > len(shown):
        total = position.total or window.count(connection, wanted)
        _write_token(made, position, shown[-1], sent, sent + len(shown), total, repository, now)
    elif sent:
        add(
            made,
            f"{{{OAI}}}resumptionToken",
            None,
            completeListSize=str(max(position.total, sent + len(shown))),
            cursor=str(sent),
        )
    return made


def _first(arguments: Arguments, repository: Repository, now: datetime) -> ListPosition:
    # What changes from now on leaves the window and is there for the next harvest.
    horizon = now + catalogue.MARGIN
    return ListPosition(
        verb=arguments.verb,
        prefix=arguments.prefix,
        set_spec=arguments.set_spec,
        since=arguments.since,
        until=min(arguments.until or horizon, horizon),
        last_at=now,
        last_key="",
        sent=0,
        total=0,
        expires=now,
    )


def _write_token(
    made: etree._Element,
    position: ListPosition,
    last: Record,
    cursor: int,
    sent: int,
    total: int,
    repository: Repository,
    now: datetime,
) -> None:
    expires = (now + repository.token_life).replace(microsecond=0)
    following = ListPosition(
        verb=position.verb,
        prefix=position.prefix,
        set_spec=position.set_spec,
        since=position.since,
        until=position.until,
        last_at=last.changed_at,
        last_key=last.key,
        sent=sent,
        total=total,
        expires=expires,
    )
    facts = {"expirationDate": to_iso(expires), "completeListSize": str(total), "cursor": str(cursor)}
    add(made, f"{{{OAI}}}resumptionToken", protocol.to_token(following, repository.secret), **facts)


def _format(prefix: str) -> MetadataFormat:
    found = FORMATS.get(prefix)
    if found is None:
        raise OaiError(
            (
                Code.CANNOT_DISSEMINATE_FORMAT,
                f"There is no format {prefix[:60]} here. See ListMetadataFormats.",
            )
        )
    return found


def _get(arguments: Arguments, repository: Repository, connection: Connection) -> Record:
    key = repository.find_key(arguments.identifier)
    record = catalogue.find(connection, key) if key else None
    if record is None:
        raise OaiError((Code.ID_DOES_NOT_EXIST, "There is no record of that identifier."))
    return record


def _write_records(
    made: etree._Element,
    records: Sequence[Record],
    kind: MetadataFormat,
    repository: Repository,
    connection: Connection,
) -> None:
    levels = _levels(connection, records)
    handed_over = _handed_over(records, repository, connection)
    for record in records:
        entry = add(made, f"{{{OAI}}}record")
        entry.append(_header(record, repository))
        if record.withdrawn_at is None:
            add(entry, f"{{{OAI}}}metadata").append(
                kind.write(levels[record.key], handed_over.get(record.key), repository)
            )
            if repository.with_provenance and record.origin:
                entry.append(_about(record))


def _handed_over(
    records: Sequence[Record], repository: Repository, connection: Connection
) -> dict[str, Transfer]:
    keys = [record.key for record in records if record.is_object]
    found = transfer.many(connection, keys)
    trees = transfer.many_trees(connection, keys) if repository.unpacked else {}
    return found | {key: tree for key, tree in trees.items() if repository.may_tell(tree)}


def _bounded(records: list[Record], handed_over: Mapping[str, Transfer]) -> list[Record]:
    """As many of them as tell of so many files together; one at least. Memory is bounded by this, not by what
    partners keep.
    """
    files = accumulate(
        len(handed_over[record.key].files) if record.key in handed_over else 0 for record in records
    )
    return records[: max(sum(count <= MOST_FILES_IN_ANSWER for count in files), 1)]


def _levels(connection: Connection, records: Sequence[Record]) -> dict[str, tuple[Record, ...]]:
    """Each record with all above it; those above are read together."""
    known = {record.key: record for record in records}
    missing = {record.parent for record in records if record.parent} - known.keys()
    while missing:
        found = catalogue.many(connection, sorted(missing))
        known |= found
        missing = {record.parent for record in found.values() if record.parent} - known.keys()
    chains = {}
    for record in records:
        chain = [record]
        while chain[0].parent in known and known[chain[0].parent] not in chain:
            chain.insert(0, known[chain[0].parent])
        chains[record.key] = tuple(chain)
    return chains


def _header(record: Record, repository: Repository) -> etree._Element:
    made = etree.Element(f"{{{OAI}}}header", {"status": "deleted"} if record.withdrawn_at is not None else {})
    add(made, f"{{{OAI}}}identifier", repository.identifier(record.key))
    add(made, f"{{{OAI}}}datestamp", to_iso(record.changed_at))
    for spec in catalogue.sets_of(record):
        add(made, f"{{{OAI}}}setSpec", spec)
    return made


def _about(record: Record) -> etree._Element:
    """Where a record of a partner came from (guidelines for provenance,
    http://www.openarchives.org/OAI/2.0/guidelines-provenance.htm).
    """
    origin = record.origin
    about = etree.Element(f"{{{OAI}}}about")
    provenance = etree.SubElement(about, f"{{{PROVENANCE}}}provenance", nsmap={None: PROVENANCE})
    provenance.set(
        f"{{{XSI}}}schemaLocation", f"{PROVENANCE} http://www.openarchives.org/OAI/2.0/provenance.xsd"
    )
    is_altered = "person" in record.sources.values()
    described = add(
        provenance,
        f"{{{PROVENANCE}}}originDescription",
        None,
        harvestDate=origin["harvested_at"],
        altered=str(is_altered).lower(),
    )
    for name, value in (
        ("baseURL", origin["base_url"]),
        ("identifier", origin["identifier"]),
        ("datestamp", origin["datestamp"]),
        ("metadataNamespace", origin["namespace"]),
    ):
        add(described, f"{{{PROVENANCE}}}{name}", value)
    return about


_VERBS: Mapping[OaiVerb, Callable[[Arguments, Repository, Connection, datetime], etree._Element]] = {
    OaiVerb.IDENTIFY: _identify,
    OaiVerb.LIST_METADATA_FORMATS: _list_metadata_formats,
    OaiVerb.LIST_SETS: _list_sets,
    OaiVerb.GET_RECORD: _get_record,
    OaiVerb.LIST_IDENTIFIERS: _list,
    OaiVerb.LIST_RECORDS: _list,
}
