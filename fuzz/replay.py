"""Try inputs again, under the same limits and without Atheris.

    python -m fuzz.replay NAME            the corpus of one fuzzer
    python -m fuzz.replay NAME FILE…      single inputs, such as a crash
    python -m fuzz.replay                 the corpus of every fuzzer

Each input is named before it is tried: if the process ends by a signal, the last one named is the cause.
Status 1 if an input crashed.
"""

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from fuzz import guard
from fuzz.guard import InputLimits, Target


def main(arguments: list[str]) -> int:
    limits = InputLimits()
    name, files = (arguments[0], [Path(one) for one in arguments[1:]]) if arguments else ("", [])
    targets = [guard.load(one) for one in ([name] if name else guard.names())]
    guard.begin(targets, limits)
    crashes = 0
    for target, file in _inputs(targets, files):
        print(target.name, file, flush=True)
        error = guard.crash_of(target, file.read_bytes(), limits)
        if error is not None:
            traceback.print_exception(error)
            crashes += 1
    return 1 if crashes else 0


def _inputs(targets: list[Target], files: list[Path]) -> Iterator[tuple[Target, Path]]:
    for target in targets:
        for file in files or sorted((guard.CORPUS / target.name).iterdir()):
            yield target, file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
