"""Objects that are small when they arrive and would take gigabytes of memory, millions of folders, or hours: lists, manifests, METS, WACZ."""

import hashlib
import io
import json
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from small_warcs import write_warc
from webdepot.archive import Archive
from webdepot.depot.bundle import bag_check, page_lists, submission, unpacking, zipped
from webdepot.depot.bundle.submission import Submission, SubmissionKind
from webdepot.depot.store.in_place import Elsewhere
from webdepot.errors import InputError
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.intake import mets_objects, object_lists
from webdepot.text import untrusted_json

MB = 1 << 20


def peak_mb(work: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packing", ["zip", "tar"])
def test_folders_that_only_the_paths_name_count_as_members(tmp_path, packing):
    """100,000 files with 200 folders each would be 20 million folders."""
    path = tmp_path / f"a.{packing}"
    with tarfile.open(path, "w") if packing == "tar" else zipfile.ZipFile(path, "w") as archive:
        for number in range(30):
            name = "/".join(f"{number}-{step}" for step in range(150))
            if isinstance(archive, tarfile.TarFile):
                archive.addfile(tarfile.TarInfo(name))
            else:
                archive.writestr(name, b"")
    out = tmp_path / "out"
    found = unpacking.unpack(path, out, most_members=1000)
    assert found.reasons == ("it contains more than 1,000 files and folders (depot.import_members)",)
    assert list(out.iterdir()) == []
    assert unpacking.look(path, out, most_members=30 * 150).reasons == ()


def test_a_list_of_objects_with_millions_of_lines_or_values_is_refused(tmp_path):
    path = tmp_path / "list.csv"
    for text in ("\n" * 3_000_000, f"{'ab,' * 300_000}\n" * 8, "ab," * 3_000_000):
        path.write_text(f"filename,title\n{text}")

        def read() -> None:
            with pytest.raises(InputError, match=r"Split it|a line has more than"):
                object_lists.read(path)

        assert peak_mb(read) < 160


def test_a_folder_that_many_lines_of_a_list_name_is_walked_once(tmp_path, monkeypatch):
    for number in range(50):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / f"data/{number}.txt").write_text("x")
    path = tmp_path / "list.csv"
    path.write_text("filename,title\n" + "data,One of many\n" * 40)
    walks = []

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.scandir" and str(arguments[0]) == str(tmp_path / "data"):
            walks.append(arguments)

    sys.addaudithook(note)
    assert [len(each.files) for each in object_lists.read(path)] == [50] * 40
    assert len(walks) < 10  # one walk opens it once or twice, by the version of Python
    monkeypatch.setattr(object_lists, "MOST_FILES", 1000)
    with pytest.raises(InputError, match="have more than 1,000 files"):
        object_lists.read(path)


def test_each_line_of_a_list_is_kept_with_the_header(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    path = tmp_path / "list.csv"
    path.write_text("filename,title\na.txt,One\n")
    (one,) = object_lists.read(path)
    assert one.text.splitlines() == ["filename,title", "a.txt,One"]


@pytest.mark.parametrize("line", ["aa", f"{'0' * 32}  data/%d"])
def test_a_manifest_with_millions_of_lines_is_not_held_in_memory(tmp_path, line):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a").write_text("x")
    (tmp_path / "bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    lines = (line % number if "%" in line else line for number in range(400_000))
    (tmp_path / "manifest-md5.txt").write_text("\n".join(lines))
    codes: set[str] = set()
    used = peak_mb(lambda: codes.update(each.code for each in islice(bag_check.check(tmp_path), 1000)))
    assert "bag.line" in codes
    assert used < 15


def test_lines_of_a_manifest_keep_their_numbers_and_ends_of_all_kinds(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a").write_text("x")
    (tmp_path / "bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    value = hashlib.md5(b"x", usedforsecurity=False).hexdigest()
    (tmp_path / "manifest-md5.txt").write_bytes(f"\ufeff{value}  data/a\r\n\r\rwrong\nworse".encode())
    messages = [each.message for each in bag_check.check(tmp_path)]
    wrong = [
        f"manifest-md5.txt, line {number} is not a checksum of 32 digits and a path" for number in (4, 5)
    ]
    assert messages == wrong


class CountedPath(type(Path())):  # type: ignore[misc]
    """A path that counts how often it is opened."""

    opened = 0

    def open(self, *args, **options):
        CountedPath.opened += 1
        return super().open(*args, **options)


def test_a_file_that_mets_lists_in_thousands_of_spellings_is_read_once(tmp_path):
    (tmp_path / "content.bin").write_bytes(b"x")
    sum_ = hashlib.sha256(b"x").hexdigest()
    names = [
        "".join(
            letter.upper() if number >> place & 1 else letter for place, letter in enumerate("content.bin")
        )
        for number in range(500)
    ]
    files = "".join(
        f'<file ID="F{number}" CHECKSUM="{sum_}" CHECKSUMTYPE="SHA-256"><FLocat LOCTYPE="URL" x:href="{name}"/></file>'
        for number, name in enumerate(names)
    )
    (tmp_path / "mets.xml").write_text(
        '<mets xmlns="http://www.loc.gov/METS/" xmlns:x="http://www.w3.org/1999/xlink">'
        f"<fileSec><fileGrp>{files}</fileGrp></fileSec></mets>"
    )
    payload = {name: CountedPath(tmp_path / name) for name in ("content.bin", "mets.xml")}
    opened = Submission(path=tmp_path, kind=SubmissionKind.FOLDER, root=tmp_path)
    CountedPath.opened = 0
    read = mets_objects.read(opened, payload)
    assert read is not None and list(read.files) == ["content.bin"]
    assert CountedPath.opened <= 3


def test_a_description_of_a_wacz_with_millions_of_values_is_not_parsed(tmp_path):
    (tmp_path / "archive").mkdir()
    (tmp_path / "datapackage.json").write_text(
        '{"resources": [' + "{}," * untrusted_json.MOST_VALUES + "{}]}"
    )
    messages: list[str] = []
    assert peak_mb(lambda: messages.extend(zipped.check_wacz(tmp_path))) < 20
    assert messages == ["datapackage.json cannot be used: it has too many values"]
    assert zipped.packages_in(tmp_path) == []


def test_a_page_of_a_list_or_a_package_json_with_millions_of_values_is_not_parsed(tmp_path):
    many = b'{"url": "http://a.example/", "x": [' + b"{}," * untrusted_json.MOST_VALUES + b"{}]}"
    pages: list[page_lists.ListedPage] = []
    lines = io.BytesIO(many + b'\n{"url": "http://b.example/"}\n')
    assert peak_mb(lambda: pages.extend(page_lists.iter_pages(lines))) < 40
    assert [page.url for page in pages] == ["http://b.example/"]
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata/package.json").write_bytes(many)
    opened: list[Submission] = []
    assert peak_mb(lambda: opened.append(submission.open_up(tmp_path, tmp_path / "out"))) < 40
    assert opened[0].kind is SubmissionKind.FOLDER


def test_a_wacz_with_very_many_members_is_refused_before_its_directory_takes_memory(tmp_path):
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(25_000):
            archive.writestr(str(number), b"")

    def look() -> None:
        with pytest.raises(InputError, match="more than 10000 files"):
            Elsewhere(str(path)).members()

    assert peak_mb(look) < 4


def test_a_wacz_whose_other_files_cannot_be_written_is_imported_without_them(tmp_path):
    warc = write_warc(tmp_path / "a.warc.gz", {"http://a.example/": b"<p>Windmill"})
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w") as packed:
        packed.write(warc, "archive/a.warc.gz")
        packed.writestr("datapackage.json", json.dumps({"resources": []}))
        for name in ("logs", "logs/a.log"):
            packed.writestr(name, b"x")
    setup.create(tmp_path / "home", settings="[index]\nworkers = 1\n")
    reports = []
    with Archive.open(tmp_path / "home", agent="anna") as archive:
        pipeline.import_files(archive, [path], collection="apps", on_package=reports.append)
        assert archive.captures.years()
    assert len(reports) == 1
