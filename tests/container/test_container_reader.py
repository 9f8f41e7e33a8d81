"""Every form is read alike, by iteration and by place; damage is located and passed over."""

import gzip
import io
import zlib
from collections.abc import Callable
from datetime import UTC, datetime

import fastwarc
import pytest
import warcio
from container_samples import (
    HTTP_OK,
    Sample,
    arc_sample,
    body_of,
    by_warcio,
    packed,
    read_all,
    records_of,
    warc_record,
    warc_sample,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.container.damage import BAD_HEADER, BAD_LENGTH, GARBAGE, NOT_RANDOM, TORN
from webdepot.container.members import IN_MEMORY_BYTES
from webdepot.container.reader import Compression, ContainerForm, Kind, detect, iter_records, read_record
from webdepot.errors import CorruptData, InputError
from webdepot.model import Finding, Location, RecordKind

FORMS: dict[str, tuple[Callable[[Sample], bytes], Compression]] = {
    "plain": (Sample.plain, Compression.NONE),
    "record": (Sample.record_wise, Compression.RECORD),
    "whole": (Sample.whole, Compression.WHOLE),
    "cut": (Sample.cut_into_members, Compression.WHOLE),
}
SAMPLES = {
    "warc 0.17": (lambda: warc_sample(version="0.17"), Kind.WARC),
    "warc 0.18": (lambda: warc_sample(version="0.18"), Kind.WARC),
    "warc 1.0": (lambda: warc_sample(version="1.0"), Kind.WARC),
    "warc 1.1": (lambda: warc_sample(version="1.1"), Kind.WARC),
    "arc 1": (lambda: arc_sample(1), Kind.ARC),
    "arc 2": (lambda: arc_sample(2), Kind.ARC),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
EVERY_SAMPLE = pytest.mark.parametrize("sample", SAMPLES)


def without(sample: Sample, *skipped: int) -> list[tuple[str, bytes]]:
    return [expected for number, expected in enumerate(sample.expected) if number not in skipped]


def found_codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


# --- forms -----------------------------------------------------------------------------------------------------------------


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
    assert [place.offset for place in places] == [sum(map(len, FORM_PARTS[form](made)[:number])) for number in range(len(places))]
    assert places[-1].offset + places[-1].length == len(data)
    stream = io.BytesIO(data)
    read = [read_record(stream, place) for place in reversed(places)]
    assert [(record.url, record.payload().read()) for record in reversed(read)] == made.expected


FORM_PARTS: dict[str, Callable[[Sample], list[bytes]]] = {
    "plain": lambda sample: sample.records,
    "record": lambda sample: [packed(record) for record in sample.records],
}


def test_places_in_a_container_compressed_as_a_whole_are_refused():
    data = warc_sample().whole()
    places = [record.location for record in records_of(data)]
    assert [place.offset for place in places] == [sum(map(len, warc_sample().records[:number])) for number in range(len(places))]
    for place in places:
        with pytest.raises(CorruptData, match="no readable record"):
            read_record(io.BytesIO(data), place)


def test_what_a_record_says():
    data = packed(
        warc_record("<http://example.org/wget>", HTTP_OK + b"hello", extra=("WARC-Payload-Digest: sha1:ABC", "WARC-IP-Address: 192.0.2.1"))
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
        ("http://e.org/ 1.2.3.4 20060102030405 text/html; charset=x 3", "http://e.org/", "text/html; charset=x"),
        ("http://e.org/ 1.2.3.4 200601020304 no-type 3", "http://e.org/", "no-type"),
        ("ftp://e.org/20060102030405 1.2.3.4 20060102030405 text/plain 3", "ftp://e.org/20060102030405", "text/plain"),
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
    offset = warc_record("http://e.org/off", block).replace(b"2019-03-04T05:06:07Z", b"2019-03-04T07:06:07+02:00")
    digits = warc_record("http://e.org/14", block).replace(b"2019-03-04T05:06:07Z", b"20190304050607")
    data = b"".join(packed(record) for record in (lf, folded, spaced, latin, micros, offset, digits))
    records = list(records_of(data))
    urls = ["lf", " fold", "sp", "lé", "us", "off", "14"]
    assert [(record.url, record.payload().read()) for record in records] == [(f"http://e.org/{url}", b"odd") for url in urls]
    assert [record.date.replace(microsecond=0) for record in records] == [datetime(2019, 3, 4, 5, 6, 7, tzinfo=UTC)] * 7
    assert records[4].date.microsecond == 123456


def test_record_kinds_and_payloads():
    data = b"".join(
        (
            packed(warc_record("http://e.org/", b"name: value\r\n", kind="metadata", content_type="application/warc-fields")),
            packed(warc_record("http://e.org/", HTTP_OK, kind="revisit")),
            packed(
                warc_record(
                    "http://e.org/",
                    b"GET / HTTP/1.1\r\nHost: e.org\r\n\r\n",
                    kind="request",
                    content_type="application/http;msgtype=request",
                )
            ),
            packed(warc_record("http://e.org/", b"HTTP/ is no head here", kind="resource", content_type="text/plain")),
            packed(warc_record("http://e.org/", b"", kind="response")),
            packed(warc_record("http://e.org/", b"x", kind="something-new", content_type="text/plain")),
            packed(warc_record("http://e.org/", HTTP_OK + b"untyped", without="Content-Type")),
            packed(warc_record("http://e.org/", b"Content-Type: text/css\r\n\r\nno status", content_type="application/http")),
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


# --- against the other readers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [True, False])
def test_reads_what_warcio_and_fastwarc_read(compress: bool):
    data = by_warcio(compress=compress)
    ours = [(record.url, record.kind.value, record.location.offset, record.block().read()) for record in records_of(data)]
    theirs = []
    iterator = warcio.ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    for record in iterator:
        block = record.raw_stream.read()
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        theirs.append((url, record.rec_type, iterator.get_record_offset(), block))
    assert ours == theirs
    fast = [
        (record.headers.get("WARC-Target-URI") or "", str(record.record_type), record.stream_pos, record.reader.read())
        for record in fastwarc.ArchiveIterator(io.BytesIO(data), parse_http=False)
    ]
    assert [(url, kind, block) for url, kind, _, block in ours] == [(url, kind, block) for url, kind, _, block in fast]


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
        date = datetime.strptime(record.rec_headers.get_header("archive-date"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        status = int(record.http_headers.get_statuscode()) if record.http_headers else None
        theirs.append(
            (record.rec_headers.get_header("uri"), date, record.rec_headers.get_header("ip-address"), status, record.raw_stream.read())
        )
    assert ours[1:] == theirs[1:]
    # Of the first record warcio takes the version lines for a header.
    assert ours[0][:3] == theirs[0][:3]


def test_blocks_of_arc_2_are_those_that_warcio_reads():
    """warcio reads the ten words of a line as if they were five, but the length, last in both, is right."""
    data = arc_sample(2).record_wise()
    theirs = [record.raw_stream.read() for record in warcio.ArchiveIterator(io.BytesIO(data), no_record_parse=True)]
    assert [record.block().read() for record in records_of(data)][1:] == theirs[1:]


# --- no container ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello world\n", "no WARC or ARC"),
        (gzip.compress(b"hello world\n", mtime=0), "no WARC or ARC"),
        (b"\x1f\x8b\x08", "no WARC or ARC"),
        (b"PK\x03\x04" + bytes(100), "WACZ"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "zstd"),
        (b"note: this is text that begins like an address\n" * 9, "no WARC or ARC"),
        (bytes(200_000), "no WARC or ARC"),
    ],
)
def test_what_is_no_container_is_said_so(data: bytes, words: str):
    with pytest.raises(InputError, match=words) as caught:
        iter_records(io.BytesIO(data), "given.bin", on_finding=print)
    assert "given.bin" in str(caught.value)


# --- damage ----------------------------------------------------------------------------------------------------------------


@EVERY_SAMPLE
@pytest.mark.parametrize("number", [0, 2, 6])
@pytest.mark.parametrize("how", ["cut short", "flipped", "bad checksum"])
def test_a_torn_member_is_skipped(sample: str, number: int, how: str):
    made = SAMPLES[sample][0]()
    members = [packed(record) for record in made.records]
    torn = bytearray(members[number])
    if how == "cut short":
        torn = torn[: len(torn) // 2]
    else:
        torn[len(torn) // 2 if how == "flipped" else -6] ^= 0x41
    members[number] = bytes(torn)
    findings: list[Finding] = []
    assert read_all(b"".join(members), findings) == without(made, number)
    at = sum(map(len, members[:number]))
    assert [(finding.code, finding.place, finding.subject) for finding in findings] == [(TORN, f"byte {at}", "sample.warc.gz")]
    assert findings[0].action


@EVERY_SAMPLE
@pytest.mark.parametrize("form", ["plain", "record"])
@pytest.mark.parametrize("number", [0, 3, 7])
def test_garbage_between_records_is_passed_over(sample: str, form: str, number: int):
    made = SAMPLES[sample][0]()
    parts = FORM_PARTS[form](made)
    at = sum(map(len, parts[:number]))
    data = b"".join((*parts[:number], b"garbage \x1f\x8b\x08\x00 and more\n", *parts[number:]))
    findings: list[Finding] = []
    # In a plain file the length of the record before does not lead to a record any more, so that one is in doubt.
    skipped = (number - 1,) if form == "plain" and number else ()
    if form == "record":
        assert read_all(data, findings) == made.expected
        assert [(finding.code, finding.place) for finding in findings] == [(GARBAGE, f"byte {at}")]
    else:
        assert read_all(data, findings) == without(made, *skipped)
        assert found_codes(findings) == [GARBAGE if number == 0 else BAD_LENGTH]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", [-7, -1, 1, 40, 5_000_000, 9_000_000_000])
def test_a_wrong_length_costs_its_record_alone(form: str, change: int):
    made = warc_sample()
    length = len(HTTP_OK + body_of(2))
    made.records[3] = warc_record("http://www.example.org/page/2", HTTP_OK + body_of(2), length=length + change)
    findings: list[Finding] = []
    found = read_all(FORMS[form][0](made), findings)
    if form in ("whole", "cut") and change > IN_MEMORY_BYTES:
        # What is said to be so long is not held, so there is no way back behind it.
        assert found[:3] == made.expected[:3]
    else:
        assert found == without(made, 3)
    assert BAD_LENGTH in found_codes(findings)


@EVERY_FORM
@pytest.mark.parametrize("name", ["WARC-Type", "WARC-Date", "WARC-Target-URI", "Content-Length"])
def test_a_missing_field_costs_its_record_alone(form: str, name: str):
    made = warc_sample()
    made.records[3] = warc_record("http://www.example.org/page/2", HTTP_OK + body_of(2), without=name)
    findings: list[Finding] = []
    assert read_all(FORMS[form][0](made), findings) == without(made, 3)
    assert len(findings) == 1
    assert name in findings[0].message
    if name != "Content-Length":
        assert found_codes(findings) == [BAD_HEADER]


@pytest.mark.parametrize("value", ["2019-13-01T00:00:00Z", "yesterday", "", "2019-03-04T99:00:00Z", "99999999999999"])
def test_a_wrong_date_is_a_missing_one(value: str):
    bad = warc_record("http://e.org/", b"x").replace(b"2019-03-04T05:06:07Z", value.encode())
    findings: list[Finding] = []
    assert read_all(packed(bad) + packed(warc_record("http://e.org/2", HTTP_OK)), findings) == [("http://e.org/2", b"")]
    assert found_codes(findings) == [BAD_HEADER]


def test_a_damaged_beginning_does_not_hide_the_rest():
    made = warc_sample()
    for data in (b"\0" * 5000 + made.record_wise(), b"\x1f\x8b\x08\0" + made.record_wise(), b"some text\n" * 500 + made.plain()):
        findings: list[Finding] = []
        assert read_all(data, findings) == made.expected
        assert len(findings) == 1


def test_records_that_share_a_member_are_read_but_have_no_place():
    made = warc_sample()
    data = packed(made.records[0]) + packed(made.records[1] + made.records[2]) + b"".join(map(packed, made.records[3:]))
    findings: list[Finding] = []
    records = [(record.location, record.url, record.payload().read()) for record in records_of(data, findings)]
    assert [(url, payload) for _, url, payload in records] == made.expected
    assert [place.length > 0 for place, _, _ in records] == [True, False, False, True, True, True, True]
    assert found_codes(findings) == [NOT_RANDOM]
    with pytest.raises(CorruptData, match="shares a gzip member"):
        read_record(io.BytesIO(data), records[1][0])


def test_empty_members_and_line_ends_between_records_are_harmless():
    made = warc_sample()
    assert read_all(b"".join(packed(record) + packed(b"") + packed(b"\r\n") for record in made.records)) == made.expected
    assert read_all(b"\r\n\r\n\r\n".join(made.records)) == made.expected
    unended = [record.removesuffix(b"\r\n\r\n") for record in made.records]
    assert read_all(b"".join(map(packed, unended))) == made.expected
    assert read_all(b"\n".join(unended)) == made.expected


def test_a_broken_container_compressed_as_a_whole_gives_what_stands_before():
    made = warc_sample(40)
    data = bytearray(made.whole())
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    findings: list[Finding] = []
    found = read_all(bytes(data), findings)
    assert 1 < len(found) < len(made.expected)
    assert found == made.expected[: len(found)]
    assert findings
    findings.clear()
    assert read_all(bytes(data) + warc_sample().whole(), findings) == found + warc_sample().expected


@pytest.mark.parametrize("sample", ["warc 1.1", "arc 1"])
@pytest.mark.parametrize("form", ["plain", "record"])
def test_cut_at_every_byte_all_records_before_are_read(sample: str, form: str):
    made = warc_sample(2) if sample.startswith("warc") else arc_sample(1, count=1)
    data = FORMS[form][0](made)
    ends = [record.location.offset + record.location.length for record in records_of(data)]
    # A plain record is whole without the line ends behind it.
    slack = (4 if sample.startswith("warc") else 1) if form == "plain" else 0
    for size in range(ends[0], len(data)):
        findings: list[Finding] = []
        found = read_all(data[:size], findings)
        whole = sum(end - slack <= size for end in ends)
        assert found == made.expected[:whole], size
        is_clean = size in ends or any(end - slack <= size < end for end in ends)
        assert bool(findings) is not is_clean, size


def read_hard(data: bytes) -> list[Finding]:
    """Read everything that can be read, by iteration and by place."""
    findings: list[Finding] = []
    stream = io.BytesIO(data)
    places = []
    try:
        for record in iter_records(stream, "hard", on_finding=findings.append):
            payload = record.content(1 << 20).read()
            places.append((record.location, record.url, payload))
    except InputError:
        return findings
    for place, url, payload in places:
        try:
            again = read_record(stream, place)
        except CorruptData:
            continue
        if place.length:
            assert again.url == url or payload is not None
    return findings


@given(
    st.binary(max_size=2000),
    st.sampled_from([b"", b"WARC/1.0\r\n", b"filedesc://x 1.2.3.4 20060102030405 text/plain 3\n", b"\x1f\x8b\x08"]),
)
def test_any_bytes_are_read_without_a_crash(data: bytes, begin: bytes):
    read_hard(begin + data)
    read_hard(packed(begin + data))


@settings(max_examples=150)
@given(st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(SAMPLES)), st.data())
def test_changed_bytes_are_read_without_a_crash(form: str, sample: str, data: st.DataObject):
    content = bytearray(FORMS[form][0](SAMPLES[sample][0]()))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                content[at] = data.draw(st.integers(0, 255))
            case 1:
                del content[at : at + data.draw(st.integers(1, 50))]
            case _:
                content[at:at] = data.draw(st.binary(max_size=20))
        if not content:
            return
    read_hard(bytes(content))


@given(st.integers(0, 6), st.data())
def test_a_flipped_bit_costs_at_most_its_record_and_is_told(number: int, data: st.DataObject):
    made = warc_sample()
    members = [packed(record) for record in made.records]
    torn = bytearray(members[number])
    at = data.draw(st.integers(0, len(torn) - 1))
    torn[at] ^= 1 << data.draw(st.integers(0, 7))
    members[number] = bytes(torn)
    findings: list[Finding] = []
    found = read_all(b"".join(members), findings)
    # Some bits say nothing about the content: time and system in the header, padding, the size at the end.
    if found != made.expected:
        assert found == without(made, number)
        assert len(findings) == 1


@pytest.mark.parametrize(
    ("hostile", "most_findings"),
    [
        (b"WARC/1.0\r\n" * 20_000, 1),
        (b"WARC/1.0\r\nContent-Length: 4000000\r\n\r\n" * 2_000, 2_000),
        (b"WARC/1.0\r\nContent-Length: 40000000000\r\n\r\n" * 2_000, 2_000),
        ((b"WARC/1.0\r\n" + b"A: b\r\n" * 2_000) * 20, 1),
        (b"\x1f\x8b\x08\x00" * 20_000, 1),
        (b"http://e.org/ " + b"1 " * 200_000, 1),
    ],
)
@pytest.mark.parametrize("form", ["plain", "record", "whole"])
def test_hostile_bytes_cost_time_in_proportion_only(form: str, hostile: bytes, most_findings: int):
    """With anything quadratic these would take minutes."""
    made = warc_sample()
    data = {"plain": made.plain() + hostile, "record": made.record_wise() + hostile, "whole": packed(made.plain() + hostile)}[form]
    findings: list[Finding] = []
    found = read_all(data, findings)
    assert found[:6] == made.expected[:6]
    assert 1 <= len(findings) <= most_findings + 2


# --- places that are wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["plain", "record"])
def test_a_wrong_place_is_corrupt_data(form: str):
    data = FORMS[form][0](warc_sample())
    place = list(records_of(data))[2].location
    for offset, length in [(1, 0), (0, -1), (0, 1), (-place.offset, 0), (10**9, 0)]:
        if form == "plain" and length:  # line ends behind a record may be counted or not
            continue
        wrong = Location(container="c.warc.gz", offset=place.offset + offset, length=place.length + length)
        with pytest.raises(CorruptData, match=r"c\.warc\.gz"):
            read_record(io.BytesIO(data), wrong)


def test_a_torn_record_is_corrupt_data():
    data = bytearray(warc_sample().record_wise())
    place = list(records_of(bytes(data)))[2].location
    data[place.offset + place.length // 2] ^= 0xFF
    with pytest.raises(CorruptData, match="damaged"):
        read_record(io.BytesIO(bytes(data)), place)


# --- large records ---------------------------------------------------------------------------------------------------------

LARGE = b"".join(b"%d;" % (number * 7919) for number in range(700_000))


def large_sample() -> Sample:
    made = warc_sample(3)
    made.records.insert(2, warc_record("http://www.example.org/large", HTTP_OK + LARGE))
    made.expected.insert(2, ("http://www.example.org/large", LARGE))
    return made


def fast_packed(data: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("form", ["plain", "record", "whole"])
def test_large_records(form: str):
    assert len(LARGE) > IN_MEMORY_BYTES
    made = large_sample()
    data = {
        "plain": made.plain,
        "record": lambda: b"".join(map(fast_packed, made.records)),
        "whole": lambda: fast_packed(made.plain()),
    }[form]()
    assert read_all(data) == made.expected
    # Passed over unread, and read in part.
    assert [record.url for record in records_of(data)] == [url for url, _ in made.expected]
    for record in records_of(data):
        if record.size_bytes > IN_MEMORY_BYTES:
            assert record.head is not None and record.head.status == 200
            assert record.payload_bytes == len(LARGE)
            assert record.payload().read(100) == LARGE[:100]
            place = record.location
    if form != "whole":
        assert read_record(io.BytesIO(data), place).payload().read() == LARGE


@pytest.mark.parametrize("form", ["plain", "record", "whole"])
@pytest.mark.parametrize("change", ["cut", "too short", "too long"])
def test_large_records_that_are_damaged(form: str, change: str):
    made = large_sample()
    if change != "cut":
        length = len(HTTP_OK + LARGE) + (-10 if change == "too short" else 10)
        made.records[2] = warc_record("http://www.example.org/large", HTTP_OK + LARGE, length=length)
    parts = made.records if form == "plain" else [fast_packed(record) for record in made.records]
    data = fast_packed(made.plain()) if form == "whole" else b"".join(parts)
    if change == "cut":
        data = data[: len(data) // 2]
        made.expected[3:] = []
    findings: list[Finding] = []
    found = [url for url, _ in read_all(data, findings)]
    expected = [url for number, (url, _) in enumerate(made.expected) if number != 2]
    assert findings
    if form == "whole":
        assert [url for url in found if url != "http://www.example.org/large"] in (expected, expected[:2], expected[:2] + expected[3:])
    else:
        assert found == expected
