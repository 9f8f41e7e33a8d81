"""Turns at servers, shared by all harvests and processes of one machine, so that together they are as polite
as one.

    HARVESTS/servers    64 bytes: id of the boot this file belongs to; then for each of 65,536 slots 8 bytes:
                        the time from which its server may be asked again

A server has the slot of its name's hash; two servers in one slot only wait for each other. Order of steps:

1. `begin` takes the lock on the bytes of the slot (an open file description lock: the system releases it when
   the process dies) and reads the time. If another process has the lock, or the pause is not over, it returns
   when to try again.
2. `end` writes when the server may be asked again, and releases the lock. Without a pause, the lock is kept
   for a few more turns, at most as long as other processes wait between two tries anyway, because it is
   usually needed again at once. `let_go` releases the locks kept in this way.

Times are `time.monotonic()`, which is the same in all processes until the next boot and has no jumps.
"""

import fcntl
import mmap
import os
import struct
import time
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from webdepot import durable

SLOTS = 1 << 16
BUSY_S = 0.05
"""How soon to try again while another process uses that server."""
_HEAD_BYTES = 64
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME = struct.Struct("<d")
_SIZE_BYTES = _HEAD_BYTES + SLOTS * _TIME.size
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, process (0 for this kind of lock)."""


class SharedServers:
    """Turns at servers for one running crawl. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with durable.locked(path):
            self._handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            boot = _boot_id()
            if os.pread(self._handle, _HEAD_BYTES, 0) != boot:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, boot, 0)
            os.ftruncate(self._handle, _SIZE_BYTES)
            self._times = mmap.mmap(self._handle, _SIZE_BYTES)
        self._in_use: set[int] = set()
        self._locked_s: dict[int, float] = {}
        """Slots whose lock we have -> since when; some of them are not in use at the moment."""

    def begin(self, server: str) -> float:
        """0 if the server may be asked now, until `end`; otherwise the time to try again."""
        slot, now_s = _slot(server), time.monotonic()
        if slot in self._in_use or (slot not in self._locked_s and not self._lock(slot, fcntl.F_WRLCK)):
            return now_s + BUSY_S
        free_at_s: float = _TIME.unpack_from(self._times, slot)[0]
        if free_at_s > now_s:
            self._unlock(slot)
            return free_at_s
        self._locked_s.setdefault(slot, now_s)
        self._in_use.add(slot)
        return 0.0

    def end(self, server: str, free_at_s: float) -> None:
        slot, now_s = _slot(server), time.monotonic()
        if free_at_s > now_s:  # a time in the past has the same effect as the one stored
            _TIME.pack_into(self._times, slot, free_at_s)
        self._in_use.discard(slot)
        if free_at_s > now_s or now_s - self._locked_s.get(slot, 0.0) > BUSY_S:
            self._unlock(slot)

    def let_go(self) -> None:
        """Release the servers that are not in use at the moment."""
        for slot in [slot for slot in self._locked_s if slot not in self._in_use]:
            self._unlock(slot)

    def hold(self, server: str, until_s: float) -> None:
        """Leave a server alone at least until then."""
        slot = _slot(server)
        _TIME.pack_into(self._times, slot, max(until_s, _TIME.unpack_from(self._times, slot)[0]))

    def close(self) -> None:
        self._times.close()
        os.close(self._handle)

    def _unlock(self, slot: int) -> None:
        self._locked_s.pop(slot, None)
        self._lock(slot, fcntl.F_UNLCK)

    def _lock(self, slot: int, kind: int) -> bool:
        request = _FLOCK.pack(kind, os.SEEK_SET, slot, _TIME.size, 0)
        try:
            fcntl.fcntl(self._handle, fcntl.F_OFD_SETLK, request)
        except BlockingIOError:
            return False
        return True


@lru_cache(maxsize=10_000)
def _slot(server: str) -> int:
    """The position of the server's slot in the file."""
    number = int.from_bytes(blake2b(server.encode(), digest_size=4).digest(), "big") % SLOTS
    return _HEAD_BYTES + number * _TIME.size


def _boot_id() -> bytes:
    try:
        name = _BOOT_ID.read_bytes().strip()
    except OSError:
        name = b"unknown"
    return name[:_HEAD_BYTES].ljust(_HEAD_BYTES)
