"""The OCFL writer: validated by ocfl-py, killed at every step, and with damaged files."""

import io
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ocfl import StorageRoot

from webdepot.depot.ocfl import inventory as inventories
from webdepot.depot.ocfl import layout, objects, verification
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import Conflict, CorruptData, InputError, NotFound

WHEN = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)
ID = "urn:uuid:6fa16c6b-5c0a-4f5b-9a3c-5d0b6c0c2f4e"


def put(store, files, identifier=ID, **more):
    options = {
        "message": "kept",
        "user": "webdepot",
        "address": "mailto:depot@example.org",
        "created": WHEN,
    } | more
    return objects.put_version(store, identifier, files, **options)


def read(store, inventory, logical, **more) -> bytes:
    with store.open(objects.content_key(inventory, logical, **more)) as stream:
        return stream.read()


def judged(root: Path, objects: int) -> None:
    judge = StorageRoot(str(root))
    assert judge.validate(log_warnings=True), judge.log.status_str()
    # W004 and W005 only advise: SHA-512 (half as fast as the SHA-256 we chose) and URIs as identifiers.
    words = [
        line
        for _, messages in judge.errors
        for line in messages.splitlines()
        if "[W004]" not in line and "[W005]" not in line
    ]
    assert (judge.num_objects, judge.good_objects, words) == (objects, objects, [])


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "depot")


def test_versions_share_bytes_and_the_judge_agrees(store, tmp_path):
    warc = tmp_path / "a.warc.gz"
    warc.write_bytes(os.urandom(3_000_000))
    first = put(store, {"warc/a.warc.gz": warc, "metadata/x.json": b"{}", "log/empty": b""})
    second = put(
        store,
        {"metadata/x.json": b'{"v":2}', "warc/copy.gz": warc},
        removed=frozenset({"log/empty"}),
        message="again",
    )
    assert (first.head, second.head) == (1, 2)
    assert list(second.files()) == ["metadata/x.json", "warc/a.warc.gz", "warc/copy.gz"]
    assert list(second.files(1)) == ["log/empty", "metadata/x.json", "warc/a.warc.gz"]
    assert read(store, second, "metadata/x.json") == b'{"v":2}'
    assert read(store, second, "metadata/x.json", version=1) == b"{}"
    assert objects.content_key(second, "warc/copy.gz") == objects.content_key(first, "warc/a.warc.gz")
    assert objects.read_inventory(store, ID) == second
    assert list(verification.verify(store, ID)) == []
    assert list(objects.iter_objects(store)) == [ID]
    judged(tmp_path / "depot", 1)


def test_many_objects_with_awkward_names(store, tmp_path):
    names = [
        "a",
        "http://example.org/ä ö?x=1#y",
        "urn:nbn:de:1111-2005",
        "x" * 300,
        "..",
        "~%41",
        "日本" * 40,
    ]
    for name in names:
        put(store, {"f": name.encode()}, identifier=name)
    assert sorted(objects.iter_objects(store)) == sorted(names)
    judge = StorageRoot(str(tmp_path / "depot"))
    for name in names:
        assert layout.folder_of(name) == judge.object_path(name)
        assert list(verification.verify(store, name)) == []
    judged(tmp_path / "depot", len(names))


def test_the_same_again_adds_nothing(store):
    first = put(store, {"a": b"1", "b": b"2"})
    assert put(store, {"b": b"2"}, created=datetime(2030, 1, 1, tzinfo=UTC)) == first
    assert list(store.keys("")) == list(store.keys(""))
    assert objects.read_inventory(store, ID).head == 1


def test_a_file_that_is_not_what_was_promised_is_not_kept(store):
    with pytest.raises(CorruptData, match="Nothing was kept"):
        put(store, {"a": b"1", "b": b"2"}, expected={"b": "0" * 64})
    assert objects.find_inventory(store, ID) is None
    assert list(objects.iter_objects(store)) == []
    put(store, {"a": b"1", "b": b"2"})
    with pytest.raises(CorruptData):
        put(store, {"c": b"2"}, expected={"c": "0" * 64})
    assert objects.read_inventory(store, ID).head == 1


@pytest.mark.parametrize("logical", ["", "/a", "../a", "a/../b", "a//b", "."])
def test_paths_stay_inside(store, logical):
    with pytest.raises(InputError):
        put(store, {logical: b"x"})


def test_missing_things_are_named(store):
    with pytest.raises(NotFound, match="no object nothing"):
        objects.read_inventory(store, "nothing")
    inventory = put(store, {"a": b"1"})
    with pytest.raises(NotFound, match="no file b"):
        objects.content_key(inventory, "b")
    assert [finding.code for finding in verification.verify(store, "nothing")] == ["depot.object-missing"]


def test_a_depot_of_another_layout_is_left_alone(store):
    store.put(
        "ocfl_layout.json",
        io.BytesIO(b'{"extension": "0004-hashed-n-tuple-storage-layout", "description": ""}'),
    )
    with pytest.raises(Conflict, match="layout of the depot differs"):
        put(store, {"a": b"1"})


class Deadly(FolderStore):
    """A store whose process is killed in the middle of its n-th write, or right after it."""

    def __init__(self, root, at, middle):
        super().__init__(root)
        self.left, self.middle = at, middle

    def put(self, key, source, *, overwrite=False):
        self.left -= 1
        if self.left < 0 and self.middle:
            source = Killing()
        written = super().put(key, source, overwrite=overwrite)
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return written


class Killing(io.RawIOBase):
    first = True

    def read(self, size=-1):
        if self.first:
            self.first = False
            return b"half of it"
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("not reached")


def killed(act) -> bool:
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("middle", [True, False])
@pytest.mark.parametrize("versions", [0, 1])
def test_killed_at_every_write_then_repeated(tmp_path, versions, middle):
    files = {"warc/a": b"a" * 5000, "metadata/m": b"new"}
    step, alive = 0, False
    while not alive:
        root = tmp_path / str(step)
        if versions:
            put(FolderStore(root), {"warc/a": b"a" * 5000, "metadata/m": b"old"})
        alive = not killed(lambda at=step, root=root: put(Deadly(root, at, middle), files))
        store = FolderStore(root)
        before = objects.find_inventory(store, ID)
        assert before is None or before.head in (versions, versions + 1)
        if before:
            errors = [
                finding.code
                for finding in verification.verify(store, ID)
                if finding.code not in ("depot.unfinished-version", "depot.sidecar-stale")
            ]
            assert errors == []
            assert read(store, before, "metadata/m") == (b"new" if before.head > versions else b"old")
        after = put(store, files)
        assert after.head == versions + 1
        assert read(store, after, "metadata/m") == b"new"
        assert list(verification.verify(store, ID)) == []
        judged(root, 1)
        step += 1
    assert step == (11 if not versions else 6)


def test_repeating_an_interrupted_first_write_clears_its_remains(tmp_path):
    assert killed(lambda: put(Deadly(tmp_path, 4, middle=False), {"a": b"1", "b": b"2"}))
    store = FolderStore(tmp_path)
    put(store, {"x": b"y"}, identifier="other")
    folders = list(objects.iter_unfinished(store))
    assert folders == [layout.folder_of(ID)]
    put(store, {"a": b"1", "b": b"2"})
    assert list(objects.iter_unfinished(store)) == []
    judged(tmp_path, 2)


@pytest.fixture
def kept(store):
    put(store, {"warc/a": b"a" * 5000, "metadata/m": b"old"})
    return put(store, {"metadata/m": b"new"})


def damaged(store, key, change) -> None:
    path = store.local_path(key)
    path.write_bytes(change(path.read_bytes()))


def test_one_flipped_bit_anywhere_is_found(store, kept):
    for key in [key for key in store.keys("") if key.startswith(layout.folder_of(ID))]:
        whole = store.local_path(key).read_bytes()
        for place in {0, len(whole) // 2, len(whole) - 2}:
            damaged(store, key, lambda data, at=place: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            findings = list(verification.verify(store, ID))
            assert findings, f"byte {place} of {key}"
            store.local_path(key).write_bytes(whole)
    assert list(verification.verify(store, ID)) == []


def test_findings_say_what_is_wrong(store, kept):
    warc = objects.content_key(kept, "warc/a")
    damaged(store, warc, lambda data: data[:-1])
    store.put(f"{layout.folder_of(ID)}/v1/content/stray", io.BytesIO(b"x"))
    store.delete(objects.content_key(kept, "metadata/m"))
    assert sorted(
        (finding.code, finding.subject.rpartition("/")[2]) for finding in verification.verify(store, ID)
    ) == [
        ("depot.content-damaged", "a"),
        ("depot.content-missing", "m"),
        ("depot.unexpected-file", "stray"),
    ]


def test_a_damaged_inventory_stops_writing(store, kept):
    damaged(store, f"{layout.folder_of(ID)}/inventory.json", lambda data: data.replace(b"kept", b"lost"))
    with pytest.raises(CorruptData, match="sidecar"):
        put(store, {"more": b"x"})
    assert [finding.code for finding in verification.verify(store, ID)] == ["depot.inventory-damaged"]


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "type", "head", "versions", "manifest", "v1", "state"]),
                inner,
                max_size=5,
            )
        ),
    ).map(lambda value: __import__("json").dumps(value).encode())
)
def test_any_bytes_as_inventory_end_in_one_error(data):
    with pytest.raises(CorruptData):
        inventories.parse(data, where="here")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "ü"]), st.binary(max_size=3), min_size=1),
        min_size=1,
        max_size=5,
    ),
    st.randoms(),
)
def test_any_history_reads_back(tmp_path_factory, history, random):
    root = tmp_path_factory.mktemp("depot")
    store, state, states = FolderStore(root), {}, []
    for files in history:
        inventory = put(store, files)
        if {**state, **files} != state:
            state = {**state, **files}
            states.append(state)
        assert inventory.head == len(states)
    for number, expected in enumerate(states, 1):
        assert {
            logical: read(store, inventory, logical, version=number) for logical in inventory.files(number)
        } == expected
    assert list(verification.verify(store, ID)) == []
    judged(root, 1)
