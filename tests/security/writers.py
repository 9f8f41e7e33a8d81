"""The commands that write, each with an archive to run it in, and everything that must be the same after it was
disturbed: for the tests of kills and power cuts.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from s3_servers import S3Server
from small_sites import cleared, small_site
from small_warcs import write_warc
from webdepot.archive import Archive
from webdepot.config.config import FILE_NAME
from webdepot.container import locations
from webdepot.depot import copies, fixity, holdings, places
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestState, Severity
from webdepot.ports.search import TextQuery
from webdepot.provenance import iter_all
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.depot import export
from webdepot.services.schedule import plans

PAGES = 12
DAY = datetime(2024, 5, 1, tzinfo=UTC)
SETTINGS = """[harvest]
allow_private = true
delay_s = 0
least_free_bytes = 0
[container]
checkpoint_s = 0.1
size_bytes = 20000
[index]
workers = 1
"""
REPEATED = frozenset({"checked", "identified", "recovered", "started", "rebuilt", "harvested", "founded"})
"""Events that a repeated command may write once more."""
SOURCES = "sources"
HOME = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A command that writes to the archive `home` in the folder of a test."""

    name: str
    prepare: Callable[[Path], None]
    """Fills the folder."""
    command: Callable[[Path], list[str]]
    """Its arguments, with `--home`."""
    same_names: bool = True
    """Whether containers have the same names and bytes each time."""
    begins_anew: bool = False
    """Whether the command begins a new work if nothing is left to do."""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a new group of processes, which can be killed as a whole."""
    return subprocess.Popen(
        [sys.executable, "-c", "from webdepot.cli.main import main; main()", *arguments, "--json", "--quiet"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=environment(),
    )


def run(arguments: list[str]) -> None:
    """Run a command to its end; it must succeed."""
    process = start(arguments)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, (
        f"{arguments}: exit {process.returncode}\n{output.decode(errors='replace')}"
    )


@dataclass(slots=True)
class View:
    """What readers, staff and auditors can see of an archive; equal for equal archives."""

    captures: list[Any]
    containers: list[Any]
    states: Counter[str]
    pages: int
    hits: int
    packages: int
    rows: dict[str, int]
    events: dict[str, int]
    copies: Counter[Any]
    faults: list[str] = field(default_factory=list)


def differences(seen: View, expected: View) -> dict[str, object]:
    """What differs, by field and by key, for the message of a failed test."""
    different: dict[str, object] = {}
    for each in fields(View):
        ours, theirs = getattr(seen, each.name), getattr(expected, each.name)
        if ours == theirs:
            continue
        if isinstance(ours, dict):
            keys = ours.keys() | theirs.keys()
            different[each.name] = {
                key: (ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)
            }
        elif isinstance(ours, list):
            more, less = Counter(ours) - Counter(theirs), Counter(theirs) - Counter(ours)
            different[each.name] = {"more": list(more.elements())[:5], "less": list(less.elements())[:5]}
        else:
            different[each.name] = (ours, theirs)
    return different


def row_counts(connection: Connection, *, without: set[str]) -> dict[str, int]:
    """The number of rows of each table but these."""
    names = sorted(set(inspect(connection).get_table_names()) - without)
    counts = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in names)
    return dict(connection.execute(text(counts)).all())


def view(home: Path, *, same_names: bool = True) -> View:
    """Look at everything; faults are what must never be there."""
    checks = [each for each in doctor.examine(home, deep=True) if each.state != "ok"]
    faults = [
        f"{each.name}: {each.message}" for each in checks if each.name not in ("disk", "browser", "replay")
    ]
    with Archive.open(home) as archive:
        faults += [f"left: {path.name}" for path in home.iterdir() if path.name.startswith(".")]
        with archive.database.reading() as connection:
            held = list(locations.iter_all(connection))
            packages = [holdings.get(connection, each) for each in holdings.iter_ids(connection)]
            states = Counter(each.state.value for each in harvest_rows.in_states(connection, HarvestState))
            states.pop("failed", None)  # an import that found nothing new
            events = Counter(each.action for each in iter_all(connection) if each.action not in REPEATED)
            copied = Counter(
                (each.place, each.version, each.state.value)
                for package in packages
                for each in copies.of_package(connection, package.id)
            )
            elsewhere = [each.name for each in places.every(connection)]
            # a decision is recorded with each command
            rows = row_counts(connection, without={"events", "harvests", "verdicts"})
        for name, store in archive.stores().items():
            faults += [
                f"{name}: {finding.message}"
                for package in packages
                if name == places.MAIN or name in elsewhere
                for finding in fixity.verify_package(store, package.id)
                if finding.severity is Severity.ERROR
            ]
        captures = sorted(
            (capture.url, capture.digest, capture.status, *((capture.timestamp,) if same_names else ()))
            for container in held
            for _, capture in archive.captures.of_container(container.name)
        )
        return View(
            captures=captures,
            containers=sorted((each.name, each.sha256, each.state.value) for each in held)
            if same_names
            else [],
            states=states,
            pages=archive.texts.total(),
            hits=archive.texts.find(TextQuery(words=("windmill",))).pages,
            packages=len(packages),
            rows=rows if same_names else {name: count for name, count in rows.items() if name in _COMPARED},
            events=dict(events) if same_names else {},
            copies=copied,
            faults=faults,
        )


_COMPARED = ("packages", "targets", "catalogue", "conversions")


# --- samples ---


def warcs(folder: Path, count: int = 3, *, pages: int = PAGES, mark: str = "") -> list[Path]:
    """Containers with pages and pictures; the last one is compressed as one piece, so it is rewritten."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(count):
        path = folder / f"site{mark}{number}.warc.gz"
        site = f"https://site{mark}{number}.example/"
        day = DAY + timedelta(days=number)
        write_warc(path, {f"{site}{page}": _page(site, page) for page in range(pages)}, when=day)
        if number == count - 1:
            path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), mtime=0))
        paths.append(path)
    return paths


def _page(site: str, page: int) -> bytes:
    links = "".join(f'<a href="{other}">page {other}</a>' for other in range(page + 1, min(page + 4, PAGES)))
    return f"<!doctype html><title>{site}</title><p>The windmill {page} of {site}.{links}".encode()


BITMAP = b"""#define mill_width 8
#define mill_height 2
static char mill_bits[] = { 0x%02x, 0x42 };
"""


def found(folder: Path) -> Path:
    setup.create(folder / HOME, settings=SETTINGS)
    return folder / HOME


def import_into(folder: Path, paths: list[Path], *, deposit: bool = True) -> pipeline.ImportReport:
    with Archive.open(folder / HOME, agent="test") as archive:
        return pipeline.import_files(archive, paths, collection="mills", deposit=deposit)


# --- the writers ---


def _prepare_import(folder: Path) -> None:
    found(folder)
    warcs(folder / SOURCES)


def _prepare_import_in_place(folder: Path) -> None:
    found(folder)
    *_, last = warcs(folder / SOURCES)
    last.unlink()  # it is compressed as one piece


def _prepare_deposit(folder: Path) -> None:
    found(folder)
    import_into(folder, warcs(folder / SOURCES), deposit=False)


def _prepare_packages(folder: Path) -> None:
    found(folder)
    for number in range(2):
        import_into(folder, warcs(folder / SOURCES, 2, mark=f"-{number}-"))


def _prepare_rebuild(folder: Path) -> None:
    _prepare_packages(folder)
    (folder / HOME / "depot").rename(folder / "depot")
    shutil.rmtree(folder / HOME)


def _prepare_migration(folder: Path) -> None:
    found(folder)
    pictures = {f"https://old.example/{number}.xbm": BITMAP % number for number in range(3)}
    (folder / SOURCES).mkdir()
    path = write_warc(folder / SOURCES / "old.warc.gz", pictures, when=DAY, mime="image/x-xbitmap")
    import_into(folder, [path])


def _prepare_object(folder: Path) -> None:
    """A thesis with its description, which is not a harvest."""
    found(folder)
    with zipfile.ZipFile(folder / "thesis.zip", "w") as packed:
        packed.writestr(
            zipfile.ZipInfo("thesis.html", (2004, 9, 24, 10, 0, 0)), "<title>Clocks</title><p>Pendulum"
        )
        packed.writestr(zipfile.ZipInfo("big.bin", (2004, 9, 24, 10, 0, 0)), bytes(4 << 20))
        title = "<title xmlns='http://purl.org/dc/elements/1.1/'>Clocks</title>"
        packed.writestr(zipfile.ZipInfo("dc.xml", (2004, 9, 24, 10, 0, 0)), f"<metadata>{title}</metadata>")


def _prepare_submission(folder: Path) -> None:
    found(folder)
    with zipfile.ZipFile(folder / "mills.zip", "w") as packed:
        for path in warcs(folder / SOURCES):
            packed.write(path, f"mills/{path.name}")
        packed.writestr("mills/bag-info.txt", "Source-Organization: Mills\n")


def _prepare_package(folder: Path) -> None:
    """A package of another Webdepot, as a ZIP file."""
    other = folder / "other"
    found(other)
    import_into(other, warcs(folder / SOURCES))
    with Archive.open(other / HOME) as archive, archive.database.reading() as connection:
        (identifier,) = holdings.iter_ids(connection)
        export.export(archive, identifier, export.PackageForm.ZIP, folder / "package.zip")
    shutil.rmtree(other)
    found(folder)


def _package_of(folder: Path) -> str:
    with Archive.open(folder / HOME) as archive, archive.database.reading() as connection:
        return next(iter(holdings.iter_ids(connection)))


def _finished(folder: Path) -> str:
    with Archive.open(folder / HOME) as archive, archive.database.reading() as connection:
        return harvest_rows.in_states(connection, HarvestState)[0].id


def _command(*arguments: str) -> Callable[[Path], list[str]]:
    """The arguments with FOLDER replaced by the folder of the test."""
    return lambda folder: [
        "--home",
        str(folder / HOME),
        *(argument.replace("FOLDER", str(folder)) for argument in arguments),
    ]


WRITERS = (
    Writer(name="import", prepare=_prepare_import, command=_command("import", f"FOLDER/{SOURCES}")),
    Writer(
        name="import in place",
        prepare=_prepare_import_in_place,
        command=_command("import", "--in-place", f"FOLDER/{SOURCES}"),
    ),
    Writer(
        name="deposit",
        prepare=_prepare_deposit,
        command=lambda folder: ["--home", str(folder / HOME), "harvest", "keep", _finished(folder)],
    ),
    Writer(
        name="copy",
        prepare=_prepare_packages,
        command=_command("depot", "copy", "add", "second", "FOLDER/second"),
    ),
    Writer(name="index rebuild", prepare=_prepare_packages, command=_command("index", "rebuild")),
    Writer(
        name="depot rebuild",
        prepare=_prepare_rebuild,
        command=_command("depot", "rebuild", "--from", "FOLDER/depot"),
    ),
    Writer(
        name="migration",
        prepare=_prepare_migration,
        command=lambda folder: [
            "--home",
            str(folder / HOME),
            "package",
            "migrate",
            _package_of(folder),
            "--tool",
            "xbitmap-to-png",
        ],
        same_names=False,
    ),
    Writer(
        name="submission",
        prepare=_prepare_submission,
        command=_command("package", "import", "FOLDER/mills.zip"),
    ),
    Writer(
        name="object",
        prepare=_prepare_object,
        command=_command("package", "import", "FOLDER/thesis.zip"),
        same_names=False,  # records get new identifiers, so the container has another checksum
    ),
    Writer(
        name="package receipt",
        prepare=_prepare_package,
        command=_command("package", "import", "FOLDER/package.zip"),
    ),
)


# --- writers that need a server ---

SEVERAL = 2
"""Processes that share a harvest."""


def _page_of(path: str) -> str:
    name = path.strip("/") or "0"
    return _page("/", int(name)).decode() if name.isdigit() and int(name) < PAGES * 3 else ""


def _found_quietly(folder: Path) -> None:
    found(folder)


@contextmanager
def harvest_writer() -> Iterator[Writer]:
    """Harvests a site, which is there as long as the block lasts."""
    with small_site(_page_of) as site:
        yield Writer(
            name="harvest",
            prepare=_found_quietly,
            command=_command("archive", f"{site}/"),
            same_names=False,
            begins_anew=True,
        )


@contextmanager
def browser_writer() -> Iterator[Writer]:
    """Opens each page in the browser, too."""
    with small_site(lambda path: _page_of(path) if path in ("/", "/0", "/1", "/2", "/3") else "") as site:
        yield Writer(
            name="harvest with the browser",
            # The sandbox of Chromium does not work for root, and disks that lose data can only be mounted by root.
            prepare=lambda folder: _with_settings(folder, "[harvest]\nbrowser_sandbox = false\n"),
            command=_command("archive", "--browser", f"{site}/"),
            same_names=False,
            begins_anew=True,
        )


@contextmanager
def processes_writer() -> Iterator[Writer]:
    """Several processes harvest several hosts together: two names of the same server."""
    with small_site(_page_of) as site:
        seeds = [f"{site}/", f"{site.replace('localhost', '127.0.0.1')}/"]
        yield Writer(
            name="harvest of several processes",
            prepare=lambda folder: _with_settings(folder, f"[harvest]\nprocesses = {SEVERAL}\n"),
            command=_command("archive", *seeds),
            same_names=False,
            begins_anew=True,
        )


@contextmanager
def scheduler_writer() -> Iterator[Writer]:
    """A harvest that is due is run, accepted and deposited. A second scheduler takes over what the first one
    left.
    """

    def prepare(folder: Path) -> None:
        _with_settings(folder, '[review]\naccept = "always"\n')
        with Archive.open(folder / HOME, agent="test") as archive:
            plans.run_now(archive, cleared(archive, f"{site}/"))

    with small_site(_page_of) as site:
        yield Writer(
            name="scheduler",
            prepare=prepare,
            command=_command("scheduler", "--once"),
            same_names=False,
        )


def _with_settings(folder: Path, more: str) -> None:
    """An archive with these settings, too."""
    section = more.partition("\n")[0]
    settings = SETTINGS.replace(f"{section}\n", more) if section in SETTINGS else SETTINGS + more
    setup.create(folder / HOME, settings=settings)


def s3_writers(server: S3Server) -> Iterator[Writer]:
    """The depot, or a copy of it, in a bucket. Each folder has its own corner of it."""

    def address(folder: Path) -> str:
        corner = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
        return f"s3://{server.bucket}/kills/{corner}?endpoint={server.endpoint}"

    def import_command(folder: Path) -> list[str]:
        """The archive was founded without an address of its own, and has no package yet."""
        path = folder / HOME / FILE_NAME
        if "[depot]" not in path.read_text():
            path.write_text(path.read_text() + f'[depot]\nplace = "{address(folder)}"\n')
        return ["--home", str(folder / HOME), "import", str(folder / SOURCES)]

    yield Writer(
        name="copy to S3",
        prepare=_prepare_packages,
        command=lambda folder: [
            "--home",
            str(folder / HOME),
            "depot",
            "copy",
            "add",
            S3_PLACE,
            address(folder),
        ],
    )
    yield Writer(name="depot on S3", prepare=_prepare_import, command=import_command)


S3_PLACE = "cloud"
LIVE = {
    "harvest": harvest_writer,
    "scheduler": scheduler_writer,
    "harvest of several processes": processes_writer,
    "harvest with the browser": browser_writer,
}
S3 = ("copy to S3", "depot on S3")
LONG = frozenset({"object", "harvest of several processes", "harvest with the browser", *S3})
"""Writers that the ordinary test run cannot afford."""
