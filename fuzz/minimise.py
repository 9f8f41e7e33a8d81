"""The fewest and smallest inputs that run the same lines of the program: for the corpus in the repository.

    python -m fuzz.minimise NAME FOLDER…

Reads the corpus of a fuzzer and these folders (build/fuzz/NAME/corpus), smallest inputs first, keeps each
input that runs a line of the program that no smaller one ran, and writes the result to fuzz/corpus/NAME.
Inputs whose name does not begin with `found-` (samples, crashes) always stay.
"""

import hashlib
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz import guard
from fuzz.guard import InputLimits, Target

LARGEST_INPUT = 4096
LARGEST_CORPUS = 40 << 10
_PREFIX = "found-"
Line = tuple[str, int]
Trace = Callable[[FrameType, str, Any], Any]


def main(name: str, folders: list[Path]) -> None:
    target = guard.load(name)
    guard.begin([target], InputLimits())
    corpus = guard.CORPUS / name
    fixed = [path for path in corpus.iterdir() if not path.name.startswith(_PREFIX)]
    paths = [path for folder in (corpus, *folders) for path in folder.iterdir() if path not in fixed]
    inputs = {path.read_bytes() for path in paths if path.stat().st_size <= LARGEST_INPUT}
    seen: set[Line] = set()
    for path in fixed:
        seen |= lines_of(target, path.read_bytes())
    left = LARGEST_CORPUS - sum(path.stat().st_size for path in fixed)
    kept = []
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        new = lines_of(target, data) - seen if len(data) <= left else set()
        if new:
            seen |= new
            kept.append(data)
            left -= len(data)
    for path in corpus.glob(f"{_PREFIX}*"):
        path.unlink()
    for data in kept:
        (corpus / f"{_PREFIX}{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
    print(f"{name}: {len(fixed)} samples, {len(kept)} of {len(inputs)} found inputs, {len(seen)} lines")


def lines_of(target: Target, data: bytes) -> set[Line]:
    """The lines of the program that an input runs."""
    lines: set[Line] = set()

    def trace(frame: FrameType, event: str, _: object) -> Trace | None:
        if "/webdepot/" not in frame.f_code.co_filename:
            return None
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        guard.crash_of(target, data, InputLimits(cpu_s=60))
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return lines


if __name__ == "__main__":
    main(sys.argv[1], [Path(folder) for folder in sys.argv[2:]])
