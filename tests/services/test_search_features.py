"""Search beyond the list of hits: facets, suggestions, trends, reasons, exports, saved searches, link
texts.
"""

import csv
import io
import json
import zipfile
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from test_search import FIRST, SECOND, closing, container, found, taken
from warcio.archiveiterator import ArchiveIterator

from databases import configure, copy_home
from webdepot.access import saved_search_rows
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot.bundle import zipped
from webdepot.errors import InputError, NotFound
from webdepot.exchange import catalogue
from webdepot.formats.tables import identifications
from webdepot.harvest import harvest_rows
from webdepot.model import Purpose
from webdepot.ports.search import ClosedArea, Facet, PagePart
from webdepot.selection import targets
from webdepot.services.access import link_texts, search
from webdepot.services.access.export import export
from webdepot.services.access.export.export import ExportForm
from webdepot.services.admin import setup
from webdepot.services.depot import deposit_records
from webdepot.services.index import indexer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LINKING = (
    (
        "http://third.org/",
        "2014-01-01T00:00:00Z",
        '<p>See <a href="http://other.org/">the famous windmill</a>.',
    ),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("more")
    setup.create(folder / "home")
    configure(folder / "home", "[index]\nworkers = 1\n")
    with Archive.open(folder / "home", agent="test") as archive:
        taken(archive, container(folder / "first.warc.gz", *FIRST), "one")
        taken(archive, container(folder / "second.warc.gz", *SECOND, *LINKING), "two")
    return folder / "home"


@pytest.fixture
def archive(home, tmp_path):
    copy_home(home, tmp_path / "home")
    with Archive.open(tmp_path / "home", agent="test") as opened:
        yield opened


def test_a_star_stands_for_the_end_of_a_word(archive):
    whole = {hit.key for hit in found(archive, "lighthouse").hits}
    assert {hit.key for hit in found(archive, "LightH*").hits} >= whole
    assert found(archive, "lighth* -lighthouse").pages == 0
    assert found(archive, "zzz* OR lighth*").pages == len(whole)
    assert found(archive, "zzz*").pages == 0
    assert not found(archive, "lighth*").cut_stars
    assert "lighthouse" in found(archive, "lighth*").hits[0].snippet.lower()
    reasons = search.explain(archive, "lighth*", sorted(whole)[0], reader=ANYONE).reasons
    assert {reason.word for reason in reasons} == {"lighthouse"}
    with pytest.raises(InputError, match="before the star"):
        found(archive, "l*")
    with pytest.raises(InputError, match="at most 2 words with a star"):
        found(archive, "aa* bb* cc*")


def test_the_most_frequent_words_are_searched_for_a_star_and_the_rest_is_said(archive, tmp_path):
    many = " ".join(f"prefix{number:03d}" for number in range(search.MOST_ENDINGS + 5))
    pages = [
        ("http://many.org/", "2014-01-01T00:00:00Z", f"<p>{many}"),
        *((f"http://often.org/{number}", "2014-01-01T00:00:00Z", "<p>prefixzzz") for number in range(3)),
    ]
    taken(archive, container(tmp_path / "many.warc.gz", *pages), "one")
    page = found(archive, "prefix*")
    assert page.cut_stars == ["prefix*"] and page.pages == 4
    assert not found(archive, "prefix00*").cut_stars


def test_facets_and_months(archive):
    page = found(archive, "lighthouse", facets=search.EVERY_FACET)
    assert dict(page.facets[Facet.COLLECTION]) == {"one": 2, "two": 1}
    assert dict(page.months) == {201001: 1, 201101: 1, 201106: 1, 201301: 1}


def test_suggestions_and_spelling_offer_only_what_can_be_found(archive):
    assert search.suggest(archive, "old light", reader=ANYONE) == ["old lighthouse"]
    assert search.suggest(archive, "l", reader=ANYONE) == []
    assert found(archive, "lihgthouse").spelling == "lighthouse"
    assert found(archive, "lighthouse").spelling == ""
    assert found(archive, "zzzzzz").spelling == ""
    closing(archive, "org,example)")
    assert search.suggest(archive, "light", reader=ANYONE) == []
    assert found(archive, "lihgthouse").spelling == ""


def test_a_trend_has_every_word_and_the_volume(archive):
    trend = search.trend(archive, ["lighthouse", "harbour"], reader=ANYONE)
    assert trend.words["lighthouse"] == {2010: 1, 2011: 2, 2013: 1}
    assert trend.words["harbour"] == {2012: 1}
    assert sum(trend.volume.values()) == 7
    with pytest.raises(InputError, match="at most"):
        search.trend(archive, ["x"] * 7, reader=ANYONE)


def test_why_a_page_was_found(archive):
    why = search.explain(archive, "lighthouse home", "org,example)/", reader=ANYONE)
    assert {(reason.word, reason.part, reason.count) for reason in why.reasons} == {
        ("lighthouse", "text", 1),
        ("home", "title", 1),
        ("home", "home", 1),
    }
    assert [state.timestamps for state in why.states] == [
        ("20100101000000", "20110101000000"),
        ("20130101000000",),
    ]
    closing(archive, "org,example)/")
    with pytest.raises(NotFound):
        search.explain(archive, "lighthouse", "org,example)/", reader=ANYONE)


@pytest.mark.parametrize("engine", ["tantivy", "sqlite"])
def test_why_this_hit_shows_the_weights_that_the_engine_ranks_by(tmp_path, engine):
    setup.create(tmp_path / "home")
    configure(tmp_path / "home", f'[index]\nworkers = 1\nengine = "{engine}"\n')
    record = ("http://mill.org/", "2014-01-01T00:00:00Z", "<title>Windmill</title><p>Open today.")
    with Archive.open(tmp_path / "home", agent="test") as archive:
        taken(archive, container(tmp_path / "mill.warc.gz", record), "one")
        archive.texts.anchor([("org,mill)/", "the windmill", "windmill, opening hours")], archive.engine)
        why = search.explain(archive, "windmill", "org,mill)/", reader=ANYONE)
    shown = {reason.part: reason.weight for reason in why.reasons}
    home = {"home": 1.0} if engine == "tantivy" else {}  # SQLite does not count a home page's title twice
    assert shown == {"title": 5.0, "anchor": 5.0, "anchor_own": 2.0, **home}


def test_link_texts_lead_to_the_page_they_point_to(archive):
    assert [hit.url for hit in found(archive, "anchor:windmill").hits] == ["http://other.org/"]
    states = archive.texts.scan(search.ask(archive, "anchor:windmill", reader=ANYONE))
    assert [state.anchors for state in states] == ["the famous windmill"]
    assert search.ask(archive, "anchor:x", reader=ANYONE).parts == ((PagePart.ANCHOR, "x"),)


def test_links_on_a_page_that_is_closed_say_nothing_at_once(archive):
    closing(archive, "org,third)")
    assert found(archive, "windmill").pages == found(archive, "anchor:windmill").pages == 0
    with pytest.raises(NotFound):
        search.explain(archive, "windmill", "org,other)/", reader=ANYONE)
    closing(archive, "org,nowhere)")
    indexer.update(archive)
    assert found(archive, "windmill").pages == 0
    assert search.ask(archive, "windmill", reader=ANYONE).anchors


def test_links_on_pages_that_stay_open_are_searched_again_after_the_next_update(archive):
    closing(archive, "org,example)/page")
    assert found(archive, "anchor:windmill").pages == 0
    indexer.update(archive)
    assert [hit.url for hit in found(archive, "anchor:windmill").hits] == ["http://other.org/"]


def test_an_embargo_that_moves_on_changes_nothing_until_the_next_month():
    def embargo(day):
        return ClosedArea(prefix="org,", first=f"202605{day}000000")

    assert link_texts._keep_moving_embargoes((embargo("02"),), (embargo("01"),)) == (embargo("01"),)
    assert link_texts._keep_moving_embargoes(
        (ClosedArea(prefix="org,", first="20260601000000"),), (embargo("01"),)
    ) != (embargo("01"),)
    assert link_texts._keep_moving_embargoes((embargo("01"),), (embargo("02"),)) == (embargo("01"),)
    stored = json.dumps([["org,", [], "20260501000000", "9" * 14]]).encode()
    assert link_texts._were_closed(stored, (embargo("02"),))
    assert not link_texts._were_closed(stored, (ClosedArea(prefix="org,"),))


def test_areas_are_stored_beside_the_index_with_all_they_say(archive):
    areas = (
        ClosedArea(prefix="org,a)/x", exact=True, first="20260501000000"),
        ClosedArea(prefix="org,a)", but=("org,a)/y",), but_keys=frozenset({"org,a)/x", "org,a)/"})),
    )
    link_texts._write(archive, areas)
    assert link_texts._parse(link_texts._read(archive)) == areas
    assert link_texts.may_be_searched(archive, areas)
    assert not link_texts.may_be_searched(archive, (ClosedArea(prefix="org,a)/x", first="20260501000000"),))
    assert not link_texts.may_be_searched(archive, (ClosedArea(prefix="org,a)", but=("org,a)/y",)),))


def test_a_container_that_is_gone_leaves_both_indexes_and_its_links(archive):
    with archive.database.transaction() as connection:
        known = {container.name: container.harvest for container in locations.iter_all(connection)}
        locations.remove_of_harvest(
            connection, next(harvest for name, harvest in known.items() if "second" in name)
        )
    before = sum(found(archive, "lighthouse").years.values())
    indexer.update(archive)
    assert found(archive, "windmill").pages == found(archive, "anchor:windmill").pages == 0
    assert sum(found(archive, "lighthouse").years.values()) < before
    status = indexer.status(archive)
    assert status.containers == status.with_words == status.with_captures == 1


def described(archive):
    """A site of the catalogue with a slice."""
    with archive.database.transaction() as connection:
        target, _ = targets.register(
            connection,
            ["http://example.org/"],
            name="Windvane museum",
            collection="one",
            purpose=Purpose.HERITAGE,
            now=NOW,
        )
        site = replace(
            deposit_records.new_site(archive, target, NOW),
            creators=("Anna Jansen",),
            genre="Museum site",
            keywords=("Weather", "Vanes"),
        )
        catalogue.put(connection, site)
        harvest = next(locations.iter_all(connection)).harvest
        catalogue.put(
            connection, deposit_records.new_slice(archive, site, harvest_rows.get(connection, harvest), NOW)
        )


@pytest.mark.parametrize(
    "text",
    ["windvane museum", "jansen", "author:jansen", 'genre:"museum site"', "keyword:vanes", "example weather"],
)
def test_the_catalogue_is_searched_by_title_author_genre_and_keyword(archive, text):
    described(archive)
    (entry,) = found(archive, text).catalogue
    assert (entry.record.title, entry.address, entry.versions) == (
        "Windvane museum",
        "http://example.org/",
        4,
    )
    assert [part.level.value for part in entry.slices] == ["slice"]


def test_catalogue_terms_restrict_the_search_to_their_sites_and_reveal_nothing_closed(archive):
    described(archive)
    assert found(archive, "kind").pages == 1
    assert found(archive, "kind author:jansen").pages == 0
    assert found(archive, "lighthouse author:jansen").pages == 2
    assert (
        found(archive, "lighthouse author:nobody").pages
        == found(archive, "lighthouse author:jansen site:other.org").pages
        == 0
    )
    for text in ("vane", "author:vanes", "keyword:jansen"):
        assert found(archive, text).catalogue == []
    closing(archive, "org,")
    assert found(archive, "windvane").catalogue == []


def test_formats_have_names(archive):
    page = found(archive, "lighthouse", facets=search.EVERY_FACET)
    assert page.format_names == {}
    digest = next(archive.captures.versions("org,example)/")).digest
    facts = {
        "digest": digest,
        "engine": "x",
        "url": "",
        "size_bytes": 1,
        "server_mime": "",
        "puid": "fmt/96",
        "name": "HTML",
        "version": "4",
    }
    facts |= {
        "server_mime": "",
        "mime": "",
        "basis": "",
        "verdict": "",
        "warning": "",
        "validity": "",
        "findings": [],
        "properties": {},
        "identified_at": NOW,
    }
    with archive.database.transaction() as connection:
        connection.execute(identifications.insert(), facts)
    indexer.rebuild(archive)
    page = found(archive, "lighthouse", facets=search.EVERY_FACET)
    assert page.format_names == {"fmt/96": "HTML 4"}
    assert dict(page.facets[Facet.FORMAT]) == {"fmt/96": 1}, "two states of one page"


def exported(archive, form, text="lighthouse"):
    return b"".join(export.export(archive, text, form, reader=ANYONE))


def test_exports_have_every_capture_once(archive):
    rows = list(csv.DictReader(io.StringIO(exported(archive, ExportForm.CSV).decode())))
    expected = {"20100101000000", "20110101000000", "20110601000000", "20130101000000"}
    assert sorted(row["timestamp"] for row in rows) == sorted(expected)
    lines = [json.loads(line) for line in exported(archive, ExportForm.JSONL).splitlines()]
    assert {stamp for line in lines for stamp in line["timestamps"]} == expected
    solr = [json.loads(line) for line in exported(archive, ExportForm.SOLR).splitlines()]
    assert {str(line["wayback_date"]) for line in solr} == expected
    assert {"id", "url", "title", "content", "crawl_year", "source_file_path", "source_file_offset"} <= solr[
        0
    ].keys()


def test_exported_records_are_a_container_that_others_read(archive):
    read = [
        (record.rec_type, record.rec_headers["WARC-Target-URI"], record.rec_headers["WARC-Date"])
        for record in ArchiveIterator(io.BytesIO(exported(archive, ExportForm.WARC)), check_digests="raise")
    ]
    assert {(kind, date[:10]) for kind, _, date in read} == {
        ("response", "2010-01-01"),
        ("revisit", "2011-01-01"),
        ("response", "2011-06-01"),
        ("response", "2013-01-01"),
    }


def test_an_exported_table_is_read_by_arrow(archive):
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(exported(archive, ExportForm.PARQUET))).to_pylist()
    assert [row["captured"].strftime("%Y%m%d") for row in sorted(table, key=lambda row: row["captured"])] == [
        "20100101",
        "20110101",
        "20110601",
        "20130101",
    ]
    (news,) = (row for row in table if row["url"].endswith("news"))
    assert (news["title"], news["text"], news["valid_to"]) == ("News", "A lighthouse was sold.", "")
    assert (
        parquet.read_table(io.BytesIO(exported(archive, ExportForm.PARQUET, "nothing-at-all"))).num_rows == 0
    )


def test_an_exported_wacz_is_whole_and_its_index_leads_to_its_records(archive, tmp_path):
    with zipfile.ZipFile(io.BytesIO(exported(archive, ExportForm.WACZ))) as made:
        assert made.testzip() is None
        zipped.unpack(made, tmp_path / "wacz", 1 << 20)
    assert list(zipped.check_wacz(tmp_path / "wacz")) == []
    lines = (tmp_path / "wacz" / "indexes" / "index.cdx").read_text().splitlines()
    assert len(lines) == 4
    assert lines == sorted(lines)
    with (tmp_path / "wacz" / "archive" / "data.warc.gz").open("rb") as stream:
        for line in lines:
            _, timestamp, facts = line.split(" ", 2)
            place = json.loads(facts)
            stream.seek(int(place["offset"]))
            (record,) = ArchiveIterator(io.BytesIO(stream.read(int(place["length"]))))
            assert record.rec_headers["WARC-Date"].replace("-", "")[:8] == timestamp[:8]
    pages = [
        json.loads(line) for line in (tmp_path / "wacz" / "pages" / "pages.jsonl").read_text().splitlines()
    ]
    assert {page.get("title") for page in pages} == {"All pages", "Home", "News"}


def test_records_of_arc_files_are_exported_as_warc(archive, tmp_path):
    body = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Old</title><p>A zeppelin over the town."
    head = b"filedesc://x.arc 0.0.0.0 19970101000000 text/plain 72\n1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n\n"
    line = b"http://old.org/ 127.0.0.1 19970203040506 text/html %d\n" % len(body)
    (tmp_path / "old.arc").write_bytes(head + line + body + b"\n")
    taken(archive, tmp_path / "old.arc", "old")
    record = next(
        ArchiveIterator(io.BytesIO(exported(archive, ExportForm.WARC, "zeppelin")), check_digests="raise")
    )
    assert (record.rec_headers["WARC-Target-URI"], record.rec_headers["WARC-Date"]) == (
        "http://old.org/",
        "1997-02-03T04:05:06Z",
    )
    assert b"zeppelin" in record.content_stream().read()


def test_exports_leave_out_what_is_closed(archive):
    closing(archive, "org,example)/news")
    for form in ExportForm:
        data = exported(archive, form).lower()
        assert b"news" not in data, form
        assert len(data) > 100


def test_saved_searches_belong_to_a_person(archive):
    with archive.database.transaction() as connection:
        kept = saved_search_rows.save(
            connection, "ann", name="", query="lighthouse", collection="all", now=NOW
        )
        assert (kept.name, saved_search_rows.get(connection, kept.token)) == ("lighthouse", kept)
        saved_search_rows.remove(connection, "bob", kept.token)
        assert saved_search_rows.of_person(connection, "ann") == [kept]
        saved_search_rows.remove(connection, "ann", kept.token)
        assert saved_search_rows.of_person(connection, "ann") == []
        with pytest.raises(NotFound):
            saved_search_rows.get(connection, kept.token)
        with pytest.raises(InputError):
            saved_search_rows.save(connection, "ann", name="x", query=" ", collection="all", now=NOW)


def test_status_shows_how_complete_the_indexes_are(archive):
    done = indexer.status(archive)
    assert (done.containers, done.with_captures, done.with_words, done.captures) == (2, 2, 2, 7)
    assert done.size_bytes > 1000
