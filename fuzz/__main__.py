"""Run all fuzzers in turn, each for a bounded processor time, and print a table of the results.

    python -m fuzz [--seconds N] [NAME…]

The results are in build/fuzz/NAME: `corpus` (inputs with new coverage), `crashes` (with instructions to
repeat each), `log`. Status 1 if there is a crash.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fuzz import guard, scratch
from fuzz.guard import CrashFolder, Current, InputLimits

_MOST_DEATHS = 10
"""A fuzzer stops after this many inputs that ended its process."""
_STUCK_S = 120.0
"""How long a process may sleep without a new input; waiting for a busy processor does not count."""
_COVERAGE = re.compile(r"cov: (\d+)[^\n]* corp: (\d+)/(\S+)")
_TAIL_BYTES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    name: str
    inputs: int
    cpu_s: float
    edges: str
    corpus: str
    crashes: int


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the parsers of the program.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="fuzzers; all if none is named")
    parser.add_argument("--seconds", type=float, default=60, help="processor time for each (default: 60)")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument(
        "--seed",
        type=int,
        default=time.time_ns() % (1 << 31),
        help="of the random generator, to repeat a run",
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if not name.endswith(".py") and name not in guard.names()]
    if unknown:
        parser.error(f"unknown fuzzer {', '.join(unknown)}; there are: {', '.join(guard.names())}")
    print(
        f"{'fuzzer':24} {'inputs':>10} {'inputs/s':>9} {'edges':>6} {'corpus':>14} {'crashes':>8}", flush=True
    )
    crashes = 0
    for name in options.names or guard.names():
        outcome = fuzz(name, options.folder / Path(name).stem, options.seconds, seed=options.seed)
        rate = outcome.inputs / max(outcome.cpu_s, 0.001)
        print(
            f"{name:24} {outcome.inputs:>10,} {rate:>9,.0f} {outcome.edges:>6} {outcome.corpus:>14} "
            f"{outcome.crashes:>8}",
            flush=True,
        )
        crashes += outcome.crashes
    if crashes:
        print(f"{crashes} inputs crashed. {options.folder}/*/crashes has them, with how to repeat each.")
    return 1 if crashes else 0


def fuzz(
    name: str,
    folder: Path,
    seconds: float,
    *,
    seed: int = 1,
    limits: InputLimits = InputLimits(),  # noqa: B008
) -> Outcome:
    """Run one fuzzer for `seconds` of processor time; after an input that ends the process, continue."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "current").unlink(missing_ok=True)
    current = Current(folder / "current")
    crashes = CrashFolder(path=folder / "crashes", target=name)
    used_s, edges, corpus = 0.0, "-", "-"
    for death in range(_MOST_DEATHS):
        command = [sys.executable, "-m", "fuzz.session", name, str(folder), "--seed", str(seed + death)]
        command += ["--cpu-s", str(seconds - used_s), "--input-cpu-s", str(limits.cpu_s)]
        command += ["--input-memory-mb", str(limits.memory_mb)]
        before_s = _children_cpu_s()
        files = scratch.new()
        with (folder / "log").open("wb") as log:
            environment = os.environ | {scratch.VARIABLE: str(files)}
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
            is_stuck = _wait(process, current)
        shutil.rmtree(files, ignore_errors=True)
        used_s += _children_cpu_s() - before_s
        report = _tail(folder / "log")
        if figures := _COVERAGE.findall(report):
            edges, corpus = figures[-1][0], "{1} / {2}".format(*figures[-1])
        if process.returncode == 0:
            break
        if current.count() == 0:
            sys.exit(f"The fuzzer {name} did not start:\n{report}")
        crashes.add(_kind(process.returncode, is_stuck), current.get(), _without_progress(report))
        _forget(folder / "corpus", current.get())
        if used_s >= seconds - 1:
            break
    return Outcome(
        name=name,
        inputs=current.count(),
        cpu_s=used_s,
        edges=edges,
        corpus=corpus,
        crashes=len(crashes.files()),
    )


def _forget(corpus: Path, data: bytes) -> None:
    """Remove an input that would end the next process at its start, too."""
    for path in corpus.iterdir():
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            path.unlink()


def _wait(process: subprocess.Popen[bytes], current: Current) -> bool:
    """Wait until the process ends; return whether it had to be killed because it was stuck."""
    count, since_s = current.count(), time.monotonic()
    while True:
        try:
            process.wait(timeout=1)
            return False
        except subprocess.TimeoutExpired:
            if current.count() != count or _is_running(process.pid):
                count, since_s = current.count(), time.monotonic()
            elif time.monotonic() - since_s > _STUCK_S:
                process.kill()
                process.wait()
                return True


def _is_running(pid: int) -> bool:
    """Whether a process is running or waiting for a processor, not sleeping."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"


def _kind(status: int, is_stuck: bool) -> str:
    if is_stuck:
        return "stuck"
    return "cpu" if status == -signal.SIGPROF else f"signal{-status}" if status < 0 else f"exit{status}"


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _without_progress(log: str) -> str:
    """The output of the process without the lines of libFuzzer about new inputs."""
    return "".join(line for line in log.splitlines(keepends=True) if not line.startswith(("#", "INFO:")))


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return stream.read().decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
