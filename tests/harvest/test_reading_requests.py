"""Requests with a body that are recognised as only reading."""

import json

import pytest

from webdepot.harvest.browser.reading_requests import MOST_BODY_BYTES, reads_only

GRAPHQL = "http://api.example/graphql"
JSON = "application/json; charset=utf-8"


@pytest.mark.parametrize(
    "document",
    [
        "{ ships { name } }",
        'query Ships($name: String = "mutation {") { ships(name: $name) { name } }',
        "# mutation\nquery A { a } query B { b }",
        "fragment F on Ship { name } query { ships { ...F mutation } }",
    ],
)
def test_graphql_queries_only_read(document: str):
    body = {"query": document, "variables": {"n": 1}}
    for given in (body, [body, body]):
        assert reads_only(GRAPHQL, "POST", {"content-type": JSON}, json.dumps(given).encode())
    assert reads_only(GRAPHQL, "POST", {"content-type": "application/graphql"}, document.encode())


@pytest.mark.parametrize(
    "document",
    [
        "mutation { sink(ship: 1) { name } }",
        "subscription S { ships { name } }",
        "query A { a } mutation B { b }",
        "fragment F on Ship { name } mutation { sink { ...F } }",
        "# a comment ends with the line\rmutation { sink }",
        'query A($x: String = """\n{\n""") { a } mutation B { b }',
        'query A { a(x: "}) } mutation B { b }',
        "query A { a",
        "",
    ],
)
def test_other_graphql_operations_may_change_something(document: str):
    query, body = {"query": "{ ships { name } }"}, {"query": document}
    for given in (body, [query, body]):
        assert not reads_only(GRAPHQL, "POST", {"content-type": JSON}, json.dumps(given).encode())
    assert not reads_only(GRAPHQL, "POST", {"content-type": "application/graphql"}, document.encode())


@pytest.mark.parametrize(
    ("path", "mime"),
    [
        ("/ships/_search", "application/json"),
        ("/1/indexes/*/queries?key=1", "application/x-www-form-urlencoded"),
        ("/sparql", "application/sparql-query"),
    ],
)
def test_requests_to_a_search_only_read(path: str, mime: str):
    assert reads_only(f"http://api.example{path}", "POST", {"content-type": mime}, b'{"size": 10}')
    assert not reads_only(f"http://api.example{path}", "PUT", {"content-type": mime}, b'{"size": 10}')


@pytest.mark.parametrize(
    ("path", "mime", "body"),
    [
        ("/orders", JSON, b'{"ship": 1}'),
        ("/search/saved", JSON, b'{"q": "x"}'),
        ("/search", "multipart/form-data; boundary=a", b"--a--"),
        ("/search", JSON, b""),
        ("/search", JSON, b" " * (MOST_BODY_BYTES + 1)),
        ("/graphql", JSON, b"[" * 60_000),
        ("/graphql", JSON, b'{"extensions": {"persistedQuery": {"sha256Hash": "ab"}}}'),
    ],
)
def test_everything_else_is_not_known_to_read(path: str, mime: str, body: bytes):
    assert not reads_only(f"http://api.example{path}", "POST", {"content-type": mime}, body)


@pytest.mark.parametrize(
    "body", [b"update=DELETE+WHERE+%7B%3Fs+%3Fp+%3Fo%7D", b"query=x&update=y", b"q=DROP+DATABASE+ships"]
)
@pytest.mark.parametrize("path", ["/sparql", "/query", "/queries"])
def test_a_form_for_a_database_may_change_something(path: str, body: bytes):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert not reads_only(f"http://api.example{path}", "POST", headers, body)
