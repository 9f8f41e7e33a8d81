"""The corpus of `bench.whole`: containers of pages, pictures, PDF files and revisits, from a fixed seed."""

import hashlib
import random
import shutil
import struct
import zlib
from base64 import b32encode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.search_corpus import SEED, Corpus
from bench.search_html import html

from webdepot.times import from_timestamp

CONTAINER_CAPTURES = 2500
LANGUAGES = ("nl", "de", "en")


def corpus_of(folder: Path, captures: int, *, seed: int) -> Path:
    """The folder of containers with that many captures; written unless it exists."""
    target = folder / f"{captures}-{seed}"
    if target.exists():
        return target
    partial = folder / f".{captures}-{seed}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    records = islice(_records(captures, seed), captures)
    for number in range((captures + CONTAINER_CAPTURES - 1) // CONTAINER_CAPTURES):
        with (partial / f"bench-{captures}-{seed}-{number:04}.warc.gz").open("wb") as file:
            for record in islice(records, CONTAINER_CAPTURES):
                file.write(record)
    partial.rename(target)
    return target


def _records(captures: int, seed: int) -> Iterator[bytes]:
    """Gzip members: of ten captures about five are pages, two pictures, two revisits, and a few PDF files."""
    chance = random.Random(SEED + seed)
    corpus = Corpus(captures, words=1000)
    for number, state in enumerate(corpus):
        url = state.url.replace("//www.", f"//www.s{seed}")
        body = html(state)
        first, *later = state.stamps
        yield _response(url, first, "text/html", body)
        for stamp in later:
            yield _revisit(url, stamp, body, first)
        if number % 2 == 0:
            yield _response(f"{url}.png", first, "image/png", _picture(chance))
        if number % 25 == 0:
            yield _response(f"{url}.pdf", first, "application/pdf", _document(state.text[:3000]))


def _response(url: str, stamp: str, mime: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return _member("response", url, stamp, body, head + body)


def _revisit(url: str, stamp: str, body: bytes, first: str) -> bytes:
    more = (
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
        f"WARC-Refers-To-Target-URI: {url}\r\nWARC-Refers-To-Date: {_date(first)}\r\n"
    )
    return _member("revisit", url, stamp, body, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", more)


def _member(kind: str, url: str, stamp: str, body: bytes, block: bytes, more: str = "") -> bytes:
    digest = b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
    identifier = hashlib.sha1(f"{kind} {url} {stamp}".encode(), usedforsecurity=False).hexdigest()
    header = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {_date(stamp)}\r\n"
        f"WARC-Record-ID: <urn:uuid:{identifier[:8]}-{identifier[8:12]}-{identifier[12:16]}-"
        f"{identifier[16:20]}-{identifier[20:32]}>\r\n{more}"
        f"WARC-Payload-Digest: sha1:{digest}\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    packer = zlib.compressobj(6, wbits=31)
    return packer.compress(header.encode() + block + b"\r\n\r\n") + packer.flush()


def _date(stamp: str) -> str:
    return f"{from_timestamp(stamp):%Y-%m-%dT%H:%M:%SZ}"


def _picture(chance: random.Random) -> bytes:
    """A PNG of noise, 3 to 30 kB."""
    width, height = chance.randrange(30, 100), chance.randrange(30, 100)
    lines = b"".join(b"\0" + chance.randbytes(width * 3) for _ in range(height))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines, 1)), chunk(b"IEND", b""))
    )


def _document(text: str) -> bytes:
    """A PDF file of one page with this text."""
    lines = b"".join(
        b"(%s) Tj T*\n" % text[at : at + 80].encode("latin-1", "replace").translate(None, b"()\\")
        for at in range(0, len(text), 80)
    )
    content = b"BT /F1 9 Tf 40 800 Td 11 TL\n" + lines + b"ET"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + table + b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(data)
