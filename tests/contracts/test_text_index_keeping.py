"""The contract of `TextIndex` about adding, taking out, scanning and compacting, run on every implementation."""

import threading
import time
from itertools import groupby

import pytest

from text_indexes import HISTORY, page, page_files_of, urls
from webdepot.model import Capture, Location, RecordKind
from webdepot.ports.search import ClosedArea, TextQuery
from webdepot.times import from_timestamp
from webdepot.url import key as key_of

# --- keeping ---


def test_a_container_is_added_once(index):
    assert index.add("a", [page(), page("http://b.org/")]) == 2
    before = index.find(TextQuery(words=("words",)))
    assert index.add("a", [page(), page("http://c.org/")]) == 0
    assert index.find(TextQuery(words=("words",))) == before
    assert index.containers() == {"a"}
    assert index.add("empty", []) == 0
    assert index.containers() == {"a", "empty"}
    assert index.having(["empty", "unknown", "a"]) == {"a", "empty"}
    assert index.having(["unknown"]) == index.having([]) == frozenset()


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


def test_several_containers_at_once_give_the_same_as_one_after_another(index, engine, tmp_path):
    several = {
        "first": [*HISTORY[:2], page("http://b.org/", text="the original", digest="D")],
        "second": [
            page(timestamp="20130101000000", text="between"),
            page("http://c.org/", text="", digest="D", repeats=True),
            page("http://d.org/", text="", digest="unknown", repeats=True),
        ],
        "third": [*HISTORY[2:], page("http://e.org/", timestamp="20130101000000", text="", gone=True)],
    }
    files = page_files_of(tmp_path, several)
    formats = {"D": "fmt/471"}
    assert index.add_files(files[:2], engine, formats=lambda digests: formats) == 6
    assert index.add_files(files, engine, formats=lambda digests: formats) == 3
    assert index.containers() == set(several)
    states = {(state.key, state.valid_from): state for state in index.scan(TextQuery())}
    assert [at for at in states if at[0] == "org,example)/"] == [
        ("org,example)/", at)
        for at in ("20100101000000", "20130101000000", "20140101000000", "20160101000000")
    ]
    assert states["org,example)/", "20100101000000"].timestamps == ("20100101000000", "20120101000000")
    assert states["org,c)/", "20200101000000"].text == "the original"
    assert [hit.url for hit in index.find(TextQuery(words=("original",), formats=("fmt/471",))).hits] == [
        "http://b.org/",
        "http://c.org/",
    ]
    assert ("org,d)/", "20200101000000") not in states


def test_clear_forgets_everything(index):
    index.add("a", HISTORY)
    index.clear()
    assert (index.total(), index.containers(), urls(index, "old")) == (0, frozenset(), [])
    assert index.add("a", HISTORY) == 4


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


def test_all_states_are_scanned_page_by_page(index):
    index.add("a", HISTORY + [page(f"http://{number}.org/", text="old words") for number in range(30)])
    closed = (ClosedArea(prefix="org,7)"), ClosedArea(prefix="org,example)", last="20110101000000"))
    states = list(index.scan(TextQuery(words=("old",), closed=closed, limit=1, offset=5)))
    assert len(states) == 31
    assert [state.key for state in states] == [
        key for key, group in groupby(state.key for state in states) for _ in group
    ]
    first, last = (state for state in states if state.key == "org,example)/")
    assert (first.timestamps, first.valid_from, first.valid_to) == (
        ("20120101000000",),
        "20100101000000",
        "20140101000000",
    )
    assert (last.timestamps, last.valid_to, last.text) == (("20160101000000",), "9" * 14, "old words")


def test_compacting_changes_no_answer(index, engine):
    for number, one in enumerate(HISTORY):
        index.add(str(number), [one, page("http://b.org/", one.timestamp, text=f"number {number}")])
    index.add(
        "waits",
        [
            page("http://w.org/", text="", digest="later", repeats=True),
            page("http://g.org/", text="", gone=True, digest=""),
        ],
    )
    index.anchor([("org,example)/", "anchor", "")], engine)

    def answers():
        asked = (("old",), ("anchor",), ("number",))
        return [
            (found.pages, dict(found.months))
            for words in asked
            for found in [index.find(TextQuery(words=words))]
        ]

    before = answers(), index.containers(), index.total()
    for _ in range(50):
        index.compact(engine)
        if index.dead() == 0:
            break
        time.sleep(0.1)  # a server keeps for a moment what was just replaced
    assert index.dead() == 0
    assert (answers(), index.containers(), index.total()) == before
    index.add("original", [page("http://o.org/", text="waited for", digest="later")])
    assert set(urls(index, "waited")) == {"http://w.org/", "http://o.org/"}


# --- taking out ---


def gone(url, timestamp, text, **changed):
    """A capture as the capture index has it, with its collection."""
    values = {
        "kind": RecordKind.RESPONSE,
        "status": 200,
        "mime": "text/html",
        "location": Location(container="b", offset=0, length=1),
    }
    return "c", Capture(
        key=key_of(url), url=url, timestamp=timestamp, digest=f"digest of {text}", **values | changed
    )


def test_captures_that_are_taken_out_leave_no_trace(index):
    url = "http://example.org/"
    index.add("a", [page(url, "20200101000000", "first"), page(url, "20220101000000", "first")])
    index.add(
        "b", [page(url, "20210101000000", "secret"), page("http://b.org/", "20210101000000", "secret too")]
    )
    assert index.remove("unknown", [gone(url, "20200101000000", "first")]) == 0
    assert (
        index.remove(
            "b",
            [gone(url, "20210101000000", "secret"), gone("http://b.org/", "20210101000000", "secret too")],
        )
        == 2
    )
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
    assert (
        index.remove("a", [gone("http://a.org/", "20200101000000", "secret")], payloads=["digest of secret"])
        == 2
    )
    assert urls(index, "secret") == ["http://d.org/"]
    assert urls(index, "open") == ["http://c.org/"]


def test_a_revisit_that_waits_is_taken_out_too(index):
    index.add("a", [page("http://a.org/", text="", digest="digest of words", repeats=True)])
    assert index.remove("a", [gone("http://a.org/", "20200101000000", "words")]) == 1
    index.add("b", [page("http://b.org/", text="words")])
    assert urls(index, "words") == ["http://b.org/"]
