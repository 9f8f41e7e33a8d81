"""Programs that run in the background and outlive the command that started them.

    FOLDER/run/NAME.json     {"pid", "started", "boot"}: which process it is
    FOLDER/log/NAME.log      what it printed

The system uses the number of a process again after its end. So a process is identified by its number, the
time at which it started and the boot of the machine (proc_pid_stat(5)), and is signalled through a file
descriptor that refers to this process alone (pidfd_open(2)). Each program leads a session of its own.
Processes of a session whose leader is dead are recognised by a mark in their environment.

The file is written by the new process itself, before its program begins: a command that is killed while it
starts programs leaves no process without such a file.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.errors import RemoteError

_MARK = "WEBDEPOT_CLUSTER_MEMBER"
_LOOK_EVERY_S = 0.05
_LOG_TAIL_BYTES = 1500
_READY_S = 60.0
_STOP_S = 20.0
_GONE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How to start a program, and how to know that it works."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path("/")
    user: str = ""
    """The account it runs as, if not ours."""
    stop: signal.Signals = signal.SIGTERM
    address: str = ""
    """Where it listens, for people."""
    is_ready: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedProcess:
    """A process that was started here and may have ended."""

    pid: int
    started: int
    """Clock ticks from the boot of the machine to its start."""
    boot: str

    @property
    def is_alive(self) -> bool:
        if self.boot != _boot():
            return False
        with suppress(ChildProcessError):  # otherwise our own dead children stay visible
            os.waitpid(self.pid, os.WNOHANG)
        facts = _facts(self.pid)
        return facts is not None and facts.started == self.started and facts.state not in "ZX"

    @property
    def age_s(self) -> float:
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK"), 0.0)

    def send(self, number: int) -> bool:
        """Send a signal; returns whether the process still existed."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            # Checked while the descriptor is open, so that the number cannot belong to another process.
            if not self.is_alive:
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)


class ProcessFolder:
    """The programs of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def log_of(self, name: str) -> Path:
        return self._folder / "log" / f"{name}.log"

    def names(self) -> list[str]:
        """The names of programs that were started and not stopped since."""
        return sorted(path.stem for path in (self._folder / "run").glob("*.json"))

    def find(self, name: str) -> TrackedProcess | None:
        try:
            facts = json.loads(self._file(name).read_bytes())
            return TrackedProcess(pid=facts["pid"], started=facts["started"], boot=facts["boot"])
        except (OSError, ValueError, KeyError, TypeError):  # not there, or killed before it was written
            return None

    def is_alive(self, name: str) -> bool:
        process = self.find(name)
        return process is not None and process.is_alive

    def start(self, program: Program) -> bool:
        """Start a program unless it is running; returns whether it was started."""
        if self.is_alive(program.name):
            return False
        self._kill_rest(program.name)
        for path in (self._file(program.name), self.log_of(program.name)):
            durable.make_folders(path.parent)
        mark = {_MARK: self._mark(program.name)}
        account: dict[str, Any] = {"user": program.user} if program.user else {}
        boot = _boot()
        with self._file(program.name).open("wb") as file, self.log_of(program.name).open("ab") as log:
            subprocess.Popen(  # noqa: S603 - the commands are ours
                list(program.command),
                env={**os.environ, **program.environment, **mark},
                cwd=program.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: _write_facts(file.fileno(), boot),
                **account,
            ).returncode = 0  # it outlives us, so it is not waited for
        return True

    def wait(self, program: Program, *, at_most_s: float) -> None:
        """Wait until a program works; RemoteError with the end of its log if it ends or takes too long."""
        until_s = time.monotonic() + at_most_s
        while not program.is_ready():
            if not self.is_alive(program.name):
                raise RemoteError(f"{program.name} ended. {self._last_words(program.name)}", retry=False)
            if time.monotonic() > until_s:
                text = f"{program.name} did not become ready within {at_most_s:.0f} seconds."
                raise RemoteError(f"{text} {self._last_words(program.name)}", retry=True)
            time.sleep(_LOOK_EVERY_S)

    def kill(self, name: str) -> bool:
        """Kill a program and all its processes at once, as a power cut would; returns whether it was running.
        `names` still lists it.
        """
        process = self.find(name)
        # The leader first: it would start the others again.
        was_alive = process is not None and process.send(signal.SIGKILL)
        self._kill_rest(name)
        if process is not None:
            _wait_gone(process)
        return was_alive

    def stop(self, signals: Mapping[str, int], *, at_most_s: float = _STOP_S) -> int:
        """Ask programs to end, each with its signal, kill those that do not, and remove all from `names`.
        Returns how many were running.
        """
        notified = 0
        for name, number in signals.items():
            process = self.find(name)
            notified += process is not None and process.send(number)
        until_s = time.monotonic() + at_most_s
        for name in signals:
            while self.is_alive(name) and time.monotonic() < until_s:
                time.sleep(_LOOK_EVERY_S)
            self.kill(name)
            self._file(name).unlink(missing_ok=True)
        return notified

    def _kill_rest(self, name: str) -> None:
        """Kill what is left of the session of a program whose leader is dead."""
        process = self.find(name)
        if process is None or process.boot != _boot():
            return
        for pid in _members(process.pid, self._mark(name)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _mark(self, name: str) -> str:
        return f"{self._folder}:{name}"

    def _file(self, name: str) -> Path:
        return self._folder / "run" / f"{name}.json"

    def _last_words(self, name: str) -> str:
        path = self.log_of(name)
        try:
            with path.open("rb") as file:
                file.seek(max(path.stat().st_size - _LOG_TAIL_BYTES, 0))
                tail = file.read().decode(errors="replace").strip().splitlines()
        except OSError:
            tail = []
        return f"Its log is {path}" + (f", and ends with: {' | '.join(tail[-3:])}" if tail else ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    state: str
    session: int
    started: int


def _facts(pid: int | str) -> _Facts | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may contain anything
    return _Facts(state=fields[0], session=int(fields[3]), started=int(fields[19]))


def _write_facts(descriptor: int, boot: str) -> None:
    # Called as another user, who may not be allowed to read Python's files: it must not import anything.
    facts = _facts("self")
    started = facts.started if facts else 0
    line = json.dumps({"pid": os.getpid(), "started": started, "boot": boot})
    os.write(descriptor, line.encode())


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def _members(session: int, mark: str) -> list[int]:
    """The processes of a session that have our mark in their environment."""
    pids = []
    wanted = f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        facts = _facts(path.name)
        if facts is not None and facts.session == session and facts.state not in "ZX":
            with suppress(OSError):
                if wanted in (path / "environ").read_bytes().split(b"\0"):
                    pids.append(int(path.name))
    return pids


def _wait_gone(process: TrackedProcess) -> None:
    until_s = time.monotonic() + _GONE_S
    while process.is_alive and time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)
