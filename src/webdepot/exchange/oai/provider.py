"""OAI-PMH 2.0 responses from the catalogue: six verbs, five formats, deleted records kept permanently.

Every record of the catalogue is an item; `oai_mets_lmer` and `mets_premis` exist for those with files.
Protocol errors are responses too. By the specification, a response to a wrong verb or argument does not
repeat the arguments of the request; every other response does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lxml import etree
from sqlalchemy import Connection

from webdepot import query_budget
from webdepot.exchange import catalogue, transfer_zip
from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.exchange.metadata import dublin_core, epicur, marc, markup, mets_premis, regbib
from webdepot.exchange.metadata.lmer import Version
from webdepot.exchange.metadata.markup import XSI, add
from webdepot.exchange.oai import protocol, window
from webdepot.exchange.oai.protocol import OAI, Arguments, Code, ListPosition, OaiError, OaiVerb
from webdepot.exchange.oai.window import RecordWindow
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer
from webdepot.times import to_iso

IDENTIFIER = "http://www.openarchives.org/OAI/2.0/oai-identifier"
PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"
STYLESHEET = "/-/static/oai.xsl"
MOST_FILES_IN_RESPONSE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """This repository, for one kind of client."""

    name: str
    base_url: str
    domain: str
    """In identifiers: oai:DOMAIN:key."""
    admin_email: str
    addresses: ObjectAddresses
    secret: bytes
    """The key that signs tokens; it stays the same after a restart."""
    page_size: int = 100
    token_life: timedelta = timedelta(hours=48)
    with_provenance: bool = False
    lmer: Version = Version.NEW
    unpacked: bool = False
    """Offer objects as trees of files where possible."""
    may_tell: Callable[[Transfer], bool] = lambda tree: True
    """Whether the client may see the addresses of the files in a tree; otherwise the object is offered in
    containers.
    """

    def identifier(self, key: str) -> str:
        return f"oai:{self.domain}:{key}"

    def find_key(self, identifier: str) -> str:
        """The key in one of our identifiers; empty if it is not ours."""
        prefix = f"oai:{self.domain}:"
        return identifier.removeprefix(prefix) if identifier.startswith(prefix) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFormat:
    prefix: str
    schema: str
    namespace: str
    objects_only: bool
    write: Callable[[Sequence[CatalogueRecord], Transfer | None, Repository], etree._Element]


def _oai_dc(
    levels: Sequence[CatalogueRecord], transfer_object: Transfer | None, repository: Repository
) -> etree._Element:
    own = levels[-1]
    identifiers = (repository.addresses.front_page(own.key),)
    return dublin_core.to_element(dublin_core.of_levels(levels, identifiers=identifiers))


def _oai_mets_lmer(
    levels: Sequence[CatalogueRecord], transfer_object: Transfer | None, repository: Repository
) -> etree._Element:
    return regbib.to_element(
        levels, _required(transfer_object, levels), addresses=repository.addresses, version=repository.lmer
    )


def _mets_premis(
    levels: Sequence[CatalogueRecord], transfer_object: Transfer | None, repository: Repository
) -> etree._Element:
    return mets_premis.to_element(levels, _required(transfer_object, levels), addresses=repository.addresses)


def _marc21(
    levels: Sequence[CatalogueRecord], transfer_object: Transfer | None, repository: Repository
) -> etree._Element:
    return marc.to_element(levels, transfer_object, addresses=repository.addresses)


def _epicur(
    levels: Sequence[CatalogueRecord], transfer_object: Transfer | None, repository: Repository
) -> etree._Element:
    return epicur.to_element(levels[-1], transfer_object, addresses=repository.addresses)


def _required(transfer_object: Transfer | None, levels: Sequence[CatalogueRecord]) -> Transfer:
    if transfer_object is None:
        raise OaiError(
            (Code.CANNOT_DISSEMINATE_FORMAT, f"{levels[-1].key} has no files that can be delivered.")
        )
    return transfer_object


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
    """The response to a request: always a document, also for a wrong request."""
    root = etree.Element(f"{{{OAI}}}OAI-PMH", nsmap={None: OAI, "xsi": XSI})
    root.set(f"{{{XSI}}}schemaLocation", f"{OAI} {protocol.SCHEMA}")
    add(root, f"{{{OAI}}}responseDate", to_iso(now))
    request = add(root, f"{{{OAI}}}request", repository.base_url)
    try:
        arguments = protocol.parse(pairs)
        answer = _VERBS[arguments.verb](arguments, repository, connection, now)
    except OaiError as error:
        if not {code for code, _ in error.errors} & {Code.BAD_VERB, Code.BAD_ARGUMENT}:
            _repeat(request, pairs)
        for code, message in error.errors:
            add(root, f"{{{OAI}}}error", message, code=code.value)
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
    element = etree.Element(f"{{{OAI}}}Identify")
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
        add(element, f"{{{OAI}}}{name}", value)
    described = etree.SubElement(
        add(element, f"{{{OAI}}}description"), f"{{{IDENTIFIER}}}oai-identifier", nsmap={None: IDENTIFIER}
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
    return element


def _list_metadata_formats(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    record = _get(arguments, repository, connection) if arguments.identifier else None
    element = etree.Element(f"{{{OAI}}}ListMetadataFormats")
    for each in FORMATS.values():
        if record is None or record.is_object or not each.objects_only:
            entry = add(element, f"{{{OAI}}}metadataFormat")
            add(entry, f"{{{OAI}}}metadataPrefix", each.prefix)
            add(entry, f"{{{OAI}}}schema", each.schema)
            add(entry, f"{{{OAI}}}metadataNamespace", each.namespace)
    return element


def _list_sets(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    if arguments.token is not None:
        raise OaiError((Code.BAD_RESUMPTION_TOKEN, "Sets are listed in one response, without tokens."))
    element = etree.Element(f"{{{OAI}}}ListSets")
    for spec in window.specs(connection) or ["open_access"]:
        entry = add(element, f"{{{OAI}}}set")
        add(entry, f"{{{OAI}}}setSpec", spec)
        add(entry, f"{{{OAI}}}setName", _set_name(spec))
    return element


def _set_name(spec: str) -> str:
    kind, _, value = spec.partition(":")
    label = {
        "open_access": "Free for everybody",
        "collection": "Collection",
        "site": "Site",
        "partner": "Taken over from partner",
        "ddc": "Dewey Decimal Classification",
        "doc-type": "Kind of document",
        "status-type": "Status",
    }.get(kind, kind)
    return f"{label}: {value}" if value else label


def _get_record(
    arguments: Arguments, repository: Repository, connection: Connection, now: datetime
) -> etree._Element:
    kind = _format(arguments.prefix)
    record = _get(arguments, repository, connection)
    if kind.objects_only and not record.is_object:
        raise OaiError(
            (Code.CANNOT_DISSEMINATE_FORMAT, f"{record.key} has no files and therefore no {kind.prefix}.")
        )
    element = etree.Element(f"{{{OAI}}}GetRecord")
    _write_records(element, [record], kind, repository, connection)
    return element


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
    records = window.page(connection, wanted, after=after, limit=repository.page_size + 1)
    shown = records[: repository.page_size]
    if not shown:
        raise OaiError((Code.NO_RECORDS_MATCH, "No record matches the request."))
    element = etree.Element(f"{{{OAI}}}{arguments.verb.value}")
    if arguments.verb is OaiVerb.LIST_RECORDS:
        shown = _write_records(element, shown, kind, repository, connection)
    else:
        for record in shown:
            element.append(_header(record, repository))
    if len(records) > len(shown):
        total = position.total or window.count(connection, wanted)
        _write_token(element, position, shown[-1], sent, sent + len(shown), total, repository, now)
    elif sent:
        add(
            element,
            f"{{{OAI}}}resumptionToken",
            None,
            completeListSize=str(max(position.total, sent + len(shown))),
            cursor=str(sent),
        )
    return element


def _first(arguments: Arguments, repository: Repository, now: datetime) -> ListPosition:
    # A record that changes from now on leaves the window; the next harvest finds it.
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
    element: etree._Element,
    position: ListPosition,
    last: CatalogueRecord,
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
    add(element, f"{{{OAI}}}resumptionToken", protocol.to_token(following, repository.secret), **facts)


def _format(prefix: str) -> MetadataFormat:
    format = FORMATS.get(prefix)
    if format is None:
        raise OaiError(
            (
                Code.CANNOT_DISSEMINATE_FORMAT,
                f"The format {prefix[:60]} is not supported. See ListMetadataFormats.",
            )
        )
    return format


def _get(arguments: Arguments, repository: Repository, connection: Connection) -> CatalogueRecord:
    key = repository.find_key(arguments.identifier)
    record = catalogue.find(connection, key) if key else None
    if record is None:
        raise OaiError((Code.ID_DOES_NOT_EXIST, "There is no record with that identifier."))
    return record


def _write_records(
    element: etree._Element,
    records: Sequence[CatalogueRecord],
    kind: MetadataFormat,
    repository: Repository,
    connection: Connection,
) -> list[CatalogueRecord]:
    """Write records until their files together reach the limit, at least one; returns those written. This
    bounds memory and time, however many files the objects have.
    """
    levels = _levels(connection, records)
    files, written = 0, list[CatalogueRecord]()
    for record in records:
        query_budget.check()
        handed_over = _find_handed_over(record, repository, connection) if record.is_object else None
        files += len(handed_over.files) if handed_over else 0
        if written and files > MOST_FILES_IN_RESPONSE:
            break
        written.append(record)
        entry = add(element, f"{{{OAI}}}record")
        entry.append(_header(record, repository))
        if record.withdrawn_at is None:
            add(entry, f"{{{OAI}}}metadata").append(kind.write(levels[record.key], handed_over, repository))
            if repository.with_provenance and record.origin:
                entry.append(_about(record))
    return written


def _find_handed_over(
    record: CatalogueRecord, repository: Repository, connection: Connection
) -> Transfer | None:
    """What is delivered for a record: its tree if the client may see it, else its containers."""
    tree = transfer_zip.find_tree(connection, record.key) if repository.unpacked else None
    if tree is not None and repository.may_tell(tree):
        return tree
    return transfer_zip.find(connection, record.key)


def _levels(
    connection: Connection, records: Sequence[CatalogueRecord]
) -> dict[str, tuple[CatalogueRecord, ...]]:
    """Each record with all records above it, which are read together."""
    known = {record.key: record for record in records}
    missing = {record.parent for record in records if record.parent} - known.keys()
    while missing:
        above = catalogue.many(connection, sorted(missing))
        known |= above
        missing = {record.parent for record in above.values() if record.parent} - known.keys()
    chains = {}
    for record in records:
        chain = [record]
        while chain[0].parent in known and known[chain[0].parent] not in chain:
            chain.insert(0, known[chain[0].parent])
        chains[record.key] = tuple(chain)
    return chains


def _header(record: CatalogueRecord, repository: Repository) -> etree._Element:
    element = etree.Element(
        f"{{{OAI}}}header", {"status": "deleted"} if record.withdrawn_at is not None else {}
    )
    add(element, f"{{{OAI}}}identifier", repository.identifier(record.key))
    add(element, f"{{{OAI}}}datestamp", to_iso(record.changed_at))
    for spec in catalogue.sets_of(record):
        add(element, f"{{{OAI}}}setSpec", spec)
    return element


def _about(record: CatalogueRecord) -> etree._Element:
    """The origin of a partner's record, by the provenance guidelines:
    http://www.openarchives.org/OAI/2.0/guidelines-provenance.htm.
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
