"""Tables for research: what is in them, which files they are written to, and what access rules keep out."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from museum import EDITIONS, NOW, PICTURE, SITE, Warc, make_home

from webdepot.access.policy import ANYONE, AccessPoint, Reader, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError
from webdepot.harvest import harvest_rows
from webdepot.services.access import rules
from webdepot.services.harvest import harvests
from webdepot.services.index import research_tables
from webdepot.services.index.research_tables import COLUMNS, Derivative
from webdepot.services.quality import identification
from webdepot.url import address_of_key, key

STAFF = Reader.staff("Ada")


@pytest.fixture(scope="module")
def researched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    folder = tmp_path_factory.mktemp("research")
    warc = Warc(folder / "research.warc.gz")
    for stamp in EDITIONS[:2]:
        year = stamp[:4]
        page = f"<title>Clocks {year}</title><p>Clocks of {year}. <a href='http://towers.example.net/big'>Towers</a>"
        warc.response(f"{SITE}/", stamp, page.encode())
    warc.response(f"{SITE}/picture.png", EDITIONS[0], PICTURE, mime="image/png")
    warc.response(f"{SITE}/gone", EDITIONS[0], b"gone", status="404 Not Found")
    secret = b"<title>Secret</title><p>A closed page. <a href='http://other.example.com/'>Other</a>"
    warc.response("http://closed.example/page", EDITIONS[0], secret)
    home = make_home(folder / "home", warc.write())
    with Archive.open(home, clock=lambda: NOW) as archive:
        with archive.database.reading() as connection:
            (harvest,) = harvest_rows.latest(connection, 5)
        identification.identify(archive, harvests.get(archive, harvest.id))
        rules.add(archive, "closed.example", answer=RuleAnswer.HIDE, reason="court")
        yield archive


def read(archive: Archive, table: Derivative, folder: Path, reader: Reader = ANYONE) -> list[dict]:
    """The rows of a table, the same from both forms."""
    paths = [folder / f"{table.value}-{reader.name}.{form}" for form in ("parquet", "csv")]
    counts = [research_tables.derive(archive, table, path, reader=reader) for path in paths]
    rows = pyarrow.parquet.read_table(paths[0]).to_pylist()
    assert counts == [len(rows)] * 2
    lines = list(csv.reader(io.StringIO(paths[1].read_text(encoding="utf-8"), newline="")))
    assert (
        lines[0] == [name for name, _ in COLUMNS[table]] == list(pyarrow.parquet.read_schema(paths[0]).names)
    )
    assert len(lines) == len(rows) + 1
    for line, row in zip(lines[1:], rows, strict=True):
        for cell, value in zip(line, row.values(), strict=True):
            assert cell == (
                value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "strftime") else str(value)
            )
    return rows


def test_hosts_are_counted(researched: Archive, tmp_path: Path):
    (row,) = read(researched, Derivative.DOMAINS, tmp_path)
    assert (row["domain"], row["host"]) == ("example.org", "example.org")
    assert [row[name] for name in ("captures", "pages", "images", "documents", "errors")] == [4, 2, 1, 0, 1]
    assert (row["first"].year, row["last"].year) == (2009, 2012)
    rule = rules.every(researched)[0]
    rules.remove(researched, rule.id)
    rules.add(
        researched, "closed.example", answer=RuleAnswer.HIDE, reason="court", access_point=AccessPoint.PUBLIC
    )
    hosts = [row["host"] for row in read(researched, Derivative.DOMAINS, tmp_path, STAFF)]
    assert hosts == ["closed.example", "example.org"]


def test_links_between_sites_are_listed(researched: Archive, tmp_path: Path):
    rows = read(researched, Derivative.WEB_GRAPH, tmp_path)
    assert [(row["captured"].year, row["source_domain"], row["target"], row["text"]) for row in rows] == [
        (2009, "example.org", "towers.example.net/big", "Towers"),
        (2012, "example.org", "towers.example.net/big", "Towers"),
    ]
    assert {row["target_domain"] for row in rows} == {"example.net"}


def test_texts_are_listed_with_title_and_language(researched: Archive, tmp_path: Path):
    rows = read(researched, Derivative.TEXT, tmp_path)
    assert [(row["title"], row["url"]) for row in rows] == [
        ("Clocks 2009", f"{SITE}/"),
        ("Clocks 2012", f"{SITE}/"),
    ]
    assert "Clocks of 2009" in rows[0]["text"] and rows[0]["format"].startswith("fmt/")


def test_pictures_are_listed_with_their_size(researched: Archive, tmp_path: Path):
    (row,) = read(researched, Derivative.IMAGES, tmp_path)
    assert (row["file_name"], row["width"], row["height"]) == ("picture.png", 2, 2)
    assert row["size"] == len(PICTURE) and row["format"].startswith("fmt/")


def test_a_collection_that_is_empty_gives_an_empty_table(researched: Archive, tmp_path: Path):
    for table in Derivative:
        path = tmp_path / f"{table.value}.parquet"
        assert research_tables.derive(researched, table, path, reader=ANYONE, collection="nothing") == 0
        assert pyarrow.parquet.read_table(path).num_rows == 0


def test_what_a_rule_closes_is_left_out_and_back_when_it_ends(researched: Archive, tmp_path: Path):
    (closed,) = rules.every(researched)
    hidden = [row for table in Derivative for row in read(researched, table, tmp_path)]
    assert "closed.example" not in str(hidden) and "Secret" not in str(hidden)
    rules.remove(researched, closed.id)
    try:
        (tmp_path / "open").mkdir()
        assert "closed.example" in str(read(researched, Derivative.DOMAINS, tmp_path / "open"))
        assert "Secret" in str(read(researched, Derivative.TEXT, tmp_path / "open"))
        assert "other.example.com" in str(read(researched, Derivative.WEB_GRAPH, tmp_path / "open"))
    finally:
        rules.add(researched, "closed.example", answer=RuleAnswer.HIDE, reason="court")


def test_a_file_is_neither_overwritten_nor_left_half_written(researched: Archive, tmp_path: Path):
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        research_tables.derive(researched, Derivative.TEXT, tmp_path / "x.xlsx", reader=ANYONE)
    (tmp_path / "x.csv").write_text("mine")
    with pytest.raises(Conflict):
        research_tables.derive(researched, Derivative.TEXT, tmp_path / "x.csv", reader=ANYONE)
    assert (tmp_path / "x.csv").read_text() == "mine"


@pytest.mark.parametrize(
    "url, address",
    [
        ("http://www.Example.org/A/?b=1", "example.org/a?b=1"),
        ("https://example.org:8443/", "example.org:8443/"),
        ("http://127.0.0.1/x", "127.0.0.1/x"),
        ("urn:isbn:1", "urn:isbn:1"),
    ],
)
def test_the_address_of_a_key_is_readable(url: str, address: str):
    assert address_of_key(key(url)) == address
