"""A real OpenSearch for tests (`bench.opensearch_server`), started when the first test asks for it.

Tests of it are marked `opensearch`: a server takes 0.7 GB of memory, so that one process of pytest should run
them all (`make test-opensearch`). WEBDEPOT_TEST_OPENSEARCH=URL uses a server that runs already.
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


@cache
def server_url() -> str:
    """The address of the server; the test is skipped if there cannot be one."""
    url = os.environ.get("WEBDEPOT_TEST_OPENSEARCH", "")
    if not url:
        try:
            (node,) = _running.enter_context(opensearch_server.running(*opensearch_server.QUICK_START))
        except opensearch_server.Unavailable as error:
            pytest.skip(f"OpenSearch cannot be started here: {error}")
        url = node.url
    # Copies of a shard keep what was replaced for half a minute otherwise, and compaction leaves it.
    settings = {"index.soft_deletes.retention_lease.sync_interval": "100ms"}
    client = OpenSearchClient(ServerAddress(urls=(url,)))
    client.write(
        "PUT", "/_index_template/tests", {"index_patterns": ["test-*"], "template": {"settings": settings}}
    )
    client.close()
    return url


def new_place(**changed: object) -> OpenSearchPlace:
    """Indexes that no other test uses."""
    values = {"address": ServerAddress(urls=(server_url(),)), "name": f"test-{uuid.uuid4().hex[:12]}"}
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
