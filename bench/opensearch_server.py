"""A real OpenSearch for tests and benchmarks, with any number of nodes, that ends with the block."""

import http.client
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webdepot.cluster.opensearch_server import fetch_jars, java_command
from webdepot.errors import ConfigError

_READY_S = 180
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For tests: half the processor time at the start, and slower later."""


class Unavailable(Exception):
    """The server cannot be run on this machine; the message says why."""


@dataclass(frozen=True)
class OpenSearchNode:
    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


@contextmanager
def running(*options: str, nodes: int = 1, heap_mb: int = 512) -> Iterator[Sequence[OpenSearchNode]]:
    """Run an empty cluster for the length of the block; `options` are those of Java. Unavailable if it cannot
    be started.
    """
    try:
        jars = fetch_jars()
    except ConfigError as error:
        raise Unavailable(str(error)) from error
    # In memory where possible: an index has many small files, each of which waits for the disk.
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="webdepot-opensearch-", dir=memory if memory.is_dir() else None))
    ports, started = _free_ports(2 * nodes), list[OpenSearchNode]()
    try:
        for number in range(nodes):
            started.append(_start(jars, folder, number, ports, options, heap_mb))
        for node in started:
            _wait(node, nodes, folder)
        yield started
    finally:
        for node in started:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    jars: Path, folder: Path, number: int, ports: Sequence[int], options: Sequence[str], heap_mb: int
) -> OpenSearchNode:
    nodes = len(ports) // 2
    home = folder / f"node-{number}"
    (home / "config").mkdir(parents=True)
    settings = {
        "cluster.name": folder.name,
        "node.name": f"node-{number}",
        "path.home": str(home),
        "network.host": "127.0.0.1",
        "http.port": str(ports[number]),
        "transport.port": str(ports[nodes + number]),
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }
    if nodes == 1:
        settings["discovery.type"] = "single-node"
    else:
        settings["discovery.seed_hosts"] = ",".join(f"127.0.0.1:{port}" for port in ports[nodes:])
        settings["cluster.initial_cluster_manager_nodes"] = ",".join(f"node-{each}" for each in range(nodes))
    with (folder / f"log-{number}").open("wb") as log:
        process = subprocess.Popen(
            java_command(
                jars, settings, heap_mb=heap_mb, options=("-Dwebdepot.until-input-ends=true", *options)
            ),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return OpenSearchNode(url=f"http://127.0.0.1:{ports[number]}", process=process)


def _wait(node: OpenSearchNode, nodes: int, folder: Path) -> None:
    until = time.monotonic() + _READY_S
    host = node.url.removeprefix("http://")
    while True:
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            connection.request("GET", f"/_cluster/health?wait_for_nodes={nodes}&timeout=20s")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        if node.process.poll() is not None or time.monotonic() > until:
            logs = "\n".join(path.read_text(errors="replace")[-3000:] for path in folder.glob("log-*"))
            raise AssertionError(f"OpenSearch did not start: {logs}")
        time.sleep(0.1)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
