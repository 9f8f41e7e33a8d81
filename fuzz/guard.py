"""The limits of one input, and what counts as a crash.

`one_input` of a fuzzer may return, or raise an error that the program documents (`WebdepotError`). Everything
else is a crash: another exception, more processor time or memory than allowed, a signal, a deadlock.

An exception is noted in the process itself, and fuzzing continues. The others end the process: a timer of
processor time (SIGPROF, which also ends native code and regular expressions), a limit on the address space.
So each input is written to a shared file before it is tried, and the parent finds it there.

    shared file   8 bytes: inputs tried   8 bytes: length of the current one   its bytes
"""

import faulthandler
import hashlib
import mmap
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from webdepot.errors import WebdepotError

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
LONGEST_INPUT = 1 << 15
_COUNT = slice(0, 8)
_LENGTH = slice(8, 16)
_START = 16
_FILE_BYTES = _START + LONGEST_INPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLimits:
    """The limits for one input. Memory is counted beyond what the process had before the first input."""

    cpu_s: float = 3.0
    memory_mb: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: str
    one_input: Callable[[bytes], None]
    tokens: Sequence[bytes] = ()
    """Words of the format, for the mutator."""
    prepare: Callable[[], None] | None = None
    """Called once before the first input, without limits."""


def names() -> list[str]:
    """All fuzzers, in order."""
    return sorted(path.stem for path in (FOLDER / "targets").glob("[a-z]*.py"))


def load(name: str) -> Target:
    """The fuzzer of that name; a name that ends in `.py` is the path of a file."""
    module = _module_of(Path(name)) if name.endswith(".py") else import_module(f"fuzz.targets.{name}")
    return Target(
        name=name,
        one_input=module.one_input,
        tokens=getattr(module, "TOKENS", ()),
        prepare=getattr(module, "prepare", None),
    )


def _module_of(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Current:
    """The shared file with the input that is being tried."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_FILE_BYTES))
        with path.open("r+b") as stream:
            self._map = mmap.mmap(stream.fileno(), _FILE_BYTES)

    def put(self, data: bytes) -> None:
        kept = data[:LONGEST_INPUT]
        self._map[_START : _START + len(kept)] = kept
        self._map[_LENGTH] = len(kept).to_bytes(8, "little")
        self._map[_COUNT] = (self.count() + 1).to_bytes(8, "little")

    def count(self) -> int:
        """The number of inputs tried, including those of earlier processes."""
        return int.from_bytes(self._map[_COUNT], "little")

    def get(self) -> bytes:
        return self._map[_START : _START + int.from_bytes(self._map[_LENGTH], "little")]


def begin(targets: Sequence[Target], limits: InputLimits) -> None:
    """Prepare the fuzzers, then limit the address space of this process above what it has now.

    When the timer of an input fires, Python's traceback is printed and the process ends by the signal.
    """
    for target in targets:
        if target.prepare is not None:
            target.prepare()
    faulthandler.register(signal.SIGPROF, all_threads=True, chain=True)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (limits.memory_mb << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def crash_of(target: Target, data: bytes, limits: InputLimits) -> BaseException | None:
    """Try one input; return the exception that makes it a crash, or None. Exceeding the time limit ends the
    process.
    """
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
    try:
        target.one_input(data)
    except WebdepotError:
        return None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # everything that is not documented is a crash
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


@dataclass(slots=True, kw_only=True)
class CrashFolder:
    """A folder of inputs that crashed, each in a file with a text file that says how to repeat it."""

    path: Path
    target: str
    _seen: set[str] = field(default_factory=set)

    def add_exception(self, data: bytes, error: BaseException) -> None:
        """Store an input, unless one with the same kind and place of exception is stored."""
        kind = type(error).__name__
        place = _place(error)
        if f"{kind} {place}" not in self._seen:
            self._seen.add(f"{kind} {place}")
            self.add(kind, data, "".join(traceback.format_exception(error)))

    def add(self, kind: str, data: bytes, report: str) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
        file.write_bytes(data)
        repeat = f"Repeat with: {sys.executable} -m fuzz.replay {self.target} {file}\n"
        file.with_suffix(".txt").write_text(repeat + report)
        return file

    def files(self) -> list[Path]:
        return sorted(path for path in self.path.glob("*") if path.suffix != ".txt")


def _place(error: BaseException) -> str:
    """The innermost line of the program itself; without one, the innermost line."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}webdepot{os.sep}" in frame.filename]
    last = (ours or frames)[-1]
    return f"{last.filename}:{last.lineno}"
