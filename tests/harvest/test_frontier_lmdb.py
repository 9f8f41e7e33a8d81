"""What is particular to the LMDB frontier: its lock, its layout, its growth."""

import resource
from pathlib import Path

import lmdb
import pytest

from webdepot.errors import Conflict, NoSpace
from webdepot.harvest.frontier import LmdbFrontier, identity
from webdepot.model import Candidate
from webdepot.url import Url, origin_of


def test_a_second_opener_is_told_who_holds_it(tmp_path: Path) -> None:
    frontier = LmdbFrontier(tmp_path / "f")
    with pytest.raises(Conflict, match="in use by another process"):
        LmdbFrontier(tmp_path / "f")
    frontier.close()
    LmdbFrontier(tmp_path / "f").close()


def test_a_newer_layout_is_refused_and_left_alone(tmp_path: Path) -> None:
    frontier = LmdbFrontier(tmp_path / "f")
    frontier.commit({})
    frontier.close()
    with lmdb.Environment(str(tmp_path / "f"), max_dbs=5) as env, env.begin(write=True) as txn:
        txn.put(b"layout", b"9", db=env.open_db(b"meta", txn=txn))
    with pytest.raises(Conflict, match="newer version"):
        LmdbFrontier(tmp_path / "f")


def test_the_map_grows_by_itself(tmp_path: Path) -> None:
    frontier = LmdbFrontier(tmp_path / "f", map_bytes=1 << 20)
    total = 0
    for batch in range(40):
        urls = (Url(f"http://h{number % 50}.example/{batch}/{number}/" + "x" * 60) for number in range(700))
        total += frontier.add(Candidate(url=url) for url in urls)
        frontier.commit({})
    assert total == 28_000
    assert sum(file.stat().st_size for file in (tmp_path / "f").iterdir()) > 4 << 20
    frontier.close()
    frontier = LmdbFrontier(tmp_path / "f", map_bytes=1 << 20)
    assert frontier.counts().waiting == 28_000
    frontier.close()


def test_a_full_disk_is_reported_and_the_last_commit_holds(tmp_path: Path) -> None:
    frontier = LmdbFrontier(tmp_path / "f")
    frontier.add([Candidate(url=Url("http://h.example/first"))])
    frontier.commit({"log": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        frontier.add(Candidate(url=Url(f"http://h.example/{number}")) for number in range(20_000))
        with pytest.raises(NoSpace, match="what was saved is not lost"):
            frontier.commit({"log": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    frontier.close()
    frontier = LmdbFrontier(tmp_path / "f")
    assert (frontier.counts().waiting, frontier.marks()) == (1, {"log": 1})
    frontier.close()


def test_a_map_that_cannot_grow_in_time_is_told(tmp_path: Path) -> None:
    frontier = LmdbFrontier(tmp_path / "f", map_bytes=1 << 20)
    with pytest.raises(NoSpace):
        frontier.add(Candidate(url=Url(f"http://h.example/{number}")) for number in range(50_000))
    frontier.close()


def test_memory_holds_only_the_front_of_each_host(tmp_path: Path) -> None:
    frontier = LmdbFrontier(tmp_path / "f", per_host=5)
    for path in ("L", "LE"):
        frontier.add(
            Candidate(url=Url(f"http://h.example/{path}/{number}"), path=path) for number in range(500)
        )
    assert sum(len(host.front) for host in frontier._hosts.values()) <= 10
    frontier.close()


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://a.example/x", "http://a.example"),
        ("https://user:secret@a.example:8443/x@y", "https://a.example:8443"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("ftp://a/b", "ftp://a"),
    ],
)
def test_origins(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_identity_leaves_ordinary_addresses_alone() -> None:
    for url in (
        "http://a.example/?sid=7",
        "http://a.example/?insid=0123456789abcdef0123456789abcdef",
        "http://a.example/sessionid",
    ):
        assert identity(url) == url
