"""The guarded process itself (`process` is its parent): raises its walls, then answers questions until the
connection is closed.
"""

import json
import math
import mmap
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from webdepot.guard import scratch, walls
from webdepot.guard.batch import PayloadSlice
from webdepot.guard.walls import View

MESSAGE_BYTES = 1 << 17
FIRST_ARGUMENT = 5
"""The place of a module's own arguments in the arguments of a child, after those of the guard."""
LAST, MORE = b"\0", b"\1"
_ANSWERS_BYTES = 1 << 15
_ANSWERS_S = 0.1
"""Answers are sent when they reach this size or age. Answers that a child has not sent when it dies are lost,
and their files are examined again.
"""
_ARMED_S = 0.5
"""How often a child resets its timer, to avoid a system call for each file."""
PAGE_BYTES = resource.getpagesize()

Message = dict[str, Any]
Work = Callable[[list[Message], int, bool], Iterator[Message]]
"""From the questions, the descriptor, and whether several may be examined at a time, to an answer for each
question, in order.
"""


def serve(arguments: list[str], begin: Callable[[list[str]], tuple[Work, Message]]) -> None:
    """Run the child: raise the walls, send the greeting, then answer until the parent closes the connection.
    `begin` loads the parsers, and returns the work and the greeting.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    _open_statm()
    holding = walls.raise_walls(_view(json.loads(arguments[4])))
    page = mmap.mmap(int(arguments[1]), PAGE_BYTES)
    longest_s = float(arguments[2])
    try:
        with socket.socket(fileno=int(arguments[0])) as connection:
            work, greeting = begin([arguments[3], *arguments[FIRST_ARGUMENT:]])
            connection.send(json.dumps(greeting | {"walls": holding}).encode())
            while True:
                data, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, 1)
                if not data:
                    return
                message = json.loads(data)
                try:
                    _answer(
                        connection,
                        work(message["questions"], descriptors[0], message["several"]),
                        page,
                        longest_s + message["added_s"] + 1,
                    )
                finally:
                    os.close(descriptors[0])
    finally:
        scratch.empty(os.environ.get("TMPDIR", ""))


def _answer(connection: socket.socket, answers: Iterator[Message], page: mmap.mmap, longest_s: float) -> None:
    """Send the answers, several in one message. The timer ends the child if the parent is gone."""
    ready: list[bytes] = []
    page[:4] = bytes(4)
    size_bytes, sent_s, armed_s = 0, time.monotonic(), _arm(longest_s)
    for finished, answer in enumerate(answers, 1):
        packed = json.dumps(answer).encode()
        if ready and (size_bytes + len(packed) > _ANSWERS_BYTES or time.monotonic() - sent_s > _ANSWERS_S):
            _send_answers(connection, ready)
            ready, size_bytes, sent_s = [], 0, time.monotonic()
        ready.append(packed)
        size_bytes += len(packed)
        page[:4] = finished.to_bytes(4, "little")
        if time.monotonic() > armed_s + _ARMED_S:
            armed_s = _arm(longest_s)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _send_answers(connection, ready)


def _send_answers(connection: socket.socket, answers: list[bytes]) -> None:
    data = b"[" + b",".join(answers) + b"]"
    size = MESSAGE_BYTES - 1
    for start in range(0, len(data), size):
        is_last = start + size >= len(data)
        connection.send((LAST if is_last else MORE) + data[start : start + size])


def _arm(longest_s: float) -> float:
    """Set the timers of elapsed time and of processor time."""
    signal.setitimer(signal.ITIMER_REAL, longest_s + _ARMED_S)
    used_s = time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used_s + longest_s + _ARMED_S) + 1, hard))
    return time.monotonic()


def within_memory(memory_bytes: int, answer: Callable[[Message, PayloadSlice], Message]) -> Work:
    """Work that answers one question after another about a part of the file, with a limit of memory that
    counts from what is loaded now.
    """

    def work(questions: list[Message], descriptor: int, _: bool) -> Iterator[Message]:
        limit_memory(memory_bytes)
        try:
            for question in questions:
                offset, size_bytes = question["place"]
                yield answer(
                    question, PayloadSlice(descriptor=descriptor, offset=offset, size_bytes=size_bytes)
                )
        finally:
            limit_memory(None)

    return work


def limit_memory(memory_bytes: int | None) -> None:
    """In a child: allow this much address space beyond what is mapped now; None removes the limit."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if memory_bytes is None:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        return
    mapped = int(os.pread(_open_statm(), 200, 0).split()[0]) * PAGE_BYTES
    wanted = mapped + memory_bytes
    resource.setrlimit(
        resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


@cache
def _open_statm() -> int:
    """This process's memory. It is opened before the walls go up: afterwards /proc cannot be read."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def _view(facts: Message) -> View:
    """The view of the parent's message, and the temporary folder."""
    return View(
        readable=[Path(name) for name in facts["readable"]],
        writable=[*map(Path, facts["writable"]), Path(os.environ["TMPDIR"])],
        threads=facts["threads"],
        largest_file_bytes=facts["largest_file_bytes"],
    )
