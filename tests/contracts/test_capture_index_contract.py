"""The contract of `CaptureIndex`, run on every implementation: how captures are found and listed."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from capture_indexes import ENGINES, capture, empty, find_digest
from webdepot import times
from webdepot.digest import sha1
from webdepot.model import EVERYTHING, RecordKind
from webdepot.ports.captures import place_of
from webdepot.url import key as key_of


@pytest.fixture(params=ENGINES)
def index(request, tmp_path):
    with closing(empty(request.param, request, tmp_path)) as made:
        yield made


def test_a_capture_comes_back_as_it_went_in(index):
    went_in = [
        capture(),
        capture(
            "http://www.example.org/#x",
            "20200102000000",
            offset=1,
            status=301,
            redirect="https://example.org/",
            digest="",
        ),
        capture(
            timestamp="20200103000000",
            offset=2,
            kind=RecordKind.REVISIT,
            refers_to_url="http://example.org/",
            refers_to_timestamp="20200101000000",
        ),
        capture(
            "urn:isbn:1",
            offset=3,
            kind=RecordKind.RESOURCE,
            status=0,
            mime="application/pdf",
            digest="sha256:" + "0" * 64,
        ),
        capture(
            "http://b\u00fccher.example/\u00e9",
            offset=4,
            kind=RecordKind.CONVERSION,
            mime="unk",
            digest="crc32:1234",
        ),
    ]
    assert index.add("a.warc.gz", went_in, collection="c") == 5
    assert sorted(index.scan("", "\U0010ffff"), key=lambda found: found.location.offset) == went_in
    assert index.total() == 5
    assert list(index.containers()) == [("a.warc.gz", 5)]
    assert index.having(["a.warc.gz", "b.warc.gz", "a.warc.gz"]) == {"a.warc.gz"}


def test_an_empty_index_answers(index):
    key = "org,example)/"
    assert index.having(["a.warc.gz"]) == index.having([]) == frozenset()
    assert index.closest(key, "2020") is index.first(key) is index.last(key) is None
    assert index.before(key, "20200101000000") is index.after(key, "20200101000000") is None
    assert (
        list(index.versions(key))
        == list(index.scan("a", "z"))
        == list(index.newest(3))
        == list(index.containers())
        == []
    )
    assert index.count(key) == index.total() == 0
    assert find_digest(index, str(sha1(b"x")), "http://example.org/") is None
    index.remove("unknown.warc.gz")


def test_closest_prefers_the_earlier_on_a_tie(index):
    index.add(
        "a.warc.gz",
        [capture(timestamp="20200101000000"), capture(timestamp="20200101000010", offset=1)],
        collection="c",
    )
    key = "org,example)/"
    for asked, expected in [
        ("20200101000005", "20200101000000"),
        ("20200101000006", "20200101000010"),
        ("19990101000000", "20200101000000"),
        ("20990101000000", "20200101000010"),
        ("20200101000010", "20200101000010"),
        ("2020", "20200101000000"),
    ]:
        assert index.closest(key, asked).timestamp == expected


def test_before_and_after_are_strict(index):
    index.add(
        "a.warc.gz",
        [capture(timestamp=f"2020010100000{second}", offset=second) for second in (1, 3, 5)],
        collection="c",
    )
    key = "org,example)/"
    assert index.before(key, "20200101000003").timestamp == "20200101000001"
    assert index.after(key, "20200101000003").timestamp == "20200101000005"
    assert index.before(key, "20200101000001") is index.after(key, "20200101000005") is None
    assert (index.first(key).timestamp, index.last(key).timestamp) == ("20200101000001", "20200101000005")


def test_of_one_second_the_capture_written_last_is_given(index):
    redirect = capture("http://example.org/", status=301, redirect="https://example.org/")
    page = capture("https://example.org/", offset=50)
    index.add("a.warc.gz", [redirect, page], collection="c")
    key = "org,example)/"
    assert (
        index.first(key)
        == index.last(key)
        == index.closest(key, "1999")
        == index.after(key, "1999")
        == index.before(key, "2099")
        == page
    )
    assert list(index.versions(key)) == [redirect, page]


def test_very_long_addresses_are_found_and_listed(index):
    long = [f"http://example.org/{'a' * 4000}{end}" for end in ("", "x", "\u20ac" * 900)]
    urls = ["http://example.org/", f"http://example.org/{'a' * 1950}", *long, "http://example.org/b"]
    pages = [capture(url, offset=number, digest=f"own:{number}") for number, url in enumerate(urls)]
    index.add("a.warc.gz", pages, collection="c")
    for page in pages:
        assert index.closest(page.key, "2020") == index.last(page.key, collection="c") == page
        assert list(index.scan(page.key, f"{page.key}!")) == list(index.versions(page.key)) == [page]
    found = list(index.scan("org,example)/", "org,example)0"))
    assert sorted(found, key=lambda one: one.location.offset) == pages
    assert {found[0].url, found[1].url, found[-1].url} == {urls[0], urls[1], urls[-1]}
    walked, after = [], None
    while page := next(index.scan("org,", "org-", after=after, limit=1), None):
        walked.append(page)
        after = place_of(page)
    assert walked == found
    assert (
        list(index.scan(key_of(long[1]), "org,example)/b"))
        == [one for one in found if one.key >= key_of(long[1])][:-1]
    )


def test_closed_periods_are_as_if_there_were_nothing(index):
    made = [
        capture(timestamp=f"20{year}0101000000", offset=year, body=b"%d" % (year // 2))
        for year in range(10, 20)
    ]
    index.add("a.warc.gz", made, collection="c")
    loop = capture(
        timestamp="20140601000000",
        offset=99,
        container="b.warc.gz",
        status=301,
        redirect="http://example.org/",
    )
    index.add("b.warc.gz", [loop], collection="c")
    key = made[0].key
    spans = (("20110101000000", "20129999999999"), ("20140101000000", "20150101000000"))
    seen = [made[1], made[2], made[4], loop, made[5]]
    for collection in (EVERYTHING, "c"):
        asked = {"spans": spans, "collection": collection}
        assert list(index.versions(key, **asked)) == seen
        assert list(index.versions(key, newest_first=True, **asked)) == seen[::-1]
        assert list(index.scan("org,", "org-", **asked)) == seen
        assert list(index.scan(key, "org,example)0", after=place_of(made[2]), **asked)) == seen[2:]
        assert list(index.versions(key, after=place_of(made[4]), newest_first=True, **asked)) == [
            made[2],
            made[1],
        ]
        assert (index.count(key, **asked), index.count_keys("org,", "org-", **asked)) == (5, 5)
        assert (index.first(key, **asked), index.last(key, **asked)) == (made[1], made[5])
        assert index.closest(key, "20131231000000", **asked) == made[4]
        assert index.closest(key, "20121201000000", **asked) == made[2]
        assert index.before(key, "20140101000000", **asked) == made[2]
        assert index.after(key, "20120101000000", **asked) == made[4]
        tallies = index.tally(key, digits=4, changes=True, loops=True, **asked)
        assert [(one.label, one.count, one.changed) for one in tallies] == [
            ("2011", 1, True),
            ("2012", 1, True),
            ("2014", 2, True),
            ("2015", 1, True),
        ]
        assert [(one.label, one.count) for one in index.tally(key, digits=4, **asked)] == [
            ("2011", 1),
            ("2012", 1),
            ("2014", 1),
            ("2015", 1),
        ]
        assert index.closest(key, "2014", collection=collection, spans=()) is None
        assert index.tally(key, digits=4, collection=collection, spans=()) in ((), [])
        assert list(index.scan("org,", "org-", collection=collection, spans=())) == []


def test_duplicates_are_found_by_digest_first_of_the_same_address(index):
    index.add(
        "a.warc.gz",
        [
            capture("http://a.org/", body=b"same"),
            capture("http://b.org/", "20200105000000", offset=1, body=b"same"),
            capture("http://b.org/", "20200103000000", offset=2, body=b"same"),
            capture("http://b.org/", "20200102000000", offset=3, body=b"same", kind=RecordKind.REVISIT),
            capture("http://c.org/", offset=4, body=b"other", kind=RecordKind.REVISIT),
        ],
        collection="c",
    )
    digest = str(sha1(b"same"))
    assert find_digest(index, digest, "http://b.org/").timestamp == "20200103000000"
    assert (
        find_digest(index, f"sha1:{sha1(b'same').value.hex()}", "http://www.b.org").timestamp
        == "20200103000000"
    )
    assert find_digest(index, digest, "http://z.org/").digest == digest
    assert find_digest(index, str(sha1(b"other")), "http://c.org/") is None
    assert find_digest(index, "no digest", "http://c.org/") is None
    assert find_digest(index, "", "http://c.org/") is None


def test_several_payloads_are_looked_up_at_once_each_with_its_answer(index):
    captures = [capture(f"http://{number}.org/", offset=number, body=b"%d" % number) for number in range(20)]
    index.add("a.warc.gz", captures, collection="c")
    asked = [(one.digest, one.url) for one in captures]
    wanted = [
        *asked[:10],
        ("no digest", "http://a.org/"),
        (str(sha1(b"unknown")), "http://1.org/"),
        *asked[10:],
    ]
    assert list(index.find_digests(wanted)) == [*captures[:10], None, None, *captures[10:]]
    assert list(index.find_digests([])) == []


def test_newest_shows_each_html_page_once(index):
    index.add(
        "a.warc.gz",
        [
            capture("http://a.org/", "20200101000000"),
            capture("http://a.org/", "20200105000000", offset=1),
            capture("http://b.org/", "20200104000000", offset=2, mime="application/xhtml+xml"),
            capture("http://c.org/", "20200106000000", offset=3, status=404),
            capture("http://d.org/", "20200107000000", offset=4, mime="image/png"),
            capture("http://e.org/", "20200108000000", offset=5, kind=RecordKind.REVISIT),
            capture("http://f.org/", "20200102000000", offset=6),
        ],
        collection="c",
    )
    assert [found.url for found in index.newest(10)] == ["http://a.org/", "http://b.org/", "http://f.org/"]
    assert [found.timestamp for found in index.newest(2)] == ["20200105000000", "20200104000000"]


def test_many_captures_of_one_key_stream_in_order(index):
    started = datetime(2020, 1, 1, tzinfo=UTC)
    made = [
        capture(timestamp=times.to_timestamp(started + timedelta(seconds=at)), offset=at)
        for at in range(2500)
    ]
    index.add("a.warc.gz", reversed(made), collection="c")
    index.add(
        "b.warc.gz",
        [
            capture("http://example.org/a", container="b.warc.gz"),
            capture("http://aaa.org/", container="b.warc.gz", offset=1),
        ],
        collection="d",
    )
    key = "org,example)/"
    assert list(index.versions(key)) == made
    assert list(index.versions(key, collection="c", limit=1200)) == made[:1200]
    assert list(index.versions(key, collection="d")) == []
    found = list(index.scan("org,", "org-"))
    assert [one.url for one in found[:1] + found[-1:]] == ["http://aaa.org/", "http://example.org/a"]
    assert found[1:-1] == made
    assert list(index.scan(key, "org,example)0", limit=777)) == made[:777]
    assert list(index.scan("org,", "org-", collection="d")) == [found[0], found[-1]]
    assert index.count(key) == index.count(key, collection="c") == 2500
    assert index.count(key, collection="d") == 0
