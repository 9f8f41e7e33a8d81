"""Collections of Browsertrix: a WACZ file that contains others, each with its own containers and lists of pages."""

import zipfile
from pathlib import Path

import pytest
from test_wacz_pages import PAGES, SITE, archive, imported, lines, urls, wacz  # noqa: F401 - a fixture

from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.depot import package
from webdepot.depot.bundle.submission import SubmissionState
from webdepot.depot.store import in_place
from webdepot.errors import InputError
from webdepot.services import pipeline
from webdepot.services.access.replay import replay
from webdepot.services.intake import submissions

OTHER = "https://other.example/"


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, bytes]:
    """Two WACZ files whose containers have the same name."""
    made = {}
    for name, url, words in (
        ("a.wacz", SITE, b"<p>barley"),
        ("b.wacz", OTHER, b"<title>B</title><p>spelt sacks"),
    ):
        container = write_warc(tmp_path / "data.warc.gz", {url: words}).read_bytes()
        files = {"archive/data.warc.gz": container}
        if url == SITE:
            files["pages/pages.jsonl"] = lines(PAGES[:2])
        made[name] = wacz(tmp_path / name, files).read_bytes()
    return made


def collection(path: Path, packages: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> Path:
    """As `wacz`, with the profile of a collection."""
    listed = wacz(path.with_suffix(".zip"), {"datapackage.json": b'{"title": "Mills"}', **packages})
    with zipfile.ZipFile(listed) as source, zipfile.ZipFile(path, "w", compression) as packed:
        described = source.read("datapackage.json").replace(b'"data-package"', b'"multi-wacz-package"')
        packed.writestr("datapackage.json", described)
        for name in packages:
            packed.writestr(name, source.read(name))
    return path


def test_an_import_takes_the_containers_pages_and_descriptions_of_each(archive, packages, tmp_path):  # noqa: F811
    report = imported(archive, collection(tmp_path / "all.wacz", packages))
    assert urls(archive, "barley") == [SITE]
    assert urls(archive, '"old windmill"') == [SITE], "the title is in the list of pages of the inner file"
    assert urls(archive, "sacks") == [OTHER]
    assert report.harvest.seeds == (SITE,)
    kept = package.read(archive.store, report.package.id).inventory.files()
    others = {name.partition("/submission/")[2].partition("/")[2] for name in kept if "/submission/" in name}
    assert others == {
        "datapackage.json",
        "a.wacz/datapackage.json",
        "a.wacz/pages/pages.jsonl",
        "b.wacz/datapackage.json",
    }
    containers = {Path(name).name for name in kept if name.endswith(".warc.gz")}
    assert containers == {"a-data.warc.gz", "b-data.warc.gz"}


def test_in_place_pages_are_read_from_the_inner_files(archive, packages, tmp_path):  # noqa: F811
    path = collection(tmp_path / "all.wacz", packages)
    pipeline.import_files(archive, [path], collection="apps", in_place=True)
    opened = replay.open_capture(archive, OTHER, "2024", collection="all", reader=ANYONE)
    assert opened.payload.read() == b"<title>B</title><p>spelt sacks"
    opened.close()


def test_as_a_submission_each_is_one(archive, packages, tmp_path):  # noqa: F811
    path = collection(tmp_path / "all.wacz", packages)
    done = list(submissions.receive_each(archive, path, collection="apps"))
    assert [each.receipt.state for each in done] == [SubmissionState.TAKEN] * 2
    assert urls(archive, "spelt") == [OTHER, SITE] or urls(archive, "spelt") == [SITE, OTHER]
    again = submissions.receive_each(archive, path, collection="apps")
    assert [each.is_known for each in again] == [True, True]
    whole = submissions.receive(archive, path, collection="apps").receipt
    assert whole.reasons == ("it contains 2 WACZ files; a submission is one. Submit each of them",)


def test_a_damaged_file_in_a_collection_refuses_all_of_it(archive, packages, tmp_path):  # noqa: F811
    path = collection(tmp_path / "all.wacz", packages)
    path.write_bytes(
        path.read_bytes().replace(b"datapackage-", b"datapackage+").replace(b"archive/data", b"archive/dato")
    )
    (done,) = submissions.receive_each(archive, path, collection="apps")
    assert done.receipt.state is SubmissionState.REFUSED
    assert not urls(archive, "spelt")


def test_compressed_files_in_a_collection_cannot_be_read_in_place(packages, tmp_path):
    path = collection(tmp_path / "all.wacz", packages, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"a\.wacz is compressed or encrypted.*Unpack it"):
        in_place.Elsewhere(str(path)).members()
