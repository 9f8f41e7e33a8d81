"""Samples for tests of exchange: WARC files written by hand, catalogues inserted as rows."""

import base64
import gzip
import hashlib
import http.client
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from webdepot.exchange import catalogue, transfer_zip, urn
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.transfer_zip import Transfer, TransferFile, TransferForm


@dataclass
class Warc:
    """Writes a container file by hand: the bytes of each record are the test's own."""

    path: Path
    records: list[bytes] = field(default_factory=list)

    def response(
        self, url: str, stamp: str, body: bytes, *, mime: str = "text/html", status: str = "200 OK"
    ) -> "Warc":
        block = (
            f"HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = {
            "WARC-Type": "response",
            "WARC-Record-ID": f"<urn:uuid:{uuid.uuid4()}>",
            "WARC-Target-URI": url,
            "WARC-Date": f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z",
            "WARC-Payload-Digest": "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode(),
            "Content-Type": "application/http; msgtype=response",
            "Content-Length": str(len(block)),
        }
        lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        self.records.append(gzip.compress("\r\n".join(lines).encode() + block + b"\r\n\r\n"))
        return self

    def write(self) -> Path:
        self.path.write_bytes(b"".join(self.records))
        return self.path


def stock(archive, *, slices: int = 250, withdrawn: int = 5) -> list[CatalogueRecord]:
    """A catalogue with a site and its slices (and what could be fetched of them), a journal article and a
    thesis; some are withdrawn.
    """
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    made = []
    with archive.database.transaction() as connection:
        site = record(
            "site-www-example-org-0001",
            RecordLevel.SITE,
            title="Die Gartenschau <Musterstadt> & Umgebung\x0b",
            subtitle="offizielle Website",
            creators=("Musterstadt, Amt für Stadtgrün", "Stadt Musterstadt"),
            contributors=("Muster, Eva",),
            publisher="Stadt Musterstadt",
            place="Musterstadt",
            country="DE",
            genre="Website",
            keywords=("Garten", "Park"),
            ddc=("712",),
            abstract="Blumen und mehr.",
            languages=("de", "en"),
            run_from="2004",
            addresses=("http://www.gartenschau.example/",),
            rights="CC BY",
            collection="gardens",
        )
        made.append(catalogue.put(connection, site))
        for number in range(slices):
            day = at + timedelta(days=number)
            piece = record(
                f"2026-gartenschau-{number:06d}",
                RecordLevel.SLICE,
                parent=site.key,
                title=site.title,
                date=f"{day:%Y-%m-%d}",
                part=f"{day:%Y-%m-%d}",
                languages=("de",),
                collection="gardens",
                is_object=True,
                changed_at=at + timedelta(seconds=number // 7),
                addresses=("http://www.gartenschau.example/",),
            )
            if number < withdrawn:
                piece = catalogue.withdrawn(piece, at=at + timedelta(days=1), reason="court order")
            made.append(catalogue.put(connection, piece))
            transfer_zip.record(connection, piece.key, transfer_of(number), now=at)
        journal = record(
            "journal-1", RecordLevel.JOURNAL, title="Zeitschrift für Uhren", identifiers=("issn:1234-5679",)
        )
        issue = record(
            "issue-1",
            RecordLevel.ISSUE,
            parent=journal.key,
            title="Zeitschrift für Uhren",
            part="12 (2004), 3",
            date="2004",
        )
        article = record(
            "article-1",
            RecordLevel.ARTICLE,
            parent=issue.key,
            title="Über die Unruh",
            creators=("Huygens, Christiaan",),
            date="2004-03",
            identifiers=("doi:10.1000/182", "shelf:A 7"),
            is_object=True,
        )
        thesis = record(
            "thesis-1",
            RecordLevel.THESIS,
            title="Pendel",
            creators=("Foucault, Léon",),
            date="1851",
            is_object=True,
        )
        made += [catalogue.put(connection, each) for each in (journal, issue, article, thesis)]
        for each in (article, thesis):
            transfer_zip.record(connection, each.key, transfer_of(1, name="paper.pdf"), now=at)
    return made


def record(key: str, level: RecordLevel, **more) -> CatalogueRecord:
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    return CatalogueRecord(
        **{
            "key": key,
            "level": level,
            "urn": urn.mint("urn:nbn:de:example", key),
            "created_at": at,
            "changed_at": at,
        }
        | more
    )


def transfer_of(number: int, *, name: str = "") -> Transfer:
    files = tuple(
        TransferFile(
            path="/",
            name=name or f"SLICE-{number:06d}-{part:05d}.warc.gz",
            size_bytes=100 + number,
            sha256=hashlib.sha256(f"{number} {part}".encode()).hexdigest(),
            crc32=number,
            mime="application/pdf" if name else "application/warc",
            format="PDF 1.4" if name else "WARC 1.1",
            puid="fmt/18" if name else "fmt/1281",
            at="2026-03-01T09:30:00Z",
            container=f"SLICE-{number:06d}-{part:05d}.warc.gz",
        )
        for part in range(1 if name else 2)
    )
    sha256 = hashlib.sha256(str(number).encode()).hexdigest()
    return Transfer(
        form=TransferForm.FILES if name else TransferForm.CONTAINERS,
        files=files,
        start=files[0].member,
        size_bytes=1000,
        sha256=sha256,
    )


SERVER = """
import json, sys
from pathlib import Path
from urllib.parse import urlsplit
from webdepot.archive import Archive
from webdepot.web.serve import serve
with Archive.open(Path(sys.argv[1])) as archive:
    serve(archive, host="127.0.0.1", port=0, replay_port=0, ready=lambda portal, replay: print(json.dumps([portal, replay]), flush=True))
"""


@contextmanager
def portal(home: Path) -> Iterator[str]:
    """The portal of a home, served in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(home)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())[0]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    url: str, method: str = "GET", *, headers: dict[str, str] | None = None, body: bytes | None = None
) -> Answer:
    """One request; no redirect is followed, nothing decoded."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.request(method, url.partition(parts.netloc)[2] or "/", body, headers or {})
        got = connection.getresponse()
        return Answer(got.status, got.headers, got.read())
    finally:
        connection.close()
