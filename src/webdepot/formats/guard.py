"""Validation behind a wall: checks run in one child process with limits on time and memory.

The child is started once and asked again and again; a file that hangs or kills it costs one finding and a new child. A file goes to
the child as an open descriptor over a socket, so that its bytes are not copied.

    parent -> child   {"format": {...}, "subject": "..."} and the descriptor
    child -> parent   {"validity": "valid", "findings": [...]}

Time is watched twice: the parent kills a child that does not answer, and the child has a timer that ends it should the parent be
gone. Memory is bounded by RLIMIT_AS above what the child has at its start.
"""

import gc
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from webdepot.formats import validate
from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Basis, Finding, Format, FormatVerdict, Severity

TIME_S = 5.0
MEMORY_BYTES = 200 << 20
_MESSAGE_BYTES = 1 << 17
_MOST_FINDINGS = 20


class Guard:
    """Checks files as `validate.check` does, whatever is in them. One thread at a time; close it, or use it in a `with`."""

    def __init__(self, *, time_s: float = TIME_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self.time_s = time_s
        self.memory_bytes = memory_bytes
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def check(self, payload: bytes | Path, format: Format, *, subject: str = "") -> tuple[Validity, list[Finding]]:
        if not validate.has_check(format):
            return Validity.NOT_CHECKED, []
        if isinstance(payload, Path):
            descriptor = os.open(payload, os.O_RDONLY | os.O_CLOEXEC)
        else:
            descriptor = os.memfd_create("payload", os.MFD_CLOEXEC)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(payload)
        try:
            return self._ask(descriptor, format, subject)
        finally:
            os.close(descriptor)

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

    def _ask(self, descriptor: int, format: Format, subject: str) -> tuple[Validity, list[Finding]]:
        connection = self._connection()
        question = json.dumps({"format": asdict(format), "subject": subject[:4096]}).encode()
        try:
            socket.send_fds(connection, [question], [descriptor])
            answer = connection.recv(_MESSAGE_BYTES)
        except TimeoutError:
            self.close()
            return Validity.NOT_CHECKED, [finding("gave-up-time", subject=subject, limit=f"{self.time_s:g}")]
        except OSError as error:
            answer, reason = b"", error.strerror or "no answer"
        else:
            reason = "no answer"
        if not answer:
            return Validity.NOT_CHECKED, [self._died(subject, reason)]
        return _read_answer(answer)

    def _died(self, subject: str, reason: str) -> Finding:
        """Why the child is gone; the next question starts a new one."""
        status = self._child.wait() if self._child else 0
        self.close()
        if status == -signal.SIGALRM:
            return finding("gave-up-time", subject=subject, limit=f"{self.time_s:g}")
        detail = signal.Signals(-status).name if status < 0 else f"{reason}, exit {status}"
        return finding("checker-died", subject=subject, detail=detail)

    def _connection(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                for end in (ours, theirs):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MESSAGE_BYTES)
                command = [sys.executable, "-m", "webdepot.formats.guard", str(theirs.fileno()), str(self.time_s), str(self.memory_bytes)]
                self._child = subprocess.Popen(  # noqa: S603 - our own program
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            # The start of a child takes its own time, once; it must not count against the first file.
            ours.settimeout(60)
            if ours.recv(16) != b"ready":
                ours.close()
                raise ChildProcessError("The process that checks files did not start. Run: webdepot doctor")
            ours.settimeout(self.time_s)
            self._socket = ours
        return self._socket


def serve(connection: socket.socket, *, time_s: float, memory_bytes: int) -> None:
    """The child: answer until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    connection.send(b"ready")
    while True:
        question, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 1)
        if not question:
            return
        signal.setitimer(signal.ITIMER_REAL, time_s + 1)
        try:
            answer = _answer(json.loads(question), descriptors[0], memory_bytes)
        finally:
            os.close(descriptors[0])
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send(answer)


def _answer(question: dict[str, Any], descriptor: int, memory_bytes: int) -> bytes:
    facts, subject = question["format"], question["subject"]
    format = Format(**facts | {"basis": Basis(facts["basis"]), "verdict": FormatVerdict(facts["verdict"])})
    validate.find_check(format)  # imports its library before the limit, which is meant for the file alone
    _limit_memory(memory_bytes)
    try:
        validity, findings = validate.check(Path(f"/proc/self/fd/{descriptor}"), format, subject=subject)
    except MemoryError:
        gc.collect()
        validity, findings = Validity.NOT_CHECKED, [finding("gave-up-memory", subject=subject)]
    except RecursionError:
        validity, findings = Validity.NOT_CHECKED, [finding("nested-too-deep", subject=subject, detail="more levels than can be read")]
    except Exception as error:
        # Whatever a library throws at hostile bytes is an observation about the file, not about us.
        detail = f"{type(error).__name__}: {error}"
        validity, findings = Validity.NOT_CHECKED, [finding("checker-died", subject=subject, detail=detail)]
    _limit_memory(None)
    return json.dumps({"validity": validity.value, "findings": [asdict(each) for each in findings[:_MOST_FINDINGS]]}).encode()


def _limit_memory(memory_bytes: int | None) -> None:
    """So much more than the process has mapped now; None takes the limit away."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if memory_bytes is None:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        return
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    wanted = mapped + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _read_answer(answer: bytes) -> tuple[Validity, list[Finding]]:
    document = json.loads(answer)
    findings = [Finding(**each | {"severity": Severity(each["severity"])}) for each in document["findings"]]
    return Validity(document["validity"]), findings


def main(arguments: list[str]) -> None:
    descriptor, time_s, memory_bytes = int(arguments[0]), float(arguments[1]), int(arguments[2])
    with socket.socket(fileno=descriptor) as connection:
        serve(connection, time_s=time_s, memory_bytes=memory_bytes)


if __name__ == "__main__":
    main(sys.argv[1:])
