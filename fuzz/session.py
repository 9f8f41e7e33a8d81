"""One fuzzer with Atheris, in a process of its own: python -m fuzz.session NAME FOLDER --cpu-s N …

Ends after a time, or by a signal if an input exceeds a limit; `__main__` starts it again.
"""

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path

import atheris

from fuzz import guard
from fuzz.guard import CrashFolder, Current, InputLimits
from fuzz.mutator import mutated

_INSTRUMENTED = ["webdepot", "protego", "tarfile", "zipfile", "tomllib", "crossplane"]
_CLOCK_EVERY = 16


def main() -> None:
    options = _parser().parse_args()
    folder: Path = options.folder
    limits = InputLimits(cpu_s=options.input_cpu_s, memory_mb=options.input_memory_mb)
    with atheris.instrument_imports(include=_INSTRUMENTED, enable_loader_override=False):
        target = guard.load(options.name)
    current = Current(folder / "current")
    crashes = CrashFolder(path=folder / "crashes", target=options.name)
    began_s = time.process_time()
    tried = 0

    def try_one(data: bytes) -> None:
        nonlocal tried
        tried += 1
        current.put(data)
        error = guard.crash_of(target, data, limits)
        if error is not None:
            crashes.add_exception(data, error)
        if tried % _CLOCK_EVERY == 0 and time.process_time() - began_s > options.cpu_s:
            os.kill(os.getpid(), signal.SIGUSR1)  # libFuzzer prints its figures and ends

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            # Without `len_control` libFuzzer would fill every input up to the limit.
            small = bytes(atheris.Mutate(data, min(most, max(64, 2 * len(data)))))
            return small if chance.random() < 0.7 else mutated(small, most, chance, target.tokens)
        return mutated(data, most, chance, target.tokens)

    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    known = [str(path) for path in (corpus, guard.CORPUS / options.name) if path.is_dir()]
    flags = [f"-max_len={guard.LONGEST_INPUT}", "-len_control=0", "-timeout=3600", "-rss_limit_mb=0"]
    flags += ["-print_final_stats=1", f"-artifact_prefix={folder}/", f"-seed={options.seed}"]
    atheris.Setup([sys.argv[0], *flags, *known], try_one, custom_mutator=mutate)
    guard.begin([target], limits)
    atheris.Fuzz()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz.session")
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cpu-s", type=float, required=True)
    parser.add_argument("--input-cpu-s", type=float, required=True)
    parser.add_argument("--input-memory-mb", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()
