"""Copies in several places are filled, audited and repaired; all damage is found, and repaired if one good copy is
left.
"""

import shutil
from pathlib import Path

import ocfl as judge
import pytest
from depot_samples import files_of
from sqlalchemy import func, select

from webdepot.depot import copies, fixity, places
from webdepot.depot.copies import CopyState
from webdepot.depot.fixity import AuditOutcome
from webdepot.depot.places import PlaceState
from webdepot.depot.store.folder import FolderStore
from webdepot.depot.tables import copies as table
from webdepot.errors import Conflict, InputError
from webdepot.provenance import iter_of
from webdepot.services.depot import audit, storage_places


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def bytes_of(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def check_tallies(archive) -> None:
    """The stored tallies are the sums of the rows."""
    with archive.database.reading() as connection:
        chosen = select(table.c.place, table.c.state, func.count(), func.sum(table.c.size_bytes)).group_by(
            table.c.place, table.c.state
        )
        counted = {(row[0], row[1]): (row[2], row[3]) for row in connection.execute(chosen)}
        assert {
            (t.place, t.state.value): (t.copies, t.size_bytes) for t in copies.tally(connection)
        } == counted


@pytest.fixture
def second(archive, keep_site, tmp_path):
    """A package in two places."""
    kept = keep_site(1)
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    report = storage_places.fill(archive)
    assert (report.copied, report.waiting) == (1, 0)
    return kept


def test_a_new_place_gets_everything_and_is_a_depot_by_itself(archive, second, tmp_path):
    assert bytes_of(tmp_path / "second") == bytes_of(archive.home / "depot")
    assert judge.StorageRoot(root=str(tmp_path / "second")).validate(validate_objects=True)
    with archive.database.reading() as connection:
        assert places.get(connection, "second").state is PlaceState.ACTIVE
        assert [event.action for event in iter_of(connection, "place", "second")] == ["added", "filled"]
        assert [event.action for event in iter_of(connection, "package", second.id)][-1] == "copied"
    check_tallies(archive)


def test_later_packages_go_to_every_place_at_once(archive, second, keep_site, tmp_path):
    later = keep_site(2)
    assert not list(fixity.verify_package(FolderStore(tmp_path / "second"), later.id))
    with archive.database.reading() as connection:
        assert {copy.place: copy.state for copy in copies.of_package(connection, later.id)} == {
            "main": CopyState.WHOLE,
            "second": CopyState.WHOLE,
        }


def test_what_is_whole_stays_as_it_is(archive, second, clock, tmp_path):
    before = {
        path: path.stat().st_mtime_ns
        for path in tmp_path.rglob("*")
        if path.is_file() and "second" in str(path)
    }
    assert audit.audit(archive).counts == {}, "nothing is due yet"
    clock.pass_days(91)
    report = audit.audit(archive)
    assert report.counts == {AuditOutcome.WHOLE: 4}, (
        "the package and the register of decisions, in two places"
    )
    assert report.size_bytes >= 2 * second.size_bytes
    assert report.alarms == []
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert audit.audit(archive).counts == {}, "each was looked at once"


@pytest.mark.parametrize("damage", [flip, cut, empty, Path.unlink])
@pytest.mark.parametrize("place", ["main", "second"])
def test_any_damage_to_any_file_of_one_place_is_mended_from_the_other(
    archive, second, tmp_path, damage, place
):
    roots = {"main": archive.home / "depot", "second": tmp_path / "second"}
    good = bytes_of(roots["main"])
    for path in files_of(roots[place], second.id):
        damage(path)
        report = audit.audit(archive, older_than_days=0, packages=[second.id])
        assert report.counts == {AuditOutcome.WHOLE: 1, AuditOutcome.REPAIRED: 1}, path.name
        assert bytes_of(roots[place]) == good, path.name
    with archive.database.reading() as connection:
        repairs = [event for event in iter_of(connection, "package", second.id) if event.action == "repaired"]
    assert len(repairs) == len(files_of(roots[place], second.id))
    assert all(event.detail["place"] == place for event in repairs)


def test_everything_of_a_package_damaged_at_once_in_one_place(archive, second, tmp_path):
    good = bytes_of(archive.home / "depot")
    for path in files_of(tmp_path / "second", second.id):
        flip(path)
    assert audit.audit(archive, packages=[second.id]).counts[AuditOutcome.REPAIRED] == 1
    assert bytes_of(tmp_path / "second") == good


def test_files_swapped_with_each_other(archive, second, tmp_path):
    good = bytes_of(archive.home / "depot")
    contents = [path for path in files_of(tmp_path / "second", second.id) if "/content/" in str(path)]
    first, last = contents[0], contents[-1]
    one, other = first.read_bytes(), last.read_bytes()
    first.write_bytes(other)
    last.write_bytes(one)
    assert audit.audit(archive, packages=[second.id]).counts[AuditOutcome.REPAIRED] == 1
    assert bytes_of(tmp_path / "second") == good


def test_different_files_damaged_in_both_places_mend_each_other(archive, second, tmp_path):
    good = bytes_of(archive.home / "depot")
    main = [path for path in files_of(archive.home / "depot", second.id) if "/content/" in str(path)]
    other = [path for path in files_of(tmp_path / "second", second.id) if "/content/" in str(path)]
    flip(main[0])
    flip(other[1])
    report = audit.audit(archive, packages=[second.id])
    assert report.counts == {AuditOutcome.REPAIRED: 2}
    assert bytes_of(tmp_path / "second") == good == bytes_of(archive.home / "depot")


def test_what_no_place_has_any_more_is_lost_and_said_aloud(archive, second, tmp_path):
    told = tmp_path / "told"
    object.__setattr__(archive.config.depot, "alarm_command", f"cat > {told}")
    for root in (archive.home / "depot", tmp_path / "second"):
        flip(next(path for path in files_of(root, second.id) if path.name.endswith(".warc.gz")))
    report = audit.audit(archive, packages=[second.id])
    assert report.counts == {AuditOutcome.LOST: 2}
    assert len(report.alarms) == 2
    assert "site-1.warc.gz" in report.alarms[0]
    assert "site-1.warc.gz" in told.read_text()
    with archive.database.reading() as connection:
        assert {copy.state for copy in copies.of_package(connection, second.id)} == {CopyState.LOST}
    check_tallies(archive)


def test_without_repair_nothing_is_written(archive, second, tmp_path):
    path = files_of(tmp_path / "second", second.id)[3]
    flip(path)
    damaged = path.read_bytes()
    report = audit.audit(archive, packages=[second.id], repair=False)
    assert report.counts == {AuditOutcome.WHOLE: 1, AuditOutcome.DAMAGED: 1}
    assert path.read_bytes() == damaged
    with archive.database.reading() as connection:
        assert copies.find(connection, "second", second.id).state is CopyState.DAMAGED
    check_tallies(archive)
    assert audit.audit(archive, packages=[second.id]).counts == {
        AuditOutcome.WHOLE: 1,
        AuditOutcome.REPAIRED: 1,
    }


def test_a_place_that_is_away_is_no_loss_and_catches_up_when_it_is_back(
    archive, second, keep_site, clock, tmp_path
):
    """An empty mount point where the disk should be: nothing may be written there."""
    (tmp_path / "second").rename(tmp_path / "unmounted")
    (tmp_path / "second").mkdir()
    missed = keep_site(2)
    clock.pass_days(91)
    report = audit.audit(archive)
    assert report.counts == {AuditOutcome.WHOLE: 2, AuditOutcome.AWAY: 1}
    assert any("The place second cannot be reached" in alarm for alarm in report.alarms)
    assert list((tmp_path / "second").iterdir()) == []
    with archive.database.reading() as connection:
        assert places.get(connection, "second").away_since == clock()
        assert copies.find(connection, "second", second.id).state is CopyState.WHOLE
        assert copies.find(connection, "second", missed.id).state is CopyState.WAITING
    (tmp_path / "second").rmdir()
    (tmp_path / "unmounted").rename(tmp_path / "second")
    clock.pass_days(1)
    report = audit.audit(archive)
    assert (report.filled.copied, report.counts, report.alarms) == (1, {AuditOutcome.WHOLE: 1}, [])
    assert bytes_of(tmp_path / "second") == bytes_of(archive.home / "depot")
    with archive.database.reading() as connection:
        assert places.get(connection, "second").away_since is None


def test_the_oldest_are_read_first_and_limits_hold(archive, keep_site, clock):
    kept = []
    for number in range(1, 6):
        kept.append(keep_site(number))
        clock.pass_days(1)
    clock.pass_days(100)
    first = audit.audit(archive, limit_bytes=1)
    assert 1 <= sum(first.counts.values()) <= archive.config.depot.audit_threads + 1
    assert first.left == 5 - sum(first.counts.values())
    with archive.database.reading() as connection:
        read = [
            package.id
            for package in kept
            if copies.find(connection, "main", package.id).checked_at == clock()
        ]
    assert read == [package.id for package in kept[: len(read)]]
    assert audit.audit(archive).left == 0


def test_only_one_audit_at_a_time(archive, second):
    with storage_places.locked(archive), pytest.raises(Conflict):
        audit.audit(archive)


def test_a_removed_place_keeps_its_files(archive, second, tmp_path):
    storage_places.remove_place(archive, "second")
    assert bytes_of(tmp_path / "second") == bytes_of(archive.home / "depot")
    with archive.database.reading() as connection:
        assert places.every(connection) == []
        assert [copy.place for copy in copies.of_package(connection, second.id)] == ["main"]
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    assert storage_places.fill(archive).size_bytes == 0, "all was there: nothing is copied again"


@pytest.mark.parametrize("name", ["main", "Second", "", "a b", "../x", "x" * 41])
def test_names_that_are_none(archive, tmp_path, name):
    with pytest.raises(InputError):
        storage_places.add_place(archive, name, str(tmp_path / "x"))


@pytest.mark.parametrize("address", ["s3://key:secret@bucket/x", "s3://bucket?secret_key=x", "s3:///x"])
def test_addresses_hold_no_secrets(archive, address):
    with pytest.raises(InputError):
        storage_places.add_place(archive, "vault", address)


def test_a_place_laid_out_otherwise_is_refused(archive, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ocfl_layout.json").write_text('{"extension": "0002-flat-direct-storage-layout"}')
    with pytest.raises(Conflict):
        storage_places.add_place(archive, "other", str(tmp_path / "other"))


def test_an_interrupted_fill_goes_on(archive, keep_site, tmp_path):
    for number in range(1, 4):
        keep_site(number)
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    # An interrupted copy leaves a part of the content and no inventory.
    shutil.copytree(archive.home / "depot", tmp_path / "second", dirs_exist_ok=True)
    left = [
        path
        for path in (tmp_path / "second").rglob("*")
        if path.is_file() and "content" not in str(path) and path.name.startswith("inv")
    ]
    for path in left:
        path.unlink()
    flip(next((tmp_path / "second").rglob("*.warc.gz")))
    report = storage_places.fill(archive)
    assert report.copied == 3
    assert bytes_of(tmp_path / "second") == bytes_of(archive.home / "depot")


def test_replay_reads_from_another_place_when_the_main_one_lost_the_file(archive, second):
    container = next((archive.home / "depot").rglob("*.warc.gz"))
    data = container.read_bytes()
    container.unlink()
    with archive.containers.open("site-1.warc.gz") as stream:
        assert stream.read() == data
