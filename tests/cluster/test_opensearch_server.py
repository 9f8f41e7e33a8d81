"""OpenSearch of a cluster on one machine: only where Java is, and decided when the cluster is created."""

import signal
import tomllib
from pathlib import Path

import pytest

from webdepot.cluster import opensearch_server, plan
from webdepot.cluster.free_ports import free_ports
from webdepot.cluster.opensearch_server import OpenSearchServer
from webdepot.cluster.processes import ProcessFolder
from webdepot.errors import ConfigError
from webdepot.index.opensearch.client import OpenSearchClient, ServerAddress
from webdepot.services.cluster import local_cluster


def test_without_java_the_text_index_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"java, javac, mvn not found\. Install"):
        opensearch_server.fetch_jars()
    said: list[str] = []
    assert not local_cluster.can_run_opensearch(said.append)
    assert "The text index will be a folder. OpenSearch cannot be run here: java" in said[-1]
    assert "engine" not in tomllib.loads(plan.prepare(tmp_path, {}).settings())["index"]


def test_a_cluster_keeps_the_text_index_that_it_was_created_with(tmp_path: Path) -> None:
    for folder, has_opensearch in ((tmp_path / "with", True), (tmp_path / "without", False)):
        created = plan.prepare(folder, {}, with_opensearch=has_opensearch)
        later = plan.prepare(folder, {"portal": 3}, with_opensearch=not has_opensearch)
        assert later.opensearch == created.opensearch
        settings = tomllib.loads(later.settings())["index"]
        assert (settings.get("engine") == "opensearch") is has_opensearch
        if created.opensearch is not None:
            assert settings["opensearch_url"] == created.opensearch.url


@pytest.mark.opensearch
def test_the_server_answers_and_keeps_what_it_has(tmp_path: Path) -> None:
    http, transport = free_ports(2)
    server = OpenSearchServer(folder=tmp_path / "opensearch", http=http, transport=transport)
    try:
        server.prepare()
    except ConfigError as error:
        pytest.skip(str(error))
    processes, client = ProcessFolder(tmp_path), OpenSearchClient(ServerAddress(urls=(server.url,)))
    try:
        for is_first in (True, False):
            assert processes.start(server.program())
            processes.wait(server.program(), at_most_s=180)
            if is_first:
                client.write("PUT", "/mills/_doc/1?refresh=true", {"name": "watermill"})
            assert client.read("GET", "/mills/_doc/1")["_source"] == {"name": "watermill"}
            assert processes.stop({"opensearch": signal.SIGTERM}) == 1
    finally:
        processes.kill("opensearch")
        client.close()
