"""Properties of the index on PostgreSQL: versions, servers that are away, cost."""

import json
import re

import psycopg
import pytest
from test_captures_sqlite import capture

from webdepot import query_budget
from webdepot.archive import Archive
from webdepot.errors import ConfigError, Conflict, RemoteError, TooExpensive
from webdepot.index import postgresql_captures
from webdepot.index.postgresql_captures import PostgresqlCaptureIndex
from webdepot.query_budget import QueryBudget
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.index import indexer


@pytest.fixture(scope="module")
def url(databases):
    return databases.create()


@pytest.fixture(scope="module")
def filled(url):
    index = PostgresqlCaptureIndex(url, name="filled")
    index.add("few.warc.gz", [capture(at, container="few.warc.gz") for at in (1, 9_000)], collection="few")
    many = (capture(at, container="many.warc.gz") for at in range(5_000, 10_000))
    index.add("many.warc.gz", many, collection="many")
    with index._schema.transaction() as connection:
        connection.execute("ANALYZE filled.captures")
    yield index
    index.close()


def plan_of(index, query, values):
    """The plan with which a query is really run: prepared once, for all values."""
    for _ in range(8):
        index._rows(query, values)
    names = list(dict.fromkeys(re.findall(rb"%\((\w+)\)s", query)))
    statement = query
    for number, name in enumerate(names, start=1):
        statement = statement.replace(b"%%(%s)s" % name, b"$%d" % number)
    connection = index._schema._idle[-1].connection
    known = connection.execute("SELECT name, statement FROM pg_prepared_statements").fetchall()
    (prepared,) = [name for name, text in known if text.encode() == statement]
    given = ", ".join(["%s"] * len(names))
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {prepared}" + (f" ({given})" if names else "")
    ordered = [values[name.decode()] for name in names]
    return psycopg.ClientCursor(connection).execute(explain, ordered).fetchone()[0][0]["Plan"]


def rows_read(index, question, monkeypatch):
    """How many rows the steps of the plans of a question return or skip: cost without a clock."""
    asked, rows = [], index._rows
    monkeypatch.setattr(
        index, "_rows", lambda query, values: asked.append((query, values)) or rows(query, values)
    )
    question()
    monkeypatch.undo()

    def count(node):
        own = node["Actual Rows"] + sum(
            node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck")
        )
        return own * node["Actual Loops"] + sum(map(count, node.get("Plans", ())))

    plans = [plan_of(index, query, values) for query, values in asked]
    assert plans
    return sum(map(count, plans))


@pytest.mark.parametrize("collection", ["all", "few", "many", "none"])
def test_one_capture_of_five_thousand_costs_what_one_of_ten_costs(filled, collection, monkeypatch):
    key, digest = "org,example)/", "sha1:" + "A" * 32
    questions = [
        lambda: filled.closest(key, "20000101005000", collection=collection),
        lambda: filled.first(key, collection=collection),
        lambda: filled.last(key, collection=collection),
        lambda: filled.before(key, "20000101005000", collection=collection),
        lambda: filled.after(key, "20000101005000", collection=collection),
        lambda: list(filled.versions(key, limit=1)),
        lambda: list(filled.scan(key, "org,example)0", limit=1)),
        lambda: list(filled.scan("org,", "org-", limit=1)),
        lambda: filled.find_digests([(digest, "http://other.org/")]),
        lambda: filled.years(collection),
    ]
    assert max(rows_read(filled, question, monkeypatch) for question in questions) < 200
    assert rows_read(filled, lambda: filled.count(key), monkeypatch) > 5_000  # what walking through all costs


def test_a_query_is_repeated_when_the_server_has_cut_the_connections(filled, databases):
    assert filled.total() == 5_002
    databases.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'webdepot' AND pid <> pg_backend_pid()"
    )
    assert filled.total() == 5_002
    filled.add("more.warc.gz", [capture(1, container="more.warc.gz")], collection="c")
    filled.remove("more.warc.gz")


def test_a_query_ends_with_the_budget_of_its_request(filled):
    with pytest.raises(TooExpensive), query_budget.spending(QueryBudget(0.05)):
        filled._rows(b"SELECT pg_sleep(60)", {})
    assert filled.total() == 5_002
    assert filled._rows(b"SHOW statement_timeout", {}) == [("0",)]


def test_a_server_that_does_not_answer_and_a_missing_database_are_named(url):
    with pytest.raises(RemoteError, match="does not answer") as error:
        PostgresqlCaptureIndex("postgresql://webdepot@127.0.0.1:1/archive", password="hidden-word")
    assert "hidden-word" not in str(error.value)
    with pytest.raises(ConfigError, match="createdb"):
        PostgresqlCaptureIndex(url.replace("/archive_", "/no_archive_"))


def test_a_user_who_may_not_create_the_tables_is_told_what_to_grant(url, databases):
    databases.run("CREATE ROLE stranger LOGIN")
    with pytest.raises(ConfigError, match="GRANT CREATE ON DATABASE"):
        PostgresqlCaptureIndex(url.replace("webdepot@", "stranger@"), name="theirs")


def test_the_address_of_a_server_is_needed(home):
    (home / "webdepot.toml").write_text('[index]\ncaptures = "postgresql"\n')
    with pytest.raises(ConfigError, match=r"Set \[database\] url"):
        Archive.open(home)
    assert any("Set [database] url" in check.message for check in doctor.examine(home))


def test_two_machines_share_the_index_and_tables_of_another_version_are_made_again(databases, tmp_path):
    address = databases.create()
    homes = [tmp_path / name for name in ("first", "second")]
    for home in homes:
        setup.create(home, settings=f'[database]\nurl = "{address}"\n[index]\ncaptures = "postgresql"\n')
    with Archive.open(homes[0]) as here, Archive.open(homes[1]) as there:
        here.captures.add("a.warc.gz", [capture(1)], collection="c")
        assert there.captures.closest("org,example)/", "2000") == capture(1)
        there.captures.remove("a.warc.gz")
        assert here.captures.total() == 0
    assert not list(tmp_path.rglob("captures.db"))
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE webdepot_captures.meta SET value = '0' WHERE name = 'schema'")
    with Archive.open(homes[0]) as here:
        with pytest.raises(Conflict, match=r"made by another version.*webdepot index rebuild"):
            here.captures.total()
        assert "made by another version" in json.dumps([check.message for check in doctor.examine(homes[0])])
        assert indexer.rebuild(here).failed == {}
        assert here.captures.total() == 0
    postgresql_captures.remove_tables(address)
