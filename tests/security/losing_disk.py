"""A disk that loses what was not synced: a file system in memory, for tests of power cuts.

    python losing_disk.py MOUNT SEED CUT_AT

It starts with the content of the folder MOUNT and is mounted over it. After CUT_AT changes (0: never), or when a
line arrives on its standard input, the power is cut: from then on no request is answered. What a disk may hold
after a power cut is put into the folder MOUNT, under the mount. It prints `ready` when it is mounted and `cut N`
after N changes, and ends when its standard input is closed.

It promises only what POSIX promises (https://pubs.opengroup.org/onlinepubs/9799919799/functions/fsync.html):
- the bytes of a file are kept as they were at its last fsync; of later writes any subset is kept, also none;
- a name is kept if its folder was synced after it was given or removed; of later changes of names any subset is
  kept. A rename happens as a whole or not at all. Syncing a file does not keep its name.
Real file systems promise more (ext4 and XFS write names in order), so what survives here survives there.

Written pages of shared mappings (SQLite's -shm, LMDB) arrive as writes when the kernel flushes them, at the
latest with msync or fsync, as on a disk. It speaks the protocol of the kernel itself
(https://docs.kernel.org/filesystems/fuse.html, include/uapi/linux/fuse.h), so that it needs no library; it needs
root, for mount(2).
"""

import ctypes
import errno
import os
import random
import select
import stat
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MAX_WRITE = 1 << 17
_HEADER = struct.Struct("=IIQQIIIHH")
_ATTR = struct.Struct("=QQQQQQIIIIIIIIII")
_FOREVER_S = 86400
(LOOKUP, FORGET, GETATTR, SETATTR, READLINK, SYMLINK) = range(1, 7)
(MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, OPEN, READ, WRITE, STATFS) = range(8, 18)
FSYNC, INIT, READDIR, FSYNCDIR, BATCH_FORGET, RENAME2, SYNCFS, TMPFILE = 20, 26, 28, 30, 42, 45, 50, 51
_CHANGES = frozenset(
    {SETATTR, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, WRITE, FSYNC, FSYNCDIR, RENAME2, TMPFILE}
)
_NO_ANSWER = frozenset({FORGET, BATCH_FORGET})


@dataclass(eq=False, slots=True)
class Node:
    """A file, folder or link: as processes see it, and as it is on the disk."""

    number: int
    mode: int
    data: bytearray = field(default_factory=bytearray)
    entries: "dict[bytes, Node]" = field(default_factory=dict)
    disk_data: bytearray = field(default_factory=bytearray)
    disk_entries: "dict[bytes, Node]" = field(default_factory=dict)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes since the last fsync: offset and bytes, or a new size and None."""
    links: int = 0
    changed_ns: int = 0


Change = list[tuple[Node, bytes, Node | None]]
"""Names that change together: folder, name, what it names from now on."""


def write_at(data: bytearray, offset: int, piece: bytes | None) -> None:
    if piece is None:
        del data[offset:]
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    if piece is not None:
        data[offset : offset + len(piece)] = piece


class Disk:
    """The files, what of them is on the disk, and what waits to get there."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.root = self.create(stat.S_IFDIR | 0o755)
        self.waiting: list[Change] = []

    def create(self, mode: int) -> Node:
        node = Node(len(self.nodes) + 1, mode, changed_ns=time.time_ns())
        self.nodes[node.number] = node
        return node

    def load(self, folder: Path, node: Node) -> None:
        """Begin with the content of a real folder, all of it on the disk."""
        for path in folder.iterdir():
            facts = path.lstat()
            child = self.create(facts.st_mode)
            child.changed_ns, child.links = facts.st_mtime_ns, 1
            name = os.fsencode(path.name)
            node.entries[name] = node.disk_entries[name] = child
            if stat.S_ISDIR(facts.st_mode):
                self.load(path, child)
            else:
                data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
                child.data, child.disk_data = bytearray(data), bytearray(data)

    def write(self, node: Node, offset: int, piece: bytes | None) -> None:
        write_at(node.data, offset, piece)
        node.pending.append((offset, piece))
        node.changed_ns = time.time_ns()

    def rename(self, *changes: tuple[Node, bytes, Node | None]) -> None:
        """Change names, all of them together."""
        for folder, name, node in changes:
            before = folder.entries.pop(name, None)
            if before is not None:
                before.links -= 1
            if node is not None:
                folder.entries[name] = node
                node.links += 1
            folder.changed_ns = time.time_ns()
        self.waiting.append(list(changes))

    def sync(self, node: Node) -> None:
        for offset, piece in node.pending:
            write_at(node.disk_data, offset, piece)
        node.pending.clear()

    def sync_folder(self, folder: Node) -> None:
        """Bring the changes of the names in a folder to the disk, with those of the same names before them."""
        needed, keys = [], set()
        for change in reversed(self.waiting):
            own = {(each, name) for each, name, _ in change}
            if any(each is folder for each, _, _ in change) or own & keys:
                needed.append(change)
                keys |= own
        for change in reversed(needed):
            self._keep(change)
            self.waiting.remove(change)

    def lose(self, chance: random.Random) -> None:
        """The power fails: of what waits, a random part gets to the disk, often nothing."""
        kept = chance.choice((0.0, 0.5, 1.0))
        for change in self.waiting:
            if chance.random() < kept:
                self._keep(change)
        kept = chance.choice((0.0, 0.0, 0.5))
        for node in self.nodes.values():
            for offset, piece in node.pending:
                if chance.random() < kept:
                    write_at(node.disk_data, offset, piece)

    def _keep(self, change: Change) -> None:
        for folder, name, node in change:
            if node is None:
                folder.disk_entries.pop(name, None)
            else:
                folder.disk_entries[name] = node

    def save(self, folder: Path, node: Node) -> None:
        """Make a real folder equal to what is on the disk."""
        for path in folder.iterdir():
            remove(path)
        for name, child in node.disk_entries.items():
            path = folder / os.fsdecode(name)
            if stat.S_ISDIR(child.mode):
                path.mkdir()
                self.save(path, child)
                path.chmod(stat.S_IMODE(child.mode))
            elif stat.S_ISLNK(child.mode):
                path.symlink_to(os.fsdecode(bytes(child.disk_data)))
            else:
                path.write_bytes(child.disk_data)
                path.chmod(stat.S_IMODE(child.mode))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            remove(child)
        path.rmdir()
    else:
        path.unlink()


class Requests:
    """Answers the requests of the kernel."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.listings: dict[int, list[tuple[bytes, Node]]] = {}

    def answer(self, opcode: int, number: int, body: bytes) -> bytes:
        """The body of the answer; OSError with its errno."""
        disk, node = self.disk, self.disk.nodes.get(number)
        if opcode == INIT:
            return _init(body)
        if opcode in _NO_ANSWER:
            return b""
        if opcode == STATFS:
            return struct.pack(
                "=QQQQQIIIIIIIIII", 1 << 30, 1 << 30, 1 << 30, 1 << 20, 1 << 20, 4096, 255, 4096, *[0] * 7
            )
        if node is None:
            raise OSError(errno.ENOENT, "")
        match opcode:
            case 1:  # LOOKUP
                return _entry(_child(node, body[:-1]))
            case 3:
                return _attributes(node)
            case 4:
                return self._set_attributes(node, body)
            case 5:
                return bytes(node.data)
            case 15:
                offset, size = struct.unpack_from("=8xQI", body)
                return bytes(node.data[offset : offset + size])
            case 16:
                offset, size = struct.unpack_from("=8xQI", body)
                disk.write(node, offset, body[40 : 40 + size])
                return struct.pack("=II", size, 0)
            case 20:
                disk.sync(node)
            case 30:
                disk.sync_folder(node)
            case 28:
                return self._list(node, body)
            case 50:
                for each in disk.nodes.values():
                    disk.sync(each)
                    disk.sync_folder(each)
            case _:
                return self._names(opcode, node, body)
        return b""

    def _names(self, opcode: int, folder: Node, body: bytes) -> bytes:
        disk = self.disk
        if opcode == SYMLINK:
            name, target = body[:-1].split(b"\0")
            return self._add(folder, name, stat.S_IFLNK | 0o777, target)
        if opcode == MKNOD:
            mode, umask = struct.unpack_from("=I4xI", body)
            return self._add(folder, body[16:-1], mode & ~umask)
        if opcode == MKDIR:
            mode, umask = struct.unpack_from("=II", body)
            return self._add(folder, body[8:-1], stat.S_IFDIR | (mode & ~umask))
        if opcode == TMPFILE:
            mode, umask = struct.unpack_from("=4xII", body)
            return _entry(disk.create(stat.S_IFREG | (mode & ~umask & 0o7777))) + bytes(16)
        if opcode == LINK:
            node = disk.nodes[struct.unpack_from("=Q", body)[0]]
            name = body[8:-1]
            if name in folder.entries:
                raise OSError(errno.EEXIST, "")
            disk.rename((folder, name, node))
            return _entry(node)
        if opcode in (UNLINK, RMDIR):
            node = _child(folder, body[:-1])
            if opcode == RMDIR and node.entries:
                raise OSError(errno.ENOTEMPTY, "")
            disk.rename((folder, body[:-1], None))
            return b""
        if opcode in (RENAME, RENAME2):
            names = body[8 if opcode == RENAME else 16 : -1]
            old, new = names.split(b"\0")
            node, target = _child(folder, old), disk.nodes[struct.unpack_from("=Q", body)[0]]
            flags = struct.unpack_from("=8xI", body)[0] if opcode == RENAME2 else 0
            existing = target.entries.get(new)
            if flags & 2:
                raise OSError(errno.EINVAL, "")
            if existing is not None and (flags & 1 or existing.entries):
                raise OSError(errno.EEXIST if flags & 1 else errno.ENOTEMPTY, "")
            if existing is not node:
                disk.rename((folder, old, None), (target, new, node))
            return b""
        raise OSError(errno.ENOSYS, "")

    def _add(self, folder: Node, name: bytes, mode: int, data: bytes = b"") -> bytes:
        if name in folder.entries:
            raise OSError(errno.EEXIST, "")
        node = self.disk.create(mode)
        node.data, node.disk_data = bytearray(data), bytearray(data)
        self.disk.rename((folder, name, node))
        return _entry(node)

    def _set_attributes(self, node: Node, body: bytes) -> bytes:
        valid, size, seconds, nanoseconds, mode = struct.unpack_from("=I12xQ16xQ12xI4xI", body)
        if valid & 1:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        if valid & 8:
            self.disk.write(node, size, None)
        if valid & 32:
            node.changed_ns = time.time_ns() if valid & 256 else seconds * 1_000_000_000 + nanoseconds
        return _attributes(node)

    def _list(self, folder: Node, body: bytes) -> bytes:
        offset, size = struct.unpack_from("=8xQI", body)
        if offset == 0:
            self.listings[folder.number] = [(b".", folder), (b"..", folder), *folder.entries.items()]
        answer = b""
        for at, (name, node) in enumerate(self.listings.get(folder.number, [])[offset:], start=offset + 1):
            row = struct.pack("=QQII", node.number, at, len(name), node.mode >> 12) + name
            row += bytes(-len(row) % 8)
            if len(answer) + len(row) > size:
                break
            answer += row
        return answer


def _init(body: bytes) -> bytes:
    readahead, flags = struct.unpack_from("=8xII", body)
    wanted = (
        1 | 1 << 5 | 1 << 17 | 1 << 22 | 1 << 24
    )  # asynchronous reads, large writes, no open, pages, no opendir
    answer = struct.pack(
        "=IIIIHHIIHH", 7, 31, readahead, flags & wanted, 16, 12, MAX_WRITE, 1, MAX_WRITE >> 12, 0
    )
    return answer + bytes(64 - len(answer))


def _child(folder: Node, name: bytes) -> Node:
    node = folder.entries.get(name)
    if node is None:
        raise OSError(errno.ENOENT, "")
    return node


def _attr(node: Node) -> bytes:
    seconds, nanoseconds = divmod(node.changed_ns, 1_000_000_000)
    size = len(node.data)
    links = 2 if stat.S_ISDIR(node.mode) else node.links
    return _ATTR.pack(
        node.number, size, -(-size // 512), seconds, seconds, seconds, *[nanoseconds] * 3, node.mode, links,
        0, 0, 0, 4096, 0,
    )  # fmt: skip


def _attributes(node: Node) -> bytes:
    return struct.pack("=QII", _FOREVER_S, 0, 0) + _attr(node)


def _entry(node: Node) -> bytes:
    return struct.pack("=QQQQII", node.number, 0, _FOREVER_S, _FOREVER_S, 0, 0) + _attr(node)


def mount(descriptor: int, folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"losing_disk", os.fsencode(folder), b"fuse", 0, options):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unmount(folder: Path) -> None:
    ctypes.CDLL(None).umount2(os.fsencode(folder), 2)  # MNT_DETACH


def serve(folder: Path, seed: int, cut_at: int) -> None:
    disk = Disk()
    disk.load(folder, disk.root)
    below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # the folder itself, also when it is mounted over
    fuse = os.open("/dev/fuse", os.O_RDWR)
    mount(fuse, folder)
    print("ready", flush=True)
    requests, changes = Requests(disk), 0
    while not cut_at or changes < cut_at:
        readable, _, _ = select.select([fuse, sys.stdin], [], [])
        if sys.stdin in readable:
            break
        try:
            request = os.read(fuse, MAX_WRITE + 8192)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            raise
        _, opcode, unique, number, *_ = _HEADER.unpack_from(request)
        changes += opcode in _CHANGES
        if cut_at and changes >= cut_at:
            break
        try:
            answer, failed = requests.answer(opcode, number, request[_HEADER.size :]), 0
        except OSError as error:
            answer, failed = b"", -(error.errno or errno.EIO)
        if opcode not in _NO_ANSWER:
            with suppress(FileNotFoundError):  # the process that asked was killed
                os.write(fuse, struct.pack("=IiQ", 16 + len(answer), failed, unique) + answer)
    disk.lose(random.Random(seed))
    disk.save(Path(f"/proc/self/fd/{below}"), disk.root)
    print(f"cut {changes}", flush=True)
    sys.stdin.read()  # until the other processes have been killed: with this one all their requests end


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
