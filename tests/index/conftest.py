"""Containers made with warcio, the field's own writer, so that our reader and our writer do not agree by
accident.
"""

import gzip
import io

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


def _without_digests(record):
    """A record as older tools wrote it."""
    plain = io.BytesIO()
    WARCWriter(plain, gzip=False).write_record(record)
    head, _, rest = plain.getvalue().partition(b"\r\n\r\n")
    kept = [line for line in head.split(b"\r\n") if b"-Digest:" not in line]
    return gzip.compress(b"\r\n".join(kept) + b"\r\n\r\n" + rest)


class Made:
    """A container that grows record by record."""

    def __init__(self, path):
        self.path = path
        self._stream = path.open("wb")
        self._writer = WARCWriter(self._stream, gzip=True)

    def response(
        self,
        url,
        body,
        *,
        mime="text/html",
        status="200 OK",
        date="2020-01-01T00:00:00Z",
        headers=(),
        digest=True,
    ):
        http = StatusAndHeaders(
            status, [*([("Content-Type", mime)] if mime else []), *headers], protocol="HTTP/1.1"
        )
        record = self._writer.create_warc_record(
            url,
            "response",
            payload=io.BytesIO(body),
            length=len(body),
            http_headers=http,
            warc_headers_dict={"WARC-Date": date},
        )
        if digest:
            self._writer.write_record(record)
        else:
            self._stream.write(_without_digests(record))
        return self

    def revisit(
        self,
        url,
        digest,
        *,
        refers_to="",
        refers_to_date="",
        date="2020-01-01T00:00:00Z",
        mime="text/html",
        status="200 OK",
        head=True,
    ):
        http = StatusAndHeaders(status, [("Content-Type", mime)], protocol="HTTP/1.1") if head else None
        self._writer.write_record(
            self._writer.create_revisit_record(
                url,
                digest,
                refers_to or url,
                refers_to_date or date,
                http_headers=http,
                warc_headers_dict={"WARC-Date": date},
            )
        )
        return self

    def record(self, kind, url, body, *, mime="text/plain", date="2020-01-01T00:00:00Z", **fields):
        record = self._writer.create_warc_record(
            url,
            kind,
            payload=io.BytesIO(body),
            length=len(body),
            warc_content_type=mime,
            warc_headers_dict={"WARC-Date": date, **fields},
        )
        self._writer.write_record(record)
        return self

    def done(self):
        self._stream.close()
        return self.path


@pytest.fixture
def made(tmp_path):
    container = Made(tmp_path / "made.warc.gz")
    yield container
    container.done()
