"""Decides whether a request with a body only reads.

    GraphQL    a JSON body whose operations are queries (https://spec.graphql.org/October2021/#sec-Document)
    searches   the path ends as those of search engines do: `_search`, `queries`, `sparql`

Everything else may order, vote, write or delete, and is not sent.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

MOST_BODY_BYTES = 1 << 16
"""Longer bodies are not sent, because the capture index reads no more of a request."""
_JSON = frozenset({"application/json", "application/graphql+json", "text/plain", ""})
_SEARCHES = frozenset(
    {
        *("search", "_search", "_msearch", "msearch", "multi-search", "multi_search", "query", "queries"),
        *("sparql", "suggest", "suggestions", "autocomplete", "facets"),
    }
)
_DATABASES = frozenset({"query", "queries", "sparql"})
_FORM = "application/x-www-form-urlencoded"
_SEARCH_TYPES = _JSON | {
    _FORM,
    "application/x-ndjson",
    "application/sparql-query",
}
_TOKEN = re.compile(r'"(?:[^"\\\r\n]|\\.)*+"?|#[^\r\n]*|[{}]|\w+')


def reads_only(url: str, method: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a request only reads. The names of `headers` are in lower case."""
    if method in ("GET", "HEAD"):
        return True
    mime = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method != "POST" or not 0 < len(body) <= MOST_BODY_BYTES:
        return False
    if mime == "application/graphql":
        return _is_query(body.decode("utf-8", "replace"))
    operations = _operations(body) if mime in _JSON else []
    if operations:
        return all(map(_is_query, operations))
    name = urlsplit(url).path.rpartition("/")[2].lower()
    if mime == _FORM and name in _DATABASES and not body.startswith(b"{"):
        # A form may also hold an update (SPARQL 1.1 Protocol, 2.2.2); Algolia calls its JSON a form.
        return False
    return mime in _SEARCH_TYPES and name in _SEARCHES


def _operations(body: bytes) -> list[str]:
    """The GraphQL documents of a request, or of several sent together; none if it is something else."""
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError):
        return []
    requests = given if isinstance(given, list) else [given]
    documents = [request.get("query") for request in requests if isinstance(request, dict)]
    operations = [document for document in documents if isinstance(document, str) and "{" in document]
    return operations if len(operations) == len(requests) else []


def _is_query(document: str) -> bool:
    """Whether all operations of a document are queries. False if it has a block string, whose braces would be
    counted as braces of the document.
    """
    if '"""' in document:
        return False
    depth, is_first, kinds = 0, True, set()
    for lexeme in _TOKEN.findall(document):
        if lexeme[0] in '"#':
            continue
        if lexeme == "}":
            depth, is_first = depth - 1, depth == 1
            continue
        if is_first and depth == 0:
            kinds.add(lexeme)
            is_first = False
        depth += lexeme == "{"
    return depth == 0 and bool(kinds) and kinds <= {"query", "fragment", "{"}
