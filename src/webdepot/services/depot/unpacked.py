"""Harvests as trees of unpacked files, for partners that want files instead of containers. Neither the files
nor the ZIP of a tree are stored: both are read from the containers when they are fetched.

1. Choose the last successful response of each address in the package; a revisit leads to the record that has
   the payload.
2. Read each file once for its size and checksums, then the whole ZIP once for its own.
3. In one transaction: the tree, and the datestamp of its record, so that partners learn of it when it is
   ready and not before.

A harvest with more files than `exchange.most_tree_files`, or without any, is transferred in containers; the
reason is stored instead of the tree. All of this can be rebuilt from the depot.
"""

import re
from dataclasses import dataclass, field, replace

from webdepot.archive import Archive
from webdepot.container.reader import read_record
from webdepot.depot import package
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.exchange import catalogue, partners, transfer_zip, unpacked
from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.exchange.transfer_zip import Transfer, TransferFile, TransferForm
from webdepot.exchange.unpacked import TooMany
from webdepot.model import Capture, PackageId, RecordKind
from webdepot.services.access.replay import replay
from webdepot.services.depot import file_formats
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import from_timestamp, to_iso

BATCH = 100
FILES = "files"
"""The setting of an archive or a partner that wants trees."""
_UNREADABLE = (CorruptData, NotFound, NotPermitted, RemoteError, OSError)


@dataclass(slots=True, kw_only=True)
class PreparedTrees:
    made: list[str] = field(default_factory=list)
    """Keys of objects that can now be fetched as files."""
    left: dict[str, str] = field(default_factory=dict)
    """Keys of objects that stay in containers, with the reason."""


def is_wanted(archive: Archive) -> bool:
    """Whether the archive or a partner uses trees."""
    if archive.config.exchange.transfer == FILES:
        return True
    with archive.database.reading() as connection:
        return any(partner.transfer == FILES for partner in partners.every(connection))


def prepare(archive: Archive, *, watch: Watch = unwatched) -> PreparedTrees:
    """Make the trees of all objects that have none yet. Can be stopped at any time and repeated."""
    done = PreparedTrees()
    after = ""
    while True:
        with archive.database.reading() as connection:
            keys = transfer_zip.without_tree(connection, limit=BATCH, after=after)
        for key in keys:
            count = len(done.made) + len(done.left)
            watch(Progress(phase=Phase.KEEP, done=count + 1, note=f"unpacking {key}"))
            _prepare(archive, key, done)
        if len(keys) < BATCH:
            return done
        after = keys[-1]


def prepare_harvest(archive: Archive, harvest: str) -> None:
    """Make the tree of a harvest that was just deposited, unless it has one or consists of files already."""
    with archive.database.reading() as connection:
        record = catalogue.find_of_harvest(connection, harvest)
        is_missing = record is not None and transfer_zip.is_without_tree(connection, record.key)
    if record is not None and is_missing:
        _prepare(archive, record.key, PreparedTrees())


def _prepare(archive: Archive, key: str, done: PreparedTrees) -> None:
    """Make and store the tree of one object, or the reason why it has none."""
    with archive.database.reading() as connection:
        record = catalogue.get(connection, key)
    tree, reason = None, ""
    try:
        tree = _tree(archive, record)
    except TooMany:
        reason = (
            f"it has more than {archive.config.exchange.most_tree_files} files (exchange.most_tree_files)"
        )
    except (InputError, CorruptData, NotFound) as error:
        reason = str(error)
    now = archive.clock()
    with archive.database.transaction() as connection:
        transfer_zip.record_tree(connection, key, tree, reason=reason, now=now)
        known = catalogue.get(connection, key)
        catalogue.put(connection, replace(known, changed_at=max(catalogue.stamp(now), known.changed_at)))
    if tree is None:
        done.left[key] = reason
    else:
        done.made.append(key)


def _tree(archive: Archive, record: CatalogueRecord) -> Transfer:
    facts = package.read(archive.store, PackageId(record.package))
    captures = unpacked.choose(
        package.iter_captures(archive.store, facts), most=archive.config.exchange.most_tree_files
    )
    sources = [(capture, source) for capture in captures if (source := _source(archive, capture)) is not None]
    if not sources:
        raise InputError("It contains no successful response of a web server.")
    places = unpacked.place(capture.url for capture, _ in sources)
    formats = file_formats.of_digests(archive, (capture.digest for capture, _ in sources))
    files = [
        _file(archive, capture, source, places[capture.url], formats.get(capture.digest, ("", "")))
        for capture, source in sources
    ]
    seeds = [*record.addresses, *map(str, facts.harvest.seeds)]
    return transfer_zip.measure(
        TransferForm.TREE, files, unpacked.start_of(seeds, places), archive.containers.open
    )


def _source(archive: Archive, capture: Capture) -> Capture | None:
    """The capture whose record has the payload; None if it cannot be found."""
    return replay.find_original(archive, capture) if capture.kind is RecordKind.REVISIT else capture


def _file(
    archive: Archive, capture: Capture, source: Capture, member: str, known: tuple[str, str]
) -> TransferFile:
    """The entry of a file; its size and checksum are filled in when it is read."""
    puid, name = known
    folder, _, last = member.rpartition("/")
    mime = _mime(archive, source)
    return TransferFile(
        path=f"/{folder}/",
        name=last,
        size_bytes=0,
        sha256="",
        mime=mime,
        format=file_formats.label_of(mime, name),
        puid=puid,
        at=to_iso(from_timestamp(capture.timestamp)),
        container=source.location.container,
        offset=source.location.offset,
        length=source.location.length,
        url=capture.url,
    )


def _mime(archive: Archive, source: Capture) -> str:
    """The media type that the server sent, with the character set, which many pages do not declare
    themselves.
    """
    try:
        with archive.containers.open(source.location.container) as stream:
            content_type = read_record(stream, source.location).content_type
    except _UNREADABLE as error:
        raise CorruptData(
            f"{source.url[:200]} cannot be read: {error}", where=source.location.container
        ) from error
    charset = re.search(r"charset\s*=\s*\"?([A-Za-z0-9._:-]{1,40})", content_type, re.IGNORECASE)
    mime = source.mime if "/" in source.mime else "application/octet-stream"
    return f"{mime}; charset={charset[1].lower()}" if charset and mime.startswith("text/") else mime
