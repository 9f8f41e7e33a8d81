"""Every implementation of `CaptureIndex`, and captures for them."""

from webdepot.digest import sha1
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Capture, Location, RecordKind
from webdepot.url import key as key_of

ENGINES = ["sqlite", "postgresql"]


def empty(engine, request, folder):
    """An empty index. That on PostgreSQL is shared by all tests."""
    if engine == "sqlite":
        return SqliteCaptureIndex(folder / "captures.db")
    index = request.getfixturevalue("captures_on_server")
    for name, _ in index.containers():
        index.remove(name)
    assert (index.total(), dict(index.years()), list(index.scan("", "\U0010ffff"))) == (0, {}, [])
    return index


def capture(
    url="http://example.org/",
    timestamp="20200101000000",
    *,
    container="a.warc.gz",
    offset=0,
    body=b"x",
    **changed,
):
    values = {
        "key": key_of(url),
        "timestamp": timestamp,
        "url": url,
        "kind": RecordKind.RESPONSE,
        "status": 200,
        "mime": "text/html",
        "digest": str(sha1(body)),
        "location": Location(container=container, offset=offset, length=100),
    }
    return Capture(**{**values, **changed})


def find_digest(index, digest, url):
    (found,) = index.find_digests([(digest, url)])
    return found
