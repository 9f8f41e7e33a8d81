"""What is particular to the Tantivy index: stems, other versions, crashes, memory, cost."""

import shutil
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

import text_indexes
from webdepot.errors import Conflict
from webdepot.index.text import tantivy_add, tantivy_find, tantivy_query
from webdepot.index.text.tantivy_index import TantivyTextIndex
from webdepot.ports import ClosedArea, TextQuery
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
        from webdepot.index.text import tantivy_add, tantivy_index
        index = tantivy_index.TantivyTextIndex(Path(sys.argv[1]), memory_bytes=16 << 20)
        index.add("whole", [page(f"http://a.org/{at}") for at in range(100)])
        real = tantivy_add.Adding.page
        def killed(self, key, pages):
            real(self, key, pages)
            if self.added > 500:
                os.kill(os.getpid(), 9)
        tantivy_add.Adding.page = killed
        index.add("torn", [page(f"http://a.org/{at}", "20210101000000", "other " * 2000) for at in range(1000)])
    """
    folder = tmp_path / "text"
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(folder), str(Path(__file__).parent.parent)],
        check=False,
    )
    assert ended.returncode == -9
    assert list(folder.glob("sorting-*"))
    index = TantivyTextIndex(folder, memory_bytes=16 << 20)
    assert index.containers() == {"whole"}
    assert index.find(TextQuery(words=("words",))).pages == 100
    assert (
        index.add("torn", [page(f"http://a.org/{at}", "20210101000000", "other") for at in range(1000)])
        == 1000
    )
    assert index.find(TextQuery(words=("other",))).pages == 1000
    assert index.find(TextQuery(words=("words",), as_of=from_timestamp("2022"))).pages == 0
    assert not list(folder.glob("sorting-*"))


def test_pages_that_do_not_fit_into_memory_are_sorted_on_disk(tmp_path):
    unsorted = [
        page(f"http://{number % 7}.org/{number}", f"2020{number % 12 + 1:02d}01000000", "x" * 1000)
        for number in range(200)
    ]
    ordered = list(tantivy_add.in_order(iter(unsorted), tmp_path, 50_000))
    assert len(list(tmp_path.iterdir())) > 3
    assert ordered == sorted(unsorted, key=lambda one: (one.key, one.timestamp))


def test_a_new_capture_touches_only_the_state_it_follows(index, monkeypatch):
    index.add(
        "history",
        [page(timestamp=f"{year}0101000000", text=f"words of {year}") for year in range(1996, 2020)],
    )
    written = []
    real = tantivy_add.Adding.document
    monkeypatch.setattr(
        tantivy_add.Adding, "document", lambda self, fields: (written.append(fields), real(self, fields))
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
    for prefix, but in (
        ("org,example)/a", ("org,example)/a.", "org,example)/a(")),
        ("org,example)/a+", ()),
        ("org,example)/", ("org,example)/x/1",)),
    ):
        for first in ("0" * 14, "2019" + "0" * 10):
            closed = ClosedArea(prefix=prefix, but=but, first=first)
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
