"""A harvest on disk: containers written byte by byte, and a crawl.jsonl."""

import gzip
import json
import uuid

import pytest
from container_facts import facts_of

from webdepot.quality.checks import HarvestTraces


def record(kind: str, url: str, block: bytes, content_type: str, **fields: str) -> bytes:
    """One WARC record as a gzip member."""
    named = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": "2024-05-17T12:30:00Z",
        "WARC-Record-ID": uuid.uuid4().urn,
        **fields,
    }
    lines = [f"{name}: {value}" for name, value in named.items()] + [
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    return gzip.compress("\r\n".join(["WARC/1.0", *lines, "", ""]).encode() + block + b"\r\n\r\n", mtime=0)


class Site:
    def __init__(self, folder):
        self.folder, self.lines, self.records, self.waiting = folder, [], [], 0

    def visit(
        self,
        url,
        status=200,
        *,
        embeds=(),
        links=(),
        redirect="",
        truncated="",
        path="L",
        body="<p>x</p>",
        **log,
    ):
        """One line of the log and, for a response, its records."""
        self.lines.append({"url": url, "status": status, "path": path, **log})
        if status < 100:
            return
        fields = {"WARC-Truncated": truncated} if truncated else {}
        answer = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n\r\n{body}".encode()
        self.records.append(record("response", url, answer, "application/http; msgtype=response", **fields))
        found = (
            [(link, "L") for link in links]
            + [(embed, "E") for embed in embeds]
            + ([(redirect, "R")] if redirect else [])
        )
        lines = "".join(f"outlink: {link} {hop}\r\n" for link, hop in found)
        self.records.append(record("metadata", url, lines.encode(), "application/warc-fields"))

    def traces(self, *, seeds=("http://a.example/",), with_log=True) -> HarvestTraces:
        container, log = self.folder / "x.warc.gz", self.folder / "crawl.jsonl"
        container.write_bytes(b"".join(self.records))
        log.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return HarvestTraces(
            harvest="h1",
            seeds=seeds,
            records=facts_of(container) if self.records else (),
            log=log if with_log else None,
            waiting=self.waiting,
        )


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)
