"""The contract of `TextIndex` about words, filters, counts and what is closed, run on every implementation."""

from datetime import UTC, datetime

import pytest

from text_indexes import HISTORY, page, urls
from webdepot.model import EVERYTHING
from webdepot.ports.search import ClosedArea, Facet, PagePart, SearchSort, TextQuery

# --- words, filters, counts ---


def test_an_empty_index_answers(index):
    found = index.find(TextQuery(words=("word",)))
    assert (found.pages, found.exact, list(found.hits), dict(found.years)) == (0, True, [], {})
    assert index.containers() == frozenset()
    assert index.total() == 0


def test_a_hit_shows_what_was_found(index):
    index.add(
        "a",
        [
            page(
                "http://www.example.org/Path",
                "20190203040506",
                "The quick brown fox jumps",
                title="A fox",
                language="en",
                size_bytes=77,
            )
        ],
    )
    found = index.find(TextQuery(words=("fox",)))
    (hit,) = found.hits
    assert (found.pages, found.exact, dict(found.years)) == (1, True, {2019: 1})
    assert (hit.key, hit.url, hit.timestamp) == (
        "org,example)/path",
        "http://www.example.org/Path",
        "20190203040506",
    )
    assert (hit.title, hit.mime, hit.size_bytes, hit.language, hit.versions) == (
        "A fox",
        "text/html",
        77,
        "en",
        1,
    )
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
    texts = {
        "1": "apple pear tree",
        "2": "a pear, apple tree",
        "3": "plum",
        "4": "Apple",
        "5": "Über die Straße",
    }
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


def test_filters(index):
    index.add(
        "a",
        [
            page("http://www.example.org/", language="nl"),
            page("http://sub.example.org:8080/x", mime="application/pdf", language="de"),
            page("http://example-shop.org/", collection="other", language="nl"),
        ],
    )
    assert set(urls(index, "words", sites=("example.org",))) == {
        "http://www.example.org/",
        "http://sub.example.org:8080/x",
    }
    assert urls(index, "words", sites=("sub.example.org",)) == ["http://sub.example.org:8080/x"]
    assert urls(index, "words", sites=("ample.org",)) == []
    assert len(urls(index, "words", sites=("sub.example.org", "example-shop.org"))) == 2
    assert urls(index, "words", mimes=("application/pdf",)) == ["http://sub.example.org:8080/x"]
    assert len(urls(index, "words", languages=("nl",))) == 2
    assert urls(index, "words", languages=("nl",), collection="other") == ["http://example-shop.org/"]
    assert urls(index, "words", collection="unknown") == []
    assert len(urls(index, "words", collection=EVERYTHING)) == 3


def test_pages_of_results_never_repeat_a_page(index):
    index.add(
        "a",
        [
            page(
                f"http://example.org/{number}",
                f"20{year:02d}0101000000",
                text=f"words {year} " + "x " * (number % 7),
            )
            for number in range(60)
            for year in range(10, 15)
        ],
    )
    for sort in SearchSort:
        seen = [
            hit.key
            for offset in range(0, 70, 10)
            for hit in index.find(TextQuery(words=("words",), offset=offset, limit=10, sort=sort)).hits
        ]
        assert len(seen) == len(set(seen)) == 60
    assert index.find(TextQuery(words=("words",))).pages == 60


def test_facets_count_pages_and_nothing_closed(index):
    index.add(
        "a",
        [
            page("http://www.example.org/", language="nl", format="fmt/96"),
            page(
                "http://www.example.org/",
                "20150101000000",
                text="other words",
                language="nl",
                format="fmt/96",
            ),
            page("http://www.example.org/x", language="nl", format="fmt/96"),
            page("http://shop.example.org/", language="de", collection="other"),
            page("http://secret.org/", language="fr"),
        ],
    )
    found = index.find(
        TextQuery(words=("words",), facets=tuple(Facet), closed=(ClosedArea(prefix="org,secret)"),))
    )
    assert {facet: dict(values) for facet, values in found.facets.items()} == {
        Facet.SITE: {"www.example.org": 2, "shop.example.org": 1},
        Facet.DOMAIN: {"example.org": 3},
        Facet.COLLECTION: {"c": 2, "other": 1},
        Facet.FORMAT: {"fmt/96": 2},
        Facet.LANGUAGE: {"nl": 2, "de": 1},
    }
    assert set(urls(index, "words", formats=("fmt/96",))) == {
        "http://www.example.org/",
        "http://www.example.org/x",
    }


def test_facets_of_very_many_states_count_pages(index):
    index.add(
        "a",
        [
            page(f"http://www.example.org/{number}", f"{year}0101000000", text=f"words of {number} in {year}")
            for number in range(340)
            for year in (2010, 2011, 2012)
        ],
    )
    (value,) = index.find(TextQuery(words=("words",), facets=(Facet.SITE,))).facets[Facet.SITE]
    assert value[0] == "www.example.org" and 320 <= value[1] <= 360, "about 340 pages, not 1,020 states"


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
    expected = {
        PagePart.TITLE: "a",
        PagePart.TEXT: "b",
        PagePart.IMAGE: "c",
        PagePart.ADDRESS: "d",
        PagePart.HEADINGS: "d",
    }
    for part, name in expected.items():
        assert [hit.url[7] for hit in index.find(TextQuery(parts=((part, "harbour"),))).hits] == [name]
    assert len(urls(index, "harbour")) == 4
    assert urls(index, "harbour", keys=("org,a)/",)) == ["http://a.org/"]


def test_link_texts_find_a_page_and_stay_with_it(index, engine):
    index.add("a", [page("http://a.org/", text="nothing"), page("http://b.org/", text="nothing")])
    assert index.anchor([("org,a)/", "the lighthouse", "start"), ("org,unknown)/", "x", "")], engine) == 1
    assert index.anchor([("org,a)/", "the lighthouse", "start")], engine) == 0
    assert urls(index, "lighthouse") == urls(index, "start") == ["http://a.org/"]
    index.add("b", [page("http://a.org/", "20210101000000", text="other")])
    assert [
        hit.timestamp
        for hit in index.find(
            TextQuery(parts=((PagePart.ANCHOR, "lighthouse"),), sort=SearchSort.NEWEST)
        ).hits
    ] == ["20210101000000"]
    own = {"anchors": False}
    assert urls(index, "lighthouse", **own) == urls(index, "start", **own) == []
    assert index.find(TextQuery(parts=((PagePart.ANCHOR, "lighthouse"),), **own)).pages == 0
    assert sorted(urls(index, "nothing", excluded=("lighthouse",), **own)) == [
        "http://a.org/",
        "http://b.org/",
    ]
    (state,) = index.scan(
        TextQuery(words=("start",), keys=("org,a)/",), as_of=datetime(2020, 6, 1, tzinfo=UTC))
    )
    assert (state.anchors, state.own_anchors) == ("the lighthouse", "start")
    assert {
        state.anchors + state.own_anchors for state in index.scan(TextQuery(words=("nothing",), **own))
    } == {""}
    assert index.anchor([("org,a)/", "", "")], engine) == 1
    assert urls(index, "lighthouse") == []


def test_pages_that_are_nearly_the_same_are_folded(index):
    index.add(
        "a",
        [
            page(f"http://{number}.org/", likeness=0b1111 << 20 if number < 3 else 1 << 63 | number << 8)
            for number in range(5)
        ],
    )
    found = index.find(TextQuery(words=("words",), fold=True))
    assert (found.pages, len(found.hits)) == (5, 2)
    assert sorted(hit.similar for hit in found.hits) == [1, 2]
    rest = index.find(TextQuery(words=("words",), fold=True, offset=1))
    assert [hit.key for hit in rest.hits] == [found.hits[1].key]
    assert len(urls(index, "words")) == 5


def test_known_words(index):
    index.add(
        "a",
        [page("http://a.org/", text="haven Haven havenmeester"), page("http://b.org/", text="haven schip")],
    )
    # As many as spellings are compared with: more than OpenSearch returns at once.
    assert list(index.words("hav", limit=20_000)) == [("haven", 2), ("havenmeester", 1)]
    assert list(index.words("hav", limit=1)) == [("haven", 2)]
    assert list(index.words("x", limit=10)) == []


# --- closed ---


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
    everything = ClosedArea(prefix="org,example)")
    assert urls(index, "old", closed=(everything,)) == ["http://b.org/"]
    assert dict(index.find(TextQuery(words=("old",), closed=(everything,))).years) == {2020: 1}
    folder = ClosedArea(prefix="org,example)/private/")
    assert set(urls(index, "old", closed=(folder,))) == {
        "http://example.org/",
        "http://example.org/privateer",
        "http://b.org/",
    }
    but = ClosedArea(prefix="org,example)", but=("org,example)/private",))
    assert set(urls(index, "old", closed=(but,))) == {
        "http://example.org/private/x",
        "http://example.org/privateer",
        "http://b.org/",
    }


@pytest.mark.parametrize("first", ["0" * 14, "2019" + "0" * 10])
def test_a_single_page_is_closed_or_open_without_those_below_it(index, first):
    index.add("a", [page(f"http://example.org/{path}") for path in ("a", "a/b", "ab", "c")])

    def open_to(**area):
        closed = (ClosedArea(first=first, **area),)
        return sorted(url.removeprefix("http://example.org/") for url in urls(index, "words", closed=closed))

    assert open_to(prefix="org,example)/a", exact=True) == ["a/b", "ab", "c"]
    assert open_to(prefix="org,example)/d", exact=True) == ["a", "a/b", "ab", "c"]
    keys = frozenset({"org,example)/a", "org,example)/c"})
    assert open_to(prefix="org,example)/", but_keys=keys) == ["a", "c"]
    assert open_to(prefix="org,example)/", but=("org,example)/a/",), but_keys=keys) == ["a", "a/b", "c"]


def test_captures_closed_for_a_time_leave_the_others(index):
    index.add("a", HISTORY)
    first = ClosedArea(prefix="org,example)", first="20100101000000", last="20111231235959")
    found = index.find(TextQuery(words=("old",), closed=(first,), sort=SearchSort.OLDEST))
    assert ([hit.timestamp for hit in found.hits], dict(found.years)) == (
        ["20120101000000"],
        {2012: 1, 2016: 1},
    )
    both = (
        first,
        ClosedArea(prefix="org,", first="20120101000000", last="20130101000000"),
        ClosedArea(prefix="org,example)/", first="2016" + "0" * 10),
    )
    found = index.find(TextQuery(words=("old",), closed=both))
    assert (found.pages, list(found.hits), dict(found.years)) == (0, [], {})
    assert index.find(TextQuery(words=("new",), closed=both)).pages == 1


def test_a_thousand_closed_places(index):
    index.add("a", [page(f"http://{number}.org/") for number in range(20)])
    closed = tuple(ClosedArea(prefix=f"org,{number})", first="2019" + "0" * 10) for number in range(1, 1001))
    assert urls(index, "words", closed=closed) == ["http://0.org/"]
    pages = tuple(ClosedArea(prefix=f"org,{number})/", exact=True) for number in range(1, 1001))
    assert urls(index, "words", closed=pages) == ["http://0.org/"]
