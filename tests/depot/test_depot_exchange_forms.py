"""Packages exported as bags, WACZ, ZIP and OCFL and checked by other tools; submissions ingested once, or refused with reasons."""

import io
import json
import shutil
import sys
import zipfile
from pathlib import Path

import bagit
import ocfl as judge
import pytest
from depot_samples import content_of, write_warc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from webdepot.archive import Archive
from webdepot.depot import package
from webdepot.depot.bundle import bag_check, submission, zipped
from webdepot.depot.bundle.submission import SubmissionKind, SubmissionState
from webdepot.errors import Conflict, CorruptData, InputError, NotFound
from webdepot.provenance import iter_of
from webdepot.services.admin import setup
from webdepot.services.depot import export, storage_places
from webdepot.services.depot.export import PackageForm
from webdepot.services.intake import submissions

PAGES = {"https://x.example/": b"<!doctype html><title>X</title><p>The windmill."}


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def logical(archive: Archive, identifier: str) -> dict[str, bytes]:
    facts = package.read(archive.store, identifier)
    found = {}
    for path in facts.inventory.files():
        with package.open_file(archive.store, facts, path) as stream:
            found[path] = stream.read()
    return found


def test_a_bag_is_valid_by_the_judge_and_holds_everything(archive, keep_site, tmp_path):
    kept = keep_site(1)
    done = export.export(archive, kept.urn, PackageForm.BAGIT, tmp_path / "out" / "bag")
    made = bagit.Bag(str(tmp_path / "out" / "bag"))
    made.validate()
    assert made.info["External-Identifier"] == kept.urn
    assert files(tmp_path / "out" / "bag" / "data") == logical(archive, kept.id)
    assert done.size_bytes == sum(map(len, logical(archive, kept.id).values()))
    assert list(bag_check.check(tmp_path / "out" / "bag")) == []
    with pytest.raises(Conflict):
        export.export(archive, kept.id, PackageForm.BAGIT, tmp_path / "out" / "bag")


def test_a_zip_and_an_ocfl_root(archive, keep_site, tmp_path):
    kept = keep_site(1)
    export.export(archive, kept.id, PackageForm.ZIP, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as made:
        assert made.testzip() is None
        assert {name: made.read(name) for name in made.namelist()} == logical(archive, kept.id)
    export.export(archive, kept.id, PackageForm.OCFL, tmp_path / "root")
    assert judge.StorageRoot(root=str(tmp_path / "root")).validate(validate_objects=True)


def test_a_wacz_has_containers_index_and_pages_by_their_digests(archive, keep_site, tmp_path):
    kept = keep_site(1)
    export.export(archive, kept.id, PackageForm.WACZ, tmp_path / "a.wacz")
    with zipfile.ZipFile(tmp_path / "a.wacz") as made:
        described = json.loads(made.read("datapackage.json"))
        names = {each["path"] for each in described["resources"]}
        assert names == {"archive/site-1.warc.gz", "indexes/index.cdx", "pages/pages.jsonl"}
        assert made.getinfo("archive/site-1.warc.gz").compress_type == zipfile.ZIP_STORED
        lines = made.read("indexes/index.cdx").decode().splitlines()
        container = made.read("archive/site-1.warc.gz")
        for line in lines:
            facts = json.loads(line.split(" ", 2)[2])
            part = container[int(facts["offset"]) : int(facts["offset"]) + int(facts["length"])]
            (record,) = [
                record.rec_headers["WARC-Target-URI"] for record in ArchiveIterator(io.BytesIO(part))
            ]
            assert record == facts["url"]
        assert len(made.read("pages/pages.jsonl").decode().splitlines()) == 1 + len(lines)
    assert export.export(archive, kept.id, PackageForm.WACZ, tmp_path / "b.wacz").size_bytes > 0
    assert (tmp_path / "a.wacz").read_bytes() == (tmp_path / "b.wacz").read_bytes()


def test_an_export_from_a_damaged_main_place_comes_from_another_or_not_at_all(archive, keep_site, tmp_path):
    kept = keep_site(1)
    container = next((archive.home / "depot").rglob("*.warc.gz"))
    good = container.read_bytes()
    container.write_bytes(b"x" + good[1:])
    with pytest.raises(CorruptData):
        export.export(archive, kept.id, PackageForm.BAGIT, tmp_path / "bag")
    assert not (tmp_path / "bag").exists()
    container.write_bytes(good)
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    storage_places.fill(archive)
    container.write_bytes(b"x" + good[1:])
    assert export.export(archive, kept.id, PackageForm.BAGIT, tmp_path / "bag").place == "second"
    bagit.Bag(str(tmp_path / "bag")).validate()


def test_what_is_not_there(archive, tmp_path):
    with pytest.raises(NotFound):
        export.export(archive, "urn:none", PackageForm.ZIP, tmp_path / "x.zip")
    with pytest.raises(InputError):
        submissions.receive(archive, tmp_path / "none", collection="x")


# --- submissions ---


@pytest.fixture
def bagged(tmp_path) -> Path:
    folder = tmp_path / "partner-bag"
    folder.mkdir()
    write_warc(folder / "x.warc.gz", PAGES)
    bagit.make_bag(str(folder), {"Source-Organization": "Partner"}, checksums=["sha256", "md5"])
    return folder


def zip_of(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as made:
        for name, data in files(folder).items():
            made.writestr(name, data)
    return target


def test_a_bag_is_taken_once_however_it_is_packed_later(archive, bagged, tmp_path):
    before = files(bagged)
    first = submissions.receive(archive, bagged, collection="partner")
    assert (first.receipt.state, first.receipt.kind, first.is_known) == (
        SubmissionState.TAKEN,
        SubmissionKind.BAG,
        False,
    )
    assert first.package is not None
    kept = logical(archive, first.package.id)
    assert kept["warc/x.warc.gz"] == before["data/x.warc.gz"]
    assert kept["metadata/submission/bag-info.txt"] == before["bag-info.txt"]
    assert files(bagged) == before, "the sender's files are not touched"
    again = submissions.receive(archive, bagged, collection="partner")
    assert (again.is_known, again.package) == (True, first.package)
    packed = submissions.receive(archive, zip_of(bagged, tmp_path / "b.zip"), collection="partner")
    assert (packed.is_known, packed.package) == (True, first.package)
    with archive.database.reading() as connection:
        assert [event.action for event in iter_of(connection, "submission", first.receipt.id)] == ["received"]
    assert not list(archive.home.glob(".unpacking*"))


def test_packages_travel_from_archive_to_archive_unchanged(archive, keep_site, tmp_path):
    """As bag, ZIP or OCFL: the receiver has the same package under the same identifier, and the same rows."""
    kept = keep_site(1)
    for form, kind in (
        (PackageForm.BAGIT, SubmissionKind.PACKAGE),
        (PackageForm.ZIP, SubmissionKind.PACKAGE),
        (PackageForm.OCFL, SubmissionKind.OCFL),
    ):
        target = tmp_path / form.value
        export.export(archive, kept.id, form, target)
        home = tmp_path / f"receiver-{form.value}"
        setup.create(home)
        with Archive.open(home, agent="receiver") as other:
            done = submissions.receive(other, target, collection="partner")
            assert done.receipt.kind is kind
            assert done.package is not None
            assert (done.package.id, done.package.urn, done.package.harvest) == (
                kept.id,
                kept.urn,
                kept.harvest,
            )
            assert logical(other, kept.id) == logical(archive, kept.id)
            assert other.captures.total() == 3
            assert submissions.receive(other, target, collection="partner").is_known


def test_a_wacz_comes_back(archive, keep_site, tmp_path):
    export.export(archive, keep_site(1).id, PackageForm.WACZ, tmp_path / "a.wacz")
    setup.create(tmp_path / "other")
    with Archive.open(tmp_path / "other", agent="receiver") as other:
        done = submissions.receive(other, tmp_path / "a.wacz", collection="partner")
        assert (done.receipt.state, done.receipt.kind) == (SubmissionState.TAKEN, SubmissionKind.WACZ)
        assert other.captures.total() == 3


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda folder: flip(folder / "data" / "x.warc.gz"), "is damaged"),
        (lambda folder: (folder / "data" / "x.warc.gz").unlink(), "is missing"),
        (lambda folder: (folder / "data" / "extra").write_text("x"), "is not in manifest"),
        (lambda folder: (folder / "fetch.txt").write_text("http://x 1 data/y"), "fetch.txt"),
        (lambda folder: (folder / "bagit.txt").write_text("BagIt-Version: 9"), "does not declare"),
        (lambda folder: (folder / "data" / "link").symlink_to("/etc/passwd"), "symbolic links"),
        (lambda folder: flip(folder / "bag-info.txt"), "bag-info.txt is damaged"),
    ],
)
def test_a_wrong_bag_is_refused_with_the_reason_and_lies_untouched_in_the_quarantine(
    archive, bagged, break_it, reason
):
    break_it(bagged)
    before = {
        path.relative_to(bagged): path.is_symlink() or path.read_bytes()
        for path in bagged.rglob("*")
        if not path.is_dir()
    }
    done = submissions.receive(archive, bagged, collection="partner")
    assert done.receipt.state is SubmissionState.REFUSED
    assert any(reason in words for words in done.receipt.reasons), done.receipt.reasons
    place = archive.home / done.receipt.place
    lying = place / bagged.name
    assert {
        path.relative_to(lying): path.is_symlink() or path.read_bytes()
        for path in lying.rglob("*")
        if not path.is_dir()
    } == before
    assert json.loads((place / "reasons.json").read_text())["reasons"] == list(done.receipt.reasons)
    assert archive.captures.total() == 0
    with archive.database.reading() as connection:
        assert submission.find(connection, done.receipt.id) == done.receipt


def test_a_bag_that_was_refused_and_mended_is_taken(archive, bagged):
    extra = bagged / "data" / "extra"
    extra.write_text("x")
    assert submissions.receive(archive, bagged, collection="partner").receipt.state is SubmissionState.REFUSED
    extra.unlink()
    assert submissions.receive(archive, bagged, collection="partner").receipt.state is SubmissionState.TAKEN


@pytest.mark.parametrize(
    "name", ["../escape.warc.gz", "/etc/escape.warc.gz", "a/../../escape.warc.gz", "a\\b.warc.gz"]
)
def test_a_zip_cannot_write_outside(archive, tmp_path, name):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as made:
        made.writestr(name, b"x")
    done = submissions.receive(archive, tmp_path / "evil.zip", collection="x")
    assert done.receipt.state is SubmissionState.REFUSED
    assert not list(tmp_path.rglob("escape.warc.gz"))
    assert not Path("/etc/escape.warc.gz").exists()


def test_bombs_links_and_broken_zips_are_refused(archive, tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zeros.warc.gz", bytes(80 << 20))
    assert "unpack" in submissions.receive(archive, tmp_path / "bomb.zip", collection="x").receipt.reasons[0]
    link = zipfile.ZipInfo("link.warc.gz")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as made:
        made.writestr(link, "/etc/passwd")
    assert (
        "symbolic link"
        in submissions.receive(archive, tmp_path / "link.zip", collection="x").receipt.reasons[0]
    )
    zip_of(Path(__file__).parent, tmp_path / "good.zip")
    data = (tmp_path / "good.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2] + data[-300:])
    assert (
        submissions.receive(archive, tmp_path / "cut.zip", collection="x").receipt.state
        is SubmissionState.REFUSED
    )


def test_the_virus_scanner_has_a_word(archive, bagged, tmp_path):
    scanner = tmp_path / "scanner"
    scanner.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nprint('Eicar found')\n"
        f"sys.exit(int(pathlib.Path('{tmp_path}/answer').read_text()))"
    )
    scanner.chmod(0o755)
    object.__setattr__(archive.config.depot, "virus_scanner", str(scanner))
    for answer, words in (("1", "found something: Eicar found"), ("2", "failed with exit status 2")):
        (tmp_path / "answer").write_text(answer)
        assert words in submissions.receive(archive, bagged, collection="x").receipt.reasons[0]
    (tmp_path / "answer").write_text("0")
    assert submissions.receive(archive, bagged, collection="x").receipt.state is SubmissionState.TAKEN
    object.__setattr__(archive.config.depot, "virus_scanner", "/nowhere/scanner")
    shutil.copy(next(bagged.rglob("x.warc.gz")), tmp_path / "one.warc.gz")
    write_warc(tmp_path / "two.warc.gz", {"https://two.example/": b"two"})
    assert (
        "could not be run"
        in submissions.receive(archive, tmp_path / "two.warc.gz", collection="x").receipt.reasons[0]
    )


def test_one_unreadable_container_refuses_all(archive, tmp_path):
    folder = tmp_path / "warcs"
    folder.mkdir()
    write_warc(folder / "good.warc.gz", PAGES)
    (folder / "bad.warc.gz").write_bytes(b"no container at all")
    done = submissions.receive(archive, folder, collection="x")
    assert done.receipt.reasons == ("bad.warc.gz contains no complete record",)
    assert archive.captures.total() == 0
    (folder / "bad.warc.gz").unlink()
    assert submissions.receive(archive, folder, collection="x").receipt.kind is SubmissionKind.FOLDER


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=2000), at=st.integers(0, 400))
def test_no_bytes_make_the_checks_fall_over(tmp_path_factory, data, at):
    folder = tmp_path_factory.mktemp("any")
    content = content_of(folder, 1)
    with zipfile.ZipFile(folder / "z.zip", "w") as made:
        made.write(content.containers[0].path, "archive/x.warc.gz")
        made.writestr("datapackage.json", data)
    spoiled = bytearray((folder / "z.zip").read_bytes())
    spoiled[-at - 30 : -at - 20] = data[:10]
    (folder / "z.zip").write_bytes(spoiled)
    opened = submission.open_up(folder / "z.zip", folder / "unpacked")
    assert isinstance(opened.reasons, tuple)
    if opened.kind is SubmissionKind.WACZ:
        list(zipped.check_wacz(opened.root))


def test_everything_beside_the_containers_is_kept_in_the_package(archive, tmp_path):
    folder = tmp_path / "with-more"
    (folder / "notes" / "old").mkdir(parents=True)
    write_warc(folder / "x.warc.gz", PAGES)
    (folder / "mods.xml").write_bytes(b"<mods/>")
    (folder / "notes" / "old" / "read me.txt").write_bytes(b"Found in the cellar.")
    bagit.make_bag(str(folder), checksums=["sha256"])
    done = submissions.receive(archive, folder, collection="x")
    kept = logical(archive, done.package.id)
    assert kept["metadata/submission/data/mods.xml"] == b"<mods/>"
    assert kept["metadata/submission/data/notes/old/read me.txt"] == b"Found in the cellar."
    assert "metadata/submission/manifest-sha256.txt" in kept
    assert not any(name.endswith(".warc.gz") for name in kept if name.startswith("metadata/"))


def test_refused_submissions_without_containers_have_their_own_places(archive, tmp_path):
    places = set()
    for name in ("one", "two"):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "data" / "thesis.txt").write_text("the same in both")
        (tmp_path / name / "manifest-md5.txt").write_text("")
        receipt = submissions.receive(archive, tmp_path / name, collection="x").receipt
        assert (receipt.state, receipt.kind) == (SubmissionState.REFUSED, SubmissionKind.BAG)
        assert "bagit.txt is missing" in receipt.reasons
        assert (archive.home / receipt.place / name / "data" / "thesis.txt").is_file()
        places.add(receipt.place)
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 nothing more")
    places.add(submissions.receive(archive, tmp_path / "broken.zip", collection="x").receipt.place)
    assert len(places) == 3 and all((archive.home / place).is_dir() for place in places)
