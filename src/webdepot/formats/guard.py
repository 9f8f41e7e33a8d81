"""Work on hostile bytes behind a wall: a child process with limits on time and memory.

The child is started once and asked again and again, about many files at a time, since a message for each
would cost more than most files do. Their bytes go to the child as one open descriptor over a socket
(`batch`), so that they are not copied. A file that hangs or kills the child costs one answer and a new child:
the child notes on a shared page which file it is at, and the new one is asked about the others.

    parent -> child   JSON: a question for each file, and whether several may be looked at at a time; and the descriptor
    child -> parent   JSON lists with the answers, in order, until there is one for each
    shared page       how many of the questions the child has finished

The next questions may be sent before the answers to the last ones are fetched (`begin`, `end`), so that the
child does not wait for them. Should it die meanwhile, they are sent again to the new one.

Limits are watched from outside, since a library in a loop hears nobody: the parent looks at the child's
processor time, its elapsed time and its memory, and kills it. Processor time is what a loop burns; counting
it instead of the clock lets a good file have its time on a busy machine. The child bounds its own address
space too (RLIMIT_AS), which turns most hunger for memory into a plain `MemoryError`, and has a timer that
ends it should the parent be gone.

Whatever the child puts into temporary files lies in one folder that the parent removes behind it, or the
child itself should the parent be gone first.
"""

import json
import mmap
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from webdepot.formats import scratch
from webdepot.formats.scratch import Scratch
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
_ANSWERS_BYTES = 1 << 15
_ANSWERS_S = 0.1
"""Answers are sent when there are so many, or when they are so old: what a child has not sent is lost with it
and done again.
"""
_ARMED_S = 0.5
"""A child sets its timer anew so often: a call of the system for each file is spared."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = resource.getpagesize()
_START_S = 60.0

Message = dict[str, Any]
Work = Callable[[list[Message], int, bool], Iterator[Message]]
"""From the questions and the descriptor to an answer for each question, in order; whether several may be
looked at at a time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """For one file. Memory is what it may take beyond what the child had at its start."""

    time_s: float = TIME_S
    longest_s: float = LONGEST_S
    memory_bytes: int = MEMORY_BYTES


@dataclass(slots=True, kw_only=True, eq=False)
class PendingQuestions:
    """Questions about an open descriptor."""

    questions: list[Message]
    descriptor: int
    several: bool
    """Several files may be looked at at a time."""
    sent_to: int = -1
    """The child, by how many were gone before it."""


class Guard:
    """One child running a module of this room. One thread at a time; close it, or use it in a `with`."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        limits: Limits = Limits(),  # noqa: B008 - frozen value
        environment: Mapping[str, str] = MappingProxyType({}),
        several: bool = False,
    ) -> None:
        """`several`: the child may look at several files at a time, and does so until one of them does not
        come to an end.
        """
        self.limits = limits
        self._environment = environment
        self._several = several
        self._command = [sys.executable, "-m", module]
        self._arguments = arguments
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._scratch: Scratch | None = None
        self._page: mmap.mmap | None = None
        self._is_ready = False
        self._base_bytes = 0
        self._gone = 0
        """Children before this one."""
        self._begun: list[PendingQuestions] = []
        """Whose answers nobody has fetched yet, in their order."""

    @property
    def pid(self) -> int:
        """Of the child; 0 while there is none."""
        return self._child.pid if self._child else 0

    def start(self) -> None:
        """Begin to start the child without waiting for it."""
        if self._child is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        page = os.memfd_create("finished", os.MFD_CLOEXEC)
        try:
            os.ftruncate(page, _PAGE_BYTES)
            self._page = mmap.mmap(page, _PAGE_BYTES)
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MESSAGE_BYTES)
            self._scratch = Scratch()
            said = (
                str(theirs.fileno()),
                str(page),
                str(self.limits.longest_s),
                str(self.limits.memory_bytes),
                *self._arguments,
            )
            self._child = subprocess.Popen(  # noqa: S603 - our own program
                [*self._command, *said],
                pass_fds=[theirs.fileno(), page],
                env={**os.environ, **self._environment, "TMPDIR": str(self._scratch.path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            theirs.close()
            os.close(page)
        self._socket = ours
        self._is_ready = False

    def ask_many(self, questions: Sequence[Message], descriptor: int) -> list[Message | Finding]:
        """An answer to each question about the open descriptor; a finding in its place where the child did
        not come to an end.
        """
        return self.end(self.begin(questions, descriptor))

    def look(self) -> None:
        """End a child that takes too much memory while nobody waits for its answers; its questions are then
        asked again, and waited for. A child that takes too much time meanwhile ends by its own timer.
        """
        if self._is_ready and self._takes_too_much():
            self.close()

    def begin(self, questions: Sequence[Message], descriptor: int) -> PendingQuestions:
        """Send the questions. Whoever does so must `end` it, in the order in which they were sent, while the
        descriptor is open.
        """
        asked = PendingQuestions(
            questions=list(questions), descriptor=descriptor, several=self._several and len(questions) > 1
        )
        for each in (
            *self._begun,
            asked,
        ):  # those before it, too, should the child be a new one: answers come in the order of questions
            if each.sent_to != self._gone:
                self._send(each)
        self._begun.append(asked)
        return asked

    def end(
        self, asked: PendingQuestions, *, meanwhile: Callable[[], None] = lambda: None
    ) -> list[Message | Finding]:
        """Fetch the answers; `meanwhile` is called now and then if it takes long."""
        self._begun.remove(asked)
        answers: list[Message | Finding | None] = [None] * len(asked.questions)
        waiting, sent = list(range(len(asked.questions))), asked
        while waiting:
            came, failed = self._fetch(sent, meanwhile)
            for number, answer in zip(waiting, came, strict=False):
                answers[number] = answer
            left = waiting[len(came) :]
            if failed is not None and not sent.several:
                culprit = waiting[min(max(failed[0], len(came)), len(waiting) - 1)]
                answers[culprit] = failed[1]
                left = [number for number in left if number != culprit]
            waiting = left
            # If it was one of several: asked about each alone it will show which.
            several = sent.several and failed is None
            sent = PendingQuestions(
                questions=[asked.questions[number] for number in left],
                descriptor=asked.descriptor,
                several=several,
            )
        return [answer for answer in answers if answer is not None]

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
            self._gone += 1
        if self._page is not None:
            self._page.close()
        if self._scratch is not None:
            self._scratch.close()
        self._child = self._socket = self._page = self._scratch = None
        self._is_ready = False

    def __enter__(self) -> "Guard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, asked: PendingQuestions) -> None:
        connection = self._connection()
        message = json.dumps({"questions": asked.questions, "several": asked.several}).encode()
        with suppress(OSError):  # it is dead, as will be seen when its answers are fetched
            socket.send_fds(connection, [message], [asked.descriptor])
        asked.sent_to = self._gone

    def _fetch(
        self, asked: PendingQuestions, meanwhile: Callable[[], None]
    ) -> tuple[list[Message], tuple[int, Finding] | None]:
        """The answers that came, and if not all did, which question it ended at and why."""
        if asked.sent_to != self._gone:
            self._send(asked)
        connection = self._connection()
        came: list[Message] = []
        try:
            while len(came) < len(asked.questions):
                self._wait(connection, meanwhile)
                answers = connection.recv(_MESSAGE_BYTES)
                if not answers:
                    return came, (self._count_finished(), self._died("no answer"))
                came += json.loads(answers)
        except _Over as error:
            return came, (error.finished, error.finding)
        except OSError as error:
            return came, (self._count_finished(), self._died(error.strerror or "no answer"))
        return came, None

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

    def _wait(self, connection: socket.socket, meanwhile: Callable[[], None]) -> None:
        """Until there are answers; `_Over` at the first limit of one file."""
        if select.select([connection], [], [], min(_FIRST_LOOK_S, self.limits.longest_s))[0]:
            return
        finished = -1
        begun_s = spent_s = 0.0
        while not select.select([connection], [], [], _LOOK_S)[0]:
            meanwhile()
            if (now := self._count_finished()) != finished:
                finished, begun_s, spent_s = now, time.monotonic() - _LOOK_S, _processor_s(self.pid) - _LOOK_S
            if (
                _processor_s(self.pid) - spent_s > self.limits.time_s
                or time.monotonic() - begun_s > self.limits.longest_s
            ):
                self.close()
                raise _Over(finished, finding("gave-up-time", limit=f"{self.limits.time_s:g}"))
            if self._takes_too_much():
                self.close()
                raise _Over(finished, finding("gave-up-memory"))

    def _takes_too_much(self) -> bool:
        return _memory_bytes(self.pid) - self._base_bytes > self.limits.memory_bytes

    def _count_finished(self) -> int:
        return int.from_bytes(self._page[:4], "little") if self._page is not None else 0

    def _died(self, reason: str) -> Finding:
        """Why the child is gone; the next question starts a new one."""
        status = self._child.wait() if self._child else 0
        self.close()
        if status == -signal.SIGALRM:
            return finding("gave-up-time", limit=f"{self.limits.longest_s:g}")
        detail = signal.Signals(-status).name if status < 0 else f"{reason}, exit {status}"
        return finding("checker-died", detail=detail)


class _Over(Exception):
    """A file went over a limit, and the child was ended."""

    def __init__(self, finished: int, found: Finding) -> None:
        super().__init__(found.message)
        self.finished = finished
        self.finding = found


def serve(arguments: list[str], begin: Callable[[list[str]], tuple[Work, Message]]) -> None:
    """The child: get ready, say so, answer until the parent closes the connection. `begin` gives the work and
    the greeting.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    page = mmap.mmap(int(arguments[1]), _PAGE_BYTES)
    longest_s = float(arguments[2])
    try:
        with socket.socket(fileno=int(arguments[0])) as connection:
            work, greeting = begin(arguments[3:])
            connection.send(json.dumps(greeting).encode())
            while True:
                asked, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 1)
                if not asked:
                    return
                message = json.loads(asked)
                try:
                    _answer(
                        connection,
                        work(message["questions"], descriptors[0], message["several"]),
                        page,
                        longest_s + 1,
                    )
                finally:
                    os.close(descriptors[0])
    finally:
        scratch.remove(os.environ.get("TMPDIR", ""))


def _answer(connection: socket.socket, answers: Iterator[Message], page: mmap.mmap, longest_s: float) -> None:
    """Send the answers, several in one message. The timer is for the case that nobody watches."""
    ready: list[bytes] = []
    page[:4] = bytes(4)
    size_bytes, sent_s, armed_s = 0, time.monotonic(), _arm(longest_s)
    for finished, answer in enumerate(answers, 1):
        packed = _packed(answer)
        if ready and (size_bytes + len(packed) > _ANSWERS_BYTES or time.monotonic() - sent_s > _ANSWERS_S):
            connection.send(b"[" + b",".join(ready) + b"]")
            ready, size_bytes, sent_s = [], 0, time.monotonic()
        ready.append(packed)
        size_bytes += len(packed)
        page[:4] = finished.to_bytes(4, "little")
        if time.monotonic() > armed_s + _ARMED_S:
            armed_s = _arm(longest_s)
    signal.setitimer(signal.ITIMER_REAL, 0)
    connection.send(b"[" + b",".join(ready) + b"]")


def _arm(longest_s: float) -> float:
    signal.setitimer(signal.ITIMER_REAL, longest_s + _ARMED_S)
    return time.monotonic()


def limit_memory(memory_bytes: int | None) -> None:
    """In a child: so much more address space than the process has mapped now; None takes the limit away."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if memory_bytes is None:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        return
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES
    wanted = mapped + memory_bytes
    resource.setrlimit(
        resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


def _packed(answer: Message) -> bytes:
    """One answer; what is too long for a message loses its findings first."""
    packed = json.dumps(answer).encode()
    while len(packed) > _MESSAGE_BYTES - 2 and answer.get("findings"):
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
