"""Work on hostile bytes behind a wall: a child process with limits on time and memory.

The child is started once and asked again and again; a file that hangs or kills it costs one answer and a new child. A file goes to the
child as an open descriptor over a socket, so that its bytes are not copied.

    parent -> child   a JSON object and the descriptor
    child -> parent   a JSON object

Limits are watched from outside, since a library in a loop hears nobody: the parent looks at the child's processor time, its elapsed time
and its memory, and kills it. Processor time is what a loop burns; counting it instead of the clock lets a good file have its time on a
busy machine. The child bounds its own address space too (RLIMIT_AS), which turns most hunger for memory into a plain `MemoryError`, and
has a timer that ends it should the parent be gone.
"""

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from webdepot.formats.texts import finding
from webdepot.model import Finding

TIME_S = 3.0
"""Processor time for one file."""
LONGEST_S = 6.0
"""Elapsed time for one file, whatever the machine is doing."""
MEMORY_BYTES = 128 << 20
_FIRST_LOOK_S = 0.1
_LOOK_S = 0.05
_MESSAGE_BYTES = 1 << 17
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = resource.getpagesize()
_START_S = 60.0

Message = dict[str, Any]
Work = Callable[[Message, int], Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """For one file. Memory is what it may take beyond what the child had at its start."""

    time_s: float = TIME_S
    longest_s: float = LONGEST_S
    memory_bytes: int = MEMORY_BYTES


class GaveUp(Exception):
    """The child did not come to an end with a file; the finding says why."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.message)
        self.finding = found


class Guard:
    """One child running a module of this room. One thread at a time; close it, or use it in a `with`."""

    def __init__(self, module: str, *arguments: str, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen value
        self.limits = limits
        self._command = [sys.executable, "-m", module]
        self._arguments = arguments
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._is_ready = False
        self._base_bytes = 0

    @property
    def pid(self) -> int:
        """Of the child; 0 while there is none."""
        return self._child.pid if self._child else 0

    def start(self) -> None:
        """Begin to start the child without waiting for it."""
        if self._child is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                for end in (ours, theirs):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MESSAGE_BYTES)
                said = (str(theirs.fileno()), str(self.limits.longest_s), str(self.limits.memory_bytes), *self._arguments)
                self._child = subprocess.Popen(  # noqa: S603 - our own program
                    [*self._command, *said],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            self._socket = ours
            self._is_ready = False

    def ask(self, question: Message, descriptor: int) -> Message:
        """The child's answer about the open file; GaveUp when it went over a limit or died."""
        connection = self._connection()
        try:
            socket.send_fds(connection, [json.dumps(question).encode()], [descriptor])
            self._wait(connection)
            answer = connection.recv(_MESSAGE_BYTES)
        except OSError as error:
            raise GaveUp(self._died(error.strerror or "no answer")) from error
        if not answer:
            raise GaveUp(self._died("no answer"))
        found: Message = json.loads(answer)
        return found

    def greeting(self) -> Message:
        """What the child said of itself when it was ready."""
        self._connection()
        return self._greeting

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._child = self._socket = None

    def __enter__(self) -> "Guard":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _connection(self) -> socket.socket:
        self.start()
        assert self._socket is not None  # noqa: S101 - `start` sets it
        if not self._is_ready:
            # The start of a child takes its own time, once; it must not count against the first file.
            self._socket.settimeout(_START_S)
            try:
                greeting = self._socket.recv(_MESSAGE_BYTES)
            except OSError:
                greeting = b""
            if not greeting:
                self.close()
                raise ChildProcessError("The process that looks at files did not start. Run: webdepot doctor")
            self._greeting: Message = json.loads(greeting)
            self._base_bytes = _memory_bytes(self.pid)
            self._socket.settimeout(self.limits.longest_s)
            self._is_ready = True
        return self._socket

    def _wait(self, connection: socket.socket) -> None:
        """Until there is an answer; GaveUp at the first limit."""
        if select.select([connection], [], [], min(_FIRST_LOOK_S, self.limits.longest_s))[0]:
            return
        begun_s, spent_s = time.monotonic() - _FIRST_LOOK_S, _processor_s(self.pid) - _FIRST_LOOK_S
        while not select.select([connection], [], [], _LOOK_S)[0]:
            if _processor_s(self.pid) - spent_s > self.limits.time_s or time.monotonic() - begun_s > self.limits.longest_s:
                self.close()
                raise GaveUp(finding("gave-up-time", limit=f"{self.limits.time_s:g}"))
            if _memory_bytes(self.pid) - self._base_bytes > self.limits.memory_bytes:
                self.close()
                raise GaveUp(finding("gave-up-memory"))

    def _died(self, reason: str) -> Finding:
        """Why the child is gone; the next question starts a new one."""
        status = self._child.wait() if self._child else 0
        self.close()
        if status == -signal.SIGALRM:
            return finding("gave-up-time", limit=f"{self.limits.longest_s:g}")
        detail = signal.Signals(-status).name if status < 0 else f"{reason}, exit {status}"
        return finding("checker-died", detail=detail)


def serve(arguments: list[str], begin: Callable[[list[str]], tuple[Work, Message]]) -> None:
    """The child: get ready, say so, answer until the parent closes the connection. `begin` gives the work and the greeting."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    longest_s = float(arguments[1])
    with socket.socket(fileno=int(arguments[0])) as connection:
        work, greeting = begin(arguments[2:])
        connection.send(json.dumps(greeting).encode())
        while True:
            question, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 1)
            if not question:
                return
            signal.setitimer(signal.ITIMER_REAL, longest_s + 1)
            try:
                answer = work(json.loads(question), descriptors[0])
            finally:
                os.close(descriptors[0])
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send(_packed(answer))


def limit_memory(memory_bytes: int | None) -> None:
    """In a child: so much more address space than the process has mapped now; None takes the limit away."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if memory_bytes is None:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        return
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES
    wanted = mapped + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def opened(payload: bytes | Path) -> int:
    """A descriptor to hand to a child; the caller closes it."""
    if isinstance(payload, Path):
        return os.open(payload, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = os.memfd_create("payload", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(payload)
    return descriptor


def _packed(answer: Message) -> bytes:
    """One message; what is too long for it loses its findings first."""
    packed = json.dumps(answer).encode()
    while len(packed) > _MESSAGE_BYTES and answer.get("findings"):
        answer = {**answer, "findings": answer["findings"][: len(answer["findings"]) // 2]}
        packed = json.dumps(answer).encode()
    return packed


def _processor_s(pid: int) -> float:
    """Processor time of a process so far; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
