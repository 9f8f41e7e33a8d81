"""Progress of long-running work: a live line on a terminal, JSON lines on stderr with --json, otherwise a
remark for each phase.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from webdepot.cli.output import Output, count_words, duration_words, plain, size_words
from webdepot.services.progress import Phase, Progress, Watch, WholeProgress, unwatched

_PHASES = {
    Phase.HARVEST: "Harvesting",
    Phase.IMPORT: "Importing",
    Phase.CHECK: "Checking quality",
    Phase.IDENTIFY: "Identifying formats",
    Phase.KEEP: "Depositing",
    Phase.INDEX: "Indexing",
    Phase.COPY: "Copying",
    Phase.AUDIT: "Checking copies",
    Phase.MIGRATE: "Converting",
    Phase.DISCOVER: "Looking for domains",
    Phase.EXPORT: "Exporting",
    Phase.PICTURE: "Making pictures",
    Phase.FETCH: "Fetching",
    Phase.WAIT: "Waiting",
}
_UNITS = {
    Phase.HARVEST: "documents",
    Phase.IMPORT: "files",
    Phase.CHECK: "containers",
    Phase.IDENTIFY: "containers",
    Phase.KEEP: "containers",
    Phase.INDEX: "containers",
    Phase.COPY: "packages",
    Phase.AUDIT: "packages",
    Phase.MIGRATE: "files",
    Phase.DISCOVER: "hosts",
    Phase.EXPORT: "addresses",
    Phase.PICTURE: "pages",
    Phase.FETCH: "records",
    Phase.WAIT: "",
}
_SHORTEST_PAUSE_S = 1.0


@contextmanager
def shown(output: Output) -> Iterator[Watch]:
    """A `Watch` that shows progress in the form that suits the output."""
    if output.quiet:
        yield unwatched
    elif output.json:
        yield _JsonLines()
    elif output.shows_progress:
        with _LiveLine(output) as line:
            yield line
    else:
        yield _Remarks(output)


@contextmanager
def paused(watch: Watch) -> Iterator[None]:
    """Hide the live line during the block, so that results can be printed."""
    if not isinstance(watch, _LiveLine):
        yield
        return
    watch.stop()
    yield
    watch.start()


class _JsonLines:
    def __init__(self) -> None:
        self._last: tuple[Phase | None, float] = (None, 0.0)

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        phase, at = self._last
        if phase is progress.phase and now - at < _SHORTEST_PAUSE_S:
            return
        self._last = (progress.phase, now)
        sys.stderr.write(json.dumps({"progress": asdict(progress)}, ensure_ascii=False) + "\n")
        sys.stderr.flush()


class _Remarks:
    """Progress for logs and pipes: one line when a phase begins, then at most one line every ten seconds."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last: tuple[Phase | None, float] = (None, 0.0)
        self._began_s = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        phase, at = self._last
        if phase is progress.phase and now - at < 10 * _SHORTEST_PAUSE_S:
            return
        if phase is not progress.phase:
            self._began_s = now
        self._last = (progress.phase, now)
        self._output.say(plain("".join(_pieces(progress, now - self._began_s))))


class _LiveLine:
    def __init__(self, output: Output) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        self._live = Live(console=output.console, refresh_per_second=8, transient=True)
        self._spinner = Spinner("dots")
        self._phase: Phase | None = None
        self._began_s = 0.0

    def __enter__(self) -> "_LiveLine":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        if progress.phase is not self._phase:
            self._phase, self._began_s = progress.phase, now
        pieces = _pieces(progress, now - self._began_s)
        row = Table.grid(padding=(0, 1))
        row.add_row(self._spinner, Text.assemble(*zip(pieces, ("bold", "default", "dim"))))
        self._live.update(row)


def _pieces(progress: Progress, elapsed_s: float) -> tuple[str, str, str]:
    """The phase, how far it is, and the item being worked on."""
    unit = _UNITS[progress.phase]
    parts = [count_words(progress.pages, "pages")] if progress.pages else []
    if progress.total:
        parts.append(f"{progress.done:,} of {count_words(progress.total, unit)}")
    elif progress.done:
        parts.append(count_words(progress.done, unit))
    if progress.waiting:
        failed = f", {progress.errors:,} failed" if progress.errors else ""
        parts.append(f"{count_words(progress.waiting, 'addresses')} waiting{failed}")
    if progress.size_bytes:
        parts.append(size_words(progress.size_bytes))
    if progress.rate:
        parts.append(f"{progress.rate:,.1f} {unit}/s")
    if progress.errors and not progress.waiting:
        parts.append(f"{progress.errors:,} failed")
    parts.append(duration_words(elapsed_s))
    if progress.whole:
        parts += _whole_parts(progress.whole)
    return (
        f"{_PHASES[progress.phase]}: ",
        " · ".join(parts),
        f"  {progress.note[:80]}" if progress.note else "",
    )


def _whole_parts(whole: WholeProgress) -> list[str]:
    parts = [f"total {size_words(whole.done_bytes)} of {size_words(whole.total_bytes)}"]
    if whole.bytes_per_s:
        parts.append(f"{size_words(whole.bytes_per_s)}/s")
    if whole.left_s is not None:
        parts.append(f"about {duration_words(whole.left_s)} left")
    return parts
