"""kill -9 during deposit, copy, audit and repair: nothing acknowledged is lost, and the log agrees with the files."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from depot_samples import content_of, files_of

from webdepot.archive import Archive
from webdepot.depot import copies, fixity, holdings, package
from webdepot.depot.copies import CopyState
from webdepot.depot.ocfl import objects
from webdepot.depot.store.folder import FolderStore
from webdepot.provenance import iter_of
from webdepot.services.depot import audit, deposit, storage_places

KILLS = 30


def work(home: Path, folder: Path, acknowledged: Path) -> None:
    """The work of a busy archive until it is killed: deposit, copy, damage, audit."""
    chance = random.Random()
    with Archive.open(home, agent="worker") as archive:
        while True:
            number = chance.randrange(1_000_000_000)
            content = content_of(folder, number)
            deposit.adopt(archive)
            facts = package.build(archive.store, content)
            deposit.adopt(archive)
            with acknowledged.open("a") as log:  # from here on it must never be lost
                log.write(f"{facts.package.id} {content.containers[0].sha256}\n")
                log.flush()
                os.fsync(log.fileno())
            storage_places.fill(archive)
            victim = chance.choice(acknowledged.read_text().split("\n")[:-1]).partition(" ")[0]
            spoiled = files_of(folder / "second", victim)
            if spoiled:
                path = chance.choice(spoiled)
                path.write_bytes(b"spoiled" + path.read_bytes()[7:])
            audit.audit(archive, packages=[victim])


@pytest.mark.slow
def test_killed_at_any_moment_nothing_acknowledged_is_lost(home, tmp_path):
    acknowledged = tmp_path / "acknowledged"
    acknowledged.touch()
    with Archive.open(home) as archive:
        storage_places.add_place(archive, "second", str(tmp_path / "second"))
    chance = random.Random(7)
    for number in range(KILLS):
        before = acknowledged.stat().st_size
        begun_s = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                work(home, tmp_path, acknowledged)
            finally:
                os._exit(1)
        if number % 2 == 0:  # every other one is killed behind what it acknowledged
            while acknowledged.stat().st_size == before and os.waitpid(child, os.WNOHANG) == (0, 0):
                time.sleep(0.005)
            turn_s = time.monotonic() - begun_s
        time.sleep(chance.uniform(0.0, turn_s))  # the kill must come at an arbitrary moment
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "it was killed; it did not fail by itself"
    promised = dict(line.split() for line in acknowledged.read_text().splitlines())
    assert len(promised) >= KILLS // 2
    with Archive.open(home, agent="afterwards") as archive:
        deposit.adopt(archive)
        report = audit.audit(archive, older_than_days=0)
        assert report.alarms == []
        with archive.database.reading() as connection:
            known = set(holdings.iter_ids(connection))
            for identifier, sha256 in promised.items():
                assert identifier in known
                assert {
                    copy.place: copy.state for copy in copies.of_package(connection, identifier)
                } == dict.fromkeys(("main", "second"), CopyState.WHOLE)
                acts = [event.action for event in iter_of(connection, "package", identifier)]
                assert "kept" in acts
                assert "copied" in acts or "repaired" in acts
                for store in (archive.store, FolderStore(tmp_path / "second")):
                    assert not [
                        found
                        for found in fixity.verify_package(store, identifier)
                        if found.severity == "error"
                    ]
                    facts = package.read(store, identifier)
                    assert facts.containers[0].sha256 == sha256
        for store in (archive.store, FolderStore(tmp_path / "second")):
            assert set(promised) <= set(objects.iter_objects(store))
