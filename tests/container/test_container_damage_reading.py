"""Damage of every form is located and skipped, whatever the bytes; large records are read in the same way."""

import io
import zlib

import pytest
from container_samples import (
    EVERY_FORM,
    EVERY_SAMPLE,
    FORM_PARTS,
    FORMS,
    HTTP_OK,
    SAMPLES,
    Sample,
    arc_sample,
    body_of,
    found_codes,
    packed,
    read_all,
    records_of,
    warc_record,
    warc_sample,
    without,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.container.damage import BAD_HEADER, BAD_LENGTH, GARBAGE, NOT_RANDOM, TORN
from webdepot.container.members import IN_MEMORY_BYTES
from webdepot.container.reader import iter_records, read_record
from webdepot.errors import CorruptData, InputError
from webdepot.model import Finding, Location

# --- damage ---


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
    assert [(finding.code, finding.place, finding.subject) for finding in findings] == [
        (TORN, f"byte {at}", "sample.warc.gz")
    ]
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
    # In a plain file the length of the record before does not lead to a record any more. A WARC record is
    # complete if its two empty lines follow; an ARC record ends with one line end and is in doubt.
    is_doubtful = form == "plain" and number > 0 and sample.startswith("arc")
    skipped = (number - 1,) if is_doubtful else ()
    if form == "record":
        assert read_all(data, findings) == made.expected
        assert [(finding.code, finding.place) for finding in findings] == [(GARBAGE, f"byte {at}")]
    else:
        assert read_all(data, findings) == without(made, *skipped)
        assert found_codes(findings) == [BAD_LENGTH if is_doubtful else GARBAGE]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", [-7, -1, 1, 40, 5_000_000, 9_000_000_000])
def test_a_wrong_length_costs_its_record_alone(form: str, change: int):
    made = warc_sample()
    length = len(HTTP_OK + body_of(2))
    made.records[3] = warc_record(
        "http://www.example.org/page/2", HTTP_OK + body_of(2), length=length + change
    )
    findings: list[Finding] = []
    found = read_all(FORMS[form][0](made), findings)
    if form in ("whole", "cut") and change > IN_MEMORY_BYTES:
        # A record of this stated length is not held in memory, so reading cannot go back.
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


@pytest.mark.parametrize(
    "value", ["2019-13-01T00:00:00Z", "yesterday", "", "2019-03-04T99:00:00Z", "99999999999999"]
)
def test_a_wrong_date_is_a_missing_one(value: str):
    bad = warc_record("http://e.org/", b"x").replace(b"2019-03-04T05:06:07Z", value.encode())
    findings: list[Finding] = []
    assert read_all(packed(bad) + packed(warc_record("http://e.org/2", HTTP_OK)), findings) == [
        ("http://e.org/2", b"")
    ]
    assert found_codes(findings) == [BAD_HEADER]


def test_a_damaged_beginning_does_not_hide_the_rest():
    made = warc_sample()
    for data in (
        b"\0" * 5000 + made.record_wise(),
        b"\x1f\x8b\x08\0" + made.record_wise(),
        b"some text\n" * 500 + made.plain(),
    ):
        findings: list[Finding] = []
        assert read_all(data, findings) == made.expected
        assert len(findings) == 1


def test_records_that_share_a_member_are_read_but_have_no_place():
    made = warc_sample()
    data = (
        packed(made.records[0])
        + packed(made.records[1] + made.records[2])
        + b"".join(map(packed, made.records[3:]))
    )
    findings: list[Finding] = []
    records = [
        (record.location, record.url, record.payload().read()) for record in records_of(data, findings)
    ]
    assert [(url, payload) for _, url, payload in records] == made.expected
    assert [place.length > 0 for place, _, _ in records] == [True, False, False, True, True, True, True]
    assert found_codes(findings) == [NOT_RANDOM]
    with pytest.raises(CorruptData, match="shares a gzip member"):
        read_record(io.BytesIO(data), records[1][0])


def test_empty_members_and_line_ends_between_records_are_harmless():
    made = warc_sample()
    assert (
        read_all(b"".join(packed(record) + packed(b"") + packed(b"\r\n") for record in made.records))
        == made.expected
    )
    assert read_all(b"\r\n\r\n\r\n".join(made.records)) == made.expected
    unended = [record.removesuffix(b"\r\n\r\n") for record in made.records]
    assert read_all(b"".join(map(packed, unended))) == made.expected
    assert read_all(b"\n".join(unended)) == made.expected


def test_a_broken_container_compressed_as_a_whole_gives_the_records_before():
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
    # An uncompressed record is whole without the line ends after it.
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
    st.sampled_from(
        [b"", b"WARC/1.0\r\n", b"filedesc://x 1.2.3.4 20060102030405 text/plain 3\n", b"\x1f\x8b\x08"]
    ),
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
def test_a_flipped_bit_costs_at_most_its_record_and_is_reported(number: int, data: st.DataObject):
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
    data = {
        "plain": made.plain() + hostile,
        "record": made.record_wise() + hostile,
        "whole": packed(made.plain() + hostile),
    }[form]
    findings: list[Finding] = []
    found = read_all(data, findings)
    assert found[:6] == made.expected[:6]
    assert 1 <= len(findings) <= most_findings + 2


# --- places that are wrong ---


@pytest.mark.parametrize("form", ["plain", "record"])
def test_a_wrong_place_is_corrupt_data(form: str):
    data = FORMS[form][0](warc_sample())
    place = list(records_of(data))[2].location
    for offset, length in [(1, 0), (0, -1), (0, 1), (-place.offset, 0), (10**9, 0)]:
        if form == "plain" and length:  # line ends after a record may be counted or not
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


# --- large records ---

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
    assert found == expected
