"""HTTP and JSON to an OpenSearch server: several nodes, persistent connections, errors with advice.

A read tries another node if one does not answer. A write also waits for a while: a node that is restarted or
overloaded should not end the work of hours.
"""

import base64
import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from webdepot import query_budget
from webdepot.errors import RemoteError
from webdepot.reasons import said

_log = logging.getLogger(__name__)
_CONNECT_S = 10.0
_ANSWER_S = 120.0
_PATIENCE_S = 60.0
"""How long a write waits for a server that does not answer or is overloaded."""
_BUSY = frozenset({429, 502, 503, 504})
_MOST_IDLE = 8
_BULK_BYTES = 8 << 20
_LOWEST_VERSION = (2, 19)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Addresses of the server, and the user to authenticate as."""

    urls: tuple[str, ...]
    """Its nodes."""
    user: str = ""
    password: str = ""


class ServerRefusal(Exception):
    """The server refused a request. Caught by callers that expect it."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(f"{kind or status}: {reason}" if reason else kind or str(status))
        self.status = status
        self.kind = kind


class OpenSearchClient:
    """Sends requests to the server. Threads may share it."""

    def __init__(self, address: ServerAddress, *, patience_s: float = _PATIENCE_S) -> None:
        self._nodes = [urlsplit(url) for url in address.urls]
        self._patience_s = patience_s
        self._first = 0
        """The node that answered last."""
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if address.user:
            login = base64.b64encode(f"{address.user}:{address.password}".encode()).decode("ascii")
            self._headers["Authorization"] = f"Basic {login}"

    def read(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request that only reads. RemoteError if no node answers, ServerRefusal if it is
        refused.
        """
        return self._answer(method, path, None if body is None else _encoded(body), patience_s=0.0)

    def write(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a change that may be repeated; waits for a server that does not answer."""
        return self._answer(
            method, path, None if body is None else _encoded(body), patience_s=self._patience_s
        )

    def search(self, index: str, body: Mapping[str, Any], **parameters: str) -> Any:
        """The answer of all shards, never a part of it. TooExpensive if the budget of the request is
        spent.
        """
        query_budget.check()
        left_s = query_budget.left_s()
        if left_s is not None:
            body = {**body, "timeout": f"{max(1, int(left_s * 1000))}ms"}
        parameters["allow_partial_search_results"] = "false"
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        path = f"/{index}/_search?{query}" if index else f"/_search?{query}"
        try:
            answer = self.read("POST", path, body)
        except ServerRefusal as error:
            raise _search_error(error, is_limited=left_s is not None) from error
        if answer.get("timed_out"):
            raise query_budget.too_expensive()
        return answer

    def bulk(self, actions: Iterable[tuple[Mapping[str, Any], Any]]) -> list[Mapping[str, Any]]:
        """The result of each action (`{"index": {...}}` and its document, or None for a deletion), in their
        order. Refused ones are in it with their status; those that were refused because the server is
        overloaded are repeated.
        """
        results: list[Mapping[str, Any]] = []
        lines: list[bytes] = []
        size = 0
        for action, document in actions:
            line = _encoded(action) + b"\n" + (b"" if document is None else _encoded(document) + b"\n")
            if lines and size + len(line) > _BULK_BYTES:
                results += self._bulk(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        return results + (self._bulk(lines) if lines else [])

    def _bulk(self, lines: Sequence[bytes]) -> list[Mapping[str, Any]]:
        until = time.monotonic() + self._patience_s
        results: dict[int, Mapping[str, Any]] = {}
        waiting = list(range(len(lines)))
        while waiting:
            body = b"".join(lines[number] for number in waiting)
            answer = self._answer("POST", "/_bulk", body, patience_s=self._patience_s)
            for number, item in zip(waiting, answer["items"], strict=True):
                (results[number],) = item.values()
            waiting = [number for number in waiting if results[number]["status"] in _BUSY]
            if waiting:
                if time.monotonic() > until:
                    raise self._away(
                        "The search server {server} is overloaded ({why}). Try again later.",
                        retry=True,
                        why=results[waiting[0]].get("error", {}).get("reason", ""),
                    )
                time.sleep(0.5)
        return [results[number] for number in range(len(lines))]

    def version(self) -> str:
        """The version of the server. RemoteError if it is not an OpenSearch that this program can use."""
        try:
            about = self.read("GET", "/")["version"]
            kind, number = about.get("distribution", "Elasticsearch"), str(about["number"])
            parsed = tuple(int(part) for part in number.split(".")[:2])
        except (ServerRefusal, KeyError, TypeError, ValueError) as error:
            raise self._away("{server} is not an OpenSearch server. Check [index] opensearch_url.") from error
        if kind != "opensearch" or parsed < _LOWEST_VERSION:
            raise self._away(
                "The search server {server} is {kind}, but OpenSearch {lowest} or later is needed. Upgrade "
                "it, or set [index] engine = 'tantivy'.",
                kind=f"{kind} {number}",
                lowest=".".join(map(str, _LOWEST_VERSION)),
            )
        return number

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _answer(self, method: str, path: str, body: bytes | None, *, patience_s: float) -> Any:
        until = time.monotonic() + patience_s
        while True:
            try:
                status, answer = self._ask_nodes(method, path, body)
                if status not in _BUSY:
                    break
                why = _reason(answer)[1]
            except (OSError, http.client.HTTPException) as error:
                status, why = 0, str(error) or type(error).__name__
            if time.monotonic() >= until:
                raise self._away(
                    "The search server {server} does not answer ({why}). Check that it runs and that [index] "
                    "opensearch_url is right: webdepot doctor",
                    retry=True,
                    why=why,
                )
            _log.warning("waiting for the search server", extra={"error": why})
            time.sleep(1.0)
        if status in (401, 403):
            raise self._away(
                "The search server {server} refuses the user ({why}). Check [index] opensearch_user and "
                "WEBDEPOT_INDEX_OPENSEARCH_PASSWORD.",
                why=_reason(answer)[1],
            )
        if status >= 400:
            raise ServerRefusal(status, *_reason(answer))
        return answer

    def _ask_nodes(self, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        """The first answer of a node; each is tried once, and again if a kept-alive connection had ended."""
        failure: Exception = http.client.HTTPException("no node")
        for step in range(len(self._nodes)):
            number = (self._first + step) % len(self._nodes)
            for connection in self._connections(number):
                try:
                    if connection.sock is None:
                        _open(connection)
                    connection.request(method, path, body=body, headers=self._headers)
                    response = connection.getresponse()
                    content = response.read()
                except (OSError, http.client.HTTPException) as error:
                    connection.close()
                    failure = error
                    continue
                self._keep(number, connection)
                self._first = number
                if response.status in _BUSY and step + 1 < len(self._nodes):
                    break
                return response.status, _decoded(content)
        raise failure

    def _connections(self, number: int) -> Iterable[http.client.HTTPConnection]:
        """A connection that was used before, if there is one, and then a new one."""
        with self._lock:
            at = next((at for at, (node, _) in enumerate(self._idle) if node == number), None)
            kept = self._idle.pop(at)[1] if at is not None else None
        if kept is not None:
            yield kept
        node = self._nodes[number]
        host = node.hostname or ""
        if node.scheme == "https":
            yield http.client.HTTPSConnection(host, node.port, timeout=_CONNECT_S, context=self._tls)
        else:
            yield http.client.HTTPConnection(host, node.port, timeout=_CONNECT_S)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def _keep(self, number: int, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((number, connection))
                return
        connection.close()

    def _away(self, text: str, *, retry: bool = False, **values: str) -> RemoteError:
        """The error for a request that failed. Readers of the portal see only that search is not
        available.
        """
        server = ", ".join(node.geturl() for node in self._nodes)
        return RemoteError(said("search_away", text, server=server, **values), retry=retry)


def _open(connection: http.client.HTTPConnection) -> None:
    connection.connect()
    connection.sock.settimeout(_ANSWER_S)


def _encoded(value: Any) -> bytes:
    # Pages may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content) if content else {}
    except ValueError:
        return {"error": content[:200].decode("utf-8", "replace")}


def _reason(answer: Any) -> tuple[str, str]:
    """Kind and text of an error. The cause in a shard is more specific than the summary."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return "", str(error or "")[:300]
    causes = [error, *error.get("root_cause", ())[:1]]
    while isinstance(causes[-1].get("caused_by"), dict):
        causes.append(causes[-1]["caused_by"])
    kinds = [str(cause.get("type", "")) for cause in causes]
    return " ".join(dict.fromkeys(kinds)), str(causes[-1].get("reason", ""))[:300]


def _search_error(error: ServerRefusal, *, is_limited: bool) -> Exception:
    if "too_many" in error.kind and "clauses" in error.kind:
        _log.warning(
            "a query has too many clauses: raise indices.query.bool.max_clause_count on the search server"
        )
        return query_budget.too_expensive()
    if is_limited and ("Time exceeded" in str(error) or "cancelled" in error.kind):
        return query_budget.too_expensive()
    if error.kind.startswith("index_not_found"):
        text = "The text index is being rebuilt. Try again in a moment."
        return RemoteError(said("search_away", text), retry=True)
    return RemoteError(
        said("search_away", "The search server refused a query ({why}).", why=str(error)), retry=False
    )
