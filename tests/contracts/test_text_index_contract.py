"""The contract of `TextIndex`, run on every implementation. A model in plain Python says what is right."""

import threading
from datetime import UTC, datetime
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdepot import times
from webdepot.index.fulltext import TantivyTextIndex
from webdepot.index.fulltext_sqlite import SqliteTextIndex
from webdepot.model import EVERYTHING, Capture, Location, RecordKind
from webdepot.ports import Closed, Facet, PageText, Part, Sort, TextQuery
from webdepot.times import Period, from_timestamp, period_of
from webdepot.url import key as key_of

MAKERS = {"tantivy": lambda folder: TantivyTextIndex(folder, memory_bytes=16 << 20), "sqlite": SqliteTextIndex}


@pytest.fixture(params=sorted(MAKERS))
def index(request, tmp_path):
    made = MAKERS[request.param](tmp_path / "text")
    yield made
    made.close()


def page(url="http://example.org/", timestamp="20200101000000", text="some words", **changed):
    values = {
        "key": key_of(url),
        "url": url,
        "timestamp": timestamp,
        "mime": "text/html",
        "size_bytes": 100,
        "collection": "c",
        "title": "",
        "headings": "",
        "text": text,
        "language": "",
        "digest": f"digest of {text}",
    }
    return PageText(**{**values, **changed})


def urls(index, *words, **asked):
    return [hit.url for hit in index.find(TextQuery(words=words, limit=100, **asked)).hits]


# --- words ------------------------------------------------------------------------------------------------------------------


def test_an_empty_index_answers(index):
    found = index.find(TextQuery(words=("word",)))
    assert (found.pages, found.exact, list(found.hits), dict(found.years)) == (0, True, [], {})
    assert index.containers() == frozenset()
    assert index.total() == 0


def test_a_hit_tells_what_it_found(index):
    index.add(
        "a",
        [page("http://www.example.org/Path", "20190203040506", "The quick brown fox jumps", title="A fox", language="en", size_bytes=77)],
    )
    found = index.find(TextQuery(words=("fox",)))
    (hit,) = found.hits
    assert (found.pages, found.exact, dict(found.years)) == (1, True, {2019: 1})
    assert (hit.key, hit.url, hit.timestamp) == ("org,example)/path", "http://www.example.org/Path", "20190203040506")
    assert (hit.title, hit.mime, hit.size_bytes, hit.language, hit.versions) == ("A fox", "text/html", 77, "en", 1)
    assert hit.snippet == "The quick brown fox jumps"
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["fox"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"words": ("apple",)}, {"1", "2", "4"}),
        ({"words": ("apple", "pear")}, {"1", "2"}),
        ({"words": ("APPLE", "Péar")}, {"1", "2"}),
        ({"phrases": ("apple pear",)}, {"1"}),
        ({"phrases": ("pear  apple!",)}, {"2"}),
        ({"phrases": ("apple",)}, {"1", "2", "4"}),
        ({"words": ("apple",), "excluded": ("pear",)}, {"4"}),
        ({"words": ("apple",), "excluded": ("pear apple",)}, {"1", "4"}),
        ({"alternatives": (("pear", "plum"),)}, {"1", "2", "3"}),
        ({"alternatives": (("pear", "plum"), ("apple", "nothing"))}, {"1", "2"}),
        ({"alternatives": (("pear apple", "plum"),)}, {"2", "3"}),
        ({"words": ("apple-pear",)}, {"1"}),
        ({"words": ("uber",)}, {"5"}),
        ({"words": ("strasse",)}, {"5"}),
        ({"words": ("ÜBER",)}, {"5"}),
        ({"words": ("nothing",)}, set()),
        ({"words": ("app",)}, set()),
        ({}, {"1", "2", "3", "4", "5"}),
        ({"excluded": ("apple",)}, {"3", "5"}),
    ],
)
def test_words_phrases_alternatives_and_exclusions(index, asked, expected):
    texts = {"1": "apple pear tree", "2": "a pear, apple tree", "3": "plum", "4": "Apple", "5": "Über die Straße"}
    index.add("a", [page(f"http://{number}.org/", text=text) for number, text in texts.items()])
    found = index.find(TextQuery(**asked, limit=100))
    assert {hit.url[7] for hit in found.hits} == expected
    assert found.pages == len(expected)


def test_title_headings_and_address_are_searched_and_the_title_counts_most(index):
    index.add(
        "a",
        [
            page("http://a.org/", text="harbour " + "filler " * 30),
            page("http://b.org/", text="filler " * 30, title="Harbour"),
            page("http://c.org/", text="filler " * 30, headings="The harbour"),
            page("http://d.org/the-harbour.html", text="filler " * 30),
            page("http://e.org/", text="filler " * 30),
        ],
    )
    found = urls(index, "harbour")
    assert set(found) == {"http://a.org/", "http://b.org/", "http://c.org/", "http://d.org/the-harbour.html"}
    assert found[0] == "http://b.org/"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("これは日本語の文章です", "日本語"),
        ("汉字测试", "字测"),
        ("שלום עולם", "עולם"),
        ("مرحبا بالعالم", "مرحبا"),
        ("ประเทศไทย", "ไทย"),
        ("naïve café", "cafe"),
    ],
)
def test_scripts_of_the_world(index, text, word):
    index.add("a", [page("http://a.org/", text=text), page("http://b.org/", text="other")])
    (hit,) = index.find(TextQuery(words=(word,))).hits
    assert hit.snippet == text
    assert len(hit.marks) == 1


@pytest.mark.parametrize(
    "word",
    [
        "a* OR b",
        "(",
        '"',
        "[a TO z]",
        "title:x",
        "/.*/",
        "^",
        "\\",
        "\0",
        "NEAR(a b)",
        "a" * 10_000,
        "'; DROP TABLE x",
        "*",
        "x AND y",
        "\U0001f600",
        "-",
    ],
)
def test_whatever_is_asked_is_words_and_never_a_command(index, word):
    index.add("a", [page(text="nothing of the kind")])
    for asked in (
        TextQuery(words=(word,)),
        TextQuery(phrases=(word,)),
        TextQuery(alternatives=((word, "x"),)),
        TextQuery(words=("kind",), excluded=(word,)),
    ):
        index.find(asked)


def test_long_snippets_show_the_place(index):
    index.add("a", [page(text="filler " * 5000 + "the needle stands here " + "more " * 5000)])
    (hit,) = index.find(TextQuery(words=("needle",))).hits
    assert "the needle stands here" in hit.snippet
    assert len(hit.snippet) < 300
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["needle"]
    assert hit.snippet.startswith("…")


# --- filters ----------------------------------------------------------------------------------------------------------------


def test_filters(index):
    index.add(
        "a",
        [
            page("http://www.example.org/", language="nl"),
            page("http://sub.example.org:8080/x", mime="application/pdf", language="de"),
            page("http://example-shop.org/", collection="other", language="nl"),
        ],
    )
    assert set(urls(index, "words", sites=("example.org",))) == {"http://www.example.org/", "http://sub.example.org:8080/x"}
    assert urls(index, "words", sites=("sub.example.org",)) == ["http://sub.example.org:8080/x"]
    assert urls(index, "words", sites=("ample.org",)) == []
    assert len(urls(index, "words", sites=("sub.example.org", "example-shop.org"))) == 2
    assert urls(index, "words", mimes=("application/pdf",)) == ["http://sub.example.org:8080/x"]
    assert len(urls(index, "words", languages=("nl",))) == 2
    assert urls(index, "words", languages=("nl",), collection="other") == ["http://example-shop.org/"]
    assert urls(index, "words", collection="unknown") == []
    assert len(urls(index, "words", collection=EVERYTHING)) == 3


# --- time -------------------------------------------------------------------------------------------------------------------

HISTORY = [
    page(timestamp="20100101000000", text="old words"),
    page(timestamp="20120101000000", text="old words"),
    page(timestamp="20140101000000", text="new words"),
    page(timestamp="20160101000000", text="old words"),
]


def test_one_page_is_one_hit_with_its_captures_by_year(index):
    index.add("a", HISTORY)
    found = index.find(TextQuery(words=("old",)))
    (hit,) = found.hits
    assert found.pages == 1
    assert dict(found.years) == {2010: 1, 2012: 1, 2016: 1}
    assert index.find(TextQuery(words=("words",))).pages == 1
    assert dict(index.find(TextQuery(words=("words",))).years) == {2010: 1, 2012: 1, 2014: 1, 2016: 1}
    assert hit.timestamp in {"20100101000000", "20120101000000", "20160101000000"}


@pytest.mark.parametrize(
    ("moment", "word", "expected"),
    [
        ("20091231235959", "old", None),
        ("20100101000000", "old", "20100101000000"),
        ("20131231235959", "old", "20120101000000"),
        ("20131231235959", "new", None),
        ("20140101000000", "new", "20140101000000"),
        ("20151231235959", "old", None),
        ("20150101000000", "new", "20140101000000"),
        ("20990101000000", "old", "20160101000000"),
        ("20990101000000", "new", None),
    ],
)
def test_as_of_a_moment_the_state_that_stood_then_counts(index, moment, word, expected):
    index.add("a", HISTORY)
    hits = index.find(TextQuery(words=(word,), as_of=from_timestamp(moment))).hits
    assert [hit.timestamp for hit in hits] == ([expected] if expected else [])


def test_a_period_asks_for_captures_in_it(index):
    index.add("a", HISTORY)
    found = index.find(TextQuery(words=("old",), period=period_of("2012")))
    assert ([hit.timestamp for hit in found.hits], dict(found.years)) == (["20120101000000"], {2012: 1})
    assert index.find(TextQuery(words=("old",), period=period_of("2011"))).pages == 0
    between = Period(datetime(2011, 1, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
    assert dict(index.find(TextQuery(words=("words",), period=between)).years) == {2012: 1, 2014: 1}


def test_order_by_time(index):
    index.add("a", [page(f"http://{year}.org/", f"{year}0101000000", text=f"words of {year}") for year in (2005, 2001, 2009)])
    assert [hit.timestamp[:4] for hit in index.find(TextQuery(words=("words",), sort=Sort.OLDEST)).hits] == ["2001", "2005", "2009"]
    assert [hit.timestamp[:4] for hit in index.find(TextQuery(words=("words",), sort=Sort.NEWEST)).hits] == ["2009", "2005", "2001"]


def test_several_captures_of_one_day_are_all_counted(index):
    index.add("a", [page(timestamp=f"20200101{hour:02d}0000") for hour in range(5)] + [page(timestamp="20200301000000")])
    assert dict(index.find(TextQuery(words=("words",))).years) == {2020: 6}


def test_containers_may_come_in_any_order(index):
    for number, one in enumerate(reversed(HISTORY)):
        index.add(f"container {number}", [one])
    assert [hit.timestamp for hit in index.find(TextQuery(words=("new",), as_of=from_timestamp("2015"))).hits] == ["20140101000000"]
    assert index.find(TextQuery(words=("old",), as_of=from_timestamp("2015"))).pages == 0
    assert dict(index.find(TextQuery(words=("old",))).years) == {2010: 1, 2012: 1, 2016: 1}
    assert index.total() == 3


def test_the_same_page_in_two_collections(index):
    index.add("a", [page(timestamp="20100101000000")])
    index.add("b", [page(timestamp="20110101000000", collection="other"), page(timestamp="20120101000000")])
    found = index.find(TextQuery(words=("words",)))
    assert (found.pages, dict(found.years)) == (1, {2010: 1, 2011: 1, 2012: 1})
    assert dict(index.find(TextQuery(words=("words",), collection="other")).years) == {2011: 1}
    (hit,) = index.find(TextQuery(words=("words",), collection="other", as_of=from_timestamp("2015"))).hits
    assert hit.timestamp == "20110101000000"
    assert index.find(TextQuery(words=("words",), collection="other", as_of=from_timestamp("20100601"))).pages == 0


# --- revisits -----------------------------------------------------------------------------------------------------------------


def test_a_revisit_counts_as_a_capture_of_the_same_words(index):
    index.add("a", [page(timestamp="20100101000000", digest="d")])
    index.add("b", [page(timestamp="20110101000000", text="", digest="d", repeats=True)])
    found = index.find(TextQuery(words=("words",)))
    assert dict(found.years) == {2010: 1, 2011: 1}
    assert index.total() == 1


def test_a_revisit_of_another_address_takes_its_words(index):
    index.add("a", [page("http://a.org/", digest="d", title="Title")])
    index.add("b", [page("http://b.org/", "20110101000000", text="", digest="d", repeats=True)])
    assert set(urls(index, "words", "title")) == {"http://a.org/", "http://b.org/"}


def test_a_revisit_that_comes_before_its_original_waits_for_it(index):
    index.add("later", [page("http://b.org/", "20110101000000", text="", digest="d", repeats=True), page("http://c.org/", text="other")])
    assert urls(index, "words") == []
    index.add("unrelated", [page("http://x.org/", text="unrelated")])
    index.add("earlier", [page("http://a.org/", "20100101000000", digest="d")])
    assert set(urls(index, "words")) == {"http://a.org/", "http://b.org/"}
    index.add("more", [page("http://z.org/", "20120101000000", digest="d")])
    assert dict(index.find(TextQuery(words=("words",))).years) == {2010: 1, 2011: 1, 2012: 1}


# --- closed -------------------------------------------------------------------------------------------------------------------


def test_what_is_closed_is_neither_shown_nor_counted(index):
    index.add(
        "a",
        [
            *HISTORY,
            page("http://example.org/private/x", text="old words"),
            page("http://example.org/privateer", text="old words"),
            page("http://b.org/", text="old words"),
        ],
    )
    everything = Closed(prefix="org,example)")
    assert urls(index, "old", closed=(everything,)) == ["http://b.org/"]
    assert dict(index.find(TextQuery(words=("old",), closed=(everything,))).years) == {2020: 1}
    folder = Closed(prefix="org,example)/private/")
    assert set(urls(index, "old", closed=(folder,))) == {"http://example.org/", "http://example.org/privateer", "http://b.org/"}
    but = Closed(prefix="org,example)", but=("org,example)/private",))
    assert set(urls(index, "old", closed=(but,))) == {"http://example.org/private/x", "http://example.org/privateer", "http://b.org/"}


def test_captures_closed_for_a_time_leave_the_others(index):
    index.add("a", HISTORY)
    first = Closed(prefix="org,example)", first="20100101000000", last="20111231235959")
    found = index.find(TextQuery(words=("old",), closed=(first,), sort=Sort.OLDEST))
    assert ([hit.timestamp for hit in found.hits], dict(found.years)) == (["20120101000000"], {2012: 1, 2016: 1})
    both = (
        first,
        Closed(prefix="org,", first="20120101000000", last="20130101000000"),
        Closed(prefix="org,example)/", first="2016" + "0" * 10),
    )
    found = index.find(TextQuery(words=("old",), closed=both))
    assert (found.pages, list(found.hits), dict(found.years)) == (0, [], {})
    assert index.find(TextQuery(words=("new",), closed=both)).pages == 1


def test_a_thousand_closed_places(index):
    index.add("a", [page(f"http://{number}.org/") for number in range(20)])
    closed = tuple(Closed(prefix=f"org,{number})", first="2019" + "0" * 10) for number in range(1, 1001))
    assert urls(index, "words", closed=closed) == ["http://0.org/"]


# --- keeping --------------------------------------------------------------------------------------------------------------------


def test_a_container_is_added_once(index):
    assert index.add("a", [page(), page("http://b.org/")]) == 2
    before = index.find(TextQuery(words=("words",)))
    assert index.add("a", [page(), page("http://c.org/")]) == 0
    assert index.find(TextQuery(words=("words",))) == before
    assert index.containers() == {"a"}
    assert index.add("empty", []) == 0
    assert index.containers() == {"a", "empty"}


def test_a_failure_in_the_middle_leaves_the_index_as_it_was(index):
    index.add("a", HISTORY)
    before = index.find(TextQuery(words=("old",)))

    def broken():
        yield page(timestamp="20110101000000", text="between")
        raise ValueError("ends here")

    with pytest.raises(ValueError, match="ends here"):
        index.add("b", broken())
    assert index.find(TextQuery(words=("old",))) == before
    assert index.containers() == {"a"}
    assert index.add("b", [page(timestamp="20110101000000", text="between")]) == 1
    assert urls(index, "between") == ["http://example.org/"]


def test_clear_forgets_everything(index):
    index.add("a", HISTORY)
    index.clear()
    assert (index.total(), index.containers(), urls(index, "old")) == (0, frozenset(), [])
    assert index.add("a", HISTORY) == 4


def test_pages_of_results_never_repeat_a_page(index):
    index.add(
        "a",
        [
            page(f"http://example.org/{number}", f"20{year:02d}0101000000", text=f"words {year} " + "x " * (number % 7))
            for number in range(60)
            for year in range(10, 15)
        ],
    )
    for sort in Sort:
        seen = [
            hit.key
            for offset in range(0, 70, 10)
            for hit in index.find(TextQuery(words=("words",), offset=offset, limit=10, sort=sort)).hits
        ]
        assert len(seen) == len(set(seen)) == 60
    assert index.find(TextQuery(words=("words",))).pages == 60


def test_readers_see_whole_containers_while_one_writes(index):
    failures: list = []
    done = threading.Event()

    def read():
        try:
            while not done.is_set():
                assert index.find(TextQuery(words=("words",), limit=100)).pages % 5 == 0
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(6):
        index.add(f"{number}", [page(f"http://{number}.org/{at}") for at in range(5)])
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert index.find(TextQuery(words=("words",))).pages == 30


# --- what else is counted and asked -----------------------------------------------------------------------------------------------


def test_captures_by_month(index):
    index.add("a", [page(timestamp=f"202001{day:02d}000000") for day in (1, 1, 1, 20)] + [page(timestamp="20200305000000")])
    assert dict(index.find(TextQuery(words=("words",))).months) == {202001: 4, 202003: 1}
    cut = Period(datetime(2020, 1, 2, tzinfo=UTC), datetime(2020, 3, 5, tzinfo=UTC))
    assert dict(index.find(TextQuery(words=("words",), period=cut)).months) == {202001: 1, 202003: 1}
    assert dict(index.find(TextQuery(words=("words",), histogram=False)).months) == {}


def test_facets_count_states_and_nothing_closed(index):
    index.add(
        "a",
        [
            page("http://www.example.org/", language="nl", format="fmt/96"),
            page("http://www.example.org/x", language="nl", format="fmt/96"),
            page("http://shop.example.org/", language="de", collection="other"),
            page("http://secret.org/", language="fr"),
        ],
    )
    found = index.find(TextQuery(words=("words",), facets=tuple(Facet), closed=(Closed(prefix="org,secret)"),)))
    assert {facet: dict(values) for facet, values in found.facets.items()} == {
        Facet.SITE: {"www.example.org": 2, "shop.example.org": 1},
        Facet.DOMAIN: {"example.org": 3},
        Facet.COLLECTION: {"c": 2, "other": 1},
        Facet.FORMAT: {"fmt/96": 2},
        Facet.LANGUAGE: {"nl": 2, "de": 1},
    }
    assert set(urls(index, "words", formats=("fmt/96",))) == {"http://www.example.org/", "http://www.example.org/x"}


def test_a_page_that_is_gone_ends_its_state(index):
    index.add("late", [page(timestamp="20120101000000", text="", gone=True, digest="")])
    index.add("early", [page(timestamp="20100101000000")])
    index.add("later", [page(timestamp="20140101000000")])
    for moment, pages in (("2011", 1), ("2013", 0), ("2015", 1)):
        assert index.find(TextQuery(words=("words",), as_of=from_timestamp(moment))).pages == pages
    assert dict(index.find(TextQuery(words=("words",))).years) == {2010: 1, 2014: 1}
    assert index.find(TextQuery()).pages == 1
    assert index.total() == 2


def test_words_in_one_part_of_a_page(index):
    index.add(
        "a",
        [
            page("http://a.org/", text="x", title="harbour"),
            page("http://b.org/", text="harbour"),
            page("http://c.org/", text="y", images="Old harbour harbour.jpg"),
            page("http://d.org/harbour", text="z", headings="the harbour"),
        ],
    )
    expected = {Part.TITLE: "a", Part.TEXT: "b", Part.IMAGE: "c", Part.ADDRESS: "d", Part.HEADINGS: "d"}
    for part, name in expected.items():
        assert [hit.url[7] for hit in index.find(TextQuery(parts=((part, "harbour"),))).hits] == [name]
    assert len(urls(index, "harbour")) == 4
    assert urls(index, "harbour", keys=("org,a)/",)) == ["http://a.org/"]


def test_words_of_links_find_a_page_and_stay_with_it(index):
    index.add("a", [page("http://a.org/", text="nothing"), page("http://b.org/", text="nothing")])
    assert index.anchor([("org,a)/", "the lighthouse", "start"), ("org,unknown)/", "x", "")]) == 1
    assert index.anchor([("org,a)/", "the lighthouse", "start")]) == 0
    assert urls(index, "lighthouse") == urls(index, "start") == ["http://a.org/"]
    index.add("b", [page("http://a.org/", "20210101000000", text="other")])
    assert [hit.timestamp for hit in index.find(TextQuery(parts=((Part.ANCHOR, "lighthouse"),), sort=Sort.NEWEST)).hits] == [
        "20210101000000"
    ]
    own = {"anchors": False}
    assert urls(index, "lighthouse", **own) == urls(index, "start", **own) == []
    assert index.find(TextQuery(parts=((Part.ANCHOR, "lighthouse"),), **own)).pages == 0
    assert sorted(urls(index, "nothing", excluded=("lighthouse",), **own)) == ["http://a.org/", "http://b.org/"]
    assert {state.anchors for state in index.scan(TextQuery(words=("nothing",), **own))} == {""}
    assert index.anchor([("org,a)/", "", "")]) == 1
    assert urls(index, "lighthouse") == []


# --- taking out --------------------------------------------------------------------------------------------------------------


def gone(url, timestamp, text, **changed):
    """A capture as the index of addresses has it, with its collection."""
    values = {"kind": RecordKind.RESPONSE, "status": 200, "mime": "text/html", "location": Location(container="b", offset=0, length=1)}
    return "c", Capture(key=key_of(url), url=url, timestamp=timestamp, digest=f"digest of {text}", **values | changed)


def test_captures_that_are_taken_out_leave_no_trace(index):
    url = "http://example.org/"
    index.add("a", [page(url, "20200101000000", "first"), page(url, "20220101000000", "first")])
    index.add("b", [page(url, "20210101000000", "secret"), page("http://b.org/", "20210101000000", "secret too")])
    assert index.remove("unknown", [gone(url, "20200101000000", "first")]) == 0
    assert index.remove("b", [gone(url, "20210101000000", "secret"), gone("http://b.org/", "20210101000000", "secret too")]) == 2
    assert urls(index, "secret") == []
    found = index.find(TextQuery(words=("first",)))
    assert (found.hits[0].versions, dict(found.years), index.total()) == (2, {2020: 1, 2022: 1}, 1)
    assert urls(index, "first", as_of=from_timestamp("20210601000000")) == [url]
    assert index.containers() == {"a"}
    assert index.add("b", [page(url, "20210101000000", "secret")]) == 1
    assert urls(index, "secret") == [url]


def test_what_repeats_bytes_that_are_nowhere_any_more_loses_its_words(index):
    index.add("a", [page("http://a.org/", text="secret"), page("http://c.org/", text="open")])
    index.add("b", [page("http://b.org/", "20210101000000", "", digest="digest of secret", repeats=True)])
    index.add("d", [page("http://d.org/", text="secret", digest="other bytes with the same words")])
    assert sorted(urls(index, "secret")) == ["http://a.org/", "http://b.org/", "http://d.org/"]
    assert index.remove("a", [gone("http://a.org/", "20200101000000", "secret")], payloads=["digest of secret"]) == 2
    assert urls(index, "secret") == ["http://d.org/"]
    assert urls(index, "open") == ["http://c.org/"]


def test_a_revisit_that_waits_is_taken_out_too(index):
    index.add("a", [page("http://a.org/", text="", digest="digest of words", repeats=True)])
    assert index.remove("a", [gone("http://a.org/", "20200101000000", "words")]) == 1
    index.add("b", [page("http://b.org/", text="words")])
    assert urls(index, "words") == ["http://b.org/"]


def test_pages_that_are_nearly_the_same_are_folded(index):
    index.add("a", [page(f"http://{number}.org/", likeness=0b1111 << 20 if number < 3 else 1 << 63 | number << 8) for number in range(5)])
    found = index.find(TextQuery(words=("words",), fold=True))
    assert (found.pages, len(found.hits)) == (5, 2)
    assert sorted(hit.similar for hit in found.hits) == [1, 2]
    rest = index.find(TextQuery(words=("words",), fold=True, offset=1))
    assert [hit.key for hit in rest.hits] == [found.hits[1].key]
    assert len(urls(index, "words")) == 5


def test_all_states_are_scanned_page_by_page(index):
    index.add("a", HISTORY + [page(f"http://{number}.org/", text="old words") for number in range(30)])
    closed = (Closed(prefix="org,7)"), Closed(prefix="org,example)", last="20110101000000"))
    states = list(index.scan(TextQuery(words=("old",), closed=closed, limit=1, offset=5)))
    assert len(states) == 31
    assert [state.key for state in states] == [key for key, group in groupby(state.key for state in states) for _ in group]
    first, last = (state for state in states if state.key == "org,example)/")
    assert (first.timestamps, first.valid_from, first.valid_to) == (("20120101000000",), "20100101000000", "20140101000000")
    assert (last.timestamps, last.valid_to, last.text) == (("20160101000000",), "9" * 14, "old words")


def test_known_words(index):
    index.add("a", [page("http://a.org/", text="haven Haven havenmeester"), page("http://b.org/", text="haven schip")])
    assert list(index.words("hav", limit=10)) == [("haven", 2), ("havenmeester", 1)]
    assert list(index.words("hav", limit=1)) == [("haven", 2)]
    assert list(index.words("x", limit=10)) == []


def test_compacting_changes_no_answer(index):
    for number, one in enumerate(HISTORY):
        index.add(str(number), [one, page("http://b.org/", one.timestamp, text=f"number {number}")])
    index.add("waits", [page("http://w.org/", text="", digest="later", repeats=True), page("http://g.org/", text="", gone=True, digest="")])
    index.anchor([("org,example)/", "anchor", "")])

    def answers():
        asked = (("old",), ("anchor",), ("number",))
        return [(found.pages, dict(found.months)) for words in asked for found in [index.find(TextQuery(words=words))]]

    before = answers(), index.containers(), index.total()
    index.compact()
    assert index.dead() == 0
    assert (answers(), index.containers(), index.total()) == before
    index.add("original", [page("http://o.org/", text="waited for", digest="later")])
    assert set(urls(index, "waited")) == {"http://w.org/", "http://o.org/"}


# --- against a model ------------------------------------------------------------------------------------------------------------

WORDS = ["alpha", "beta", "gamma"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
stamps = st.integers(0, 40).map(lambda month: f"20{10 + month // 12}{1 + month % 12:02d}15120000")
captures = st.builds(
    page, st.sampled_from(["http://a.org/", "http://a.org/x", "http://b.org/"]), stamps, texts, collection=st.sampled_from(["c", "d"])
)
containers = st.lists(st.lists(captures, max_size=6), min_size=1, max_size=4)
bounds = st.tuples(stamps, stamps).map(sorted)


@pytest.mark.parametrize("name", sorted(MAKERS))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    held=containers,
    word=st.sampled_from(WORDS),
    excluded=st.sampled_from([(), ("beta",)]),
    collection=st.sampled_from([EVERYTHING, "c"]),
    period=st.one_of(st.none(), bounds),
    as_of=st.one_of(st.none(), stamps),
    shut=st.one_of(st.none(), st.tuples(st.sampled_from(["org,a)", "org,a)/x", "org,"]), bounds)),
)
def test_every_answer_is_that_of_the_model(name, tmp_path_factory, held, word, excluded, collection, period, as_of, shut):
    index = MAKERS[name](tmp_path_factory.mktemp("model") / "text")
    for number, pages in enumerate(held):
        assert index.add(str(number), pages) == len(pages)
    closed = (Closed(prefix=shut[0], first=shut[1][0], last=shut[1][1]),) if shut else ()
    query = TextQuery(
        words=(word,),
        excluded=excluded,
        collection=collection,
        period=Period(from_timestamp(period[0]), from_timestamp(period[1])) if period else None,
        as_of=from_timestamp(as_of) if as_of else None,
        closed=closed,
        limit=100,
    )
    found = index.find(query)
    expected = model_of([one for pages in held for one in pages], query)
    assert {hit.key for hit in found.hits} == {one.key for one in expected}
    assert found.pages == len({one.key for one in expected})
    years: dict = {}
    for one in expected:
        years[int(one.timestamp[:4])] = years.get(int(one.timestamp[:4]), 0) + 1
    assert dict(found.years) == years
    for hit in found.hits:
        assert hit.timestamp in {one.timestamp for one in expected if one.key == hit.key}
    index.close()


def model_of(pages, query):
    """The captures that answer a query, worked out one by one."""
    answer = []
    for _, of_page in groupby(sorted(pages, key=lambda one: (one.key, one.timestamp)), key=lambda one: one.key):
        runs = [list(run) for _, run in groupby(of_page, key=lambda one: one.text)]
        for number, run in enumerate(runs):
            ends = runs[number + 1][0].timestamp if number + 1 < len(runs) else "9" * 14
            words = run[0].text.split()
            if query.words[0] not in words or any(word in words for word in query.excluded):
                continue
            if query.as_of is not None and not times.to_timestamp(query.as_of) < ends:
                continue
            answer += [one for one in run if is_answer(one, query)]
    return answer


def is_answer(one, query):
    moment = from_timestamp(one.timestamp)
    return (
        query.collection in (EVERYTHING, one.collection)
        and (query.period is None or moment in query.period)
        and (query.as_of is None or moment <= query.as_of)
        and not any((one.key, one.timestamp) in closed for closed in query.closed)
    )
