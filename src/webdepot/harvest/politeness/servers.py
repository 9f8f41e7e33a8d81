"""Who asks which server, over all harvests and processes of one machine, so that together they are as polite
as one.

    HARVESTS/servers    64 bytes: boot this file belongs to; then for each of 65,536 slots 8 bytes: when it may be asked again

A server has the slot of its name's hash; two servers in one slot wait for each other, nothing worse. Order of
steps:

1. `begin` takes the lock on the slot's bytes (an open file description lock: a process that dies lets go of
   it) and looks at the time. Somebody else's turn, or a pause: it says when to come again.
2. `end` writes when the server may be asked again, and lets go. Where there is no pause, the lock is kept for
   a few turns more, no longer than anybody who waits for it waits anyway: it is asked for again at once.
   `let_go` ends what was kept so.

Times are `time.monotonic()`, which all processes share from boot to boot and no clock jump touches.
"""

import fcntl
import mmap
import os
import struct
import time
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

SLOTS = 1 << 16
BUSY_S = 0.05
"""How soon to come again while another process asks that server."""
_HEAD_BYTES = 64
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME = struct.Struct("<d")
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, process (0 for this kind of lock)."""


class SharedServers:
    """One for each running crawl. Not for threads."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            boot = _boot_id()
            if os.pread(self._handle, _HEAD_BYTES, 0) != boot:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, boot, 0)
            os.ftruncate(self._handle, _HEAD_BYTES + SLOTS * _TIME.size)
            self._times = mmap.mmap(self._handle, _HEAD_BYTES + SLOTS * _TIME.size)
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._held: set[int] = set()
        self._kept: dict[int, float] = {}
        """Locks of slots that nobody asks at the moment, and since when we have them."""

    def begin(self, server: str) -> float:
        """0 when it is our turn, until `end`; otherwise when to come again."""
        at, now_s = _place(server), time.monotonic()
        if at in self._held or (at not in self._kept and not self._lock(at, fcntl.F_WRLCK)):
            return now_s + BUSY_S
        free_at_s: float = _TIME.unpack_from(self._times, at)[0]
        if free_at_s > now_s:
            self._unlock(at)
            return free_at_s
        self._kept.setdefault(at, now_s)
        self._held.add(at)
        return 0.0

    def end(self, server: str, free_at_s: float) -> None:
        at, now_s = _place(server), time.monotonic()
        if free_at_s > now_s:  # what is over is as good as what stands there
            _TIME.pack_into(self._times, at, free_at_s)
        self._held.discard(at)
        if free_at_s > now_s or now_s - self._kept.get(at, 0.0) > BUSY_S:
            self._unlock(at)

    def let_go(self) -> None:
        """Of servers that are not asked at the moment."""
        for at in [at for at in self._kept if at not in self._held]:
            self._unlock(at)

    def hold(self, server: str, until_s: float) -> None:
        """Leave it alone at least until then."""
        at = _place(server)
        _TIME.pack_into(self._times, at, max(until_s, _TIME.unpack_from(self._times, at)[0]))

    def close(self) -> None:
        self._times.close()
        os.close(self._handle)

    def _unlock(self, at: int) -> None:
        self._kept.pop(at, None)
        self._lock(at, fcntl.F_UNLCK)

    def _lock(self, at: int, kind: int) -> bool:
        wanted = _FLOCK.pack(kind, os.SEEK_SET, at, _TIME.size, 0)
        try:
            fcntl.fcntl(self._handle, fcntl.F_OFD_SETLK, wanted)
        except BlockingIOError:
            return False
        return True


@lru_cache(maxsize=10_000)
def _place(server: str) -> int:
    number = int.from_bytes(blake2b(server.encode(), digest_size=4).digest(), "big") % SLOTS
    return _HEAD_BYTES + number * _TIME.size


def _boot_id() -> bytes:
    try:
        name = _BOOT_ID.read_bytes().strip()
    except OSError:
        name = b"unknown"
    return name[:_HEAD_BYTES].ljust(_HEAD_BYTES)
