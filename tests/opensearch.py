"""A real OpenSearch for tests (`bench.opensearch_server`), started when the first test asks for it.

Tests of it are marked `opensearch`: a server takes 0.7 GB of memory, so that one process of pytest should run
them all (`make test-opensearch`). WEBDEPOT_TEST_OPENSEARCH=URL uses a server that runs already;
WEBDEPOT_TEST_OPENSEARCH_NODES=3 starts three nodes, and indexes have three shards and a replica on them.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from bench import opensearch_server

from webdepot.index.opensearch.client import OpenSearchClient, ServerAddress
from webdepot.index.opensearch.index import OpenSearchPlace, OpenSearchTextIndex

_running = ExitStack()
_NODES = int(os.environ.get("WEBDEPOT_TEST_OPENSEARCH_NODES", "1"))


@cache
def server_urls() -> tuple[str, ...]:
    """The addresses of the server's nodes; the test is skipped if there cannot be one."""
    urls = tuple(filter(None, os.environ.get("WEBDEPOT_TEST_OPENSEARCH", "").split(",")))
    if not urls:
        try:
            starting = opensearch_server.running(*opensearch_server.QUICK_START, nodes=_NODES)
            urls = tuple(node.url for node in _running.enter_context(starting))
        except opensearch_server.Unavailable as error:
            pytest.skip(f"OpenSearch cannot be started here: {error}")
    # Copies of a shard keep what was replaced for half a minute otherwise, and compaction leaves it.
    settings = {"index.soft_deletes.retention_lease.sync_interval": "100ms"}
    client = OpenSearchClient(ServerAddress(urls=urls))
    client.write(
        "PUT", "/_index_template/tests", {"index_patterns": ["test-*"], "template": {"settings": settings}}
    )
    client.close()
    return urls


def new_place(**changed: object) -> OpenSearchPlace:
    """Indexes that no other test uses."""
    values = {"address": ServerAddress(urls=server_urls()), "name": f"test-{uuid.uuid4().hex[:12]}"}
    if _NODES > 1:
        values |= {"shards": 3, "replicas": 1}
    return OpenSearchPlace(**values | changed)  # type: ignore[arg-type]


class NewIndex(OpenSearchTextIndex):
    """An index that is deleted when it is closed."""

    def close(self) -> None:
        self._connection.write("DELETE", f"/{self._place.name}-*")
        super().close()


def new_index(folder: Path) -> OpenSearchTextIndex:
    return NewIndex(new_place(), folder)


@pytest.fixture(autouse=True, scope="session")
def _end_opensearch() -> Iterator[None]:
    yield
    _running.close()
