"""Ingest the objects that a partner offers: fetch the ZIP, verify it, load it into this depot, describe and
index it; and apply the partner's deletions.

For each waiting record, in the order of identifiers (one that fails is reported and does not stop the
others):

1. Check that the record conforms to the profile and that its URNs are valid (a wrong check digit is a warning
   or a refusal, depending on the partner's settings).
2. An object that is already here is not fetched again; its description is updated, without changing what
   people wrote.
3. Fetch the ZIP and verify it (`transfer_download`).
4. Its files become a harvest of kind `import` with everything that describes them
   (`services.intake.objects`), which is then processed like every harvest.

All or nothing: until the package is complete, the object is neither in the catalogue nor in the index.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from webdepot.access.policy import RuleAnswer
from webdepot.archive import Archive, ScratchPurpose
from webdepot.depot import holdings, package
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.exchange import catalogue, incoming, partners, urn
from webdepot.exchange.catalogue import EDITABLE, CatalogueRecord, Source
from webdepot.exchange.incoming import RefusedObject
from webdepot.exchange.metadata import markup, regbib
from webdepot.exchange.metadata.regbib import DeliveredObject
from webdepot.exchange.partners import OnWithdrawal, Partner, PartnerRecord, RecordState, UrnCheck
from webdepot.model import HarvestState
from webdepot.provenance import Outcome, append
from webdepot.services.access import rules
from webdepot.services.catalogue import records
from webdepot.services.exchange import oai_harvest, transfer_download
from webdepot.services.exchange.transfer_download import Gone
from webdepot.services.harvest import harvests
from webdepot.services.intake import import_harvests, objects
from webdepot.services.intake.ingest import is_complete, take_in
from webdepot.services.intake.objects import Sender
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import to_iso

AT_ONCE = 50
RECORD_FILE = "partner-record.xml"


@dataclass(slots=True, kw_only=True)
class TakenOver:
    """What happened to the waiting records."""

    taken: list[str] = field(default_factory=list)
    """URNs of new objects."""
    updated: list[str] = field(default_factory=list)
    """URNs of known objects whose description was updated."""
    known: int = 0
    withdrawn: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Identifier to the reasons."""
    described: int = 0
    """Records without files."""
    warnings: list[str] = field(default_factory=list)


def ingest(
    archive: Archive,
    name: str,
    *,
    limit: int = 0,
    watch: Watch = unwatched,
    wait: Callable[[float], None] = time.sleep,
) -> TakenOver:
    """Ingest all waiting records, or at most `limit`. A repeated call changes nothing."""
    with archive.database.reading() as connection:
        partner = partners.get(connection, name)
        waiting = partners.tally(connection, name).get(RecordState.NEW.value, 0)
    done = TakenOver()
    with harvests.locked(oai_harvest.folder_of(archive, name)):
        for number, record in enumerate(_iter_waiting(archive, name), start=1):
            if limit and number > limit:
                break
            total = min(waiting, limit) if limit else waiting
            watch(
                Progress(
                    phase=Phase.FETCH,
                    done=number,
                    total=max(total, number),
                    errors=len(done.refused),
                    note=record.identifier,
                )
            )
            _settle(archive, partner, record, done, watch, wait)
    return done


def _iter_waiting(archive: Archive, name: str) -> Iterator[PartnerRecord]:
    after = ""
    while True:
        with archive.database.reading() as connection:
            batch = partners.in_state(connection, name, RecordState.NEW, limit=AT_ONCE, after=after)
        yield from batch
        if len(batch) < AT_ONCE:
            return
        after = batch[-1].identifier


def _settle(
    archive: Archive,
    partner: Partner,
    record: PartnerRecord,
    done: TakenOver,
    watch: Watch,
    wait: Callable[[float], None],
) -> None:
    warnings: list[str] = []
    try:
        state, name = _take(archive, partner, record, done, warnings, watch, wait)
        reason = ""
    except Gone as error:
        state, name, reason = RecordState.WITHDRAWN, record.urn, str(error)
        done.withdrawn.append(record.identifier)
    except (RefusedObject, RemoteError, InputError, CorruptData, NotPermitted, NotFound) as error:
        # A withdrawal cannot be refused. It waits until it can be applied.
        state = RecordState.NEW if record.is_deleted else RecordState.REFUSED
        name, reason = record.urn, str(error)
        done.refused[record.identifier] = reason
    done.warnings += [f"{record.identifier}: {warning}" for warning in warnings]
    outcome = (
        Outcome.FAILURE
        if record.identifier in done.refused
        else Outcome.WARNING
        if warnings
        else Outcome.SUCCESS
    )
    event = archive.event(
        "refused" if record.identifier in done.refused else "taken over",
        "partner record",
        record.identifier[:500],
        outcome=outcome,
        message=reason or state.value,
        detail={"partner": partner.name, "urn": name, "warnings": warnings[:20]},
    )
    with archive.database.transaction() as connection:
        partners.settle(
            connection, record, state, now=archive.clock(), reason=reason, warnings=warnings, urn=name
        )
        append(connection, event)


def _take(
    archive: Archive,
    partner: Partner,
    record: PartnerRecord,
    done: TakenOver,
    warnings: list[str],
    watch: Watch,
    wait: Callable[[float], None],
) -> tuple[RecordState, str]:
    """Process one record; return its new state and its URN."""
    if record.is_deleted:
        urn = _apply_deletion(archive, partner, record)
        done.withdrawn.append(record.identifier)
        return RecordState.WITHDRAWN, urn
    if not record.xml:
        raise RefusedObject(record.reason or "the record has no metadata")
    root = markup.parse(record.xml.encode(), what="The record")
    if root.tag != f"{{{regbib.METS}}}mets" or root.find(f"{{{regbib.METS}}}fileSec") is not None:
        done.described += 1
        return RecordState.DESCRIBED, ""
    breaches = regbib.check(root)
    if breaches:
        raise RefusedObject(*(f"against the profile: {breach}" for breach in breaches[:20]))
    delivered = regbib.read(root)
    _check_urns(delivered, partner, warnings)
    with archive.database.reading() as connection:
        known = catalogue.find_urn(connection, delivered.urn)
    if known is not None and known.withdrawn_at is not None:
        raise RefusedObject(f"{delivered.urn} was withdrawn here on {known.withdrawn_at:%Y-%m-%d}")
    harvest = objects.find_harvest(archive, delivered)
    if known is not None and known.is_object:
        if harvest is not None and not is_complete(archive, harvest):  # the last run was killed
            take_in(archive, harvest, deposit=True, watch=watch)
        _update(archive, partner, record, delivered, known, done)
    else:
        _fetch_and_load(archive, partner, record, delivered, warnings, watch, wait)
        done.taken.append(delivered.urn)
    return RecordState.TAKEN, delivered.urn


def _check_urns(delivered: DeliveredObject, partner: Partner, warnings: list[str]) -> None:
    named = [str(level.fields.get("urn", "")) for level in delivered.levels]
    for each in (*named, delivered.urn):
        if not urn.is_nbn(each):
            raise RefusedObject(f"{each[:200]!r} is not a URN:NBN")
    wrong = incoming.wrong_digits(delivered)
    if wrong and partner.urn_check is UrnCheck.REFUSE:
        raise RefusedObject(*wrong)
    warnings += wrong


def _update(
    archive: Archive,
    partner: Partner,
    record: PartnerRecord,
    delivered: DeliveredObject,
    known: CatalogueRecord,
    done: TakenOver,
) -> None:
    """Update an object that is already here: its files must be the same; its description may have changed."""
    held = records.find_transfer(archive, known.key)
    ours = {file.member: file.sha256 for file in held.files} if held else {}
    theirs = {
        incoming.member_of(file): file.file_checksum.lower()
        for file in delivered.files
        if file.file_checksum_type.upper() in ("SHA-256", "SHA256")
    }
    if ours and any(ours.get(member) != value for member, value in theirs.items()):
        raise RefusedObject(
            f"the files of {delivered.urn} differ from those that were ingested as {known.package}; "
            "the depot keeps what it has"
        )
    if known.origin.get("partner") != partner.name:
        done.known += 1  # ours, or another partner's: only the one it came from describes it
        return
    changed = False
    levels = objects.records_of(archive, _sender(partner, record), delivered)
    for level in levels:
        with archive.database.reading() as connection:
            before = catalogue.find(connection, level.key)
        if before is None or before.origin.get("partner") != partner.name:
            continue
        changes = {
            name: getattr(level, name)
            for name in EDITABLE
            if name != "access" and getattr(level, name) != getattr(before, name)
        }
        after = records.write(
            archive, level.key, changes, source=Source.PARTNER, foreign=level.foreign, origin=level.origin
        )
        changed = changed or after != before
    if changed:
        done.updated.append(delivered.urn)
    else:
        done.known += 1


def _fetch_and_load(
    archive: Archive,
    partner: Partner,
    record: PartnerRecord,
    delivered: DeliveredObject,
    warnings: list[str],
    watch: Watch,
    wait: Callable[[float], None],
) -> None:
    harvest = objects.find_harvest(archive, delivered)
    if harvest is None or not objects.is_loaded(archive, harvest):
        if sum(int(file.size) for file in delivered.files) > archive.config.exchange.largest_transfer_bytes:
            raise RefusedObject(
                f"the object is larger than {archive.config.exchange.largest_transfer_bytes} bytes "
                "(exchange.largest_transfer_bytes)"
            )
        packed = transfer_download.fetch(archive, partner, delivered, watch, wait)
        with archive.scratch_folder(ScratchPurpose.TAKE_OVER) as folder:
            most_members = archive.config.depot.import_members
            files = transfer_download.unpack(packed, delivered, folder / "files", most_members=most_members)
            harvest = objects.load(archive, _sender(partner, record), delivered, files, folder)
        transfer_download.discard(packed)
    finished = import_harvests.finish(archive, harvest) if harvest.state is HarvestState.RUNNING else harvest
    take_in(archive, finished, deposit=True, watch=watch)
    missing = [file.name for file in delivered.files if not file.file_checksum]
    warnings += [f"{len(missing)} files came without a checksum"] if missing else []


def _sender(partner: Partner, record: PartnerRecord) -> Sender:
    origin = {
        "partner": partner.name,
        "base_url": partner.url,
        "identifier": record.identifier,
        "datestamp": record.datestamp,
        "namespace": regbib.METS,
        "harvested_at": to_iso(record.seen_at),
    }
    return Sender(
        name=partner.name,
        collection=partner.collection,
        settings={"partner": partner.name, "identifier": record.identifier},
        origin=origin,
        descriptions={RECORD_FILE: record.xml.encode()},
    )


def _apply_deletion(archive: Archive, partner: Partner, record: PartnerRecord) -> str:
    """Close our copy of a record that the partner deleted, unless the partner's settings say otherwise;
    return its URN.
    """
    known = _find_held(archive, partner, record)
    if known is None or known.withdrawn_at is not None or partner.on_withdrawal is OnWithdrawal.NOTE:
        return known.urn if known else record.urn
    reason = f"Withdrawn by the partner {partner.name} on {record.datestamp[:10]}."
    _close_captures(archive, known, reason)
    records.close(archive, known.key, reason=reason)
    return known.urn


def _find_held(archive: Archive, partner: Partner, record: PartnerRecord) -> CatalogueRecord | None:
    """Our catalogue record of a deleted partner record, found by its URN, if it came from this partner."""
    with archive.database.reading() as connection:
        held = catalogue.find_urn(connection, record.urn) if record.urn else None
    return held if held is not None and held.origin.get("partner") == partner.name else None


def _close_captures(archive: Archive, known: CatalogueRecord, public_text: str) -> None:
    """Add access rules that close the captures of an object: for each host from its first to its last
    capture, and for the addresses below its URN.
    """
    with archive.database.reading() as connection:
        held = holdings.find(connection, known.package)
    if held is None:
        return
    covered: dict[str, tuple[str, str]] = {}
    for capture in package.iter_captures(archive.store, package.read(archive.store, held.id)):
        is_web = capture.url.startswith(("http://", "https://"))
        pattern = capture.url.split("/")[2].rpartition("@")[2] if is_web else f"{known.urn}/*"
        first, last = covered.get(pattern, (capture.timestamp, capture.timestamp))
        covered[pattern] = (min(first, capture.timestamp), max(last, capture.timestamp))
    for pattern, (first, last) in covered.items():
        rules.add(
            archive,
            pattern,
            answer=RuleAnswer.REFUSE,
            captured_from=first,
            captured_to=last,
            public_text=public_text,
            reason="partner",
        )
