"""Import of many files: several harvests, what came in and what did not, two imports at once, repetition."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import holdings, package
from webdepot.harvest import harvest_rows
from webdepot.model import ContainerState, HarvestState
from webdepot.services import pipeline
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.harvest import harvests
from webdepot.services.intake import (
    container_copy,
    import_harvests,
    imports,
    ingest,
    sources,
    submissions,
    warc_files,
)
from webdepot.services.intake.warc_files import FileOutcome, FileState
from webdepot.services.progress import Phase, Progress, unwatched
from webdepot.services.quality import harvest_check

SETTINGS = """[depot]
import_files = 2
[index]
workers = 1
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Archive]:
    setup.create(tmp_path / "home", settings=SETTINGS)
    with Archive.open(tmp_path / "home", agent="anna") as archive:
        yield archive


def warc(path: Path, word: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_warc(path, {f"https://{word}.example/": f"<!doctype html><title>{word}</title>".encode()})


def start_import(home: Path, *arguments: object) -> subprocess.Popen[str]:
    # If it ever hangs, its stack is in the message of the test that waits for it.
    command = "import faulthandler; faulthandler.dump_traceback_later(240, exit=True); "
    command += "from webdepot.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", command, "--home", home, "import", *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def wait_for(process: subprocess.Popen[str], phase: str) -> None:
    """Read the progress of an import until this phase."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("{") and json.loads(line)["progress"]["phase"] == phase:
            return
    raise AssertionError(f"it ended before: {seen}")


def held(archive: Archive) -> list[str]:
    with archive.database.reading() as connection:
        return [container.name for container in locations.iter_all(connection)]


def packages(archive: Archive) -> int:
    with archive.database.reading() as connection:
        return len(list(holdings.iter_ids(connection)))


def test_many_files_become_several_packages_and_each_file_has_its_outcome(opened: Archive, tmp_path: Path):
    given = tmp_path / "given"
    for number, name in enumerate(("a/same.warc.gz", "b/deep/same.warc.gz", "b/upper.WARC.GZ")):
        warc(given / name, f"site{number}")
    (given / "a" / "again.warc.gz").write_bytes((given / "a" / "same.warc.gz").read_bytes())
    (given / "broken.warc.gz").write_bytes(b"\x1f\x8b no gzip at all")
    (given / "readme.txt").write_text("not searched for")
    (given / "gone.warc.gz").symlink_to(given / "nowhere")
    with zipfile.ZipFile(given / "crawl.wacz", "w") as packed:
        packed.write(warc(tmp_path / "data.warc.gz", "packed"), "archive/data.warc.gz")
    outcomes: list[FileOutcome] = []
    seen: list[Progress] = []
    report = pipeline.import_files(
        opened, [given], collection="old", watch=seen.append, on_file=outcomes.append
    )
    states = {str(Path(each.file).relative_to(given)).partition("#")[0]: each.state for each in outcomes}
    assert states == {
        "a/again.warc.gz": FileState.IMPORTED,
        "a/same.warc.gz": FileState.KNOWN,
        "b/deep/same.warc.gz": FileState.IMPORTED,
        "b/upper.WARC.GZ": FileState.IMPORTED,
        "broken.warc.gz": FileState.SKIPPED,
        "crawl.wacz": FileState.IMPORTED,
        "gone.warc.gz": FileState.SKIPPED,
    }
    assert {Path(each.file).name: each.reason for each in report.skipped} == {
        "broken.warc.gz": next(each.reason for each in outcomes if "broken" in each.file),
        "gone.warc.gz": "the file does not exist.",
    }
    assert (report.files.total(), report.harvests, packages(opened)) == (7, 2, 2)
    assert report.size_bytes == sum(each.size_bytes for each in outcomes if each.state is FileState.IMPORTED)
    assert sorted(held(opened)) == [
        "again.warc.gz",
        "crawl-data.warc.gz",
        "same.warc.gz",
        "upper.WARC.GZ",
    ]
    assert opened.captures.total() == 4
    assert list(opened.harvests_folder.iterdir()) == []
    totals = {progress.whole.total_bytes for progress in seen if progress.whole}
    files = [path for path in given.rglob("*") if path.is_file() and path.suffix != ".txt"]
    assert totals == {sum(path.stat().st_size for path in files)}
    assert seen[-1].whole is not None and seen[-1].whole.left_s is not None
    assert max(progress.done for progress in seen if progress.phase is Phase.IMPORT) == 7

    again = pipeline.import_files(opened, [given], collection="old")
    assert (again.files, again.harvests) == ({FileState.KNOWN: 5, FileState.SKIPPED: 2}, 0)


def test_two_files_of_one_name_in_one_import_are_both_kept(opened: Archive, tmp_path: Path):
    folders = (tmp_path / "x", tmp_path / os.fsdecode(b"\xff"))  # a name that is not UTF-8
    paths = [warc(folder / "same.warc.gz", f"site{number}") for number, folder in enumerate(folders)]
    pipeline.import_files(opened, paths, collection="old")
    assert len(held(opened)) == 2
    assert opened.captures.total() == 2


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_is(opened: Archive, tmp_path: Path):
    path = warc(tmp_path / "given" / "a.warc.gz", "first")
    pipeline.import_files(opened, [path], collection="old")
    [source] = sources.iter_sources([str(path)])
    known = warc_files.find_known(opened, source)
    assert known is not None and known.name == "a.warc.gz"
    warc(path, "second")
    [changed] = sources.iter_sources([str(path)])
    assert warc_files.find_known(opened, changed) is None
    assert pipeline.import_files(opened, [path], collection="old").files == {FileState.IMPORTED: 1}
    assert opened.captures.total() == 2


def test_a_file_that_grows_while_it_is_read_is_left_out(opened: Archive, tmp_path: Path):
    path = warc(tmp_path / "growing.warc.gz", "grows")
    [source] = sources.iter_sources([str(path)])
    with path.open("ab") as stream:
        stream.write(path.read_bytes())
    report = imports.ImportReport()
    taken = warc_files.take(
        opened, [source], container_copy.copy_in, collection="old", note=report.add, watch=unwatched
    )
    assert taken.harvest is None
    assert "was changed while it was read" in report.skipped[0].reason
    assert held(opened) == []


def test_an_import_without_a_file_says_so(opened: Archive, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for in_place in (False, True):
        with pytest.raises(imports.InputError, match="There is no WARC, ARC, WACZ or HAR file in"):
            pipeline.import_files(opened, [tmp_path / "empty"], collection="old", in_place=in_place)
    with pytest.raises(imports.InputError, match="with --in-place"):
        pipeline.import_files(opened, ["https://a.example/x.warc.gz"], collection="old")


def test_a_har_file_becomes_captures_of_its_date(opened: Archive, tmp_path: Path):
    given = tmp_path / "visit.har"
    answer = {
        "status": 200,
        "headers": [],
        "content": {"mimeType": "text/html", "text": "<title>Mill</title>"},
    }
    entries = [
        {"startedDateTime": "2019-03-04T05:06:07Z", "request": {"url": url}, "response": answer}
        for url in ("https://mill.example/", "data:,x")
    ]
    given.write_text(json.dumps({"log": {"entries": entries}}))
    outcomes: list[FileOutcome] = []
    report = pipeline.import_files(
        opened, [tmp_path], collection="old", in_place=True, on_file=outcomes.append
    )
    assert report.files == {FileState.SKIPPED: 1} and "Import it without --in-place" in outcomes[0].reason
    report = pipeline.import_files(opened, [tmp_path], collection="old", on_file=outcomes.append)
    assert report.files == {FileState.IMPORTED: 1} and held(opened) == ["visit.warc.gz"]
    assert outcomes[1].reason.startswith("1 of its entries were left out. The first: entry 2: 'data:,x'")
    shown = replay.open_capture(
        opened, "https://mill.example/", "20190304050607", collection="all", reader=ANYONE
    )
    assert replay.content_of(shown).read() == b"<title>Mill</title>"
    shown.close()
    again = pipeline.import_files(opened, [given], collection="old")
    assert again.files == {FileState.KNOWN: 1}


def test_a_folder_of_a_heritrix_job_is_checked_with_its_log(opened: Archive, tmp_path: Path):
    job = tmp_path / "20240501100000"
    for name in ("warcs", "logs"):
        (job / name).mkdir(parents=True)
    write_warc(
        job / "warcs/mill.warc.gz", {"https://mill.example/": b"<title>Mill</title><img src=/gone.png>"}
    )
    (job / "logs/crawl.log").write_text(
        "2024-05-01T10:00:01.120Z 200 51 https://mill.example/ - - text/html #1 20240501100000900+45 - - -\n"
        "2024-05-01T10:00:02.000Z -3 - https://mill.example/gone.png E https://mill.example/ - #3 - - - -\n"
    )
    done = submissions.receive(opened, job, collection="mills")
    assert done.package is not None and done.receipt.reasons == ()
    findings = [
        (each.code, each.subject) for each in harvest_check.iter_findings(opened, done.package.harvest)
    ]
    assert ("quality.part-unreachable", "https://mill.example/gone.png") in findings
    files = package.read(opened.store, done.package.id).inventory.files()
    assert {"log/crawl.log", "log/crawl.jsonl", "metadata/submission/logs/crawl.log"} <= files.keys()


def test_files_used_in_place_are_in_several_harvests_and_stay_there(opened: Archive, tmp_path: Path):
    given = tmp_path / "#5"
    for number in range(3):
        warc(given / f"{number}.warc.gz", f"site{number}")
    report = pipeline.import_files(opened, [given], collection="old", in_place=True)
    assert (report.files, report.harvests, packages(opened)) == ({FileState.IMPORTED: 3}, 2, 0)
    outcomes: list[FileOutcome] = []
    copied = pipeline.import_files(opened, [given], collection="old", on_file=outcomes.append)
    assert (copied.files, packages(opened)) == ({FileState.KNOWN: 3}, 0), "nothing is copied unasked"
    assert outcomes[0].reason == f"it is read in place from {given / '0.warc.gz'}"
    with opened.database.reading() as connection:
        states = {container.state for container in locations.iter_all(connection)}
    assert states == {ContainerState.ELSEWHERE}
    assert report.taken is not None
    ingest.take_in(opened, report.taken.harvest, deposit=True)
    assert packages(opened) == 1, "a person asked for it"
    with opened.database.reading() as connection:
        kept = [each.name for each in locations.iter_all(connection) if each.state is ContainerState.KEPT]
    assert kept == ["2.warc.gz"]


@pytest.mark.parametrize("other", ["the same file", "another file of that name"])
def test_a_file_that_another_process_imports_meanwhile(
    opened: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
):
    """The other import runs as a whole after this one has found that the file is new."""
    mine = warc(tmp_path / "mine" / "same.warc.gz", "tulips")
    theirs = mine if other == "the same file" else warc(tmp_path / "theirs" / "same.warc.gz", "daisies")
    read_through = container_copy.read_through

    def interrupted(*arguments: object) -> tuple[int, bool]:
        process = start_import(opened.home, theirs)
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
        monkeypatch.setattr(container_copy, "read_through", read_through)
        return read_through(*arguments)

    monkeypatch.setattr(container_copy, "read_through", interrupted)
    report = pipeline.import_files(opened, [mine], collection="imported")
    if other == "the same file":
        assert (report.files, packages(opened), held(opened)) == ({FileState.KNOWN: 1}, 1, ["same.warc.gz"])
        assert opened.captures.total() == 1
    else:
        assert (report.files, packages(opened), len(held(opened))) == ({FileState.IMPORTED: 1}, 2, 2)
        assert opened.captures.total() == 2
    assert {check.state for check in doctor.examine(opened.home) if check.name == "containers"} == {"ok"}


def test_an_import_waits_for_another_one_can_be_interrupted_and_completes_what_that_one_left(
    opened: Archive, tmp_path: Path
):
    given = tmp_path / "given"
    for number in range(3):
        warc(given / f"{number}.warc.gz", f"site{number}")
    with ExitStack() as work:
        intake = warc_files.take(
            opened,
            sources.iter_sources([str(given / "1.warc.gz")]),
            container_copy.copy_in,
            collection="imported",
            note=lambda _: None,
            work=work,
            watch=unwatched,
        )
        assert intake.harvest is not None
        listing = tmp_path / "outcomes.jsonl"
        process = start_import(opened.home, given, "--report", listing)
        wait_for(process, "wait")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
        assert process.returncode == 130, errors
        assert "run the same command again to continue" in errors
        last = json.loads(output.splitlines()[-1])
        assert last["outcomes"] == {"imported": 2, "known": 1, "skipped": 0}
        listed = [json.loads(line) for line in listing.read_text().splitlines()]
        assert [(Path(each["file"]).name, each["state"]) for each in listed] == [
            ("0.warc.gz", "imported"),
            ("1.warc.gz", "known"),
            ("2.warc.gz", "imported"),
        ]
        process = start_import(opened.home, given)
        wait_for(process, "wait")
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    last = json.loads(output.splitlines()[-1])
    assert (last["harvest"], last["outcomes"]["known"]) == (intake.harvest.id, 3)
    with opened.database.reading() as connection:
        states = {harvest.state for harvest in harvest_rows.latest(connection, 10)}
    assert (states, packages(opened), opened.captures.total()) == ({HarvestState.KEPT}, 2, 3)
    assert not harvests.finished_folders(opened) and not list(opened.harvests_folder.iterdir())


def test_an_interrupted_import_is_continued_by_one_of_two_others(opened: Archive, tmp_path: Path):
    settings: dict[str, object] = {}
    with ExitStack() as held_first, ExitStack() as work_first:
        first = import_harvests.begin(opened, "old", settings, held_first, work_first)
        with ExitStack() as held_second, ExitStack() as work_second:
            assert import_harvests.begin(opened, "old", settings, held_second, work_second).id != first.id
    with ExitStack() as held_third, ExitStack() as work_third:
        assert (
            import_harvests.begin(opened, "old", settings, held_third, work_third).state
            is HarvestState.RUNNING
        )
    with opened.database.reading() as connection:
        assert len(harvest_rows.latest(connection, 10)) == 2


def test_of_eight_processes_that_create_one_archive_one_does_and_the_others_use_it(tmp_path: Path):
    create = (
        "import sys; from pathlib import Path; from webdepot.services.admin import setup; "
        "print('ready', flush=True); sys.stdin.readline(); print(setup.create(Path(sys.argv[1])))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", create, tmp_path / "home"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, ends
    assert sorted(output.strip() for output, _ in ends) == ["False"] * 7 + ["True"]
    assert {path.name for path in (tmp_path / "home").iterdir()} >= {"webdepot.db", "webdepot.toml"}
    assert not list((tmp_path / "home").glob(".*"))


def test_a_folder_whose_creation_was_killed_becomes_an_archive(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    for name in (".creating", "webdepot.toml.new"):
        (home / name).touch()
    assert setup.create(home)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "photo.jpg").touch()
    with pytest.raises(setup.Conflict, match="is not empty and is not an archive"):
        setup.create(tmp_path / "full")
