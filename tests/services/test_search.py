"""Search as readers use it: real containers, both indexes, access rules, rebuilding."""

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import text_indexes
from databases import configure, copy_home
from webdepot.access import rule_rows
from webdepot.access.policy import ANYONE, AccessPoint, Reader, Rule, RuleAnswer
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import locations
from webdepot.digest import sha1
from webdepot.errors import Conflict, CorruptData, InputError
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestState
from webdepot.ports.search import SearchSort
from webdepot.services.access import lookup, search
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.depot import deposit
from webdepot.services.index import indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched
from webdepot.services.quality import harvest_check
from webdepot.url import key

STAFF = Reader.staff("test")


def container(path, *records):
    """A WARC of (url, date, body) responses; a body of None is a revisit of the URL's earlier bytes."""
    bodies: dict = {}
    with path.open("wb") as stream:
        writer = WARCWriter(stream, gzip=True)
        for url, date, body in records:
            head = StatusAndHeaders(
                "200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1"
            )
            said = {"WARC-Date": date}
            if body is None:
                writer.write_record(
                    writer.create_revisit_record(
                        url, str(sha1(bodies[url])), url, date, http_headers=head, warc_headers_dict=said
                    )
                )
            else:
                bodies[url] = body.encode()
                writer.write_record(
                    writer.create_warc_record(
                        url,
                        "response",
                        payload=io.BytesIO(bodies[url]),
                        length=len(bodies[url]),
                        http_headers=head,
                        warc_headers_dict=said,
                    )
                )
    return path


FIRST = (
    (
        "http://example.org/",
        "2010-01-01T00:00:00Z",
        "<title>Home</title><p>The old lighthouse stands on the coast.",
    ),
    ("http://example.org/", "2011-01-01T00:00:00Z", None),
    ("http://example.org/", "2012-01-01T00:00:00Z", "<title>Home</title><p>The harbour is open."),
    ("http://example.org/news", "2011-06-01T00:00:00Z", "<title>News</title><p>A lighthouse was sold."),
)
SECOND = (
    (
        "https://www.example.org/",
        "2013-01-01T00:00:00Z",
        "<title>Home</title><p>The old lighthouse stands on the coast.",
    ),
    ("http://other.org/", "2013-01-01T00:00:00Z", "<title>Other</title><p>Nothing of that kind."),
)


def taken(archive, path, collection):
    """A container in the archive and its indexes; what else an import does is not needed here."""
    return indexer.index_harvest(
        archive, warc_files.take_files(archive, [path], collection=collection, watch=unwatched).harvest.id
    )


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled")
    setup.create(folder / "home")
    configure(folder / "home", "[index]\nworkers = 1\n")
    with Archive.open(folder / "home", agent="test") as archive:
        taken(archive, container(folder / "first.warc.gz", *FIRST), "one")
        taken(archive, container(folder / "second.warc.gz", *SECOND), "two")
    return folder / "home"


@pytest.fixture
def filled(filled_home, tmp_path):
    copy_home(filled_home, tmp_path / "home")
    with Archive.open(tmp_path / "home", agent="test") as archive:
        yield archive


def found(archive, text, **asked):
    return search.search(archive, text, **{"reader": ANYONE, **asked})


def test_pages_with_some_of_the_words_are_offered_if_none_has_all(filled):
    assert not found(filled, "lighthouse sold harbour").hits
    relaxed = found(filled, "lighthouse sold harbour", relax=True)
    assert relaxed.is_relaxed and relaxed.hits[0].url == "http://example.org/news", "it has two of them"
    assert {hit.url for hit in relaxed.hits} >= {"http://example.org/news"} and relaxed.pages == 2
    assert not found(filled, "lighthouse sold", relax=True).is_relaxed
    assert not found(filled, "zeppelin", relax=True).hits


def test_words_of_very_many_pages_do_not_count_if_no_page_has_all_words(filled):
    pages = [f"http://many.org/{number}" for number in range(30)]
    filled.texts.add(
        "many.warc",
        [text_indexes.page(url, text="the old map" if url.endswith("/7") else "the") for url in pages],
    )
    query = search.ask(filled, "the map zeppelin", reader=ANYONE)
    assert search.relaxed(filled, query).alternatives == (("map", "zeppelin"),)
    assert [hit.url for hit in found(filled, "the map zeppelin", relax=True).hits] == ["http://many.org/7"]
    assert found(filled, "the zeppelin", relax=True).pages == 31, "without other words, they are all there is"


def test_a_document_is_called_by_its_title_and_not_by_its_file_name(filled):
    news = lookup.find_closest(
        filled, "http://example.org/news", "20110601000000", collection="one", reader=ANYONE
    )
    url = "http://example.org/leaflet.pdf"
    leaflet = replace(news, url=url, key=key(url), mime="application/pdf")
    assert replay.find_page_title(filled, leaflet) == "leaflet.pdf", "it is not in the index"
    filled.texts.add("more.warc", [text_indexes.page(url, leaflet.timestamp, title="The tower")])
    assert replay.find_page_title(filled, leaflet) == "The tower"


@pytest.mark.parametrize("sort", SearchSort)
def test_the_first_match_is_the_first_version_with_the_words(filled, sort):
    page = found(filled, "harbour", sort=sort)
    assert page.first_matches == {key("http://example.org/"): "20120101000000"}
    assert page.versions[key("http://example.org/")].first == "20100101000000"
    assert found(filled, "lighthouse", sort=sort).first_matches == {
        key("http://example.org/"): "20100101000000",
        key("http://example.org/news"): "20110601000000",
    }


def test_a_page_is_found_once_with_all_its_versions(filled):
    page = found(filled, "lighthouse")
    assert (page.pages, page.exact, dict(page.years)) == (2, True, {2010: 1, 2011: 2, 2013: 1})
    home = next(hit for hit in page.hits if hit.key == "org,example)/")
    assert (home.title, home.mime, home.versions) == ("Home", "text/html", 4)
    assert [home.snippet[start:end] for start, end in home.marks] == ["lighthouse"]
    assert home.versions == lookup.look_up(filled, home.url, reader=ANYONE).timeline.total


def test_time_collection_and_order(filled):
    assert [hit.timestamp for hit in found(filled, "lighthouse as-of:2012-06 site:example.org").hits] == [
        "20110601000000"
    ]
    assert [hit.timestamp for hit in found(filled, "lighthouse after:2013").hits] == ["20130101000000"]
    assert [hit.url for hit in found(filled, "lighthouse", collection="two").hits] == [
        "https://www.example.org/"
    ]
    assert found(filled, "lighthouse", collection="two").hits[0].versions == 1
    assert [hit.timestamp for hit in found(filled, "lighthouse", sort=SearchSort.OLDEST).hits] == [
        "20100101000000",
        "20110601000000",
    ]
    first, second = (found(filled, "lighthouse", limit=1, offset=offset).hits for offset in (0, 1))
    assert first[0].key != second[0].key


def test_a_wrong_query_is_the_readers_error(filled):
    with pytest.raises(InputError, match="is not a date"):
        found(filled, "lighthouse before:never")


def closing(archive, prefix, **said):
    with archive.database.transaction() as connection:
        rule_rows.add(
            connection,
            Rule(
                **{
                    "id": 0,
                    "prefix": prefix,
                    "answer": RuleAnswer.HIDE,
                    "created_at": datetime(2020, 1, 1, tzinfo=UTC),
                    **said,
                }
            ),
        )


def test_closed_pages_are_neither_shown_nor_counted(filled):
    closing(filled, "org,example)/news")
    page = found(filled, "lighthouse")
    assert ([hit.key for hit in page.hits], page.pages, dict(page.years)) == (
        ["org,example)/"],
        1,
        {2010: 1, 2011: 1, 2013: 1},
    )
    closing(filled, "org,example)", answer=RuleAnswer.REFUSE, access_point=AccessPoint.PUBLIC)
    assert (found(filled, "lighthouse").pages, found(filled, "lighthouse", reader=STAFF).pages) == (0, 1)


def test_captures_closed_for_a_time_are_not_counted_as_versions(filled):
    closing(filled, "org,example)/", captured_to="20111231235959")
    page = found(filled, "lighthouse")
    assert [(hit.key, hit.timestamp, hit.versions) for hit in page.hits] == [
        ("org,example)/", "20130101000000", 2)
    ]
    assert dict(page.years) == {2013: 1}


def test_indexing_again_changes_nothing(filled):
    before = found(filled, "lighthouse")
    done = indexer.update(filled)
    assert (done.captures, done.pages, dict(done.failed)) == (0, 0, {})
    assert found(filled, "lighthouse") == before


def test_a_rebuild_gives_the_same_answers(filled):
    before, versions = answer(filled), list(filled.captures.scan("", "~"))
    done = indexer.rebuild(filled)
    assert (done.captures, done.pages) == (6, 6)
    assert answer(filled) == before
    assert list(filled.captures.scan("", "~")) == versions


def answer(archive):
    """What does not depend on how often the index was written: scores do."""
    page = found(archive, "lighthouse")
    return (
        page.pages,
        dict(page.years),
        {(hit.key, hit.timestamp, hit.snippet, hit.versions) for hit in page.hits},
    )


@pytest.mark.parametrize("damage", ["captures.db", "text/meta.json"])
def test_damaged_indexes_are_refused_until_they_are_rebuilt(filled, damage):
    home, expected = filled.home, answer(filled)
    filled.close()
    for name in ("captures.db-wal", "captures.db-shm"):
        (home / "index" / name).unlink(missing_ok=True)
    (home / "index" / damage).write_bytes(b"damaged" * 1000)
    with Archive.open(home, agent="test") as archive:
        with pytest.raises((Conflict, CorruptData), match="webdepot index rebuild"):
            found(archive, "lighthouse")
        assert indexer.rebuild(archive).captures == 6
        assert answer(archive) == expected


def test_a_container_that_is_gone_is_reported_and_does_not_stop_the_others(filled, tmp_path):
    name = sorted(name for name, _ in filled.captures.containers())[0]
    filled.containers.path(name).unlink()
    done = indexer.rebuild(filled)
    assert list(done.failed) == [name]
    assert done.captures in (2, 4)


class DepositingEngine:
    """Runs jobs as the archive does, after another process has deposited its harvests."""

    def __init__(self, archive):
        self.home, self.engine = archive.home, archive.engine

    def map(self, function, items):
        jobs = list(items)
        with Archive.open(self.home) as other:
            with other.database.reading() as connection:
                finished = harvest_rows.in_states(connection, [HarvestState.FINISHED])
            for harvest in finished:
                harvest_check.check(other, harvest)
                deposit.keep(other, harvest)
        return self.engine.map(function, jobs)


@pytest.mark.parametrize("work", [indexer.rebuild, indexer.update])
def test_containers_that_are_deposited_while_they_are_indexed_are_found(filled, work, monkeypatch):
    expected = answer(filled)
    forgotten = [name for name, _ in filled.captures.containers()]
    indexer.forget(filled, forgotten)
    monkeypatch.setattr(Archive, "engine", DepositingEngine(filled))
    done = work(filled)
    assert not done.failed
    assert done.captures == 6
    assert answer(filled) == expected


def test_folders_of_a_killed_run_are_removed(filled):
    left = filled.home / f"{ScratchPurpose.EXTRACT.value}abc"
    left.mkdir()
    (left / "x.cdxj").write_text("x")
    indexer.update(filled)
    assert not left.exists()
    assert not list(filled.home.glob(f"{ScratchPurpose.EXTRACT.value}*"))


def test_a_container_that_one_index_has_lost_is_indexed_again(filled):
    name = sorted(name for name, _ in filled.captures.containers())[0]
    filled.captures.remove(name)
    assert indexer.update(filled).captures in (2, 4)
    assert name in dict(filled.captures.containers())


def test_damage_in_a_container_is_reported(archive, tmp_path):
    path = container(tmp_path / "bad.warc.gz", *FIRST)
    harvest = warc_files.take_files(archive, [path], collection="one", watch=unwatched).harvest
    with archive.database.reading() as connection:
        (kept,) = locations.of_harvest(connection, harvest.id)
    inside = archive.containers.path(kept.name)
    inside.write_bytes(inside.read_bytes()[:-20])
    done = indexer.index_harvest(archive, harvest.id)
    assert done.captures == 3
    assert len(done.findings) == 1
    assert found(archive, "lighthouse").pages == 1
