"""What is particular to the Tantivy index: stems, other versions, crashes, memory, cost."""

import shutil
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import text_indexes
from text_indexes import page_files_of, urls
from webdepot.engine.process_pool import ProcessEngine
from webdepot.errors import Conflict, WebdepotError
from webdepot.index.text import (
    tantivy_add,
    tantivy_commit,
    tantivy_draft,
    tantivy_find,
    tantivy_index,
    tantivy_merge,
    tantivy_query,
)
from webdepot.index.text.tantivy_index import TantivyTextIndex
from webdepot.model import Capture, Location, RecordKind
from webdepot.ports.search import ClosedArea, TextQuery
from webdepot.times import from_timestamp
from webdepot.url import key as key_of

page = partial(text_indexes.page, language="nl")


@pytest.fixture
def index(tmp_path):
    return TantivyTextIndex(tmp_path / "text", memory_bytes=16 << 20)


def test_stems_add_pages_after_the_exact_ones(index):
    index.add(
        "a",
        [
            page("http://exact.org/", text="het huis staat daar"),
            page("http://stem.org/", text="alle huizen staan daar"),
            page("http://german.org/", text="die Häuser stehen dort", language="de"),
        ],
    )
    hits = index.find(TextQuery(words=("huis",))).hits
    assert [hit.url for hit in hits] == ["http://exact.org/", "http://stem.org/"]
    assert [hit.snippet[start:end] for hit in hits for start, end in hit.marks] == ["huis", "huizen"]
    assert [hit.url for hit in index.find(TextQuery(words=("Haus",))).hits] == ["http://german.org/"]


def test_phrases_and_exclusions_are_never_stemmed(index):
    index.add("a", [page("http://a.org/", text="huis en tuin"), page("http://b.org/", text="huizen en tuin")])
    assert [hit.url for hit in index.find(TextQuery(phrases=("huis",))).hits] == ["http://a.org/"]
    assert [hit.url for hit in index.find(TextQuery(phrases=("huis en tuin",))).hits] == ["http://a.org/"]
    assert [hit.url for hit in index.find(TextQuery(words=("tuin",), excluded=("huis",))).hits] == [
        "http://b.org/"
    ]


def test_words_in_a_row_and_home_pages_come_first(index):
    filler = "filler " * 20
    index.add(
        "a",
        [
            page("http://a.org/x/y", text=f"lange weg {filler}"),
            page("http://b.org/x/y", text=f"weg {filler} lange"),
            page("http://c.org/", text=f"stad {filler}"),
            page("http://c.org/x/y", text=f"stad {filler}"),
        ],
    )
    assert index.find(TextQuery(words=("lange", "weg"))).hits[0].url == "http://a.org/x/y"
    assert index.find(TextQuery(words=("stad",))).hits[0].url == "http://c.org/"


def test_an_index_of_another_version_is_refused_with_the_remedy(tmp_path):
    import tantivy

    folder = tmp_path / "text"
    folder.mkdir()
    tantivy.Index(tantivy.SchemaBuilder().add_text_field("other").build(), path=str(folder))
    with pytest.raises(Conflict, match="webdepot index rebuild"):
        TantivyTextIndex(folder)
    (folder / "meta.json").write_text("damaged")
    with pytest.raises(Conflict, match="webdepot index rebuild"):
        TantivyTextIndex(folder)
    shutil.rmtree(folder)
    assert TantivyTextIndex(folder).total() == 0


def test_a_killed_writer_leaves_a_usable_index_that_catches_up(tmp_path):
    program = """
        import os, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from text_indexes import page
        from webdepot.index.text import tantivy_draft, tantivy_index
        index = tantivy_index.TantivyTextIndex(Path(sys.argv[1]), memory_bytes=16 << 20)
        index.add("whole", [page(f"http://a.org/{at}") for at in range(100)])
        real, added = tantivy_draft.Draft.add, []
        def killed(self, fields):
            real(self, fields)
            added.append(1)
            if len(added) > 500:
                os.kill(os.getpid(), 9)
        tantivy_draft.Draft.add = killed
        index.add("torn", [page(f"http://a.org/{at}", "20210101000000", "other " * 2000) for at in range(1000)])
    """
    folder = tmp_path / "text"
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(folder), str(Path(__file__).parent.parent)],
        check=False,
    )
    assert ended.returncode == -9
    assert list(folder.glob("draft-*"))
    index = TantivyTextIndex(folder, memory_bytes=16 << 20)
    assert index.containers() == {"whole"}
    assert index.find(TextQuery(words=("words",))).pages == 100
    assert (
        index.add("torn", [page(f"http://a.org/{at}", "20210101000000", "other") for at in range(1000)])
        == 1000
    )
    assert index.find(TextQuery(words=("other",))).pages == 1000
    assert index.find(TextQuery(words=("words",), as_of=from_timestamp("2022"))).pages == 0
    assert not list(folder.glob("draft-*"))


def test_a_new_capture_touches_only_the_state_it_follows(index, monkeypatch):
    index.add(
        "history",
        [page(timestamp=f"{year}0101000000", text=f"words of {year}") for year in range(1996, 2020)],
    )
    written = []
    real = tantivy_draft.Draft.add
    monkeypatch.setattr(
        tantivy_draft.Draft, "add", lambda self, fields: (written.append(fields), real(self, fields))
    )
    index.add("new", [page(timestamp="20200101000000", text="words of 2020")])
    assert [fields.get("valid_from") for fields in written] == [20190101000000, 20200101000000, None]
    assert index.total() == 25


def test_beyond_a_limit_the_number_of_pages_is_an_estimate(index, monkeypatch):
    monkeypatch.setattr(tantivy_find, "EXACT_UP_TO", 50)
    index.add("a", [page(f"http://example.org/{number}") for number in range(300)])
    found = index.find(TextQuery(words=("words",), limit=3))
    assert not found.exact
    assert 250 < found.pages < 350
    assert len(found.hits) == 3


@pytest.mark.parametrize("most_keys", [2, 5000])
def test_areas_with_few_and_with_many_addresses_close_the_same(index, monkeypatch, most_keys):
    monkeypatch.setattr(tantivy_query, "_MOST_KEYS", most_keys)
    names = ["a.b", "a+b", "a(b)", "a[b]", "a*", "axb", "a?b=1", "a~"]
    index.add(
        "a",
        [page(f"http://example.org/{name}") for name in names]
        + [page("http://example.org/x/1"), page("http://example.org/x/2")],
    )
    for prefix, but, but_keys in (
        ("org,example)/a", ("org,example)/a.", "org,example)/a("), ()),
        ("org,example)/a+", (), ()),
        ("org,example)/", ("org,example)/x/1",), ("org,example)/a*", "org,example)/axb")),
    ):
        for first in ("0" * 14, "2019" + "0" * 10):
            closed = ClosedArea(prefix=prefix, but=but, but_keys=frozenset(but_keys), first=first)
            shown = {
                hit.key for hit in index.find(TextQuery(words=("words",), limit=100, closed=(closed,))).hits
            }
            assert shown == {
                key_of(hit_url)
                for hit_url in all_urls(names)
                if (key_of(hit_url), "20200101000000") not in closed
            }


def all_urls(names):
    return [f"http://example.org/{name}" for name in [*names, "x/1", "x/2"]]


# --- several workers ---


def states_in(index):
    return sorted(index.scan(TextQuery()), key=lambda state: (state.key, state.valid_from))


def many(count, timestamp="20200101000000", text="words of"):
    return [page(f"http://{at % 7}.org/{at}", timestamp, f"{text} {at}") for at in range(count)]


@pytest.fixture(scope="module")
def engine():
    processes = ProcessEngine(workers=2)
    yield processes
    processes.close()


@pytest.fixture
def in_parts(monkeypatch):
    """Even a few pages are divided among processes, and into more parts than there are processes."""
    monkeypatch.setattr(tantivy_index, "_SMALL_BYTES", 0)
    monkeypatch.setattr(tantivy_index, "_SMALL_ANCHORS_BYTES", 0)
    monkeypatch.setattr(tantivy_index, "_PART_BYTES", 2000)
    monkeypatch.setattr(tantivy_merge, "_FAN_IN", 1000)  # no compaction in a thread


@pytest.mark.usefixtures("in_parts")
def test_parts_give_the_same_index_as_one_process(index, engine, tmp_path):
    revisits = [
        page(f"http://copy.org/{at}", text="", repeats=True, digest=f"digest of words of {at}")
        for at in range(0, 90, 3)
    ]
    several = {
        "first": [*revisits[:20], *many(60)],
        "second": [*many(90, "20210101000000"), *many(30, "20190101000000", "older words of")],
        "third": [*revisits[20:], *many(45, "20220101000000", "newer words of")],
    }
    anchors = [(one.key, f"link {at}", "") for at, one in enumerate(many(50))]
    files = page_files_of(tmp_path, several)
    assert index.add_files(files[:2], engine, formats=lambda digests: {}) == 200
    assert len(tantivy_commit.read(tmp_path / "text").segments) > 3
    assert index.add_files(files[2:], engine, formats=lambda digests: {}) == 55
    alone = TantivyTextIndex(tmp_path / "alone", memory_bytes=16 << 20)
    for name, pages in several.items():
        alone.add(name, pages)
    assert states_in(index) == states_in(alone) != []
    repeated = TantivyTextIndex(tmp_path / "repeated", memory_bytes=16 << 20)
    repeated.add_files(files[:2], engine, formats=lambda digests: {})
    repeated.add_files(files[2:], engine, formats=lambda digests: {})
    for word in ("words", "older", "newer"):
        assert text_indexes.urls(repeated, word) == text_indexes.urls(index, word)
    assert index.anchor(anchors, engine) == 50
    assert index.find(TextQuery(words=("link",), limit=1)).pages == 50
    assert index.find(TextQuery(words=("words",), limit=200)).pages == 90 + 30


@pytest.mark.usefixtures("in_parts")
def test_a_part_that_fails_leaves_the_index_as_it_was(index, engine, tmp_path):
    index.add("a", many(10))
    before = states_in(index)
    (file,) = page_files_of(tmp_path, {"b": many(20, "20210101000000", "other words of")})
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WebdepotError, match="text of pages could not be indexed"):
        index.add_files([file], engine, formats=lambda digests: {})
    assert (states_in(index), index.containers()) == (before, {"a"})
    file.path.write_bytes(whole)
    assert index.add_files([file], engine, formats=lambda digests: {}) == 20
    assert index.total() == 30


def test_revisits_that_a_crash_left_unresolved_are_resolved_by_the_next_writer(index, monkeypatch):
    index.add("a", [page("http://w.org/", text="", digest="later", repeats=True)])
    with monkeypatch.context() as patched:
        patched.setattr(tantivy_add.Adding, "resolve", lambda self, digests: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.add("b", [page("http://o.org/", text="waited for", digest="later")])
    assert text_indexes.urls(index, "waited") == ["http://o.org/"]
    index.add("c", [])
    assert set(text_indexes.urls(index, "waited")) == {"http://o.org/", "http://w.org/"}
    index.add("d", [])
    assert index.total() == 2


def test_a_crash_just_before_the_commit_changes_nothing(index, tmp_path, monkeypatch):
    index.add("a", many(10))
    before = states_in(index)
    real = tantivy_commit.write

    def crash(folder, commit):
        if folder == tmp_path / "text":
            raise KeyboardInterrupt
        real(folder, commit)

    with monkeypatch.context() as patched:
        patched.setattr(tantivy_commit, "write", crash)
        with pytest.raises(KeyboardInterrupt):
            index.add("b", many(10, "20210101000000", "other words of"))
    assert len(list((tmp_path / "text").glob("*.store"))) == 2
    assert len(list((tmp_path / "text").glob("*.del"))) == 1
    assert (states_in(index), index.containers()) == (before, {"a"})
    index.add("b", many(10, "20210101000000", "other words of"))
    assert index.total() == 20
    known = {segment.name for segment in tantivy_commit.read(tmp_path / "text").segments}
    assert {path.name.partition(".")[0] for path in (tmp_path / "text").glob("*.store")} == known


# --- compaction ---


def test_small_segments_are_merged(index, engine, tmp_path):
    for number in range(20):
        index.add(str(number), [page(f"http://a.org/{number}"), page(timestamp=f"{2000 + number}0101000000")])
    before = states_in(index), index.containers()
    index.compact(engine, most_dead=1.0)
    assert len(tantivy_commit.read(tmp_path / "text").segments) < 3
    assert (states_in(index), index.containers()) == before
    names = {path.name.partition(".")[0] for path in (tmp_path / "text").glob("*.store")}
    assert len(names) < 3  # and the files of the others are gone


@pytest.mark.parametrize("segments", [20, 3], ids=["merged", "rewritten"])
def test_what_is_replaced_during_a_compaction_stays_replaced(index, tmp_path, segments):
    folder = tmp_path / "text"
    for number in range(segments):
        index.add(str(number), [page(f"http://a.org/{number}", text=f"first {number}"), *many(5)])
    index.add("waits", [page("http://w.org/", text="", digest="later", repeats=True)])
    (tmp_path / "merging").mkdir()
    job = tantivy_merge.start(folder, tmp_path / "merging", tantivy_commit.read(folder).segments)
    merged = tantivy_merge.run(job)
    index.add("new", [page("http://a.org/1", "20210101000000", text="second")])
    index.add("original", [page("http://o.org/", text="waited for", digest="later")])
    index.remove("0", [("c", capture_of("http://a.org/0", "first 0"))])
    before = states_in(index), index.containers()
    assert tantivy_merge.finish(folder, job, merged)
    assert (states_in(index), index.containers()) == before
    assert set(text_indexes.urls(index, "waited")) == {"http://o.org/", "http://w.org/"}
    index.add("again", [page("http://o.org/2", text="waited for", digest="later")])
    assert index.find(TextQuery(words=("waited",))).pages == 3
    (tmp_path / "late").mkdir()
    job = tantivy_merge.start(folder, tmp_path / "late", tantivy_commit.read(folder).segments)
    merged = tantivy_merge.run(job)
    index.clear()
    assert not tantivy_merge.finish(folder, job, merged)
    assert states_in(index) == []


def capture_of(url, text):
    return Capture(
        key=key_of(url),
        url=url,
        timestamp="20200101000000",
        digest=f"digest of {text}",
        kind=RecordKind.RESPONSE,
        status=200,
        mime="text/html",
        location=Location(container="0", offset=0, length=1),
    )


def test_processes_that_begin_at_the_same_time_create_one_index(tmp_path):
    """Two portals of a new archive, for example."""
    begin = threading.Barrier(8)

    def work(number):
        begin.wait()
        index = TantivyTextIndex(tmp_path / "text", memory_bytes=16 << 20)
        index.add(str(number), [page(f"http://{number}.org/")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(urls(TantivyTextIndex(tmp_path / "text"), "words")) == 8
