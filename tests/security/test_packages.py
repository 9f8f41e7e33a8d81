"""Hostile packages of another Webdepot: whatever names they use, they are refused and leave nothing behind."""

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import writers

import small_warcs
from webdepot.archive import Archive
from webdepot.depot import holdings, package, package_content
from webdepot.depot.bundle.submission import SubmissionState
from webdepot.depot.ocfl import inventory, layout
from webdepot.exchange import catalogue
from webdepot.exchange.catalogue import Access
from webdepot.harvest import harvest_rows
from webdepot.model import PackageId
from webdepot.provenance import iter_of
from webdepot.selection import target_verdicts, targets
from webdepot.selection.states import TargetState
from webdepot.services import pipeline
from webdepot.services.admin import rebuild, setup
from webdepot.services.catalogue import records
from webdepot.services.depot import deposit, export, storage_places
from webdepot.services.depot.export import PackageForm
from webdepot.services.harvest import harvests
from webdepot.services.intake import submissions
from webdepot.text import file_names
from webdepot.url import key

OUTSIDE = (
    "../../../../elsewhere/pwned",
    "/etc/pwned",
    "sub/x.warc.gz",
    "..",
    "",
    "a\\b",
    "C:x",
    "nul.warc.gz",
    "line\nbreak",
    "turned\u202egz.craw",
    "x" * 256,
    ".hidden",
    "ends with a dot.",
    "\ud800",
)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[PackageForm, Path]:
    """A package as another Webdepot exports it, as files and as an OCFL object."""
    folder = tmp_path_factory.mktemp("other")
    setup.create(folder / "home", settings="[index]\nworkers = 1\n")
    with Archive.open(folder / "home", agent="them") as archive:
        done = pipeline.import_files(archive, writers.warcs(folder / "warcs", 1), collection="mills").taken
        assert done is not None
        assert done.package is not None
        export.export(archive, done.package.id, PackageForm.OCFL, folder / "ocfl")
        export.export(archive, done.package.id, PackageForm.ZIP, folder / "files.zip")
    shutil.unpack_archive(folder / "files.zip", folder / "files")
    return {PackageForm.OCFL: folder / "ocfl", PackageForm.ZIP: folder / "files"}


def rows(archive: Archive) -> dict[str, int]:
    """The number of rows of each table; what a refusal records itself is left out."""
    with archive.database.reading() as connection:
        return writers.row_counts(connection, without={"events", "submissions"})


def files(archive: Archive) -> set[str]:
    """All files and folders of the home, but for the quarantine and the files of SQLite."""
    return {
        path.relative_to(archive.home).as_posix()
        for path in archive.home.rglob("*")
        if "quarantine" not in path.parts and not path.name.endswith(("-wal", "-shm"))
    }


def change_facts(folder: Path, change: Callable[[dict], object]) -> Path:
    """Change package.json of a package that consists of files."""
    path = folder / package_content.FACTS
    facts = json.loads(path.read_bytes())
    change(facts)
    path.write_text(json.dumps(facts), encoding="utf-8")
    return folder


def as_ocfl(folder: Path, honest: Path, change: Callable[[dict], object]) -> Path:
    """An OCFL object whose package.json is changed, with inventories that fit, under the identifier of its
    harvest.
    """
    shutil.copytree(honest, folder)
    (found,) = folder.rglob("package.json")
    facts = json.loads(found.read_bytes())
    change(facts)
    before = hashlib.sha256(found.read_bytes()).hexdigest()
    found.write_text(json.dumps(facts), encoding="utf-8")
    after = hashlib.sha256(found.read_bytes()).hexdigest()
    root = next(path for path in folder.rglob(layout.OBJECT_DECLARATION)).parent
    document = json.loads((root / inventory.NAME).read_bytes().replace(before.encode(), after.encode()))
    document["id"] = package_content.id_of(facts["harvest"]["id"])
    data = json.dumps(document).encode()
    digest = hashlib.sha256(data).hexdigest()
    for place in (root, root / "v1"):
        (place / inventory.NAME).write_bytes(data)
        (place / inventory.SIDECAR).write_text(f"{digest} {inventory.NAME}\n")
    new = folder / layout.folder_of(document["id"])
    if new != root:
        new.parent.mkdir(parents=True, exist_ok=True)
        root.rename(new)
    return folder


def refused(archive: Archive, path: Path) -> tuple[str, ...]:
    """The reasons why a submission is refused; it must leave nothing."""
    before = rows(archive), files(archive)
    done = submissions.receive(archive, path, collection="taken")
    assert done.receipt.state is SubmissionState.REFUSED
    assert done.receipt.reasons
    now = rows(archive), files(archive)
    assert now[0] == before[0]
    assert now[1] - before[1] <= {"depot", "index"}
    assert not list(archive.home.parent.glob("elsewhere"))
    return done.receipt.reasons


HOSTILE: dict[str, Callable[[dict, str], object]] = {
    "harvest": lambda facts, name: facts["harvest"].update(id=name),
    "collection": lambda facts, name: facts["harvest"].update(collection=name),
    "collection of the target": lambda facts, name: facts["target"].update(collection=name),
    "container": lambda facts, name: facts["containers"][0].update(name=name),
    "identifier": lambda facts, name: facts.update(id=name),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_package_whose_names_are_paths_is_refused_and_leaves_nothing(archive, honest, tmp_path, what):
    for number, name in enumerate(OUTSIDE):
        path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / f"package-{number}")
        refused(archive, change_facts(path, partial(HOSTILE[what], name=name)))


@pytest.mark.parametrize("what", [what for what in HOSTILE if what != "identifier"])
def test_so_is_an_ocfl_object_with_inventories_that_fit(archive, honest, tmp_path, what):
    for number, name in enumerate(OUTSIDE[:-1]):  # an inventory is UTF-8, so it cannot have the last one
        folder = tmp_path / f"object-{number}"
        refused(archive, as_ocfl(folder, honest[PackageForm.OCFL], partial(HOSTILE[what], name=name)))


@pytest.mark.parametrize(
    "identifier", ["info:webdepot/register/2026", "info:webdepot/tombstone/x", "urn:uuid:1", 7, None]
)
def test_a_package_cannot_take_the_identifier_of_something_else(archive, honest, tmp_path, identifier):
    path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package")
    refused(archive, change_facts(path, lambda facts: facts.update(id=identifier)))


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(title={"a": 1}),
        lambda facts: facts.update(urn=["x"]),
        lambda facts: facts.update(stored_at="yesterday"),
        lambda facts: facts.update(containers="x"),
        lambda facts: facts["containers"][0].update(size_bytes=1 << 80),
        lambda facts: facts["containers"][0].update(sha256="0" * 64),
        lambda facts: facts["containers"][0].update(records="many"),
        lambda facts: facts["target"].update(seeds=[{"x": 1}]),
        lambda facts: facts["target"].update(seeds=[]),
        lambda facts: facts["harvest"].update(counts=7),
        lambda facts: facts["harvest"].pop("state"),
        lambda facts: facts["verdict"].update(answer="perhaps"),
        lambda facts: facts.update(decisions=[{"question": {}}]),
        lambda facts: facts.update(surveys=[7]),
    ],
)
def test_facts_of_the_wrong_kind_are_refused_and_leave_nothing(archive, honest, tmp_path, change):
    path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package")
    refused(archive, change_facts(path, change))


@pytest.mark.parametrize("name", ["index/findings.jsonl.gz", "index/formats.jsonl.gz", "log/events.jsonl"])
def test_damaged_rows_are_refused_and_leave_nothing(archive, honest, tmp_path, name):
    path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package")
    (path / name).write_bytes(b"\x1f\x8b nothing")
    refused(archive, path)


def test_a_package_cannot_replace_containers_records_or_harvests_of_others(archive, honest, tmp_path):
    ours = writers.warcs(tmp_path / "ours", 1, pages=3)[0]  # the same name as in the package, other content
    taken = pipeline.import_files(archive, [ours], collection="ours").taken
    with archive.database.reading() as connection:
        urn = holdings.get(connection, taken.package.id).urn
    reasons = refused(archive, shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package"))
    assert "other content" in reasons[0]

    def rename(facts: dict) -> None:
        facts["harvest"]["id"] = taken.harvest.id
        facts["id"] = package_content.id_of(taken.harvest.id)

    path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / "harvest")
    assert "other files" in refused(archive, change_facts(path, rename))[0]
    with archive.database.reading() as connection:
        assert holdings.get(connection, urn).id == taken.package.id


def test_a_package_cannot_change_the_catalogue(archive, honest, tmp_path):
    taken = pipeline.import_files(
        archive, writers.warcs(tmp_path / "ours", 1, mark="-own-"), collection="ours"
    ).taken
    path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package")
    described = path / "metadata" / "catalogue.json"
    document = json.loads(described.read_bytes())
    stolen = json.dumps(document).replace(document["records"][-1]["key"], taken.harvest.id)
    described.write_text(stolen, encoding="utf-8")
    refused(archive, path)


def test_an_honest_package_is_still_taken_in_both_forms(archive, honest, tmp_path):
    done = submissions.receive(archive, honest[PackageForm.ZIP], collection="taken")
    assert done.receipt.reasons == ()
    assert done.package is not None
    assert submissions.receive(archive, honest[PackageForm.OCFL], collection="taken").package == done.package
    assert archive.captures.total() == writers.PAGES
    assert package.read(archive.store, PackageId(done.package.id)).containers


def test_decisions_of_another_archive_open_and_change_nothing(archive, honest, tmp_path):
    address = "https://site0.example/1"
    ours = small_warcs.write_warc(tmp_path / "own.warc.gz", {address: b"our page"}, when=writers.DAY)
    own = pipeline.import_files(archive, [ours], collection="ours").taken.harvest
    decision = {
        "question": "may harvest",
        "answer": "accept",
        "rule": "law",
        "reason": "theirs",
        "agent": "Eva",
    }

    def decide(facts: dict) -> None:
        facts["decisions"] = [decision | {"at": "2024-05-01T00:00:00Z"}]
        facts["harvest"]["kind"] = "patch"
        facts["harvest"]["seeds"] = [address]
        facts["harvest"]["settings"] = {"patch_of": own.id, "allow_private": True}

    path = change_facts(shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package"), decide)
    done = submissions.receive(archive, path, collection="taken")
    assert done.receipt.reasons == ()

    def check(archive: Archive) -> None:
        assert len(list(archive.captures.versions(key(address)))) == 2, "their patch hides no capture of ours"
        with archive.database.reading() as connection:
            theirs = harvest_rows.get(connection, done.package.harvest)
            assert (
                harvest_rows.is_received(theirs),
                harvest_rows.is_received(harvest_rows.get(connection, own.id)),
            ) == (True, False)
            assert harvests.patches_of(archive, own) == []
            verdicts = list(target_verdicts.iter_verdicts(connection, theirs.target))
            assert [each["agent"] for each in verdicts] == ["Eva (another archive)"]
            assert targets.dossier_of(connection, theirs.target).state is TargetState.IMPORTED
            events = list(iter_of(connection, "harvest", theirs.id))
            assert events and all(each.agent.endswith(" (another archive)") for each in events)

    check(archive)
    again = export.export(
        archive, deposit.find_package(archive, own.id).id, PackageForm.ZIP, tmp_path / "own.zip"
    )
    assert (
        again and submissions.receive(archive, tmp_path / "own.zip", collection="x").receipt.harvest == own.id
    )
    storage_places.write_register(archive)
    rebuild.rebuild(tmp_path / "rebuilt", archive.depot_address)
    with Archive.open(tmp_path / "rebuilt") as rebuilt:
        check(rebuilt)


def test_a_package_cannot_open_what_is_restricted_here(archive, honest, tmp_path):
    """It describes a site that we have, too, and says that everybody may have it."""
    taken = pipeline.import_files(
        archive, writers.warcs(tmp_path / "ours", 1, mark="-own-"), collection="mills"
    ).taken
    with archive.database.reading() as connection:
        site = catalogue.find_of_harvest(connection, taken.harvest.id).parent
    records.restrict(archive, site, "restricted")
    path = shutil.copytree(honest[PackageForm.ZIP], tmp_path / "package")
    done = submissions.receive(archive, path, collection="taken")
    with archive.database.reading() as connection:
        record = catalogue.find_of_harvest(connection, done.package.harvest)
    assert (record.parent, record.access) == (site, Access.RESTRICTED)


@pytest.mark.parametrize("name", [name for name in OUTSIDE if "/" not in name])
def test_names_that_are_not_file_names(name):
    assert not file_names.is_name(name)


@pytest.mark.parametrize(
    "name", ["x.warc.gz", "IAH-20080430204825-00000-blackbook.arc.gz", "näch ste.warc", "コ.arc"]
)
def test_names_that_are(name):
    assert file_names.is_name(name)


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a//b", "a/./b", "a/../b", "c:/x", "a\x00b", "a\x9fb", "", "a/.part-x"]
)
def test_paths_that_lead_out(path):
    assert not file_names.is_path(path)
