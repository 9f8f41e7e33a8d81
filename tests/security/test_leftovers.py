"""Temporary folders of processes that were killed are removed by the next one; those of living ones stay."""

import os
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import writers

from webdepot import durable
from webdepot.archive import ScratchPurpose
from webdepot.model import HarvestState
from webdepot.services import pipeline
from webdepot.services.admin.doctor import doctor
from webdepot.services.harvest import harvests
from webdepot.services.intake import in_place as in_place_service
from webdepot.services.intake import sources, submissions, warc_files
from webdepot.services.intake.warc_files import FileState
from webdepot.services.progress import unwatched

HOLD = """
import sys, time
from pathlib import Path
from webdepot import durable
with durable.scratch_folder(sys.argv[2], Path(sys.argv[1])) as folder:
    (folder / "half").write_bytes(b"half")
    print(folder, flush=True)
    time.sleep(600)
"""


def hold(parent: Path, prefix: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that holds a temporary folder until it is killed, and that folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent), prefix],
        stdout=subprocess.PIPE,
        text=True,
        env=writers.environment(),
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("purpose", ScratchPurpose)
def test_a_folder_stays_as_long_as_its_process_lives_and_no_longer(archive, purpose):
    process, folder = hold(archive.home, purpose.value)
    try:
        with archive.scratch_folder(ScratchPurpose.SORT):
            assert (folder / "half").exists()
        assert archive.abandoned_folders() == []
    finally:
        end(process)
    assert archive.abandoned_folders() == [folder]
    assert any(folder.name in check.message for check in doctor.examine(archive.home))
    with archive.scratch_folder(ScratchPurpose.SORT):
        assert not folder.exists()


def test_folders_without_a_lock_were_left_by_a_power_cut_or_an_older_version(archive):
    for name in (".unpacking-abc", ".taking-x", ".migrating-1"):
        (archive.home / name / "below").mkdir(parents=True)
    assert archive.remove_abandoned() == 3
    assert not [path for path in archive.home.iterdir() if path.name.startswith(".")]


def test_links_and_files_with_such_names_are_not_followed(archive, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (archive.home / ".unpacking-link").symlink_to(tmp_path / "precious")
    (archive.home / ".unpacking-file").touch()
    assert archive.remove_abandoned() == 0
    assert (tmp_path / "precious" / "file").exists()


def test_processes_that_create_folders_at_the_same_time_do_not_remove_them(tmp_path):
    """A folder is not locked yet in the moment it is created."""
    faults: list[str] = []

    def work() -> None:
        for _ in range(100):
            with durable.scratch_folder(".x-", tmp_path) as folder:
                try:
                    (folder / "file").write_bytes(b"x")
                except FileNotFoundError:
                    faults.append("removed")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert list(tmp_path.iterdir()) == []


def test_a_submission_removes_what_a_killed_one_left(archive, tmp_path):
    process, folder = hold(archive.home, ScratchPurpose.UNPACK.value)
    end(process)
    submissions.receive(archive, writers.warcs(tmp_path / "warcs", 1)[0], collection="mills")
    assert not folder.exists()


def test_doctor_removes_them_and_working_folders_of_kept_harvests(archive, tmp_path):
    process, folder = hold(archive.home, ScratchPurpose.MIGRATE.value)
    end(process)
    taken = pipeline.import_files(archive, writers.warcs(tmp_path / "warcs", 1), collection="mills").taken
    assert taken.harvest.state is HarvestState.KEPT
    working = harvests.folder_of(archive, taken.harvest)
    (working / "warc").mkdir(parents=True)
    (archive.home / ".taking-x" / "y").mkdir(parents=True)
    left = {check.name: check for check in doctor.examine(archive.home)}["leftovers"]
    assert (left.state, left.remedy) == ("warning", "webdepot doctor --mend")
    doctor.examine(archive.home, repair=True)
    assert not folder.exists()
    assert not working.exists()
    assert {check.name: check.state for check in doctor.examine(archive.home)}["leftovers"] == "ok"


# --- imports that were interrupted between two steps ---


@pytest.mark.parametrize("done", ["copied", "ended", "deposited"])
@pytest.mark.parametrize("in_place", [False, True])
def test_files_are_known_only_when_everything_is_done(archive, tmp_path, done, in_place):
    paths = writers.warcs(tmp_path / "warcs", 3)[:2]
    if in_place:
        taken = warc_files.take(
            archive,
            sources.iter_sources([str(path) for path in paths]),
            in_place_service.refer,
            collection="mills",
            settings=in_place_service.SETTINGS,
            note=lambda _: None,
            watch=unwatched,
        )
    else:
        taken = warc_files.take_files(archive, paths, collection="mills", watch=unwatched)
    assert taken.harvest is not None
    if done == "copied":
        with archive.database.transaction() as connection:  # as if its process had been killed here
            connection.exec_driver_sql("UPDATE harvests SET state = 'running', ended_at = NULL")
    if done == "deposited" and not in_place:
        pipeline.ingest.take_in(archive, taken.harvest, deposit=True, index=False)
    report = pipeline.import_files(archive, paths, collection="mills", in_place=in_place)
    assert (report.files.total(), len(report.skipped)) == (2, 0)
    assert report.taken is not None or report.resumed == 1
    assert archive.captures.total() == 2 * writers.PAGES
    state = HarvestState.FINISHED if in_place else HarvestState.KEPT
    assert harvests.get(archive, taken.harvest.id).state is state
    again = pipeline.import_files(archive, paths, collection="mills", in_place=in_place)
    assert (again.files, again.taken, again.resumed) == ({FileState.KNOWN: 2}, None, 0)


def test_two_submissions_that_were_interrupted_do_not_get_mixed(archive, tmp_path):
    first, second = (tmp_path / name for name in ("first", "second"))
    writers.warcs(first, 2, mark="-a-")
    writers.warcs(second, 2, mark="-b-")
    identifiers = []
    for folder in (first, second):
        opened = submissions.submission.open_up(folder, tmp_path / "none")
        identifiers.append(submissions.submission.id_of(opened))
    settings = {"submission": identifiers[0]}
    warc_files.take_files(
        archive, [first / "site-a-0.warc.gz"], collection="mills", settings=settings, watch=unwatched
    )
    with archive.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE harvests SET state = 'running', ended_at = NULL")
    two = submissions.receive(archive, second, collection="mills")
    one = submissions.receive(archive, first, collection="mills")
    assert one.package is not None
    assert two.package is not None
    assert one.package.harvest != two.package.harvest
    assert archive.captures.total() == 4 * writers.PAGES
    assert all(submissions.receive(archive, each, collection="mills").is_known for each in (first, second))


def test_a_refused_zip_bomb_leaves_only_its_copy_in_quarantine(archive, tmp_path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("thesis.txt", bytes(90 << 20))
    members = tmp_path / "members.zip"
    with zipfile.ZipFile(members, "w") as packed:
        for number in range(4):
            packed.writestr(f"{number}.txt", b"text")
    archive.config = replace(archive.config, depot=replace(archive.config.depot, import_members=3))
    before = set(archive.home.rglob("*"))
    for path, reason in ((bomb, "it would unpack to more than"), (members, "it contains more than 3 files")):
        receipt = submissions.receive(archive, path, collection="mills").receipt
        assert len(receipt.reasons) == 1 and receipt.reasons[0].startswith(reason)
    left = [each for each in set(archive.home.rglob("*")) - before if each.is_file()]
    assert {each.name for each in left if not each.name.startswith("webdepot.db")} == {
        "bomb.zip", "members.zip", "reasons.json"
    }  # fmt: skip
    assert all("quarantine" in each.parts for each in left if not each.name.startswith("webdepot.db"))


def test_this_process_has_no_folder_left(archive):
    with archive.scratch_folder(ScratchPurpose.CHECK) as folder:
        assert os.path.isdir(folder)  # noqa: PTH112
    assert not folder.exists()
