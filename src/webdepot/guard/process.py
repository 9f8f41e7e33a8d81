"""Process hostile files in a guarded process (`child`), with limits on time, memory and output, behind walls
(`walls`).

The child is started once and asked about many files at a time, since a message for each file would cost more
than most files do. The files are passed as one open descriptor over a socket (`batch`), so that they are not
copied. A file that hangs or kills the child costs one answer and a new child: the child records on a shared
page which file it is at, and the new child is asked about the others.

    parent -> child   JSON: a question for each file, whether several may be examined at a time;
                      and the descriptor
    child -> parent   JSON lists with the answers, in order, until there is one for each question; a list
                      can take several messages, whose first byte says whether another follows
    shared page       how many of the questions the child has finished

The next questions may be sent before the answers to the previous ones are fetched (`begin`, `end`), so that
the child does not wait for them. If it dies meanwhile, they are sent again to the new child.

The parent enforces the limits, since a library in a loop does not react: it watches the child's processor
time, elapsed time and memory, and kills it. Processor time is counted besides elapsed time, so that a good
file has enough time on a busy machine. The child also limits its own address space (RLIMIT_AS), which turns
most excessive allocations into a `MemoryError`, and has a timer that ends it if the parent is gone.

The child sees no variable of our environment except those that it is given. Temporary files of the child are
in one folder, which the parent removes. If the parent is gone, the child empties it and the next process
removes it.
"""

import fcntl
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, TracebackType

from webdepot.guard import environment as environments
from webdepot.guard.child import LAST, MESSAGE_BYTES, PAGE_BYTES, Message
from webdepot.guard.scratch import Scratch
from webdepot.guard.walls import View

TIME_S = 3.0
"""Processor time for one file."""
LONGEST_S = 6.0
"""Elapsed time for one file, also on a busy machine."""
MEMORY_BYTES = 128 << 20
_FIRST_LOOK_S = 0.1
_LOOK_S = 0.05
OUTPUT_BYTES = 1 << 20
"""The longest list of answers."""
_TICKS = os.sysconf("SC_CLK_TCK")
_START_S = 60.0
_SIZES = (b"RssAnon:", b"RssShmem:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for one file. Memory is counted beyond what the child had at its start, without the files that
    were sent: those on disk are the system's to drop, those in memory are the parent's.
    """

    time_s: float = TIME_S
    longest_s: float = LONGEST_S
    memory_bytes: int = MEMORY_BYTES
    output_bytes: int = OUTPUT_BYTES
    slowest_bytes_per_s: int = 0
    """If not zero, time is added for each byte of the files that are sent together."""

    def added_s(self, size_bytes: int) -> float:
        return size_bytes / self.slowest_bytes_per_s if self.slowest_bytes_per_s else 0.0


class GuardReason(StrEnum):
    """Why there is no answer."""

    TIME = "gave-up-time"
    MEMORY = "gave-up-memory"
    DIED = "checker-died"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFailure:
    """Instead of an answer: the child exceeded a limit or died."""

    reason: GuardReason
    detail: str
    """The limit in seconds, or how it died."""


@dataclass(slots=True, kw_only=True, eq=False)
class PendingQuestions:
    """Questions about an open descriptor."""

    questions: list[Message]
    descriptor: int
    several: bool
    """Several files may be examined at a time."""
    size_bytes: int
    """Of all files in the descriptor."""
    sent_to: int = -1
    """The number of the child: how many children there were before it."""


class Guard:
    """One child process that runs a module of this component. One thread at a time; close it, or use it in a
    `with`.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        limits: Limits = Limits(),  # noqa: B008 - frozen value
        view: View = View(),  # noqa: B008 - frozen value
        environment: Mapping[str, str] = MappingProxyType({}),
        several: bool = False,
    ) -> None:
        """`view`: what the child may use besides the files that it is asked about, and its temporary folder.
        `environment`: all that it gets, besides the place of this program.
        `several`: the child may examine several files at a time, and does so until one of them exceeds a
        limit.
        """
        self.limits = limits
        self._view = view
        self._environment = environment
        self._several = several
        # -P: never import from the current folder, which may be the archive.
        self._command = [sys.executable, "-P", "-s", "-m", module]
        self._arguments = arguments
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._scratch: Scratch | None = None
        self._page: mmap.mmap | None = None
        self._is_ready = False
        self._base_bytes = 0
        self._gone = 0
        """Number of children before this one."""
        self._begun: list[PendingQuestions] = []
        """Questions whose answers have not been fetched yet, in order."""

    @property
    def pid(self) -> int:
        """The process id of the child; 0 while there is none."""
        return self._child.pid if self._child else 0

    def start(self) -> None:
        """Start the child without waiting until it is ready."""
        if self._child is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        page = os.memfd_create("finished", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(page, PAGE_BYTES)
            # If the child could shorten it, our next look at it would end this process.
            fcntl.fcntl(page, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            self._page = mmap.mmap(page, PAGE_BYTES)
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MESSAGE_BYTES)
            self._scratch = Scratch()
            arguments = (
                str(theirs.fileno()),
                str(page),
                str(self.limits.longest_s),
                str(self.limits.memory_bytes),
                json.dumps(_view_facts(self._view)),
                *self._arguments,
            )
            self._child = subprocess.Popen(  # noqa: S603 - our own program
                [*self._command, *arguments],
                pass_fds=[theirs.fileno(), page],
                env=environments.of_module(self._environment) | {"TMPDIR": str(self._scratch.path)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            theirs.close()
            os.close(page)
        self._socket = ours
        self._is_ready = False

    def ask_many(self, questions: Sequence[Message], descriptor: int) -> list[Message | GuardFailure]:
        """An answer to each question about the open descriptor; a failure instead if the child exceeded a
        limit or died.
        """
        return self.end(self.begin(questions, descriptor))

    def look(self) -> None:
        """Kill the child if it uses too much memory while its answers are not being fetched; `end` then asks
        again. A child that takes too much time meanwhile is ended by its own timer.
        """
        if self._is_ready and self._takes_too_much(sum(each.size_bytes for each in self._begun)):
            self.close()

    def begin(self, questions: Sequence[Message], descriptor: int) -> PendingQuestions:
        """Send the questions. The caller must `end` all of them in the same order, while the descriptor is
        open.
        """
        pending = PendingQuestions(
            questions=list(questions),
            descriptor=descriptor,
            several=self._several and len(questions) > 1,
            size_bytes=os.fstat(descriptor).st_size,
        )
        if not self._begun and self._child is not None and self._child.poll() is not None:
            self.close()  # it was killed while it had nothing to do
        # To a new child, send the earlier ones first: answers come in the order of questions.
        for each in (*self._begun, pending):
            if each.sent_to != self._gone:
                self._send(each)
        self._begun.append(pending)
        return pending

    def end(
        self, pending: PendingQuestions, *, meanwhile: Callable[[], None] = lambda: None
    ) -> list[Message | GuardFailure]:
        """Fetch the answers; `meanwhile` is called repeatedly if it takes long."""
        self._begun.remove(pending)
        answers: list[Message | GuardFailure | None] = [None] * len(pending.questions)
        waiting, sent = list(range(len(pending.questions))), pending
        while waiting:
            came, failed = self._fetch(sent, meanwhile)
            for number, answer in zip(waiting, came, strict=False):
                answers[number] = answer
            left = waiting[len(came) :]
            if failed is not None and not sent.several:
                culprit = waiting[min(max(failed[0], len(came)), len(waiting) - 1)]
                answers[culprit] = self._ask_again(pending, culprit, failed[1], meanwhile)
                left = [number for number in left if number != culprit]
            waiting = left
            # If it was one of several, each is asked about alone, to find out which.
            several = sent.several and failed is None
            sent = PendingQuestions(
                questions=[pending.questions[number] for number in left],
                descriptor=pending.descriptor,
                several=several,
                size_bytes=pending.size_bytes,
            )
        return [answer for answer in answers if answer is not None]

    def _ask_again(
        self,
        pending: PendingQuestions,
        number: int,
        failure: GuardFailure,
        meanwhile: Callable[[], None],
    ) -> Message | GuardFailure:
        """If the child used too much memory, the answer of a new child to that question alone: the memory may
        have been left from earlier files. Otherwise the failure.
        """
        if failure.reason is not GuardReason.MEMORY:
            return failure
        alone = replace(pending, questions=[pending.questions[number]], several=False, sent_to=-1)
        came, failed = self._fetch(alone, meanwhile)
        return came[0] if failed is None else failed[1]

    def greeting(self) -> Message:
        """The message that the child sent when it was ready."""
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

    def _send(self, pending: PendingQuestions) -> None:
        connection = self._connection()
        added_s = self.limits.added_s(pending.size_bytes)
        message = json.dumps(
            {"questions": pending.questions, "several": pending.several, "added_s": added_s}
        ).encode()
        with suppress(OSError):  # it is dead; `_fetch` notices
            socket.send_fds(connection, [message], [pending.descriptor])
        pending.sent_to = self._gone

    def _fetch(
        self, pending: PendingQuestions, meanwhile: Callable[[], None]
    ) -> tuple[list[Message], tuple[int, GuardFailure] | None]:
        """The answers received, and if some are missing, at which question the child ended and why."""
        if pending.sent_to != self._gone:
            self._send(pending)
        connection = self._connection()
        came: list[Message] = []
        try:
            while len(came) < len(pending.questions):
                came += json.loads(self._receive(connection, meanwhile, pending.size_bytes))
        except _LimitExceeded as error:
            return came, (error.finished, error.failure)
        except (OSError, EOFError) as error:
            return came, (self._count_finished(), self._died(getattr(error, "strerror", "") or "no answer"))
        except (ValueError, TypeError, RecursionError):  # taken over by a hostile file
            finished = self._count_finished()
            self.close()
            return came, (finished, GuardFailure(reason=GuardReason.DIED, detail="its answer cannot be read"))
        return came, None

    def _receive(self, connection: socket.socket, meanwhile: Callable[[], None], size_bytes: int) -> bytes:
        """One list of answers; EOFError if the child is gone, `_LimitExceeded` if it is too long."""
        answers = bytearray()
        while True:
            self._wait(connection, meanwhile, size_bytes)
            message = connection.recv(MESSAGE_BYTES)
            if not message:
                raise EOFError
            answers += message[1:]
            if len(answers) > self.limits.output_bytes:
                finished = self._count_finished()
                self.close()
                raise _LimitExceeded(
                    finished, GuardFailure(reason=GuardReason.MEMORY, detail="too long an answer")
                )
            if message[:1] == LAST:
                return bytes(answers)

    def _connection(self) -> socket.socket:
        self.start()
        assert self._socket is not None  # noqa: S101 - `start` sets it
        if not self._is_ready:
            # The time to start the child must not count against the first file.
            self._socket.settimeout(_START_S)
            try:
                greeting = self._socket.recv(MESSAGE_BYTES)
            except OSError:
                greeting = b""
            if not greeting:
                self.close()
                raise ChildProcessError("The process that examines files did not start. Run: webdepot doctor")
            self._greeting: Message = json.loads(greeting)
            self._base_bytes = _memory_bytes(self.pid)
            self._socket.settimeout(self.limits.longest_s)
            self._is_ready = True
        return self._socket

    def _wait(self, connection: socket.socket, meanwhile: Callable[[], None], size_bytes: int) -> None:
        """Wait for answers; raise `_LimitExceeded` when a file reaches a limit."""
        added_s = self.limits.added_s(size_bytes)
        if select.select([connection], [], [], min(_FIRST_LOOK_S, self.limits.longest_s))[0]:
            return
        finished = -1
        begun_s = spent_s = 0.0
        while not select.select([connection], [], [], _LOOK_S)[0]:
            meanwhile()
            if (now := self._count_finished()) != finished:
                finished, begun_s, spent_s = now, time.monotonic() - _LOOK_S, _processor_s(self.pid) - _LOOK_S
            if (
                _processor_s(self.pid) - spent_s > self.limits.time_s + added_s
                or time.monotonic() - begun_s > self.limits.longest_s + added_s
            ):
                self.close()
                limit_s = round(self.limits.time_s + added_s, 1)
                raise _LimitExceeded(finished, GuardFailure(reason=GuardReason.TIME, detail=f"{limit_s:g}"))
            if self._takes_too_much(size_bytes):
                self.close()
                raise _LimitExceeded(
                    finished, GuardFailure(reason=GuardReason.MEMORY, detail="too much memory")
                )

    def _takes_too_much(self, size_bytes: int) -> bool:
        """`size_bytes` of the files that it may have mapped or copied."""
        return _memory_bytes(self.pid, shared_bytes=size_bytes) - self._base_bytes > self.limits.memory_bytes

    def _count_finished(self) -> int:
        return int.from_bytes(self._page[:4], "little") if self._page is not None else 0

    def _died(self, reason: str) -> GuardFailure:
        """Why the child is gone; the next question starts a new one."""
        status = self._ended()
        self.close()
        if status in (-signal.SIGALRM, -signal.SIGXCPU):
            return GuardFailure(reason=GuardReason.TIME, detail=f"{self.limits.longest_s:g}")
        detail = signal.Signals(-status).name if status < 0 else f"{reason}, exit {status}"
        return GuardFailure(reason=GuardReason.DIED, detail=detail)

    def _ended(self) -> int:
        """How the child ended. One that closed its connection but does not end is killed."""
        if self._child is None:
            return 0
        try:
            return self._child.wait(timeout=self.limits.longest_s)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL


class _LimitExceeded(Exception):
    """A file exceeded a limit, and the child was killed."""

    def __init__(self, finished: int, failure: GuardFailure) -> None:
        super().__init__(failure.detail)
        self.finished = finished
        self.failure = failure


def _view_facts(view: View) -> Message:
    return {
        "readable": [str(path) for path in view.readable],
        "writable": [str(path) for path in view.writable],
        "threads": view.threads,
        "largest_file_bytes": view.largest_file_bytes,
    }


def _processor_s(pid: int) -> float:
    """Processor time of a process so far; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_bytes(pid: int, *, shared_bytes: int = 0) -> int:
    """Memory of a process without pages of files on disk, and without `shared_bytes` of files in memory; 0 if
    it is gone.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return 0
    sizes = {fields[0]: int(fields[1]) << 10 for line in lines if (fields := line.split())[0] in _SIZES}
    own, shared = (sizes.get(name, 0) for name in _SIZES)
    return own + max(0, shared - shared_bytes)
