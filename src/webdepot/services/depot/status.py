"""The status of the depot: figures for the pages and `webdepot depot status`, one package with its history,
signed reports.

The cost does not grow with the number of packages: sums are kept in separate rows, and lists are read page by
page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from webdepot.archive import Archive
from webdepot.depot import copies, holdings, holds, ndsa_levels, package_content, places, signing, tombstone
from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Receipt
from webdepot.depot.copies import Copy, CopyState
from webdepot.depot.holds import Hold
from webdepot.depot.ndsa_levels import DepotFacts, NdsaLevel
from webdepot.depot.ocfl import objects
from webdepot.depot.places import MAIN
from webdepot.errors import CorruptData, NotFound, NotPermitted, RemoteError
from webdepot.formats import report as format_report
from webdepot.formats.report import FormatShare
from webdepot.formats.tables import identifications
from webdepot.harvest import harvest_rows
from webdepot.model import Harvest, Package
from webdepot.provenance import Event, iter_of
from webdepot.times import to_iso
from webdepot.version import VERSION

SHOWN_ALARMS = 100
SHOWN_EVENTS = 200
REPORTED_COPIES = 100_000
_BROKEN = (CopyState.DAMAGED, CopyState.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceStatus:
    name: str
    address: str
    state: str
    copies: Mapping[str, int]
    """By state."""
    size_bytes: int
    oldest_check: datetime | None
    away_since: datetime | None
    write_once: bool
    refuses_overwriting: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotStatus:
    packages: int
    size_bytes: int
    tombstones: int
    places: Sequence[PlaceStatus]
    growth: Sequence[tuple[str, int, int]]
    """Month, packages and bytes deposited in it."""
    alarms: Sequence[Copy]
    """Copies that are damaged or lost."""
    levels: Sequence[NdsaLevel]
    submissions: Sequence[Receipt]
    """The newest ones, refused or taken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRow:
    package: Package
    copies: Sequence[Copy]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    path: str
    size_bytes: int
    sha256: str
    format: str
    version: int
    """The version that added it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageView:
    package: Package
    harvest: Harvest
    copies: Sequence[Copy]
    events: Sequence[Event]
    """Newest first."""
    files: Sequence[FileRow]
    trouble: str
    """Why the files cannot be listed; empty if they can."""
    formats: Sequence[FormatShare]
    """Of the files inside the containers, with the number of invalid ones."""
    holds: Sequence[Hold]


def status(archive: Archive) -> DepotStatus:
    with archive.database.reading() as connection:
        count, size_bytes = holdings.totals(connection)
        tallies = copies.tally(connection)
        others = places.every(connection)
        main = PlaceStatus(
            name=MAIN,
            address=archive.depot_address,
            state="active",
            copies={tally.state.value: tally.copies for tally in tallies if tally.place == MAIN},
            size_bytes=sum(tally.size_bytes for tally in tallies if tally.place == MAIN),
            oldest_check=copies.oldest_check(connection, MAIN),
            away_since=None,
            write_once=False,
            refuses_overwriting=True,
            note="",
        )
        shown = [main]
        for place in others:
            own = [tally for tally in tallies if tally.place == place.name]
            shown.append(
                PlaceStatus(
                    name=place.name,
                    address=place.address,
                    state=place.state.value,
                    copies={tally.state.value: tally.copies for tally in own},
                    size_bytes=sum(tally.size_bytes for tally in own if tally.state is not CopyState.WAITING),
                    oldest_check=copies.oldest_check(connection, place.name),
                    away_since=place.away_since,
                    write_once=place.write_once,
                    refuses_overwriting=place.refuses_overwriting,
                    note=place.note,
                )
            )
        return DepotStatus(
            packages=count,
            size_bytes=size_bytes,
            tombstones=len(tombstone.latest(connection, 1000)),
            places=shown,
            growth=holdings.growth_by_month(connection),
            alarms=copies.in_state(connection, _BROKEN, limit=SHOWN_ALARMS),
            levels=ndsa_levels.of(_facts(archive, connection, count, shown)),
            submissions=submission.latest(connection, 10),
        )


def list_packages(
    archive: Archive, *, limit: int = 50, before: str = "", past: tuple[datetime, str] | None = None
) -> list[PackageRow]:
    """The newest packages. The last one of the page before is named by its identifier, `before`, or by its
    time and identifier, `past`, which works even if it was withdrawn in the meantime.
    """
    with archive.database.reading() as connection:
        if before and past is None and (last := holdings.find(connection, before)) is not None:
            past = last.stored_at, last.id
        return [
            PackageRow(package=held, copies=copies.of_package(connection, held.id))
            for held in holdings.latest(connection, limit, past=past)
        ]


def view(archive: Archive, identifier: str) -> PackageView:
    """One package with its copies, history and files; NotFound if there is none or it was withdrawn."""
    with archive.database.reading() as connection:
        stone = tombstone.find(connection, identifier)
        if stone is not None:
            raise NotFound(
                f"The package {stone.package} was withdrawn on {stone.withdrawn_at:%Y-%m-%d}: {stone.reason}"
            )
        held = holdings.get(connection, identifier)
        harvest = harvest_rows.get(connection, held.harvest)
        events = list(iter_of(connection, "package", held.id))[-SHOWN_EVENTS:]
        active = holds.active(
            connection,
            package=held.id,
            collection=harvest.collection,
            stored_at=held.stored_at,
            now=archive.clock(),
        )
        known = copies.of_package(connection, held.id)
        formats = format_report.shares(connection, [held.harvest])
    files, trouble = _files(archive, held)
    return PackageView(
        package=held,
        harvest=harvest,
        copies=known,
        events=list(reversed(events)),
        files=files,
        trouble=trouble,
        formats=formats,
        holds=active,
    )


def fixity_report(archive: Archive) -> bytes:
    """A signed report of all copies with state and date of the last check, the oldest check first.

    At most `REPORTED_COPIES` copies are listed.
    """
    with archive.database.reading() as connection:
        names = [MAIN, *(place.name for place in places.every(connection))]
        reported = copies.due(connection, before=archive.clock() + timedelta(days=1), limit=REPORTED_COPIES)
        count, size_bytes = holdings.totals(connection)
        entries = [
            {
                "package": copy.package,
                "place": copy.place,
                "version": copy.version,
                "state": copy.state.value,
                "checked_at": to_iso(copy.checked_at),
                "inventory_sha256": holdings.inventory_sha256(connection, copy.package),
            }
            for copy in reported
        ]
    report = {
        "format": "webdepot-fixity-report",
        "format_version": 1,
        "archive": archive.config.archive.name,
        "made_at": to_iso(archive.clock()),
        "software": f"webdepot {VERSION}",
        "audit_days": archive.config.depot.audit_days,
        "packages": count,
        "size_bytes": size_bytes,
        "places": names,
        "is_complete": len(reported) < REPORTED_COPIES,
        "copies": entries,
    }
    return signing.sign(report, signing.load_key(signing.key_path(archive.home)))


def public_key(archive: Archive) -> str:
    return signing.to_base64(signing.load_key(signing.key_path(archive.home)).public_key())


def check_report(data: bytes, *, key: str = "") -> str:
    """The key a report is signed with; CorruptData if the signature is wrong."""
    return signing.check(data, key=key)


def _facts(
    archive: Archive, connection: Connection, packages: int, shown: Sequence[PlaceStatus]
) -> DepotFacts:
    whole = [
        place
        for place in shown
        if place.copies.get("whole", 0) >= packages > 0
        and not place.copies.get("waiting")
        and place.away_since is None
    ]
    before = archive.clock() - timedelta(days=archive.config.depot.audit_days)
    return DepotFacts(
        packages=packages,
        places=len(whole),
        remote_places=sum(place.address.startswith("s3:") for place in whole),
        scans_viruses=bool(archive.config.depot.virus_scanner),
        overdue=bool(copies.due(connection, before=before, limit=1)),
        broken=sum(place.copies.get(state.value, 0) for place in shown for state in _BROKEN),
        identified=connection.execute(select(identifications.c.digest).limit(1)).first() is not None,
    )


def _files(archive: Archive, held: Package) -> tuple[list[FileRow], str]:
    try:
        inventory = objects.read_inventory(archive.store, held.id)
        rows = []
        for path, value in inventory.files().items():
            content = inventory.manifest[value][0]
            rows.append(
                FileRow(
                    path=path,
                    size_bytes=archive.store.size(objects.content_key(inventory, path)) or 0,
                    sha256=value,
                    format=package_content.format_of(path),
                    version=int(content.partition("/")[0][1:]),
                )
            )
        return rows, ""
    except (CorruptData, NotFound, RemoteError, NotPermitted, OSError) as error:
        return [], str(error)
