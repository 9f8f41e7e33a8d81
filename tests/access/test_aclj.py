"""Access rules of pywb: each line means here what it means there, or is refused with its reason."""

import contextlib
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.access import aclj
from webdepot.access.policy import AccessPoint, Reader, RuleAnswer, allows
from webdepot.errors import InputError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAFF = Reader(access_point=AccessPoint.STAFF)
FILE = b"""\
org,example)/members/open - {"access": "allow", "url": "http://example.org/members/open"}
org,example)/members - {"access": "block", "user": "", "url": "http://example.org/members"}
org,example)/members - {"access": "allow", "user": "librarians"}
org,example)/page### - {"access": "exclude"}

org,example,shop) - {"access": "block", "before": "20200101"}
org,example,news) - {"access": "block", "newer": {"months": 6, "days": 1}}
"""


def _rules(raw: bytes = FILE):
    read = aclj.read(raw, {"librarians": AccessPoint.STAFF}, now=NOW)
    assert not read.bad
    return read.rules


@pytest.mark.parametrize(
    ("key", "timestamp", "reader", "reason"),
    [
        ("org,example)/", "20200101000000", Reader(), "No access rule covers it."),
        ("org,example)/members/x", "20200101000000", Reader(), "Access to this page is closed."),
        ("org,example)/members/x", "20200101000000", STAFF, None),
        ("org,example)/members/open/a", "20200101000000", Reader(), None),
        ("org,example)/page", "20200101000000", Reader(), ""),
        ("org,example)/page/below", "20200101000000", Reader(), "No access rule covers it."),
        ("org,example,shop)/", "20191231235959", Reader(), "Access to this page is closed."),
        ("org,example,shop)/", "20200101000000", Reader(), "No access rule covers it."),
        ("org,example,news)/", "20250901000000", Reader(), "Access to this page is closed."),
        ("org,example,news)/", "20250601000000", Reader(), "No access rule covers it."),
    ],
)
def test_a_line_decides_as_in_pywb(key: str, timestamp: str, reader: Reader, reason: str | None):
    verdict = allows(key, timestamp, _rules(), reader, date(2026, 1, 1))
    assert verdict.reason == (reason or "") and bool(verdict) is (
        reason in (None, "No access rule covers it.")
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'*, - {"access": "block"}', "applies to everything"),
        (b'org,example)/ - {"access": "forbid"}', "'forbid' is not one of"),
        (b'org,example)/ - {"access": "block", "user": "guests"}', "--user guests=staff"),
        (b'org,example)/ - {"access": "block", "older": {"years": 1}}', "`older` is not supported"),
        (b'org,example)/ - {"access": "block", "newer": {"eons": 1}}', "years, months, weeks or days"),
        (b'org,example)/ - {"access": "block", "after": "soon"}', "not a timestamp"),
        (b'org,example)/ - {"access": "block", "times": 3}', "'times' is not supported"),
        (b"http://example.org/", "not a line of an .aclj file"),
        (b'example - {"access": "block"}', "not a SURT key"),
        (b"org,example)/ - " + b"[" * 50_000, "not a line of an .aclj file"),
        (b'org,example)/ - {"access": "' + b"x" * 70_000 + b'"}', "too long"),
    ],
)
def test_what_cannot_be_expressed_is_named_with_its_line(line: bytes, problem: str):
    read = aclj.read(b"\n" + line, {}, now=NOW)
    assert not read.rules and read.bad[0][0] == 2 and problem in read.bad[0][1]


def test_an_empty_and_a_huge_file_are_refused():
    with pytest.raises(InputError, match="no access rule"):
        aclj.read(b"\n\n", {}, now=NOW)
    with pytest.raises(InputError, match="more than 100,000 lines"):
        aclj.read(b"\n" * 100_001, {}, now=NOW)


def test_an_embargo_never_opens_earlier_than_in_pywb():
    closing, opening = _rules(
        b'org,a) - {"access": "block", "newer": {"years": 1}}\norg,b) - {"access": "allow", "newer": {"years": 1}}'
    )
    assert (closing.embargo_days, opening.embargo_days, opening.answer) == (366, 365, RuleAnswer.SHOW)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused(raw: bytes):
    with contextlib.suppress(InputError):
        aclj.read(raw, {}, now=NOW)
