"""Headers, bodies and titles of replayed captures, on anything a server may have sent."""

import gzip
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.access.replay import headers, title
from webdepot.access.replay.body import negotiated, part_of
from webdepot.container.http import HttpHead
from webdepot.http_headers import accepts, parse_range

ACTING = ("Refresh", "Link", "Location", "X-Accel-Redirect", "X-Robots-Tag", "Integrity-Policy", "Set-Login")
names = st.one_of(
    st.sampled_from(sorted(headers.KEPT | headers.COOKIES | headers.DROPPED)),
    st.sampled_from(ACTING),
    st.text(max_size=20),
)


def head(*pairs: tuple[str, str]) -> HttpHead:
    return HttpHead(version="HTTP/1.1", status=200, reason="OK", headers=pairs)


@given(st.lists(st.tuples(names, st.text(max_size=50)), max_size=20))
def test_nothing_that_acts_or_breaks_http_is_passed_on(archived):
    passed = headers.passed_on(archived)
    assert sum(name.lower() == "content-type" for name, _ in passed) <= 1
    for name, value in passed:
        assert name.lower() in headers.KEPT or name.startswith(headers.PREFIX)
        assert "cookie" not in name.lower() or not name.lower().endswith(tuple(headers.COOKIES))
        assert name.isascii() and not set(name) & set(" :\r\n\t")
        assert not set(value) & set("\r\n\0")


def test_names_in_any_case_are_known_and_values_kept():
    passed = headers.passed_on(
        [("SET-COOKIE", "a=b"), ("X-Total", "7"), ("content-TYPE", "text/html; charset=x")]
    )
    assert passed == [
        ("X-Archive-Orig-X-Total", "7"),
        ("content-TYPE", "text/html; charset=x"),
    ]


def test_of_several_types_one_is_sent_and_the_others_can_be_read():
    two = [("Content-Type", "application/pdf"), ("Content-Type", "text/html")]
    assert headers.passed_on(two) == [two[0], ("X-Archive-Orig-Content-Type", "text/html")]
    assert headers.passed_on([("Content-Type", "application/pdf, text/html")]) == [
        ("Content-Type", "application/pdf"),
        ("X-Archive-Orig-Content-Type", "application/pdf, text/html"),
    ]


def test_a_raw_capture_may_not_act():
    assert "sandbox" in headers.RAW_POLICY and "script" not in headers.RAW_POLICY


def test_memento_headers():
    made = dict(
        headers.memento(
            url="http://a.example/?x=<y>",
            timestamp="20120601120000",
            replay_url="http://r",
            collection="all",
            steps={"first": ("2009", "http://a.example/?x=<y>")},
        )
    )
    assert made["Memento-Datetime"] == "Fri, 01 Jun 2012 12:00:00 GMT"
    assert '<http://a.example/?x=%3Cy%3E>; rel="original"' in made["Link"]
    assert (
        '<http://r/all/2009id_/http://a.example/?x=%3Cy%3E>; rel="first memento"; datetime="Thu, 01 Jan 2009 00:00:00 GMT"'
        in made["Link"]
    )


@given(
    st.binary(max_size=3000),
    st.sampled_from(["gzip", "br", "zstd", "deflate", "x-gzip", "gzip, gzip", "nonsense", "identity", ""]),
)
def test_any_body_under_any_claimed_coding_is_given_without_failing(body, coding):
    given_head = head(("Content-Encoding", coding))
    made = negotiated(BytesIO(body), given_head, "identity")
    made.stream.read()
    assert made.coding == ""
    kept = negotiated(BytesIO(body), given_head, None)
    if kept.coding:
        assert kept.stream.read() == body


@given(st.binary(max_size=100_000))
def test_gzip_is_kept_exactly_or_undone_exactly(body):
    packed = gzip.compress(body, mtime=0)
    given_head = head(("content-encoding", " GZIP "))
    kept = negotiated(BytesIO(packed), given_head, "gzip, br")
    assert (kept.coding, kept.stream.read()) == ("gzip", packed)
    assert negotiated(BytesIO(packed), given_head, "br").stream.read() == body


@pytest.mark.parametrize(
    ("header", "is_taken"),
    [
        (None, True),
        ("", False),
        ("gzip", True),
        ("GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("*;q=0", False),
        ("*", True),
        ("br, x", False),
        ("gzip;q=x", True),
    ],
)
def test_accept_encoding(header, is_taken):
    assert accepts("gzip", header) is is_taken
    assert accepts("x-gzip", header) is is_taken


@given(st.text(max_size=30), st.integers(0, 1000))
def test_any_range_header_is_a_part_of_the_body_or_nothing(header, size_bytes):
    found = parse_range(header, size_bytes)
    assert found is None or 0 <= found[0] <= found[1] < size_bytes


@given(st.binary(min_size=1, max_size=500), st.integers(0, 600), st.integers(0, 600))
def test_a_part_is_that_part(body, first, last):
    found = parse_range(f"bytes={first}-{last}", len(body))
    if first <= last and first < len(body):
        assert found is not None
        assert part_of(BytesIO(body), *found).read() == body[first : last + 1]
    else:
        assert found is None


@pytest.mark.parametrize(
    ("page", "content_type", "expected"),
    [
        (b"<title>Plain</title>", "text/html", "Plain"),
        (b"<TITLE lang=nl>\n Two\n words </TITLE >", "text/html", "Two words"),
        (b"<title>A &amp; B &eacute;</title>", "text/html", "A & B \xe9"),
        ("<title>Grüße</title>".encode("latin-1"), "text/html; charset=ISO-8859-1", "Grüße"),
        ("<meta charset='windows-1252'><title>„Zitat“</title>".encode("cp1252"), "text/html", "„Zitat“"),
        ("<title>Grüße aus Köln</title>".encode(), "text/html", "Grüße aus Köln"),
        (b"<title>x</title>", "text/html; charset=no-such-thing", "x"),
        (b"no title", "text/html", ""),
        (b"", "", ""),
    ],
)
def test_titles(page, content_type, expected):
    assert title.of_html(BytesIO(page), content_type) == expected


@given(st.binary(max_size=2000), st.text(max_size=40))
def test_any_bytes_have_a_title_or_none(page, content_type):
    assert len(title.of_html(BytesIO(page), content_type)) <= title.LONGEST
