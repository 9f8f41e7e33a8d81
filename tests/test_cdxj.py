"""CDXJ lines: round trips, lines of other programs, invalid lines."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot import cdxj
from webdepot.errors import InputError
from webdepot.model import Capture, Location, RecordKind
from webdepot.url import key as key_of

short = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(lambda text: text != "-")
captures = st.builds(
    Capture,
    key=st.text(max_size=30).map(key_of),
    timestamp=st.integers(0, 10**14 - 1).map(lambda number: f"{number:014d}"),
    url=short.map(lambda text: "http://example.org/" + text),
    kind=st.sampled_from(
        [RecordKind.RESPONSE, RecordKind.REVISIT, RecordKind.RESOURCE, RecordKind.CONVERSION]
    ),
    status=st.integers(0, 999),
    mime=st.sampled_from(["text/html", "unk", "image/png"]),
    digest=short,
    location=st.builds(
        Location,
        container=short.map(lambda text: "c" + text),
        offset=st.integers(0, 2**60),
        length=st.integers(0, 2**60),
    ),
    redirect=short,
    refers_to_url=short,
    refers_to_timestamp=st.sampled_from(["", "20200101000000"]),
)


@given(captures)
def test_a_line_gives_its_capture_back(capture):
    line = cdxj.line(capture)
    assert line.isascii()
    assert "\n" not in line
    assert cdxj.parse(line) == capture


def test_lines_of_other_tools_are_read():
    head = 'org,example)/ 20200101000000 {"url": "http://example.org/", "mime": '
    lines = [
        "!meta {}\n",
        f'{head}"warc/revisit", "status": 200, "digest": "{"A" * 32}", "length": 10, "offset": "5", "filename": "a.warc.gz", "x": 1}}\r\n',
        "\n",
        f'{head}"-", "status": "-", "digest": "-", "length": "10", "offset": "5", "filename": "a"}}',
    ]
    first, second = cdxj.read(lines, name="x.cdxj")
    assert (first.kind, first.status, first.location) == (
        RecordKind.REVISIT,
        200,
        Location(container="a.warc.gz", offset=5, length=10),
    )
    assert (second.kind, second.status, second.mime, second.digest) == (RecordKind.RESPONSE, 0, "unk", "")


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "key 20200101000000",
        "key 20200101000000 {",
        "key 2020 {}",
        'key 20200101000000 {"url": "x"}',
        "key 20200101000000 []",
        'k 20200101000000 {"url":"x","offset":"a","length":"1","filename":"f"}',
    ],
)
def test_a_broken_line_is_named(line):
    with pytest.raises(InputError, match=r"x\.cdxj, line 2"):
        list(cdxj.read(["#", line], name="x.cdxj"))


@given(st.text())
def test_any_text_is_a_line_or_an_input_error(text):
    with contextlib.suppress(InputError):
        list(cdxj.read([text, "k 20200101000000 " + text], name="x"))
