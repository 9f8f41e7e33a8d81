"""Whatever fails: one clear message, the documented exit code, nothing lost."""

import gzip
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import uuid
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ports import free_port
from webdepot.cli import main

PROGRAM = Path(sys.executable).with_name("webdepot")


def run(home: Path, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PROGRAM, "--home", home, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def site() -> Iterator[tuple[str, dict[str, tuple[int, dict[str, str], bytes]]]]:
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            status, headers, body = pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", pages
    server.shutdown()
    server.server_close()


def record(url: str, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    header = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\nWARC-Date: 2012-05-06T07:08:09Z\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return header.encode() + block + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        ("http://exa mple/", 2, "not a web address"),
        ("ht!tp://example.org/", 2, "not a known scheme"),
        ("javascript:alert(1)", 2, "not a web address"),
        ("http://nosuch.invalid/", 5, "no host nosuch.invalid"),
        ("http://127.0.0.1:9/", 5, "--allow-private"),
    ],
)
def test_a_wrong_or_unreachable_address_is_reported(home, url, status, words):
    done = run(home, "archive", url)
    assert done.returncode == status
    assert words in done.stderr


def test_a_server_that_does_not_listen_is_reported(home):
    port = free_port()
    done = run(
        home,
        "archive",
        f"http://127.0.0.1:{port}/",
        "--allow-private",
        env={**os.environ, "WEBDEPOT_HARVEST_TRIES": "1"},
    )
    assert done.returncode == 5
    assert "could not be reached" in done.stderr
    assert json.loads(run(home, "status", "--json").stdout)["packages"] == 0


def test_an_empty_site_is_kept_and_reported_as_empty(home, site):
    url, pages = site
    pages["/"] = (200, {"Content-Type": "text/html"}, b"")
    done = run(home, "archive", url, "--allow-private", "--delay", 0)
    assert done.returncode == 0
    assert "empty" in done.stdout


def test_a_site_that_only_redirects_away_is_reported_with_the_target(home, site):
    url, pages = site
    pages["/"] = (302, {"Location": "http://elsewhere.example/"}, b"")
    done = run(home, "archive", url, "--allow-private", "--delay", 0)
    assert done.returncode == 5
    assert "http://elsewhere.example/" in done.stderr


def test_a_robots_txt_that_disallows_everything_ends_the_harvest_at_once(home, site):
    url, pages = site
    pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /\n")
    pages["/"] = (200, {"Content-Type": "text/html"}, b"<p>Private")
    done = run(home, "archive", url, "--allow-private", "--delay", 0)
    assert done.returncode == 5
    assert "robots.txt" in done.stderr
    assert "--robots ignore" in done.stderr


def test_a_port_in_use_is_reported_with_the_option(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(home, "serve", "--port", port, "--replay-port", 0)
    assert done.returncode == 4
    assert str(port) in done.stderr
    assert "--port" in done.stderr


def test_files_that_are_not_containers_are_listed_and_the_others_imported(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "empty.warc").touch()
    (folder / "picture.warc.gz").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "good.warc").write_bytes(record("http://a.example/", b"<title>Good</title><p>tulips"))
    done = run(tmp_path / "home", "import", folder, "--json")
    assert done.returncode == 1
    assert "empty.warc" in done.stderr
    assert "picture.warc.gz" in done.stderr
    assert json.loads(done.stdout)["captures"] == 1


def test_only_files_that_are_not_containers(tmp_path, home):
    (tmp_path / "text.txt").write_text("hello")
    done = run(home, "import", tmp_path / "text.txt")
    assert done.returncode == 1
    assert "not a WARC or ARC" in done.stderr
    assert json.loads(run(home, "status", "--json").stdout)["harvests"] == {}


def test_the_intact_records_of_a_corrupt_container_are_imported_and_the_rest_counted(tmp_path, home):
    members = [
        gzip.compress(record(f"http://a.example/{number}", b"<title>T</title><p>tulips %d" % number))
        for number in range(5)
    ]
    damaged = bytearray(members[2])
    damaged[len(damaged) // 2] ^= 0xFF
    path = tmp_path / "damaged.warc.gz"
    path.write_bytes(members[0] + members[1] + bytes(damaged) + members[3] + members[4][:-20])
    before = path.read_bytes()
    done = run(home, "import", path, "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["captures"] == 3
    assert sum(report["findings"].values()) == 2
    assert path.read_bytes() == before


def test_the_same_file_twice_is_recognised_under_any_name(tmp_path, home):
    first, second = tmp_path / "a.warc", tmp_path / "b.warc"
    first.write_bytes(record("http://a.example/", b"<p>tulips"))
    second.write_bytes(first.read_bytes())
    assert run(home, "import", first, "--json").returncode == 0
    done = run(home, "import", second, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["state"] == "known"
    assert json.loads(run(home, "status", "--json").stdout)["containers"] == 1


def test_two_files_of_one_name_are_both_kept(tmp_path, home):
    for folder, word in (("x", b"tulips"), ("y", b"daisies")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.warc").write_bytes(record(f"http://{folder}.example/", b"<p>" + word))
        assert run(home, "import", tmp_path / folder / "same.warc", "--json").returncode == 0
    assert json.loads(run(home, "status", "--json").stdout)["containers"] == 2
    for word in ("tulips", "daisies"):
        assert run(home, "search", word, "--json").returncode == 0


def test_a_container_compressed_in_one_piece_can_be_replayed(tmp_path, home):
    path = tmp_path / "whole.warc.gz"
    path.write_bytes(
        gzip.compress(
            b"".join(record(f"http://a.example/{number}", b"<p>tulips %d" % number) for number in range(3))
        )
    )
    assert json.loads(run(home, "import", path, "--json").stdout)["captures"] == 3
    assert json.loads(run(home, "import", path, "--json").stdout)["state"] == "known"
    assert run(home, "search", "tulips", "--json").stdout.count("\n") == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs more rights than this user has")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_stops_the_harvest_cleanly_and_it_continues_when_there_is_space(small_disk, site):
    url, pages = site
    links = "".join(f'<a href="/{number}.bin">x</a>' for number in range(12))
    pages["/"] = (200, {"Content-Type": "text/html"}, links.encode())
    for number in range(12):
        pages[f"/{number}.bin"] = (200, {"Content-Type": "application/octet-stream"}, os.urandom(700_000))
    home = small_disk / "home"
    # Without the check of free space, which would stop a slow harvest before the disk is full.
    unwatched = {**os.environ, "WEBDEPOT_HARVEST_LEAST_FREE_BYTES": "0"}
    done = run(home, "archive", url, "--allow-private", "--delay", 0, env=unwatched)
    assert done.returncode == 7
    assert "space" in done.stderr.lower() or "full" in done.stderr.lower()
    subprocess.run(["mount", "-o", "remount,size=80m", small_disk], check=True)
    done = run(home, "archive", url, "--allow-private", "--delay", 0, "--json", env=unwatched)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["state"] == "kept"
    assert report["counts"]["fetched"] == 14, "the front page, twelve files, and the answer for /sitemap.xml"
    assert run(home, "doctor", "--deep").returncode == 0


def test_a_read_only_home_is_reported(small_disk):
    home = small_disk / "home"
    assert run(home, "init").returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = run(home, "archive", "http://a.example/")
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert done.returncode == 7
    assert "read-only" in done.stderr.lower()


def test_a_home_of_a_newer_version_is_reported_and_not_changed(home):
    import sqlite3

    with sqlite3.connect(home / "webdepot.db") as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()
    done = run(home, "status")
    assert done.returncode == 4
    assert "newer version" in done.stderr


def test_a_folder_with_other_files_is_not_made_an_archive(tmp_path):
    (tmp_path / "thesis.txt").write_text("important")
    done = run(tmp_path, "init")
    assert done.returncode == 4
    assert "not empty" in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(home, site):
    url, pages = site
    links = "".join(f'<a href="/{number}">x</a>' for number in range(40))
    pages["/"] = (200, {"Content-Type": "text/html"}, links.encode())
    for number in range(40):
        pages[f"/{number}"] = (200, {"Content-Type": "text/html"}, b"<p>page %d" % number)
    command = [PROGRAM, "--home", home, "archive", url, "--allow-private", "--delay", "0.05", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("{") and json.loads(line)["progress"]["done"] >= 5:
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["state"] == "stopped"
    done = run(home, "archive", url, "--allow-private", "--delay", 0, "--json")
    assert json.loads(done.stdout)["counts"]["fetched"] == 42, (
        "the front page, forty pages, and the answer for /sitemap.xml"
    )


def write_packed_zeros(path: Path, head: bytes, size: int, tail: bytes) -> None:
    """Write one gzip member (RFC 1952): head, `size` zeros, tail. A full flush resets the compressor, so that a
    compressed megabyte can be repeated.
    """
    packer, zeros = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS), bytes(1 << 20)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    megabyte = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    last = packer.compress(tail) + packer.flush()
    check = zlib.crc32(head)
    for _ in range(size >> 20):
        check = zlib.crc32(zeros, check)
    check = zlib.crc32(tail, check)
    end = struct.pack("<II", check, (len(head) + size + len(tail)) & 0xFFFFFFFF)
    path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + first + megabyte * (size >> 20) + last + end)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder on a disk; those of other tests may be in memory."""
    with tempfile.TemporaryDirectory(prefix="webdepot-test-") as folder:
        yield Path(folder)


@pytest.mark.slow
def test_a_record_is_imported_with_less_memory_than_its_size(disk):
    size = 800 << 20
    path = disk / "huge.warc.gz"
    block_head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: %d\r\n\r\n" % size
    header = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\nWARC-Date: 2012-05-06T07:08:09Z\r\n"
        f"WARC-Target-URI: http://a.example/film.mp4\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block_head) + size}\r\n\r\n"
    )
    write_packed_zeros(path, header.encode() + block_head, size, b"\r\n\r\n")
    home = disk / "home"
    command = f"ulimit -d {size // 1024}; exec {PROGRAM} --home {home} import {path} --json"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["captures"] == 1


def test_an_error_of_the_program_is_one_message_and_a_file_to_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(only: str) -> None:
        raise ZeroDivisionError("in a command")

    monkeypatch.setattr("webdepot.cli.main.build_app", failing)
    monkeypatch.setattr(os, "umask", lambda mask: 0)  # of this process: the other tests keep theirs
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: in a command" in printed and "Traceback" not in printed
    [report] = tmp_path.glob("webdepot-error-*.txt")
    assert report.name in printed.replace("\n", "") and "Traceback" in report.read_text()
