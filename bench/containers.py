"""How fast are containers written and read? Compared with warcio and FastWARC in the same run.

    python -m bench.containers [--quick] [--json PATH]

The data: visits generated from a fixed seed, with the mean size of the reference collection (22 kB per file)
and its mix: HTML that compresses, images that do not; a request and a response each. All do the same work:

* written: block and payload digests (SHA-1), one gzip member per record, into a file. Each with its default
  level of compression; the table has the resulting size. Ours also hashes the file with SHA-256.
* read: address, date, status and position of each record, payload read to its end. All read the same file,
  the one that we wrote.

They take turns, and the best of several rounds counts, in CPU seconds, which other load on the machine
affects least.
"""

import argparse
import io
import itertools
import json
import os
import platform
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.stream_io import GzipWriter
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import WarcRecord, WarcRecordType

from webdepot.container.new_records import from_visit, payload_digest
from webdepot.container.reader import iter_records
from webdepot.container.writer import ContainerWriter
from webdepot.model import Candidate, Visit
from webdepot.url import Url

SEED = 20070115
NOW = datetime(2026, 11, 15, 9, 2, 51, tzinfo=UTC)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"
DATE = "2026-11-15T09:02:51Z"
REQUEST_FIELDS = [
    ("Host", "www.example.org"),
    ("User-Agent", "webdepot-bench (+https://www.example.org/bot)"),
    ("Accept", "*/*"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    url: str
    fields: list[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    question: str
    side: str
    seconds: float
    records: int
    megabytes_per_second: float
    """Bytes of payload."""
    records_per_second: float
    ratio: float
    """Our speed divided by this side's."""
    left: float | None
    """Bytes written per byte of payload."""


def make_pages(count: int) -> list[Page]:
    """One in eight is an image, the others are HTML: words with a Zipf distribution in a repeated frame."""
    chance = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = [
        "".join(chance.choices(letters, weights=range(26, 0, -1), k=chance.randint(2, 10)))
        for _ in range(8000)
    ]
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
    links = "\n".join(
        f'<li class="menu-item"><a href="/{one}/{two}.html" title="{one}">{one} {two}</a></li>'
        for one, two in zip(words[:60], words[60:])
    )
    pages = []
    for number in range(count):
        is_image = number % 8 == 0
        body = (
            JPEG + chance.randbytes(int(chance.lognormvariate(9.9, 1)))
            if is_image
            else _html(number, chance, words, weights, links)
        )
        fields = [
            ("Content-Type", "image/jpeg" if is_image else "text/html; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Server", "nginx"),
            ("Date", "Sun, 15 Nov 2026 09:02:51 GMT"),
            ("Last-Modified", "Sun, 15 Nov 2026 08:00:00 GMT"),
            ("ETag", f'"{number:x}"'),
            ("Connection", "keep-alive"),
        ]
        pages.append(
            Page(
                url=f"https://www.example.org/{words[number % 8000]}/{number}.html", fields=fields, body=body
            )
        )
    return pages


def _html(number: int, chance: random.Random, words: list[str], weights: list[float], links: str) -> bytes:
    blocks = []
    for _ in range(int(chance.lognormvariate(6.9, 0.7)) // 50 + 1):
        heading, text = (" ".join(chance.choices(words, cum_weights=weights, k=count)) for count in (4, 60))
        blocks.append(
            f'<div class="block"><h2 id="s{chance.randrange(10_000)}">{heading}</h2>\n<p '
            f'class="text">{text}</p></div>\n'
        )
    head = f"<!DOCTYPE html>\n<html><head><title>{number}</title></head>"
    return f"{head}<body><ul>\n{links}\n</ul>\n{''.join(blocks)}</body></html>\n".encode()


# --- writing ---


def write_ours(pages: list[Page], folder: Path) -> Path:
    """Write visits, as a harvest does."""
    sealed: list[Path] = []
    writer = ContainerWriter(
        folder,
        prefix="ours",
        size_bytes=1 << 40,
        info={"software": "bench"},
        clock=lambda: NOW,
        on_sealed=lambda done: sealed.append(done.path),
    )
    for page in pages:
        path = page.url.partition("example.org")[2]
        visit = Visit(
            candidate=Candidate(url=Url(page.url)),
            at=NOW,
            duration_s=0.1,
            request=_head(f"GET {path} HTTP/1.1", REQUEST_FIELDS),
            head=_head("HTTP/1.1 200 OK", page.fields),
            body=io.BytesIO(page.body),
            body_bytes=len(page.body),
            status=200,
            server_address="192.0.2.1",
        )
        writer.write(from_visit(visit, payload_digest=payload_digest(visit)))
    writer.close()
    return sealed[0]


def write_warcio(pages: list[Page], folder: Path) -> Path:
    target = folder / "warcio.warc.gz"
    with target.open("wb") as stream:
        writer = WARCWriter(stream, gzip=True, warc_version="1.1")
        for page in pages:
            path = page.url.partition("example.org")[2]
            asked = StatusAndHeaders(f"GET {path} HTTP/1.1", REQUEST_FIELDS, is_http_request=True)
            answered = StatusAndHeaders("200 OK", page.fields, protocol="HTTP/1.1")
            known = {"WARC-Date": DATE, "WARC-IP-Address": "192.0.2.1"}
            request = writer.create_warc_record(
                page.url, "request", http_headers=asked, warc_headers_dict=dict(known)
            )
            response = writer.create_warc_record(
                page.url,
                "response",
                payload=io.BytesIO(page.body),
                length=len(page.body),
                http_headers=answered,
                warc_headers_dict=dict(known),
            )
            writer.write_request_response_pair(request, response)
    return target


def write_fastwarc(pages: list[Page], folder: Path) -> Path:
    target = folder / "fastwarc.warc.gz"
    with target.open("wb") as stream:
        writer = GzipWriter(stream)
        for page in pages:
            path = page.url.partition("example.org")[2]
            blocks = (
                (WarcRecordType.request, _head(f"GET {path} HTTP/1.1", REQUEST_FIELDS)),
                (WarcRecordType.response, _head("HTTP/1.1 200 OK", page.fields) + page.body),
            )
            for kind, block in blocks:
                record = WarcRecord()
                record.init_headers(kind)
                record.headers["WARC-Target-URI"] = page.url
                record.headers["WARC-Date"] = DATE
                record.headers["WARC-IP-Address"] = "192.0.2.1"
                record.is_http = True
                record.set_bytes_content(block)
                record.parse_http()
                record.write(writer, checksum_data=True)
                writer.finish()  # without it all records would share one gzip member
        writer.close()
    return target


def _head(line: str, fields: list[tuple[str, str]]) -> bytes:
    return "\r\n".join([line, *(f"{name}: {value}" for name, value in fields), "", ""]).encode()


# --- reading ---


def read_ours(path: Path) -> tuple[int, int]:
    count = size = 0
    with path.open("rb") as stream:
        for record in iter_records(stream, path.name, on_finding=print):
            _ = record.url, record.date, record.head and record.head.status, record.location
            size += len(record.payload().read())
            count += 1
    return count, size


def read_warcio(path: Path) -> tuple[int, int]:
    count = size = 0
    with path.open("rb") as stream:
        iterator = WarcioIterator(stream)
        for record in iterator:
            head = record.http_headers
            _ = (
                record.rec_headers.get_header("WARC-Target-URI"),
                record.rec_headers.get_header("WARC-Date"),
                head and head.get_statuscode(),
            )
            size += len(record.raw_stream.read())
            _ = iterator.get_record_offset(), iterator.get_record_length()
            count += 1
    return count, size


def read_fastwarc(path: Path) -> tuple[int, int]:
    count = size = 0
    with path.open("rb") as stream:
        for record in FastIterator(stream, parse_http=True):
            head = record.http_headers
            _ = (
                record.headers.get("WARC-Target-URI"),
                record.record_date,
                head and head.status_code,
                record.stream_pos,
            )
            size += len(record.reader.read())
            count += 1
    return count, size


# --- measuring ---


def measure(
    sides: dict[str, Callable[[], tuple[int, int, int | None]]], question: str, rounds: int
) -> Iterator[Result]:
    """The best round of each. A function returns its number of records, payload bytes and, if it wrote a
    file, its size.
    """
    best: dict[str, float] = {}
    facts: dict[str, tuple[int, int, int | None]] = {}
    for _ in range(rounds):
        for side, run in sides.items():
            begin = time.process_time()
            facts[side] = run()
            seconds = time.process_time() - begin
            best[side] = min(seconds, best.get(side, seconds))
    for side, (records, size, written) in facts.items():
        yield Result(
            question=question,
            side=side,
            seconds=round(best[side], 4),
            records=records,
            megabytes_per_second=round(size / best[side] / 1e6, 1),
            records_per_second=round(records / best[side]),
            ratio=round(best[side] / best["webdepot"], 2),
            left=round(written / size, 3) if written else None,
        )


def run(count: int, rounds: int) -> list[Result]:
    pages = make_pages(count)
    payload = sum(len(page.body) for page in pages)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # warcio leaves temporary files open

        def written(write: Callable[[list[Page], Path], Path]) -> tuple[int, int, int]:
            path = write(pages, Path(folder))
            size = path.stat().st_size
            path.unlink()
            return 2 * count, payload, size

        writing = {"webdepot": write_ours, "warcio": write_warcio, "fastwarc": write_fastwarc}
        results = list(
            measure(
                {side: lambda write=write: written(write) for side, write in writing.items()},
                "written",
                rounds,
            )
        )
        path = write_ours(pages, Path(folder))
        reading = {"webdepot": read_ours, "warcio": read_warcio, "fastwarc": read_fastwarc}
        results += measure(
            {side: lambda read=read: (*read(path), None) for side, read in reading.items()}, "read", rounds
        )
    return results


def machine() -> dict[str, object]:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "",
    )
    packages = {name: version(name) for name in ("webdepot", "isal", "warcio", "fastwarc")}
    return {
        "processor": model or platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **packages,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    results = run(200 if options.quick else 3000, 2 if options.quick else 7)
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(f"{'question':10} {'side':10} {'MB/s':>8} {'records/s':>10} {'CPU s':>8} {'we are':>8} {'left':>6}")
    for result in results:
        left = f"{result.left:.3f}" if result.left else ""
        speeds = f"{result.megabytes_per_second:8.1f} {result.records_per_second:10.0f} {result.seconds:8.3f}"
        print(f"{result.question:10} {result.side:10} {speeds} {result.ratio:7.2f}x {left:>6}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps(
                {"machine": facts, "seed": SEED, "results": [asdict(result) for result in results]}, indent=2
            )
            + "\n"
        )
    counts = {result.records for result in results if result.question == "read"}
    sys.exit(0 if len(counts) == 1 else "Not all read the same number of records.")


if __name__ == "__main__":
    main()
