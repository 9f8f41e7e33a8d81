"""The frontier on one machine: which addresses were seen, which are queued, and when a host may be asked.
LMDB on disk, a heap of hosts in memory.

A host here is scheme, host name and port. One candidate of a host is out at a time; the caller decides how
long the host rests (`politeness`). Layout of the LMDB environment, version 1; all numbers are big-endian, so
that keys sort by number:

    meta      "layout"                                          -> "1"
              "marks"                                           -> JSON object: file name -> acknowledged size
    seen      host hash (8) | address hash (8)                  -> empty
    refused   host hash (8) | address hash (8)                  -> empty
    queue     host hash (8) | precedence (1) | sequence (8)     -> tries (1) | outside (1) | path 0 via 0 url
    notes     key of the caller, or 0 | its hash (32)           -> value of the caller
              if it is longer than LMDB allows

    precedence: 0 seeds and prerequisites, 1 embedded parts, 2 links, 3 guesses and what is added as last
    sequence:   number of addresses seen before it

The host comes first, so that the queue of a host is one range and its fingerprints are adjacent. With 64 bits
for the address within the host, no address among ten million is falsely taken as seen (with Heritrix's 40
bits some 45 would be lost). Two hosts with the same hash would only share a queue, because the address hash
covers the whole address.

Order of steps:
1. One write transaction stays open from commit to commit: a crash undoes all of it, and nothing else.
2. `add` puts the fingerprint and, if it was new, the queue entry.
3. `take` pops the host that is due first. Its next candidates are read from its range, at most `per_host` at
   a time. An entry stays in the queue until `finish` deletes it, so a candidate that was out when the process
   died is taken again.
"""

import json
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from itertools import count
from pathlib import Path
from struct import Struct
from typing import Any, cast

import lmdb

from webdepot import durable
from webdepot.errors import Conflict, CorruptData, NoSpace
from webdepot.harvest.parts.journal import Journal, JournaledTransaction, replay
from webdepot.harvest.scope.identity import identity
from webdepot.model import Candidate, Hop
from webdepot.ports.harvest import FrontierCounts
from webdepot.url import Url, origin_of

LAYOUT = 1
FIRST_MAP_BYTES = 1 << 30
"""Address space, not disk space: the file is only as long as the pages in use."""
PER_HOST = 20
MOST_READ_AHEAD = 200_000
"""Most candidates in memory over all hosts; with very many hosts each gets fewer than `per_host`."""
MOST_IN_MEMORY = 100_000
"""Most hosts in memory."""
_LOCK_NAME = "lock"
_PRECEDENCE = {"": 0, Hop.PREREQUISITE: 0, Hop.EMBED: 1, Hop.LINK: 2, Hop.MANIFEST: 2, Hop.SPECULATIVE: 3}
_LAST = _PRECEDENCE[Hop.SPECULATIVE]
_KEY = Struct(">BQ")
_NONE: frozenset[bytes] = frozenset()
_LONGEST_NOTE_KEY = 511
"""The longest key that LMDB stores; addresses can be longer."""


def precedence(path: str) -> int:
    """The place in a host's queue, by the last hop that is not a redirect."""
    return _PRECEDENCE[path.rstrip(Hop.REDIRECT)[-1:]]


class _Host:
    """A host in memory: when it may be asked, and its first waiting candidates."""

    __slots__ = ("deferred", "due_s", "flying", "free_at_s", "front", "id", "unread", "waiting")

    def __init__(self, host_id: bytes, free_at_s: float) -> None:
        self.id = host_id
        self.free_at_s = free_at_s
        self.due_s: float | None = None
        """When it is due in the heap; None while a candidate is out or nothing waits."""
        self.flying: bytes | None = None
        """Key of the candidate that is out."""
        self.front: list[tuple[bytes, bytes]] = []
        """The smallest entries of its range, ascending, without those that are out or deferred."""
        self.unread = host_id
        """Entries from this key on have not been read into `front`."""
        self.deferred: list[tuple[float, bytes]] = []
        """Heap of retries: (not before this time, key)."""
        self.waiting = 0
        """Number of its entries that are not finished."""


class LmdbFrontier:
    """`Frontier` in one folder. One process at a time; a second one gets Conflict."""

    def __init__(
        self,
        folder: Path,
        *,
        per_host: int = PER_HOST,
        map_bytes: int = FIRST_MAP_BYTES,
        identity: Callable[[str], str] = identity,
        journal: Journal | None = None,
    ) -> None:
        """With a journal, every change is also noted there."""
        self.folder = folder
        self._identity = identity
        self._journal = journal
        self._per_host = per_host
        durable.make_folders(folder)
        self._lock = durable.acquire(
            folder / _LOCK_NAME,
            busy=f"The frontier {folder} is in use by another process. "
            "Wait for that harvest to end, or stop it.",
        )
        try:
            self._open(map_bytes)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, map_bytes: int) -> None:
        size_bytes = sum(file.stat().st_size for file in self.folder.iterdir())
        # Our own lock replaces that of LMDB, which would wait without an end or a message.
        self._env = lmdb.Environment(
            str(self.folder), map_size=max(map_bytes, 4 * size_bytes), max_dbs=5, lock=False
        )
        durable.sync_folder(self.folder)  # LMDB syncs its file, but not the folder
        self._databases = open_databases(self._env)
        self._meta, self._seen, self._refused, self._queue, self._notes = self._databases
        self._begin()
        layout = self._txn.get(b"layout", db=self._meta)
        if layout is None:
            self._txn.put(b"layout", str(LAYOUT).encode(), db=self._meta)
        elif int(layout) > LAYOUT:
            raise Conflict(
                f"The frontier {self.folder} was written by a newer version of Webdepot "
                f"(layout {layout.decode()}). Install that version."
            )
        self._seen_count: int = self._txn.stat(self._seen)["entries"]
        self._queued_count: int = self._txn.stat(self._queue)["entries"]
        self._now_s = 0.0
        self._turn = count()
        self._heap: list[tuple[float, int, _Host]] = []
        self._ready: deque[tuple[float, _Host]] = deque()
        """Hosts that were due already when they were put here; they need no heap."""
        self._hosts: dict[bytes, _Host] = {}
        self._host_ids: dict[str, bytes] = {}
        self._flying: dict[Url, _Host] = {}
        self._gone: set[bytes] = set()
        """Keys of finished candidates; the next commit deletes them in order, which touches fewer pages."""
        for key in self._txn.cursor(db=self._queue).iternext(keys=True, values=False):
            host = self._hosts.get(key[:8]) or self._host(key[:8])
            host.waiting += 1
        for host in self._hosts.values():
            self._schedule(host)

    # --- the life of a candidate ---

    def add(self, candidates: Iterable[Candidate], *, last: bool = False) -> int:
        try:
            return self._add(candidates, last)
        except lmdb.Error as error:  # the map is full, or dirty pages were written to a full disk
            raise _storage_error(self.folder, error) from error

    def _add(self, candidates: Iterable[Candidate], last: bool) -> int:
        before = self._seen_count
        for candidate in candidates:
            fingerprint = self._fingerprint(candidate.url)
            if not self._txn.put(fingerprint, b"", overwrite=False, db=self._seen):
                continue
            place = _LAST if last else precedence(candidate.path)
            key = fingerprint[:8] + _KEY.pack(place, self._seen_count)
            value = _encoded(candidate)
            self._txn.put(key, value, db=self._queue)
            self._seen_count += 1
            self._queued_count += 1
            self._offer(key, value)
        return self._seen_count - before

    def refuse(self, candidate: Candidate) -> bool:
        return bool(self._txn.put(self._fingerprint(candidate.url), b"", overwrite=False, db=self._refused))

    def take(self, now_s: float) -> Candidate | None:
        now_s = self._now_s = max(now_s, self._now_s)
        heap, ready = self._heap, self._ready
        while ready or (heap and heap[0][0] <= now_s):
            if ready and (not heap or ready[0][0] < heap[0][0]):
                due_s, host = ready.popleft()
            else:
                due_s, _, host = heappop(heap)
            if host.due_s != due_s or host.flying is not None:
                continue  # scheduled again since
            host.due_s = None
            entry = host.front.pop(0) if host.front and not host.deferred else self._next_of(host, now_s)
            if entry is None:
                self._schedule(host)
                continue
            host.flying, value = entry
            candidate = _decoded(value)
            self._flying[candidate.url] = host
            return candidate
        return None

    def next_due_s(self) -> float | None:
        heap, ready = self._heap, self._ready
        while heap and (heap[0][2].due_s != heap[0][0] or heap[0][2].flying is not None):
            heappop(heap)
        while ready and (ready[0][1].due_s != ready[0][0] or ready[0][1].flying is not None):
            ready.popleft()
        if ready and (not heap or ready[0][0] < heap[0][0]):
            return ready[0][0]
        return heap[0][0] if heap else None

    def finish(self, candidate: Candidate, *, host_free_at_s: float) -> None:
        host, key = self._landed(candidate, host_free_at_s)
        self._gone.add(key)
        host.waiting -= 1
        self._queued_count -= 1
        if host.front and host_free_at_s <= self._now_s:  # as `_schedule` has it
            host.due_s = host_free_at_s
            self._ready.append((host_free_at_s, host))
        else:
            self._schedule(host)

    def retry(
        self, candidate: Candidate, *, host_free_at_s: float, not_before_s: float = 0.0, counted: bool = True
    ) -> None:
        host, key = self._landed(candidate, host_free_at_s)
        if counted:
            self._txn.put(key, _encoded(candidate, tries=candidate.tries + 1), db=self._queue)
        heappush(host.deferred, (max(not_before_s, host_free_at_s), key))
        self._schedule(host)

    def remove(self, gives_up: Callable[[str], bool]) -> int:
        flying = {host.flying for host in self._flying.values()}
        removed: set[bytes] = set()
        for key, value in self._txn.cursor(db=self._queue):
            if key not in flying and key not in self._gone and gives_up(_decoded(value).url):
                removed.add(key)
        for key in removed:
            self._txn.delete(key, db=self._queue)
            self._host(key[:8]).waiting -= 1
        for host in (self._host(host_id) for host_id in {key[:8] for key in removed}):
            host.front = [entry for entry in host.front if entry[0] not in removed]
            host.deferred = [entry for entry in host.deferred if entry[1] not in removed]
            heapify(host.deferred)
            if host.flying is None:
                self._schedule(host)
        self._queued_count -= len(removed)
        return len(removed)

    # --- what the caller keeps with it ---

    def remember(self, key: str, value: bytes) -> None:
        try:
            self._txn.put(_note_key(key), value, db=self._notes)
        except lmdb.Error as error:
            raise _storage_error(self.folder, error) from error

    def recall(self, key: str) -> bytes | None:
        value: bytes | None = self._txn.get(_note_key(key), db=self._notes)
        return value

    def commit(self, marks: Mapping[str, int]) -> None:
        self.stage(marks)
        self.commit_staged()

    def stage(self, marks: Mapping[str, int]) -> None:
        """The first half of `commit`: nothing is durable, but the journal is complete. Until the second half
        nothing else may be changed.
        """
        try:
            self._txn.put(b"marks", json.dumps(dict(marks)).encode(), db=self._meta)
            for key in sorted(self._gone):
                self._txn.delete(key, db=self._queue)
        except lmdb.Error as error:
            raise _storage_error(self.folder, error) from error

    def commit_staged(self) -> None:
        try:
            self._txn.commit()
        except lmdb.Error as error:
            raise _storage_error(self.folder, error) from error
        self._gone.clear()
        self._forget_idle_hosts()
        self._begin()

    def marks(self) -> Mapping[str, int]:
        stored = self._txn.get(b"marks", db=self._meta)
        try:
            marks: dict[str, int] = json.loads(stored) if stored else {}
        except ValueError as error:
            raise CorruptData(
                f"The marks of the frontier {self.folder} cannot be read: {error}. "
                "Restore the folder from a backup, or harvest again.",
                where=str(self.folder),
            ) from error
        return marks

    # --- reports ---

    def counts(self) -> FrontierCounts:
        in_flight = len(self._flying)
        return FrontierCounts(
            seen=self._seen_count,
            waiting=self._queued_count - in_flight,
            in_flight=in_flight,
            done=self._seen_count - self._queued_count,
        )

    def waiting_at(self, origin: str) -> int:
        host = self._hosts.get(self._host_id(origin))
        return host.waiting if host is not None else 0

    def iter_waiting(self) -> Iterator[Candidate]:
        flying = {host.flying for host in self._flying.values()}
        for key, value in self._txn.cursor(db=self._queue):
            if key not in flying and key not in self._gone:
                yield _decoded(value)

    def close(self) -> None:
        """Discard what was not committed, and release the folder."""
        with suppress(lmdb.Error):  # after a failed commit there is nothing left to discard
            self._txn.abort()
        self._env.close()
        self._lock.close()

    # --- hosts ---

    def _fingerprint(self, url: str) -> bytes:
        origin = origin_of(url)
        host_id = self._host_ids.get(origin) or self._host_id(origin)
        return host_id + blake2b(self._identity(url).encode(), digest_size=8).digest()

    def _host_id(self, origin: str) -> bytes:
        known = self._host_ids.get(origin)
        if known is None:
            if len(self._host_ids) >= MOST_IN_MEMORY:
                self._host_ids.clear()
            known = self._host_ids[origin] = blake2b(origin.encode(), digest_size=8).digest()
        return known

    def _host(self, host_id: bytes) -> _Host:
        host = self._hosts.get(host_id)
        if host is None:
            host = self._hosts[host_id] = _Host(host_id, self._now_s)
        return host

    def _offer(self, key: bytes, value: bytes) -> None:
        """Tell its host about a new entry: it may come before those read ahead, or make an idle host due."""
        host_id = key[:8]
        host = self._hosts.get(host_id) or self._host(host_id)
        host.waiting += 1
        if host.front and key < host.front[-1][0]:
            insort(host.front, (key, value))
            if len(host.front) > 2 * self._per_host:
                host.unread = host.front[self._per_host][0]
                del host.front[self._per_host :]
        elif key < host.unread:
            host.unread = key
        if host.flying is None and (host.due_s is None or host.due_s > host.free_at_s):
            host.due_s = host.free_at_s
            self._line_up(host, host.due_s)

    def _schedule(self, host: _Host) -> None:
        """Put a host that has no candidate out into the heap, unless its queue is empty."""
        if host.front or self._refill(host):
            host.due_s = host.free_at_s
        elif host.deferred:
            host.due_s = max(host.free_at_s, host.deferred[0][0])
        else:
            host.due_s = None
            return
        self._line_up(host, host.due_s)

    def _line_up(self, host: _Host, due_s: float) -> None:
        if due_s <= self._now_s:
            self._ready.append((due_s, host))
        else:
            heappush(self._heap, (due_s, next(self._turn), host))

    def _next_of(self, host: _Host, now_s: float) -> tuple[bytes, bytes] | None:
        if host.deferred and host.deferred[0][0] <= now_s:
            key = heappop(host.deferred)[1]
            return key, self._txn.get(key, db=self._queue)
        if host.front or self._refill(host):
            return host.front.pop(0)
        return None

    def _refill(self, host: _Host) -> bool:
        """Read the next entries of a host's range into `front`; return whether there are any."""
        wanted = max(1, min(self._per_host, MOST_READ_AHEAD // (len(self._hosts) or 1)))
        held = {key for _, key in host.deferred} if host.deferred else _NONE
        front, gone, host_id = host.front, self._gone, host.id
        cursor = self._txn.cursor(db=self._queue)
        if cursor.set_range(host.unread):
            for key, value in cursor:
                if key[:8] != host_id or len(front) >= wanted:
                    break
                if key not in held and key not in gone and key != host.flying:
                    front.append((key, value))
        if front:
            host.unread = front[-1][0] + b"\0"
        return bool(front)

    def _landed(self, candidate: Candidate, host_free_at_s: float) -> tuple[_Host, bytes]:
        host = self._flying.pop(candidate.url)
        key = host.flying
        if key is None:
            raise AssertionError("a host with a candidate out has its key")
        host.flying = None
        host.free_at_s = host_free_at_s
        return host, key

    def _forget_idle_hosts(self) -> None:
        """Remove hosts from memory if their queue is empty and their pause is over."""
        if len(self._hosts) > MOST_IN_MEMORY:
            idle = [
                host
                for host in self._hosts.values()
                if host.due_s is None and host.flying is None and host.free_at_s <= self._now_s
            ]
            for host in idle:
                del self._hosts[host.id]

    def _begin(self) -> None:
        """Begin the next transaction. Before that, while none is open, enlarge the map if necessary."""
        info = self._env.info()
        used_bytes = info["last_pgno"] * self._env.stat()["psize"]
        if 4 * used_bytes > info["map_size"]:
            self._env.set_mapsize(8 * used_bytes)
        self._txn: Any = self._env.begin(write=True)
        if self._journal is not None:
            self._txn = JournaledTransaction(self._txn, self._journal, self._databases)


def open_databases(environment: Any) -> tuple[Any, ...]:
    """The databases of the environment, in the order of the module's docstring."""
    return tuple(environment.open_db(name) for name in (b"meta", b"seen", b"refused", b"queue", b"notes"))


def restore(folder: Path, journals: Iterable[bytes]) -> None:
    """Build the frontier of a folder, which has none, from all its journals in their order."""
    durable.make_folders(folder)
    environment = lmdb.Environment(str(folder), map_size=FIRST_MAP_BYTES, max_dbs=5, lock=False)
    try:
        databases = open_databases(environment)
        for journal in journals:
            used_bytes = environment.info()["last_pgno"] * environment.stat()["psize"] + len(journal)
            if 4 * used_bytes > environment.info()["map_size"]:
                environment.set_mapsize(8 * used_bytes)
            with environment.begin(write=True) as transaction:
                replay(journal, transaction, databases)
    except lmdb.Error as error:
        raise _storage_error(folder, error) from error
    finally:
        environment.close()


def _encoded(candidate: Candidate, tries: int | None = None) -> bytes:
    tried = min(candidate.tries if tries is None else tries, 127)
    numbers = f"{chr(tried)}{chr(min(candidate.outside, 127))}"
    return f"{numbers}{candidate.path}\0{candidate.via or ''}\0{candidate.url}".encode()


def _decoded(value: bytes) -> Candidate:
    # Both numbers are below 128, so each is one byte of UTF-8.
    path, via, url = cast(list[Url], value[2:].decode().split("\0"))
    return Candidate(url=url, via=via or None, path=path, tries=value[0], outside=value[1])


def _note_key(key: str) -> bytes:
    encoded = key.encode()
    if len(encoded) <= _LONGEST_NOTE_KEY:
        return encoded
    return b"\0" + blake2b(encoded, digest_size=32).digest()


def _storage_error(folder: Path, error: lmdb.Error) -> NoSpace:
    return NoSpace(
        f"The frontier {folder} could not be written ({error}). "
        "Free some space and resume the harvest: what was saved is not lost."
    )
