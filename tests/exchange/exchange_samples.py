"""WARC files written by hand for tests of exchange."""

import base64
import gzip
import hashlib
import uuid
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Warc:
    """Writes a container file by hand: the bytes of each record are the test's own."""

    path: Path
    records: list[bytes] = field(default_factory=list)

    def response(self, url: str, stamp: str, body: bytes, *, mime: str = "text/html", status: str = "200 OK") -> "Warc":
        block = f"HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
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
