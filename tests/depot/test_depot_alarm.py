"""Alarms are sent by email; a disk that is really full stops only the copy that does not fit."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from depot_samples import files_of

from letters import letter_box  # noqa: F401 - a fixture
from webdepot.depot.fixity import AuditOutcome
from webdepot.provenance import Outcome, iter_of
from webdepot.services.depot import audit


def lose(archive, package):
    path = next(
        path for path in files_of(archive.home / "depot", package.id) if path.name.endswith(".warc.gz")
    )
    path.write_bytes(path.read_bytes()[:-1])


def acts(archive):
    with archive.database.reading() as connection:
        return [
            (event.outcome, event.message)
            for event in iter_of(connection, "archive", "depot")
            if event.action == "alarmed"
        ]


def configure(archive, **mail):
    for name, value in {"security": "none", "sender": "depot@example.org", **mail}.items():
        object.__setattr__(archive.config.mail, name, value)
    object.__setattr__(archive.config.depot, "alarm_mail", ("anna@example.org", "bert@example.org"))


def test_what_is_lost_is_told_by_letter(archive, keep_site, letter_box):  # noqa: F811
    configure(archive, host="127.0.0.1", port=letter_box.port)
    package = keep_site(1)
    audit.audit(archive, older_than_days=0)
    assert letter_box.letters == []
    lose(archive, package)
    assert audit.audit(archive, packages=[package.id]).counts == {AuditOutcome.LOST: 1}
    assert [letter.recipients for letter in letter_box.letters] == [
        ["anna@example.org"],
        ["bert@example.org"],
    ]
    letter = letter_box.letters[0].message
    assert "depot alarm (1)" in letter["Subject"]
    assert "site-1.warc.gz" in letter.get_content()
    assert acts(archive) == [
        (Outcome.SUCCESS, "email to anna@example.org: 1 alarms"),
        (Outcome.SUCCESS, "email to bert@example.org: 1 alarms"),
    ]


def test_a_mail_server_that_is_away_stops_nothing(archive, keep_site):
    configure(archive, host="127.0.0.1", port=1)
    package = keep_site(1)
    lose(archive, package)
    assert audit.audit(archive, packages=[package.id]).counts == {AuditOutcome.LOST: 1}
    assert [outcome for outcome, _ in acts(archive)] == [Outcome.FAILURE, Outcome.FAILURE]
    assert "cannot be reached" in acts(archive)[0][1]


FULL = """
import os, sys
from pathlib import Path
from depot_samples import content_of, files_of
from webdepot.archive import Archive
from webdepot.depot import copies, fixity, holdings, package
from webdepot.depot.ocfl import objects
from webdepot.depot.copies import CopyState
from webdepot.errors import NoSpace
from webdepot.services.depot import audit, deposit, storage_places

home, folder, disk = map(Path, sys.argv[1:])

def fill_up(path, left):
    room = os.statvfs(path)
    (path / "ballast").write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - left)))

with Archive.open(home, agent="test") as archive:
    storage_places.add_place(archive, "second", str(disk / "second"))
    kept = [package.build(archive.store, content_of(folder, number)).package for number in range(3)]
    deposit.adopt(archive)
    # The disk of a copy is full: the others continue, the copy waits, nothing incomplete is visible.
    fill_up(disk, 20_000)
    report = storage_places.fill(archive)
    assert "is full" in report.away["second"], report
    assert report.waiting >= 1, report
    for identifier in objects.iter_objects(archive.stores()["second"]):
        assert not list(fixity.verify_package(archive.stores()["second"], identifier))
    audited = audit.audit(archive, older_than_days=0)
    assert any("is full" in words for words in audited.alarms), audited.alarms
    (disk / "ballast").unlink()
    report = storage_places.fill(archive)
    assert (report.waiting, report.away) == (0, {}), report
    with archive.database.reading() as connection:
        for each in kept:
            assert {copy.state for copy in copies.of_package(connection, each.id)} == {CopyState.WHOLE}

# The disk of the depot is full: nothing is acknowledged or lost, and it works when there is space again.
(disk / "depot").mkdir()
os.rename(home / "depot", home / "old")
(home / "depot").symlink_to(disk / "depot")
with Archive.open(home, agent="test") as archive:
    content = content_of(folder, 9)
    fill_up(disk, 12_000)
    try:
        package.build(archive.store, content)
    except NoSpace as error:
        assert "nothing was lost" in str(error), error
    else:
        raise AssertionError("it fitted")
    assert deposit.adopt(archive) == []
    (disk / "ballast").unlink()
    facts = package.build(archive.store, content)
    assert [each.id for each in deposit.adopt(archive)] == [facts.package.id]
    assert not list(fixity.verify_package(archive.store, facts.package.id))
print("done")
"""


def test_a_disk_that_is_full(home, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    program = tmp_path / "full.py"
    program.write_text(textwrap.dedent(FULL))
    mounted = f'mount -t tmpfs -o size=1m none "{disk}"'
    if subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk of its own")
    paths = ":".join([str(Path(__file__).parent), *sys.path])
    command = f'{mounted} && exec "{sys.executable}" "{program}" "{home}" "{tmp_path}" "{disk}"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": paths},
        check=False,
    )
    assert done.stdout == "done\n", done.stderr
