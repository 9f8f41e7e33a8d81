"""Small containers for tests."""

import gzip
import uuid
from datetime import UTC, datetime
from pathlib import Path

from webdepot import digest

WHEN = datetime(2024, 5, 17, 12, 30, 1, tzinfo=UTC)


def write_warc(
    path: Path, pages: dict[str, bytes], *, mime: str = "text/html", when: datetime = WHEN
) -> Path:
    """A container with one gzip member for each page."""
    path.write_bytes(
        b"".join(gzip.compress(_record(url, body, mime, when), mtime=0) for url, body in pages.items())
    )
    return path


def _record(url: str, body: bytes, mime: str, when: datetime) -> bytes:
    block = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    head = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{uuid.uuid5(uuid.NAMESPACE_URL, url).urn}>",
        "WARC-Date": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": str(digest.sha1(body)),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"WARC/1.1\r\n{lines}\r\n".encode() + block + b"\r\n\r\n"
