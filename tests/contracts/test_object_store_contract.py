"""What every object store of the depot must do: a folder, a real S3 server, and one that knows no conditional
writes.
"""

import io
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdepot.depot.store import s3
from webdepot.depot.store.folder import FolderStore
from webdepot.depot.store.s3 import BucketAddress, S3Store
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.ports.object_store import ObjectStore


@pytest.fixture(params=["folder", "seaweed", "rclone"])
def store(request, tmp_path) -> ObjectStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    return bucket_of(request.getfixturevalue(request.param))


@pytest.fixture(params=["folder", "seaweed"])
def strict_store(request, tmp_path) -> ObjectStore:
    """Those that keep two writers apart."""
    return (
        FolderStore(tmp_path / "store")
        if request.param == "folder"
        else bucket_of(request.getfixturevalue(request.param))
    )


def bucket_of(server) -> S3Store:
    address = BucketAddress(bucket=server.bucket, prefix=server.new_prefix(), endpoint=server.endpoint)
    return S3Store(address, access_key=server.access_key, secret_key=server.secret_key)


def read(store: ObjectStore, key: str, **part) -> bytes:
    with store.open(key, **part) as stream:
        return stream.read()


def test_bytes_come_back(store):
    assert store.put("a/b/c.bin", io.BytesIO(b"\x00\xff" * 700_000)) == 1_400_000
    assert read(store, "a/b/c.bin") == b"\x00\xff" * 700_000
    assert store.size("a/b/c.bin") == 1_400_000


def test_empty_object(store):
    assert store.put("empty", io.BytesIO(b"")) == 0
    assert store.size("empty") == 0
    assert read(store, "empty") == b""


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 3, b"012"), (4, 3, b"456"), (8, 10, b"89"), (10, None, b""), (3, None, b"3456789"), (2, 0, b"")],
)
def test_parts(store, offset, length, expected):
    store.put("digits", io.BytesIO(b"0123456789"))
    assert read(store, "digits", offset=offset, length=length) == expected


def test_a_key_is_created_once(store):
    store.put("k", io.BytesIO(b"first"))
    with pytest.raises(Conflict):
        store.put("k", io.BytesIO(b"second"))
    assert read(store, "k") == b"first"


def test_overwriting_when_asked(store):
    store.put("k", io.BytesIO(b"first"), overwrite=True)
    store.put("k", io.BytesIO(b"second"), overwrite=True)
    assert read(store, "k") == b"second"
    assert list(store.keys()) == ["k"]


def test_only_one_of_many_writers_creates(strict_store):
    store = strict_store
    won, barrier = [], threading.Barrier(8)

    def write(number: int) -> None:
        barrier.wait()
        try:
            store.put("race", io.BytesIO(bytes([number]) * 100_000))
        except Conflict:
            return
        won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert read(store, "race") == bytes(won) * 100_000


def test_what_is_not_there(store):
    assert store.size("nothing") is None
    with pytest.raises(NotFound):
        store.open("nothing")
    store.delete("nothing")
    assert list(store.keys("no")) == []


def test_a_failing_source_leaves_nothing(store):
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            if size_left.pop():
                return b"x" * 1000
            raise OSError(5, "input/output error")

    size_left = [False, True]
    with pytest.raises(OSError, match="input/output"):
        store.put("broken", Broken())
    assert store.size("broken") is None
    assert list(store.keys()) == []


def test_keys_by_prefix(store):
    for key in ("a/1", "a/2", "ab/1", "b", "a-b/1"):
        store.put(key, io.BytesIO(b"x"))
    assert sorted(store.keys()) == ["a-b/1", "a/1", "a/2", "ab/1", "b"]
    assert sorted(store.keys("a")) == ["a-b/1", "a/1", "a/2", "ab/1"]
    assert sorted(store.keys("a/")) == ["a/1", "a/2"]
    assert sorted(store.keys("a/2")) == ["a/2"]
    assert sorted(store.keys("ab/1/c")) == []


def test_deleting(store):
    store.put("a/b/c", io.BytesIO(b"x"))
    store.put("a/d", io.BytesIO(b"x"))
    store.delete("a/b/c")
    assert list(store.keys()) == ["a/d"]
    store.put("a/b/c", io.BytesIO(b"y"))
    assert read(store, "a/b/c") == b"y"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/./b",
        "a/",
        "a\\b",
        "a\0b",
        "a/\n",
        "x" * 256,
        ".",
        "..",
    ],
)
def test_keys_cannot_escape(store, key):
    for act in (
        lambda: store.put(key, io.BytesIO(b"x")),
        lambda: store.open(key),
        lambda: store.size(key),
        lambda: store.delete(key),
    ):
        with pytest.raises(InputError):
            act()


steps = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=20
).filter(lambda step: step not in (".", "..") and not step.startswith(".part-"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.dictionaries(
        st.lists(steps, min_size=1, max_size=3).map("/".join), st.binary(max_size=200), max_size=5
    )
)
def test_any_names_and_bytes(store, content):
    kept = {}
    for key, data in content.items():
        # A file and a folder cannot share a name in a folder store; such pairs are no use to OCFL either.
        if any(other.startswith(f"{key}/") or key.startswith(f"{other}/") for other in kept):
            continue
        store.put(key, io.BytesIO(data))
        kept[key] = data
    assert sorted(store.keys()) == sorted(kept)
    for key, data in kept.items():
        assert read(store, key) == data
        store.delete(key)
    assert list(store.keys()) == []


def test_an_object_of_many_parts(store):
    data = bytes(range(256)) * 4 * 40_000  # 41 MB: three parts, the last one short
    assert store.put("big", io.BytesIO(data)) == len(data)
    assert store.size("big") == len(data)
    assert read(store, "big") == data
    assert read(store, "big", offset=20_000_001, length=3) == data[20_000_001:20_000_004]
    with pytest.raises(Conflict):
        store.put("big", io.BytesIO(b"other"))


def test_a_source_that_fails_in_a_later_part_leaves_nothing(store):
    class Failing(io.RawIOBase):
        given = 0

        def read(self, size=-1):
            if self.given > 20 << 20:
                raise OSError(5, "input/output error")
            self.given += size
            return b"x" * size

    with pytest.raises(OSError, match="input/output"):
        store.put("broken", Failing())
    assert store.size("broken") is None
    assert list(store.keys()) == []


def test_which_servers_refuse_to_overwrite_is_found_out(seaweed, rclone):
    kept, careless = bucket_of(seaweed), bucket_of(rclone)
    assert s3.refuses_overwriting(kept)
    assert not s3.refuses_overwriting(careless)
    assert [*kept.keys(), *careless.keys()] == []
