"""Test what a guarded child can still do: it tries what is forbidden and reports the result. For `webdepot
doctor`.

question   {"read": paths, "write": paths, "connect": [host, port]}
answer     {"walls", "environment", "no_new_privileges", "seccomp", "reads", "writes", "connects",
            "starts", "forks"}
"""

import errno
import os
import resource
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from webdepot.guard import child
from webdepot.guard.batch import Batch
from webdepot.guard.child import Message, Work
from webdepot.guard.process import Guard, GuardFailure
from webdepot.guard.walls import View

_LIMITS = {
    "core": resource.RLIMIT_CORE,
    "file": resource.RLIMIT_FSIZE,
    "files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a child behind the walls could do."""

    walls: Sequence[str]
    """The walls that hold."""
    environment: Sequence[str]
    """Names of its variables."""
    no_new_privileges: bool
    seccomp: int
    """Mode of the filter of system calls; 2 if there is one."""
    reads: Sequence[str]
    writes: Sequence[str]
    connects: bool
    starts: bool
    """It could start a program."""
    forks: bool
    limits: Mapping[str, int]
    """Hard limits of core dumps, file size, open files and processes; -1 if there is none."""


def probe(
    *,
    read: Sequence[Path] = (),
    write: Sequence[Path] = (),
    connect: tuple[str, int] = ("127.0.0.1", 9),
    view: View = View(),  # noqa: B008 - frozen value
) -> Probed:
    """Start a child that tries to read and write these files and to connect to this address. OSError if it
    does not start.
    """
    question = {"read": [str(path) for path in read], "write": [str(path) for path in write]}
    with Batch([b""]) as batch, Guard(__name__, view=view) as guard:
        (answer,) = guard.ask_many([question | {"connect": list(connect)}], batch.descriptor)
        walls = guard.greeting()["walls"]
    if isinstance(answer, GuardFailure):
        raise ChildProcessError(f"The process that tests the sandbox ended: {answer.detail}")
    return Probed(walls=walls, **answer)


# --- in the child ---


def _begin(_: list[str]) -> tuple[Work, Message]:
    def work(questions: list[Message], descriptor: int, several: bool) -> Iterator[Message]:
        for each in questions:
            status = _status()
            yield {
                "environment": sorted(os.environ),
                "no_new_privileges": status.get("NoNewPrivs") == "1",
                "seccomp": int(status.get("Seccomp", "0")),
                "reads": [name for name in each["read"] if _reads(name)],
                "writes": [name for name in each["write"] if _writes(name)],
                "connects": _connects(*each["connect"]),
                "starts": _starts(),
                "forks": _forks(),
                "limits": {name: resource.getrlimit(kind)[1] for name, kind in _LIMITS.items()},
            }

    return work, {}


def _status() -> dict[str, str]:
    """Of this process: lines `Name: value`, from the descriptor that was opened before the walls went up."""
    lines = os.pread(_open_status(), 1 << 16, 0).decode("ascii", "replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@cache
def _open_status() -> int:
    """Opened before the walls go up: afterwards /proc cannot be read."""
    return os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)


def _reads(name: str) -> bool:
    with suppress(OSError):
        if Path(name).is_dir():
            os.listdir(name)  # noqa: PTH208 - only whether it is allowed
        else:
            Path(name).read_bytes()
        return True
    return False


def _writes(name: str) -> bool:
    with suppress(OSError):
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600))
        return True
    return False


def _connects(host: str, port: int) -> bool:
    """Whether a connection was possible; the answer that no server listens there also means that it was."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            connection.connect((host, port))
    except OSError as error:
        return error.errno == errno.ECONNREFUSED
    return True


def _starts() -> bool:
    """Whether a program could be started: behind the walls the call fails before its name is looked at."""
    try:
        os.execve("/there/is/no/such/program", ["program"], {})  # noqa: S606 - it does not exist
    except OSError as error:
        return error.errno == errno.ENOENT


def _forks() -> bool:
    try:
        child = os.fork()
    except OSError:
        return False
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return True


if __name__ == "__main__":
    _open_status()
    child.serve(sys.argv[1:], _begin)
