"""Containers of other programs in every form, written by hand and by warcio, as libraries have them."""

import gc
import gzip
import io
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from webdepot.container.detect import Compression
from webdepot.container.grammar import ContainerFormat
from webdepot.container.reader import iter_records
from webdepot.container.record import Record
from webdepot.model import Finding

HTTP_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: sample\r\n\r\n"


@dataclass(frozen=True)
class Sample:
    """Raw records, and what must be read from them: URL and payload of each."""

    records: list[bytes]
    expected: list[tuple[str, bytes]]

    def plain(self) -> bytes:
        return b"".join(self.records)

    def record_wise(self) -> bytes:
        return b"".join(map(packed, self.records))

    def whole(self) -> bytes:
        return packed(self.plain())

    def cut_into_members(self, size: int = 700) -> bytes:
        """As bgzip does it: members that do not care for records."""
        data = self.plain()
        return b"".join(packed(data[at : at + size]) for at in range(0, len(data), size))


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def warc_record(
    url: str,
    block: bytes,
    *,
    kind: str = "response",
    version: str = "1.0",
    content_type: str = "application/http; msgtype=response",
    length: int | None = None,
    without: str = "",
    line_end: bytes = b"\r\n",
    extra: tuple[str, ...] = (),
) -> bytes:
    lines = [
        f"WARC/{version}",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{zlib.crc32(url.encode()):012d}>",
        "WARC-Date: 2019-03-04T05:06:07Z",
        f"WARC-Target-URI: {url}",
        f"Content-Type: {content_type}",
        *extra,
        f"Content-Length: {len(block) if length is None else length}",
    ]
    kept = [line for line in lines if not without or not line.startswith(without)]
    return line_end.join(line.encode() for line in [*kept, "", ""]) + block + line_end * 2


def body_of(number: int) -> bytes:
    return b"<p>Page %d</p>\n" % number + b"".join(
        b"line %d of page %d\n" % (line, number) for line in range(40)
    )


def warc_sample(count: int = 6, version: str = "1.0") -> Sample:
    info = warc_record(
        "",
        b"software: by hand\r\n",
        kind="warcinfo",
        version=version,
        content_type="application/warc-fields",
        without="WARC-Target-URI",
    )
    urls = [f"http://www.example.org/page/{number}" for number in range(count)]
    bodies = [body_of(number) for number in range(count)]
    records = [info, *(warc_record(url, HTTP_OK + body, version=version) for url, body in zip(urls, bodies))]
    return Sample(records, [("", b"software: by hand\r\n"), *zip(urls, bodies)])


def arc_sample(version: int = 1, count: int = 6) -> Sample:
    fields = b"URL IP-address Archive-date Content-type Archive-length"
    if version == 2:
        fields = b"URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length"
    about = b"%d 0 InternetArchive\n%s\n" % (version, fields)
    records = [_arc_record(version, "filedesc://sample.arc", "text/plain", about)]
    expected = [("filedesc://sample.arc", about)]
    for number in range(count):
        url, body = f"http://www.example.org/arc/{number}", body_of(number)
        records.append(_arc_record(version, url, "text/html", HTTP_OK + body))
        expected.append((url, body))
    records.append(
        _arc_record(
            version,
            "dns:www.example.org",
            "text/dns",
            b"20060102030405\nwww.example.org. 300 IN A 192.0.2.7\n",
        )
    )
    expected.append(("dns:www.example.org", b"20060102030405\nwww.example.org. 300 IN A 192.0.2.7\n"))
    return Sample(records, expected)


def _arc_record(version: int, url: str, mime: str, block: bytes) -> bytes:
    more = " 200 - - 0 sample.arc" if version == 2 else ""
    return f"{url} 192.0.2.7 20060102030405 {mime}{more} {len(block)}\n".encode() + block + b"\n"


def by_warcio(count: int = 5, *, compress: bool = True) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it does not close its temporary files
        data = _by_warcio(count, compress)
        gc.collect()
    return data


def _by_warcio(count: int, compress: bool) -> bytes:
    stream = io.BytesIO()
    writer = WARCWriter(stream, gzip=compress, warc_version="1.1")
    writer.write_record(writer.create_warcinfo_record("by-warcio.warc.gz", {"software": "warcio"}))
    for number in range(count):
        url, body = f"https://www.example.org/warcio/{number}", body_of(number)
        head = StatusAndHeaders(
            "200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(body)))], protocol="HTTP/1.1"
        )
        asked = StatusAndHeaders(
            f"GET /warcio/{number} HTTP/1.1", [("Host", "www.example.org")], is_http_request=True
        )
        response = writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=head)
        request = writer.create_warc_record(url, "request", http_headers=asked)
        writer.write_request_response_pair(request, response)
        writer.write_record(
            writer.create_warc_record(
                url, "resource", payload=io.BytesIO(body), warc_content_type="text/html"
            )
        )
        writer.write_record(
            writer.create_revisit_record(
                url, "sha1:" + "A" * 32, url, "2019-03-04T05:06:07Z", http_headers=head
            )
        )
    return stream.getvalue()


def read_all(data: bytes, findings: list[Finding] | None = None) -> list[tuple[str, bytes]]:
    """URL and payload of every record."""
    return [(record.url, record.payload().read()) for record in records_of(data, findings)]


def records_of(data: bytes, findings: list[Finding] | None = None) -> Iterator[Record]:
    """Every record; without a list for findings there must be none."""

    def note(finding: Finding) -> None:
        assert findings is not None, finding
        findings.append(finding)

    return iter_records(io.BytesIO(data), "sample.warc.gz", on_finding=note)


FORMS: dict[str, tuple[Callable[[Sample], bytes], Compression]] = {
    "plain": (Sample.plain, Compression.NONE),
    "record": (Sample.record_wise, Compression.RECORD),
    "whole": (Sample.whole, Compression.WHOLE),
    "cut": (Sample.cut_into_members, Compression.WHOLE),
}
SAMPLES = {
    "warc 0.17": (lambda: warc_sample(version="0.17"), ContainerFormat.WARC),
    "warc 0.18": (lambda: warc_sample(version="0.18"), ContainerFormat.WARC),
    "warc 1.0": (lambda: warc_sample(version="1.0"), ContainerFormat.WARC),
    "warc 1.1": (lambda: warc_sample(version="1.1"), ContainerFormat.WARC),
    "arc 1": (lambda: arc_sample(1), ContainerFormat.ARC),
    "arc 2": (lambda: arc_sample(2), ContainerFormat.ARC),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
EVERY_SAMPLE = pytest.mark.parametrize("sample", SAMPLES)


def without(sample: Sample, *skipped: int) -> list[tuple[str, bytes]]:
    return [expected for number, expected in enumerate(sample.expected) if number not in skipped]


def found_codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


FORM_PARTS: dict[str, Callable[[Sample], list[bytes]]] = {
    "plain": lambda sample: sample.records,
    "record": lambda sample: [packed(record) for record in sample.records],
}
