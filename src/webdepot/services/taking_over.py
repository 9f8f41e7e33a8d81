"""Taking in what a partner offers: fetch the ZIP, verify it, load it into this depot, describe, index; and apply what the partner deleted.

For each record that waits, in the order of identifiers; one that fails is told and stops no other:

1. The record keeps to the profile, its URNs are URNs (a wrong check digit is a warning or a refusal, as the partner is set).
2. An object that is here is not fetched again; its description is brought up to date, without touching what people wrote.
3. The ZIP is fetched into `partners/NAME/`, going on where it broke; checksum, members, sizes and checksums of files are verified.
4. Containers become containers, loose files one WARC of resource records; both a harvest of kind `import` with a name that follows from
   the URN, so that a killed run finds what it began.
5. Levels, transfer object and the partner's XML wait in the harvest's folder and become part of the package.

All or nothing: until the package is there, neither catalogue nor index knows of the object.
"""

import hashlib
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from webdepot.access.policy import RuleAnswer
from webdepot.archive import VERSION, Archive
from webdepot.container import kinds, loose, shelf
from webdepot.container.loose import LooseFile
from webdepot.container.reader import Compression, detect
from webdepot.depot import holdings, package, zipped
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.exchange import catalogue, incoming, mab, markup, partners, regbib, transfer, urn
from webdepot.exchange.catalogue import EDITABLE, Record, Source
from webdepot.exchange.client import Got, TooLarge
from webdepot.exchange.incoming import CheckedFile
from webdepot.exchange.lmer import PRONOM
from webdepot.exchange.partners import OnWithdrawal, Partner, PartnerRecord, RecordState, UrnCheck
from webdepot.exchange.regbib import Delivered
from webdepot.exchange.transfer import Form, TransferFile
from webdepot.harvest import runs
from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, Target
from webdepot.provenance import Event, Outcome, append
from webdepot.services import archiving, cataloguing, exchanging, harvesting, importing, keeping, ruling, selecting, titling
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import from_iso, to_iso, to_timestamp
from webdepot.url import Url

AT_ONCE = 50
TRIES = 4
RECORD_FILE = "partner-record.xml"
MOST_HOSTS = 200


class Refused(Exception):
    """An object that is not taken, with every reason."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))


class Gone(Exception):
    """The partner has withdrawn the object."""


@dataclass(slots=True, kw_only=True)
class TakenOver:
    """What became of the records that waited."""

    taken: list[str] = field(default_factory=list)
    """URNs of objects that are new here."""
    updated: list[str] = field(default_factory=list)
    """URNs of objects that were here, described anew."""
    known: int = 0
    withdrawn: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Identifier to the reasons."""
    described: int = 0
    """Records without files."""
    warnings: list[str] = field(default_factory=list)


def ingest(
    archive: Archive, name: str, *, limit: int = 0, watch: Watch = unwatched, wait: Callable[[float], None] = time.sleep
) -> TakenOver:
    """Take in everything that waits (or so many records). A repeated call changes nothing."""
    with archive.database.reading() as connection:
        partner = partners.get(connection, name)
        waiting = partners.tally(connection, name).get(RecordState.NEW.value, 0)
    done = TakenOver()
    with harvesting.locked(exchanging.folder_of(archive, name)):
        for number, record in enumerate(_iter_waiting(archive, name), start=1):
            if limit and number > limit:
                break
            total = min(waiting, limit) if limit else waiting
            watch(Progress(phase=Phase.FETCH, done=number, total=max(total, number), errors=len(done.refused), note=record.identifier))
            _settle(archive, partner, record, done, watch, wait)
    return done


def _iter_waiting(archive: Archive, name: str) -> Iterator[PartnerRecord]:
    after = ""
    while True:
        with archive.database.reading() as connection:
            found = partners.in_state(connection, name, RecordState.NEW, limit=AT_ONCE, after=after)
        yield from found
        if len(found) < AT_ONCE:
            return
        after = found[-1].identifier


def _settle(
    archive: Archive, partner: Partner, record: PartnerRecord, done: TakenOver, watch: Watch, wait: Callable[[float], None]
) -> None:
    warnings: list[str] = []
    try:
        state, name = _take(archive, partner, record, done, warnings, watch, wait)
        reason = ""
    except Gone as error:
        state, name, reason = RecordState.WITHDRAWN, record.urn, str(error)
        done.withdrawn.append(record.identifier)
    except (Refused, RemoteError, InputError, CorruptData, NotPermitted, NotFound) as error:
        state, name, reason = RecordState.REFUSED, record.urn, str(error)
        done.refused[record.identifier] = reason
    done.warnings += [f"{record.identifier}: {words}" for words in warnings]
    outcome = Outcome.FAILURE if state is RecordState.REFUSED else Outcome.WARNING if warnings else Outcome.SUCCESS
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="taken over" if state is not RecordState.REFUSED else "refused",
        subject_kind="partner record",
        subject=record.identifier[:500],
        outcome=outcome,
        message=reason or state.value,
        detail={"partner": partner.name, "urn": name, "warnings": warnings[:20]},
    )
    with archive.database.transaction() as connection:
        partners.settle(connection, record, state, now=archive.clock(), reason=reason, warnings=warnings, urn=name)
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
    """What becomes of one record, and its URN."""
    if record.sha256 == "deleted":
        done.withdrawn.append(record.identifier)
        return RecordState.WITHDRAWN, _apply_deletion(archive, partner, record)
    if not record.xml:
        raise Refused(record.reason or "the record has no metadata")
    root = markup.parse(record.xml.encode(), what="The record")
    if root.tag != f"{{{regbib.METS}}}mets" or root.find(f"{{{regbib.METS}}}fileSec") is not None:
        done.described += 1
        return RecordState.DESCRIBED, ""
    breaches = regbib.check(root)
    if breaches:
        raise Refused(*(f"against the profile: {words}" for words in breaches[:20]))
    delivered = regbib.read(root)
    _check_urns(delivered, partner, warnings)
    with archive.database.reading() as connection:
        known = catalogue.find_urn(connection, delivered.urn)
    if known is not None and known.withdrawn_at is not None:
        raise Refused(f"{delivered.urn} was withdrawn here on {known.withdrawn_at:%Y-%m-%d}")
    if known is not None and known.is_object:
        _update(archive, partner, record, delivered, known, done)
    else:
        _fetch_and_load(archive, partner, record, delivered, warnings, watch, wait)
        done.taken.append(delivered.urn)
    return RecordState.TAKEN, delivered.urn


def _check_urns(delivered: Delivered, partner: Partner, warnings: list[str]) -> None:
    named = [str(level.fields.get("urn", "")) for level in delivered.levels]
    for each in (*named, delivered.urn):
        if not urn.is_nbn(each):
            raise Refused(f"{each[:200]!r} is no URN of a national bibliography")
    wrong = incoming.wrong_digits(delivered)
    if wrong and partner.urn_check is UrnCheck.REFUSE:
        raise Refused(*wrong)
    warnings += wrong


def _update(archive: Archive, partner: Partner, record: PartnerRecord, delivered: Delivered, known: Record, done: TakenOver) -> None:
    """An object that is here: its files must be the same; its description may have changed."""
    made = cataloguing.find_transfer(archive, known.key)
    ours = {file.member: file.sha256 for file in made.files} if made else {}
    theirs = {
        incoming.member_of(file): file.file_checksum.lower()
        for file in delivered.files
        if file.file_checksum_type.upper() in ("SHA-256", "SHA256")
    }
    if ours and any(ours.get(member) != value for member, value in theirs.items()):
        raise Refused(
            f"the files of {delivered.urn} are others than those that were taken in as {known.package}; what is in the depot stays"
        )
    if known.origin.get("partner") != partner.name:
        done.known += 1  # ours, or of another partner: whoever brought it describes it
        return
    changed = False
    levels = _levels(archive, partner, record, delivered)
    for level in levels:
        with archive.database.reading() as connection:
            before = catalogue.find(connection, level.key)
        if before is None or before.origin.get("partner") != partner.name:
            continue
        changes = {name: getattr(level, name) for name in EDITABLE if name != "access" and getattr(level, name) != getattr(before, name)}
        after = cataloguing.write(archive, level.key, changes, source=Source.PARTNER, foreign=level.foreign, origin=level.origin)
        changed = changed or after != before
    if changed:
        done.updated.append(delivered.urn)
    else:
        done.known += 1


def _fetch_and_load(
    archive: Archive,
    partner: Partner,
    record: PartnerRecord,
    delivered: Delivered,
    warnings: list[str],
    watch: Watch,
    wait: Callable[[float], None],
) -> None:
    harvest = _find_harvest(archive, delivered)
    if harvest is None or not _waits(archive, harvest):
        if sum(int(file.size) for file in delivered.files) > archive.config.exchange.largest_transfer_bytes:
            raise Refused(
                f"the object is larger than {archive.config.exchange.largest_transfer_bytes} bytes (exchange.largest_transfer_bytes)"
            )
        packed = _fetch(archive, partner, delivered, watch, wait)
        with tempfile.TemporaryDirectory(prefix=".taking-", dir=archive.home) as folder:
            files = _unpacked(packed, delivered, Path(folder) / "files")
            harvest = _load(archive, partner, record, delivered, files, Path(folder))
        _discard(packed)
    finished = importing.finish(archive, harvest) if harvest.state is HarvestState.RUNNING else harvest
    archiving.take_in(archive, finished, deposit=True, watch=watch)
    missing = [file.name for file in delivered.files if not file.file_checksum]
    warnings += [f"{len(missing)} files came without a checksum"] if missing else []


def _fetch(archive: Archive, partner: Partner, delivered: Delivered, watch: Watch, wait: Callable[[float], None]) -> Path:
    """The whole ZIP, verified; what came before of it is not asked for again."""
    url = delivered.object.transfer_url
    if not re.match(r"https?://[^/\s]+/", url):
        raise Refused(f"the Transfer-URL {url[:200]!r} is no address on the web")
    folder = exchanging.folder_of(archive, partner.name)
    path = folder / f"{hashlib.sha256(f'{delivered.urn} {url}'.encode()).hexdigest()[:32]}.zip"
    for attempt in range(1, TRIES + 1):
        try:
            _download(archive, partner, url, path, incoming.largest_bytes(delivered), watch)
            break
        except TooLarge as error:
            _discard(path)
            raise Refused("the ZIP is larger than the files that the record tells of") from error
        except RemoteError as error:
            if not error.retry or attempt == TRIES:
                if path.exists() and path.stat().st_size == 0:
                    _discard(path)
                raise
            wait(float(2**attempt))
    reasons = list(incoming.check_zip(path, delivered))
    if reasons:
        _discard(path)
        raise Refused(*reasons)
    return path


def _discard(path: Path) -> None:
    """A download that is of no use any more, with the mark beside it."""
    path.unlink(missing_ok=True)
    path.with_suffix(".etag").unlink(missing_ok=True)


def _download(archive: Archive, partner: Partner, url: str, path: Path, limit_bytes: int, watch: Watch) -> None:
    marks = path.with_suffix(".etag")
    offset = path.stat().st_size if path.exists() and marks.exists() else 0
    etag = marks.read_text() if offset else ""
    is_same_host = _origin(url) == _origin(partner.url)
    client = exchanging.client_for(archive, partner)
    with path.open("r+b" if offset else "wb") as sink:
        sink.seek(offset)
        started = False

        def taken(got: Got, piece: bytes) -> None:
            nonlocal started
            if got.status not in (200, 206):
                return
            if not started:
                started = True
                if got.status == 200:
                    sink.seek(0)
                    sink.truncate()
                marks.write_text(got.headers.get("ETag") or "")
            sink.write(piece)
            watch(Progress(phase=Phase.FETCH, done=0, size_bytes=sink.tell(), note=url[:200]))

        got = client.get(url, taken, limit_bytes=limit_bytes, offset=offset, etag=etag, with_token=is_same_host)
    if got.status == 416:  # what is here is whole, or of another object: the checksum tells
        return
    if got.status in (404, 410):
        _discard(path)
    if got.status == 410:
        raise Gone(f"{url[:200]} answers 410: the object was withdrawn")
    if got.status not in (200, 206):
        words = {401: " It wants a token: webdepot partner add --token", 403: " We may not have it."}.get(got.status, "")
        raise RemoteError(f"The Transfer-URL {url[:200]} answers {got.status}.{words}", retry=got.status in (429, 500, 502, 503, 504))


def _origin(url: str) -> str:
    found = re.match(r"https?://[^/?#]+", url)
    return found[0].lower() if found else ""


def _unpacked(packed: Path, delivered: Delivered, folder: Path) -> list[CheckedFile]:
    checked: list[CheckedFile] = []
    try:
        with zipfile.ZipFile(packed) as archive:
            reasons = [*zipped.check_members(archive), *incoming.check_members(archive, delivered)]
            if not reasons:
                zipped.unpack(archive, folder)
                reasons = list(incoming.check_files(folder, delivered, checked))
    except (*zipped.BROKEN, OSError) as error:
        _discard(packed)
        raise Refused(f"the ZIP cannot be unpacked: {error}") from error
    if reasons:
        _discard(packed)
        raise Refused(*reasons[:50])
    return checked


def _load(
    archive: Archive, partner: Partner, record: PartnerRecord, delivered: Delivered, files: Sequence[CheckedFile], folder: Path
) -> Harvest:
    """Files into containers of a harvest, and everything that describes them beside it."""
    _refuse_known(archive, delivered, files)
    target = _target(archive, partner, delivered)
    harvest = _begin(archive, partner, record, delivered, target)
    try:
        _fill(archive, partner, record, delivered, files, folder, harvest)
    except BaseException:
        _undo(archive, harvest)
        raise
    return harvest


def _refuse_known(archive: Archive, delivered: Delivered, files: Sequence[CheckedFile]) -> None:
    """Bytes that the archive has under another name cannot become a second object."""
    own = _harvest_id(delivered)
    with archive.database.reading() as connection:
        for file in files:
            found = shelf.find_bytes(connection, file.sha256)
            if found is not None and found.harvest != own:
                raise Refused(f"{file.facts.name[:200]} is in this archive already, as {found.name} of harvest {found.harvest}")


def _undo(archive: Archive, harvest: Harvest) -> None:
    """Nothing stays of an object that could not be loaded."""
    with archive.database.transaction() as connection:
        shelf.remove_of_harvest(connection, harvest.id)
        runs.move(connection, harvest.id, HarvestState.FAILED, reason="could not be taken over", ended_at=archive.clock())
    shutil.rmtree(harvesting.folder_of(archive, harvest), ignore_errors=True)


def _fill(
    archive: Archive,
    partner: Partner,
    record: PartnerRecord,
    delivered: Delivered,
    files: Sequence[CheckedFile],
    folder: Path,
    harvest: Harvest,
) -> None:
    with harvesting.locked(harvesting.folder_of(archive, harvest)):
        listed = _place(archive, partner, harvest, delivered, files, folder)
        first = delivered.object.start_file
        start = next((incoming.member_of(file) for file in delivered.files if file.file_identifier == first), listed[0].member)
        form = Form.CONTAINERS if all(_is_container(file.path) for file in files) else Form.FILES
        made = transfer.measure(form, listed, start, archive.open_container)
        levels = _levels(archive, partner, record, delivered)
        keeping.keep_descriptions(archive, harvest, {RECORD_FILE: record.xml.encode()})
        described = catalogue.to_document(levels, transfer.to_document(made))
        partial = harvesting.folder_of(archive, harvest) / f".{titling.FILE}"
        partial.write_bytes(described)
        partial.rename(partial.with_name(titling.FILE))


def _place(
    archive: Archive, partner: Partner, harvest: Harvest, delivered: Delivered, files: Sequence[CheckedFile], folder: Path
) -> list[TransferFile]:
    """Where each file is in our containers, in the order of the record."""
    single = [file for file in files if not _is_container(file.path)]
    offsets: dict[Path, int] = {}
    wrapped = None
    if single:
        sources = [
            LooseFile(path=file.path, urls=incoming.urls_of(file, delivered, files), mime=file.facts.mime_type, date=_date_of(delivered))
            for file in single
        ]
        target = folder / f"{harvest.id}-files.warc"
        info = {"software": f"webdepot {VERSION}", "description": f"files of {delivered.urn}, taken over from {partner.name}"}
        offsets = loose.write(target, sources, info=info, now=_date_of(delivered))
        wrapped = importing.take_container(archive, harvest, target)
    placed = []
    for file in files:
        if file.path in offsets and wrapped is not None:
            placed.append(_listed(file, wrapped.name, offsets[file.path]))
        else:
            container = importing.take_container(archive, harvest, file.path)
            if container.sha256 != file.sha256:
                raise Refused(f"the records of {file.facts.name[:200]} cannot be read at their place")
            placed.append(_listed(file, container.name, 0))
    return placed


def _listed(file: CheckedFile, container: str, offset: int) -> TransferFile:
    facts = file.facts
    kind = kinds.of_file(file.path) if _is_container(file.path) else None
    is_key = facts.registry == PRONOM
    folder = facts.path if facts.path.endswith("/") else facts.path + "/"
    return TransferFile(
        path=folder,
        name=facts.name,
        size_bytes=file.size_bytes,
        sha256=file.sha256,
        mime=facts.mime_type,
        format=kind.label if kind else facts.format,
        puid=facts.format if is_key else kind.puid if kind else "",
        at=to_iso(from_iso(facts.file_date_time)),
        container=container,
        offset=offset,
    )


def _levels(archive: Archive, partner: Partner, record: PartnerRecord, delivered: Delivered) -> tuple[Record, ...]:
    """The partner's levels as records of our catalogue, with the keys that their URNs have here."""
    now = archive.clock()
    origin = {
        "partner": partner.name,
        "base_url": partner.url,
        "identifier": record.identifier,
        "datestamp": record.datestamp,
        "namespace": regbib.METS,
        "harvested_at": to_iso(record.seen_at),
    }
    made: list[Record] = []
    for number, level in enumerate(delivered.levels):
        fields = {name: value for name, value in level.fields.items() if name in EDITABLE}
        name = str(level.fields["urn"]).lower()
        is_lowest = number == len(delivered.levels) - 1
        foreign: list[dict[str, str]] = [{"kind": mab.FOREIGN, "xml": level.xml}]
        if is_lowest:
            foreign += [{"kind": regbib.FOREIGN_SECTION, "xml": xml} for xml in delivered.foreign]
        with archive.database.reading() as connection:
            before = catalogue.find_urn(connection, name)
        made.append(
            Record(
                key=before.key if before else titling.key_of_urn(name),
                level=level.level,
                parent=made[-1].key if made else "",
                urn=name,
                title=str(fields.pop("title", "")) or delivered.object.name or name,
                collection=partner.collection,
                foreign=tuple(foreign),
                origin=origin,
                sources=dict.fromkeys((*fields, "title"), Source.PARTNER.value),
                created_at=before.created_at if before else now,
                changed_at=now,
                **cataloguing.fitting(fields),
            )
        )
    return tuple(made)


def _target(archive: Archive, partner: Partner, delivered: Delivered) -> Target:
    seeds = [Url(each) for each in incoming.seeds_of(delivered)]
    top = delivered.levels[0].fields.get("title") or delivered.object.name or delivered.urn
    target = selecting.nominate(archive, seeds, collection=partner.collection, name=str(top)[:300])
    selecting.admit(archive, target, [selecting.operators_decision(archive)])
    return target


def _harvest_id(delivered: Delivered) -> HarvestId:
    """Follows from the URN: a killed run finds what it began."""
    mark = hashlib.sha256(delivered.urn.encode()).hexdigest()[:12]
    return HarvestId(f"{to_timestamp(_date_of(delivered))}-partner-{mark}")


def _find_harvest(archive: Archive, delivered: Delivered) -> Harvest | None:
    with archive.database.reading() as connection:
        name = _harvest_id(delivered)
        return runs.get(connection, name) if runs.exists(connection, name) else None


def _waits(archive: Archive, harvest: Harvest) -> bool:
    """Whether everything of a harvest was loaded before, by a run that was killed behind that."""
    return (harvesting.folder_of(archive, harvest) / titling.FILE).exists()


def _begin(archive: Archive, partner: Partner, record: PartnerRecord, delivered: Delivered, target: Target) -> Harvest:
    found = _find_harvest(archive, delivered)
    if found is not None:
        with archive.database.transaction() as connection:
            runs.move(connection, found.id, HarvestState.RUNNING)
        return harvesting.get(archive, found.id)
    harvest = Harvest(
        id=_harvest_id(delivered),
        target=target.id,
        kind=HarvestKind.IMPORT,
        state=HarvestState.RUNNING,
        seeds=target.seeds,
        collection=partner.collection,
        settings={"partner": partner.name, "identifier": record.identifier, "urn": delivered.urn},
        started_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        runs.begin(connection, harvest)
    return harvest


def _date_of(delivered: Delivered) -> datetime:
    return from_iso(delivered.object.master_creation_date)


def _is_container(path: Path) -> bool:
    """Whether a file can be a container here as it is; one that is compressed in one piece would have to be changed."""
    if not path.name.lower().endswith(importing.SUFFIXES):
        return False
    try:
        with path.open("rb") as stream:
            return detect(stream, path.name).compression is not Compression.WHOLE
    except (InputError, CorruptData):
        return False


def _apply_deletion(archive: Archive, partner: Partner, record: PartnerRecord) -> str:
    """The partner withdrew a record: our copy is closed, unless the partner is set otherwise. Its URN."""
    known = _known(archive, partner, record)
    if known is None or known.withdrawn_at is not None or partner.on_withdrawal is OnWithdrawal.NOTE:
        return known.urn if known else record.urn
    words = f"Withdrawn by the partner {partner.name} on {record.datestamp[:10]}."
    _close_captures(archive, known, words)
    cataloguing.close(archive, known.key, reason=words)
    return known.urn


def _known(archive: Archive, partner: Partner, record: PartnerRecord) -> Record | None:
    """What we hold of a deleted record: by the URN it had, if this partner brought it."""
    with archive.database.reading() as connection:
        found = catalogue.find_urn(connection, record.urn) if record.urn else None
    return found if found is not None and found.origin.get("partner") == partner.name else None


def _close_captures(archive: Archive, known: Record, words: str) -> None:
    """Rules of access for what was captured in the slice: host by host, between its first and last moment."""
    with archive.database.reading() as connection:
        held = holdings.find(connection, known.package)
    if held is None:
        return
    hosts: dict[str, tuple[str, str]] = {}
    for capture in package.iter_captures(archive.store, package.read(archive.store, held.id)):
        if not capture.url.startswith(("http://", "https://")):
            continue
        host = capture.url.split("/")[2].rpartition("@")[2]
        first, last = hosts.get(host, (capture.timestamp, capture.timestamp))
        hosts[host] = (min(first, capture.timestamp), max(last, capture.timestamp))
    for host, (first, last) in list(hosts.items())[:MOST_HOSTS]:
        ruling.add(archive, host, answer=RuleAnswer.REFUSE, captured_from=first, captured_to=last, public_text=words, reason="partner")
