"""Small harvests of others, one WARC of five captures each. Used by the benchmarks of archives that grow.

    python -m bench.small_harvests HOME FIRST STOP [PAUSE_S]

imports the harvests with these numbers into the archive, one after another, and prints the number of each
when it is complete.
"""

import gzip
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from webdepot.archive import Archive
from webdepot.digest import sha1
from webdepot.services import pipeline
from webdepot.services.intake.ingest import ArchiveReport

CAPTURES = 5
SITES = 200
COLLECTION = "many"
_FIRST = datetime(2005, 1, 1, tzinfo=UTC)
_WORDS = ("museum", "clock", "tower", "harbour", "bridge", "orchard", "letter", "signal", "garden", "winter")


def write(path: Path, number: int) -> Path:
    """A WARC with the pages of one site on one day, which link to one another."""
    records = [_record(url, stamp, body) for url, stamp, body in _pages(number)]
    path.write_bytes(b"".join(records))
    return path


def url_of(number: int, page: int = 0) -> str:
    return f"http://www.site{number % SITES}.example/page/{page}"


def stamp_of(number: int) -> str:
    return f"{_FIRST + timedelta(hours=7 * number):%Y%m%d%H%M%S}"


def _pages(number: int) -> Iterator[tuple[str, str, bytes]]:
    for page in range(CAPTURES):
        words = " ".join(
            _WORDS[(number + page + step * (1 + number % 7)) % len(_WORDS)] for step in range(60)
        )
        links = "".join(
            f"<a href='/page/{other}'>page {other} of the site</a>"
            for other in range(CAPTURES)
            if other != page
        )
        text = (
            f"<html><title>Page {page}, edition {number}</title><p>edition{number} {words}</p>{links}</html>"
        )
        yield url_of(number, page), stamp_of(number), text.encode()


def _record(url: str, stamp: str, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body
    at = datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    head = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{uuid.uuid4().urn}>",
        "WARC-Target-URI": url,
        "WARC-Date": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "WARC-Payload-Digest": str(sha1(body)),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    return gzip.compress("\r\n".join(lines).encode() + block + b"\r\n\r\n")


def bring(archive: Archive, number: int) -> ArchiveReport:
    """Import one harvest."""
    path = write(archive.home.parent / f"small-{number:06d}.warc.gz", number)
    report = pipeline.import_files(archive, [path], collection=COLLECTION)
    path.unlink()
    if report.taken is None or report.taken.captures != CAPTURES:
        raise SystemExit(f"Harvest {number} was not imported: {report}")
    return report.taken


def main() -> None:
    home, first, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    pause_s = float(sys.argv[4]) if sys.argv[4:] else 0.0
    with Archive.open(home) as archive:
        for number in range(first, stop):
            bring(archive, number)
            print(number, flush=True)
            time.sleep(pause_s)


if __name__ == "__main__":
    main()
