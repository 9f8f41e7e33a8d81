"""Every form gives the same records, by iteration and by location."""

import gzip
import io
from datetime import UTC, datetime

import fastwarc
import pytest
import warcio
from container_samples import (
    EVERY_FORM,
    EVERY_SAMPLE,
    FORM_PARTS,
    FORMS,
    HTTP_OK,
    SAMPLES,
    arc_sample,
    by_warcio,
    packed,
    read_all,
    records_of,
    warc_record,
    warc_sample,
)

from webdepot.container.detect import ContainerForm, detect
from webdepot.container.reader import iter_records, read_record
from webdepot.errors import CorruptData, InputError
from webdepot.model import RecordKind

# --- forms ---


@EVERY_FORM
@EVERY_SAMPLE
def test_every_form_is_read(sample: str, form: str):
    made, kind = SAMPLES[sample][0](), SAMPLES[sample][1]
    data, compression = FORMS[form][0](made), FORMS[form][1]
    assert detect(io.BytesIO(data)) == ContainerForm(kind=kind, compression=compression)
    assert read_all(data) == made.expected


@pytest.mark.parametrize("form", ["plain", "record"])
@EVERY_SAMPLE
def test_records_are_read_at_their_place(sample: str, form: str):
    made = SAMPLES[sample][0]()
    data = FORMS[form][0](made)
    places = [record.location for record in records_of(data)]
    assert [place.offset for place in places] == [
        sum(map(len, FORM_PARTS[form](made)[:number])) for number in range(len(places))
    ]
    assert places[-1].offset + places[-1].length == len(data)
    stream = io.BytesIO(data)
    read = [read_record(stream, place) for place in reversed(places)]
    assert [(record.url, record.payload().read()) for record in reversed(read)] == made.expected


def test_places_in_a_container_compressed_as_a_whole_are_refused():
    data = warc_sample().whole()
    places = [record.location for record in records_of(data)]
    assert [place.offset for place in places] == [
        sum(map(len, warc_sample().records[:number])) for number in range(len(places))
    ]
    for place in places:
        with pytest.raises(CorruptData, match="no readable record"):
            read_record(io.BytesIO(data), place)


def test_what_a_record_says():
    data = packed(
        warc_record(
            "<http://example.org/wget>",
            HTTP_OK + b"hello",
            extra=("WARC-Payload-Digest: sha1:ABC", "WARC-IP-Address: 192.0.2.1"),
        )
    )
    record = next(records_of(data))
    assert record.kind is RecordKind.RESPONSE
    assert record.url == "http://example.org/wget"
    assert record.date == datetime(2019, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert record.fields.get("warc-ip-ADDRESS") == "192.0.2.1"
    assert "WARC-Truncated" not in record.fields
    assert record.fields.get_all("WARC-Type") == ["response"]
    assert record.payload_digest == "sha1:ABC"
    assert record.size_bytes == len(HTTP_OK) + 5
    assert record.payload_bytes == 5
    assert record.head is not None and record.head.status == 200
    assert record.content_type == "text/html; charset=utf-8"
    assert record.block().read() == HTTP_OK + b"hello"
    assert record.header.startswith(b"WARC/1.0\r\n") and record.header.endswith(b"\r\n\r\n")


def test_what_an_arc_record_says():
    record = list(records_of(arc_sample(2).record_wise()))[1]
    assert record.kind is RecordKind.RESPONSE
    assert record.date == datetime(2006, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert record.fields.get("WARC-IP-Address") == "192.0.2.7"
    assert record.fields.get("ARC-Result-Code") == "200"
    assert record.fields.get("ARC-Filename") == "sample.arc"
    assert record.head is not None and record.head.status == 200
    kinds = [record.kind for record in records_of(arc_sample(1).plain())]
    assert kinds == [RecordKind.WARCINFO, *[RecordKind.RESPONSE] * 7]
    dns = list(records_of(arc_sample(1).plain()))[-1]
    assert (dns.head, dns.content_type) == (None, "text/dns")


@pytest.mark.parametrize(
    ("line", "url", "mime"),
    [
        ("http://e.org/a b 1.2.3.4 20060102030405 text/html 3", "http://e.org/a b", "text/html"),
        (
            "http://e.org/ 1.2.3.4 20060102030405 text/html; charset=x 3",
            "http://e.org/",
            "text/html; charset=x",
        ),
        ("http://e.org/ 1.2.3.4 200601020304 no-type 3", "http://e.org/", "no-type"),
        (
            "ftp://e.org/20060102030405 1.2.3.4 20060102030405 text/plain 3",
            "ftp://e.org/20060102030405",
            "text/plain",
        ),
    ],
)
def test_odd_lines_of_arc(line: str, url: str, mime: str):
    data = packed(arc_sample().records[0]) + packed(f"{line}\nabc\n".encode())
    record = list(records_of(data))[1]
    assert (record.url, record.fields.get("ARC-Content-Type"), record.size_bytes) == (url, mime, 3)


def test_headers_written_oddly():
    block = HTTP_OK + b"odd"
    lf = warc_record("http://e.org/lf", block, line_end=b"\n")
    folded = warc_record("http://e.org/fold", block).replace(
        b"WARC-Target-URI: http://e.org/fold", b"warc-target-uri:\r\n\thttp://e.org/\r\n fold"
    )
    spaced = warc_record("http://e.org/sp", block).replace(b"Content-Length: ", b"content-length :   ")
    latin = warc_record("http://e.org/l\xe9", block).replace("é".encode(), b"\xe9")
    micros = warc_record("http://e.org/us", block).replace(b"06:07Z", b"06:07.123456Z")
    offset = warc_record("http://e.org/off", block).replace(
        b"2019-03-04T05:06:07Z", b"2019-03-04T07:06:07+02:00"
    )
    digits = warc_record("http://e.org/14", block).replace(b"2019-03-04T05:06:07Z", b"20190304050607")
    data = b"".join(packed(record) for record in (lf, folded, spaced, latin, micros, offset, digits))
    records = list(records_of(data))
    urls = ["lf", " fold", "sp", "lé", "us", "off", "14"]
    assert [(record.url, record.payload().read()) for record in records] == [
        (f"http://e.org/{url}", b"odd") for url in urls
    ]
    assert [record.date.replace(microsecond=0) for record in records] == [
        datetime(2019, 3, 4, 5, 6, 7, tzinfo=UTC)
    ] * 7
    assert records[4].date.microsecond == 123456


def test_record_kinds_and_payloads():
    data = b"".join(
        (
            packed(
                warc_record(
                    "http://e.org/",
                    b"name: value\r\n",
                    kind="metadata",
                    content_type="application/warc-fields",
                )
            ),
            packed(warc_record("http://e.org/", HTTP_OK, kind="revisit")),
            packed(
                warc_record(
                    "http://e.org/",
                    b"GET / HTTP/1.1\r\nHost: e.org\r\n\r\n",
                    kind="request",
                    content_type="application/http;msgtype=request",
                )
            ),
            packed(
                warc_record(
                    "http://e.org/", b"HTTP/ is no head here", kind="resource", content_type="text/plain"
                )
            ),
            packed(warc_record("http://e.org/", b"", kind="response")),
            packed(warc_record("http://e.org/", b"x", kind="something-new", content_type="text/plain")),
            packed(warc_record("http://e.org/", HTTP_OK + b"untyped", without="Content-Type")),
            packed(
                warc_record(
                    "http://e.org/",
                    b"Content-Type: text/css\r\n\r\nno status",
                    content_type="application/http",
                )
            ),
        )
    )
    records = list(records_of(data))
    assert [record.kind.value for record in records] == [
        "metadata", "revisit", "request", "resource", "response", "unknown", "response", "response",
    ]  # fmt: skip
    payloads = [b"name: value\r\n", b"", b"", b"HTTP/ is no head here", b"", b"x", b"untyped", b"no status"]
    assert [record.payload().read() for record in records] == payloads
    statuses = [record.head.status if record.head else None for record in records]
    assert statuses == [None, 200, 0, None, None, None, 200, 0]
    assert records[7].content_type == "text/css"


def test_codings_of_a_payload():
    body = gzip.compress(b"packed and chunked")
    chunked = b"5\r\n" + body[:5] + b"\r\n" + b"%x\r\n" % (len(body) - 5) + body[5:] + b"\r\n0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\nContent-Encoding: gzip\r\n\r\n"
    data = packed(warc_record("http://e.org/", head + chunked))
    assert next(records_of(data)).payload().read() == body
    assert next(records_of(data)).content(1000).read() == b"packed and chunked"
    assert next(records_of(data)).content(6).read() == b"packed"
    assert next(records_of(data)).payload_bytes is None


# --- against the other readers ---


@pytest.mark.parametrize("compress", [True, False])
def test_reads_what_warcio_and_fastwarc_read(compress: bool):
    data = by_warcio(compress=compress)
    ours = [
        (record.url, record.kind.value, record.location.offset, record.block().read())
        for record in records_of(data)
    ]
    theirs = []
    iterator = warcio.ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    for record in iterator:
        block = record.raw_stream.read()
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        theirs.append((url, record.rec_type, iterator.get_record_offset(), block))
    assert ours == theirs
    fast = [
        (
            record.headers.get("WARC-Target-URI") or "",
            str(record.record_type),
            record.stream_pos,
            record.reader.read(),
        )
        for record in fastwarc.ArchiveIterator(io.BytesIO(data), parse_http=False)
    ]
    assert [(url, kind, block) for url, kind, _, block in ours] == [
        (url, kind, block) for url, kind, _, block in fast
    ]


@pytest.mark.parametrize("form", ["plain", "record"])
def test_arc_is_read_as_warcio_reads_it(form: str):
    data = FORMS[form][0](arc_sample(1))
    ours = [
        (
            record.url,
            record.date,
            record.fields.get("WARC-IP-Address"),
            record.head.status if record.head else None,
            record.payload().read(),
        )
        for record in records_of(data)
    ]
    theirs = []
    for record in warcio.ArchiveIterator(io.BytesIO(data)):
        date = datetime.strptime(record.rec_headers.get_header("archive-date"), "%Y%m%d%H%M%S").replace(
            tzinfo=UTC
        )
        status = int(record.http_headers.get_statuscode()) if record.http_headers else None
        theirs.append(
            (
                record.rec_headers.get_header("uri"),
                date,
                record.rec_headers.get_header("ip-address"),
                status,
                record.raw_stream.read(),
            )
        )
    assert ours[1:] == theirs[1:]
    # Of the first record warcio takes the version lines for a header.
    assert ours[0][:3] == theirs[0][:3]


def test_blocks_of_arc_2_are_those_that_warcio_reads():
    """warcio reads the ten columns of a line as if they were five, but the length, last in both, is right."""
    data = arc_sample(2).record_wise()
    theirs = [
        record.raw_stream.read() for record in warcio.ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    ]
    assert [record.block().read() for record in records_of(data)][1:] == theirs[1:]


# --- no container ---


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello world\n", "not a WARC or ARC"),
        (gzip.compress(b"hello world\n", mtime=0), "not a WARC or ARC"),
        (b"\x1f\x8b\x08", "not a WARC or ARC"),
        (b"PK\x03\x04" + bytes(100), "WACZ"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "Zstandard"),
        (b"note: this is text that begins like an address\n" * 9, "not a WARC or ARC"),
        (bytes(200_000), "not a WARC or ARC"),
    ],
)
def test_a_file_that_is_not_a_container_is_refused_with_the_reason(data: bytes, words: str):
    with pytest.raises(InputError, match=words) as caught:
        iter_records(io.BytesIO(data), "given.bin", on_finding=print)
    assert "given.bin" in str(caught.value)


def test_a_large_record_that_is_packed_small_ends_where_the_next_begins():
    large = warc_record("http://a.example/large", HTTP_OK + b"<p>endless " * 1_000_000)
    parts = [packed(large), *[packed(warc_record("http://a.example/", HTTP_OK + b"next"))] * 100]
    places = [record.location for record in records_of(b"".join(parts))]
    assert [place.length for place in places] == [len(part) for part in parts]
