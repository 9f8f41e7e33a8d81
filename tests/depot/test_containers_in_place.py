"""Containers read in place: folders, WACZ, web servers, buckets; moved, missing and unsuitable files."""

import gzip
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from depot_samples import write_warc

from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.errors import CorruptData, NotFound
from webdepot.model import ContainerState
from webdepot.services import pipeline
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.intake.warc_files import FileState

PAGES = {
    f"https://x.example/{number}": b"<!doctype html><title>X</title><p>windmill " + b"x" * 5000 * number
    for number in range(4)
}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Archive]:
    setup.create(tmp_path / "home")
    with Archive.open(tmp_path / "home", agent="anna") as archive:
        yield archive


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    folder = tmp_path / "others"
    folder.mkdir()
    write_warc(folder / "old.warc.gz", PAGES)
    return folder / "old.warc.gz"


def packed(path: Path, warc: Path, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("datapackage.json", "{}")
        made.write(warc, "archive/data.warc.gz", compress_type=compression)
        made.writestr("indexes/index.cdx", "x" * 3000)
    return path


class Files(BaseHTTPRequestHandler):
    """A web server that supports range requests for one file."""

    data = b""
    gives_parts = True
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        if self.path != "/old.warc.gz" or not self.data:
            self.send_error(404)
            return
        wanted = self.headers.get("Range", "")
        self.asked.append(wanted)
        if not wanted or not self.gives_parts:
            self.send_response(200)
            body = self.data
        else:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            body = self.data[int(first) : int(last) + 1 if last else None]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(body) - 1}/{len(self.data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def files(warc: Path) -> Iterator[tuple[type[Files], str]]:
    kind = type("Files", (Files,), {"data": warc.read_bytes(), "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield kind, f"http://127.0.0.1:{server.server_address[1]}/old.warc.gz"
        server.shutdown()
        thread.join()


def refer(archive: Archive, address: str | Path):
    return pipeline.import_files(archive, [address], collection="old", in_place=True)


def check_pages(archive: Archive) -> None:
    for url, body in PAGES.items():
        replayed = replay.open_capture(archive, url, "20240517123001", collection="old", reader=ANYONE)
        assert replayed.payload.read() == body
        replayed.close()


def held(archive: Archive):
    with archive.database.reading() as connection:
        return list(locations.iter_all(connection))


def empty_cache(archive: Archive) -> None:
    for path in archive.containers.cache_folder.glob("*"):
        path.unlink()


def test_a_file_is_read_where_it_is(opened: Archive, warc: Path, tmp_path: Path):
    report = refer(opened, warc.parent)
    assert report.taken is not None and report.taken.package is None
    assert report.taken.captures == len(PAGES)
    [container] = held(opened)
    assert (container.state, container.place) == (ContainerState.ELSEWHERE, str(warc))
    assert not list((tmp_path / "home").rglob("*.warc.gz")), "no copy is made"
    check_pages(opened)
    assert report.taken.pages == len(PAGES)
    assert opened.containers.find_local("old.warc.gz") == warc
    again = refer(opened, warc)
    assert (again.taken, again.files[FileState.KNOWN]) == (None, 1)


def test_a_file_that_moved_is_given_again(opened: Archive, warc: Path, tmp_path: Path):
    refer(opened, warc)
    elsewhere = warc.rename(tmp_path / "new-name.warc.gz")
    with pytest.raises(CorruptData, match=r"old\.warc\.gz cannot be opened"):
        check_pages(opened)
    with pytest.raises(NotFound, match=r"used in place at .* no longer exists"):
        opened.containers.path("old.warc.gz")
    told = next(check for check in doctor.examine(opened.home) if check.name == "containers")
    assert (told.state, "--in-place" in told.remedy) == ("error", True)
    assert refer(opened, elsewhere).files[FileState.KNOWN]
    check_pages(opened)
    assert [container.place for container in held(opened)] == [str(elsewhere)]


def test_a_file_that_was_changed_is_no_container_any_more(opened: Archive, warc: Path):
    refer(opened, warc)
    warc.write_bytes(b"something else" * 100)
    with pytest.raises(CorruptData):
        check_pages(opened)


def test_a_wacz_is_read_without_being_unpacked(opened: Archive, warc: Path, tmp_path: Path):
    wacz = packed(tmp_path / "crawl.wacz", warc)
    report = refer(opened, wacz)
    assert report.taken is not None and report.taken.captures == len(PAGES)
    [container] = held(opened)
    assert container.name == "crawl-data.warc.gz"
    assert container.place.startswith(f"{wacz}#") and container.place.endswith("/archive/data.warc.gz")
    empty_cache(opened)
    check_pages(opened)
    assert not list(opened.containers.cache_folder.glob("*")), "replay unpacks nothing"
    assert opened.containers.path(container.name).read_bytes() == warc.read_bytes()
    assert opened.containers.size(container) == container.size_bytes
    wacz.write_bytes(wacz.read_bytes()[:100])
    with pytest.raises(CorruptData):
        check_pages(opened)


def test_parts_are_fetched_from_a_web_server(opened: Archive, files: tuple[type[Files], str]):
    server, address = files
    report = refer(opened, address)
    assert report.taken is not None and report.taken.captures == len(PAGES)
    empty_cache(opened)
    server.asked.clear()
    check_pages(opened)
    assert server.asked and all(wanted.startswith("bytes=") for wanted in server.asked)
    server.data = b""
    with pytest.raises(CorruptData, match="cannot be opened"):
        check_pages(opened)


def test_a_server_without_parts_is_refused_in_words(opened: Archive, files: tuple[type[Files], str]):
    server, address = files
    server.gives_parts = False
    report = refer(opened, address)
    assert report.taken is None
    assert "does not support range requests" in report.skipped[0].reason
    assert "cannot be reached" in refer(opened, "http://127.0.0.1:9/x.warc.gz").skipped[0].reason


def test_parts_are_fetched_from_a_bucket(opened: Archive, warc: Path, seaweed, monkeypatch):
    monkeypatch.setenv("WEBDEPOT_PLACE_ELSEWHERE_ACCESS_KEY", seaweed.access_key)
    monkeypatch.setenv("WEBDEPOT_PLACE_ELSEWHERE_SECRET_KEY", seaweed.secret_key)
    prefix = seaweed.new_prefix()
    client = seaweed.client()
    client.put_object(Bucket=seaweed.bucket, Key=f"{prefix}/old.warc.gz", Body=warc.read_bytes())
    address = f"s3://{seaweed.bucket}/{prefix}/old.warc.gz?endpoint={seaweed.endpoint}"
    report = refer(opened, address)
    assert report.taken is not None, report.skipped
    empty_cache(opened)
    check_pages(opened)
    client.delete_object(Bucket=seaweed.bucket, Key=f"{prefix}/old.warc.gz")
    client.close()
    with pytest.raises(CorruptData):
        check_pages(opened)


def test_what_cannot_be_read_in_place_says_why(opened: Archive, warc: Path, tmp_path: Path):
    whole = tmp_path / "whole.warc.gz"
    whole.write_bytes(gzip.compress(gzip.decompress(warc.read_bytes())))
    text = tmp_path / "text.warc.gz"
    text.write_bytes(b"no container at all")
    empty = tmp_path / "empty.wacz"
    with zipfile.ZipFile(empty, "w") as made:
        made.writestr("datapackage.json", "{}")
    broken = tmp_path / "broken.wacz"
    broken.write_bytes(b"PK\x03\x04" + io.BytesIO(b"x" * 50).read())
    words = {
        whole: "compressed as one piece",
        text: "text.warc.gz",
        empty: "contains no container",
        broken: "is not a readable WACZ",
        packed(tmp_path / "tight.wacz", warc, zipfile.ZIP_DEFLATED): "is compressed or encrypted",
        tmp_path / "nowhere.warc": "the file does not exist",
    }
    for path, reason in words.items():
        report = refer(opened, path)
        assert report.taken is None
        assert reason in report.skipped[0].reason, path
    assert held(opened) == []
