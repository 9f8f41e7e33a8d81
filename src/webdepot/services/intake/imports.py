"""Import of any number of files: one after another into harvests of limited size, each of which is checked,
deposited and indexed before the next one is begun.

    files ─ take in until a limit ─ identify ─ check ─ keep ─ index ─┐
      └──────────────────── the next harvest ────────────────────────┘

So memory, transactions and the space for copies are bounded by `depot.import_files` and `depot.import_bytes`,
and not by the number of files; and what an import has finished is in the archive while it continues.

Several imports can run at the same time, also of the same files. A file belongs to the one that writes its
row first; the other waits until that import has finished it, or finishes it if its process has ended. The
same happens when an interrupted import is repeated: harvests that are not complete are completed when one of
their files is met.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot.store.in_place import is_remote
from webdepot.errors import Conflict, InputError
from webdepot.model import Harvest, HarvestId, HarvestState
from webdepot.services.harvest import harvests
from webdepot.services.intake import (
    container_copy,
    import_harvests,
    ingest,
    sources,
    wacz_files,
    warc_files,
)
from webdepot.services.intake import in_place as in_place_service
from webdepot.services.intake.container_copy import TakenContainer
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.intake.sources import ImportSource, SourceTotals, UnreadableSource
from webdepot.services.intake.warc_files import FileOutcome, FileState, IntakeLimits
from webdepot.services.progress import Phase, Progress, Watch, WholeProgress
from webdepot.services.quality import early_identification

_SHARES = {Phase.IMPORT: 0.1, Phase.IDENTIFY: 0.25, Phase.CHECK: 0.1, Phase.KEEP: 0.15, Phase.INDEX: 0.4}
"""The usual share of each step in the time of an import, until the first harvest of this one is measured."""

MOST_LISTED = 1000


def ignore(_: object) -> None:
    """Ignore the outcome: for callers who need only the total."""


@dataclass(slots=True, kw_only=True)
class ImportListener:
    """Functions that an import calls while it runs."""

    watch: Watch
    on_file: Callable[[FileOutcome], None] = ignore
    on_package: Callable[[ArchiveReport], None] = ignore


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """The result of an import."""

    files: Counter[FileState] = field(default_factory=Counter)
    """How many files came in and how many did not; each container of a WACZ counts."""
    size_bytes: int = 0
    """Of the files that came in."""
    skipped: list[FileOutcome] = field(default_factory=list)
    """Files that could not be taken in, at most `MOST_LISTED`."""
    harvests: int = 0
    taken: ArchiveReport | None = None
    """The last harvest that was begun; None if the files contained nothing new."""
    resumed: int = 0
    """Earlier imports of these files that had been interrupted, and are complete now."""

    def add(self, outcome: FileOutcome) -> None:
        self.files[outcome.state] += 1
        if outcome.state is FileState.IMPORTED:
            self.size_bytes += outcome.size_bytes
        elif outcome.state is FileState.SKIPPED and len(self.skipped) < MOST_LISTED:
            self.skipped.append(outcome)


def run(
    archive: Archive,
    addresses: Sequence[str],
    *,
    collection: str,
    deposit: bool,
    in_place: bool,
    listener: ImportListener,
) -> ImportReport:
    """Import everything in these files and folders. Can be stopped or killed at any moment, and repeated."""
    if not in_place:
        _check_paths(addresses)
    whole = _WholeWatch(listener.watch, sources.measure(addresses))
    job = _ImportJob(archive, collection, deposit and not in_place, in_place, listener, whole)
    files = whole.count(sources.iter_sources(addresses))
    for first in files:  # a harvest begins only if there is one more file
        job.import_part(chain([first], files))
    return job.report


def _check_paths(addresses: Sequence[str]) -> None:
    for address in addresses:
        if is_remote(address):
            raise InputError(f"{address} is not on this machine. Download it, or read it with --in-place.")
        if not Path(address).expanduser().exists():
            raise InputError(f"There is no file or folder {address}.")


class _ImportJob:
    """One import command: what it has done so far, over all its harvests."""

    def __init__(
        self,
        archive: Archive,
        collection: str,
        deposit: bool,
        in_place: bool,
        listener: ImportListener,
        whole: "_WholeWatch",
    ) -> None:
        self._archive = archive
        self._collection = collection
        self._deposit = deposit
        self._settings = in_place_service.SETTINGS if in_place else {}
        self._take_one = in_place_service.refer if in_place else container_copy.copy_in
        self._listener = listener
        self._whole = whole
        self._complete: set[HarvestId] = set()
        depot = archive.config.depot
        self._limits = IntakeLimits(files=depot.import_files, size_bytes=depot.import_bytes)
        self.report = ImportReport()

    def import_part(self, files: Iterator[ImportSource | UnreadableSource]) -> None:
        """Import files into one harvest until it is full, and complete the earlier ones that were met."""
        with ExitStack() as work, early_identification.identifying(self._archive) as early:

            def take_one(archive: Archive, harvest: Harvest, source: ImportSource) -> TakenContainer:
                remark = "" if self._settings else wacz_files.keep_others(archive, harvest, source)
                taken = self._take_one(archive, harvest, source)
                if taken.is_new:
                    early.add(taken.container)
                return taken._replace(remark=taken.remark or remark)

            intake = warc_files.take(
                self._archive,
                files,
                take_one,
                collection=self._collection,
                settings=self._settings,
                limits=self._limits,
                note=self._note,
                work=work,
                watch=self._whole,
            )
            if intake.harvest is not None:
                early.wait(self._whole)
                self.report.taken = self._ingest(intake.harvest)
                self.report.harvests += 1
                self._listener.on_package(self.report.taken)
        self._whole.end_part()
        for harvest, file in intake.known.items():
            if harvest not in self._complete:
                self._complete_known(harvest, file)

    def _ingest(self, harvest: Harvest) -> ArchiveReport:
        report = ingest.take_in(self._archive, harvest, deposit=self._deposit, watch=self._whole)
        harvests.end_direct(self._archive, report.harvest)
        self._complete.add(report.harvest.id)
        return report

    def _note(self, outcome: FileOutcome) -> None:
        self.report.add(outcome)
        if outcome.state is not FileState.IMPORTED:
            self._whole.leave_out()
        self._listener.on_file(outcome)

    def _complete_known(self, identifier: HarvestId, file: str) -> None:
        """Wait for the process that works on an earlier import, or complete it if there is none."""
        harvest = harvests.get(self._archive, identifier)
        deposit = self._deposit and harvest.settings != in_place_service.SETTINGS
        if not ingest.is_complete(self._archive, harvest, deposit=deposit):
            if harvest.settings not in ({}, in_place_service.SETTINGS):
                reason = (
                    f"harvest {identifier} has it and is not complete. "
                    f"Complete it: webdepot harvest resume {identifier}"
                )
                self._note(FileOutcome(file=file, state=FileState.SKIPPED, reason=reason))
                return
            self._resume(harvest, deposit)
        self._complete.add(identifier)

    def _resume(self, harvest: Harvest, deposit: bool) -> None:
        with ExitStack() as work:
            try:
                work.enter_context(harvests.direct(self._archive, harvest))
            except Conflict:
                note = f"another process is importing some of these files (harvest {harvest.id})"
                self._whole(Progress(phase=Phase.WAIT, done=0, note=note))
                try:
                    work.enter_context(harvests.direct(self._archive, harvest, waits=True))
                except FileNotFoundError:  # the other process has removed the folder: it is complete
                    return
            harvest = harvests.get(self._archive, harvest.id)
            if ingest.is_complete(self._archive, harvest, deposit=deposit, ignoring_folder=True):
                harvests.end_direct(self._archive, harvest)
                return
            report = complete(self._archive, harvest, deposit=deposit, watch=self._whole)
        self.report.resumed += 1
        self._listener.on_package(report)


def complete(archive: Archive, harvest: Harvest, *, deposit: bool, watch: Watch) -> ArchiveReport:
    """Do what is left of an interrupted import. The caller holds `harvests.direct`."""
    if harvest.state is HarvestState.RUNNING:
        harvest = import_harvests.finish(archive, harvest)
    deposit = deposit and harvest.settings != in_place_service.SETTINGS
    report = ingest.take_in(archive, harvest, deposit=deposit, watch=watch)
    harvests.end_direct(archive, report.harvest)
    return report


class _WholeWatch:
    """A `Watch` that adds to each step how far the whole import is, in bytes of the files given.

    The time left follows from the time of each step: that of the last harvest, at first the usual one.
    """

    def __init__(self, watch: Watch, totals: SourceTotals) -> None:
        self._watch = watch
        self._totals = totals
        self._began_s = self._step_began_s = time.monotonic()
        self._step: Phase | None = None
        self._shares = dict(_SHARES)
        self._spent_s = dict.fromkeys(_SHARES, 0.0)
        self._met_files = self._met_bytes = 0
        self._current_bytes = self._free_bytes = self._done_bytes = 0

    def count(
        self, files: Iterator[ImportSource | UnreadableSource]
    ) -> Iterator[ImportSource | UnreadableSource]:
        """The same sources, counted."""
        for source in files:
            self._met_files += bool(source.file_bytes) or isinstance(source, UnreadableSource)
            self._met_bytes += source.file_bytes
            self._current_bytes = source.file_bytes
            yield source

    def leave_out(self) -> None:
        """Count no time for the current file: it is known, or cannot be read."""
        self._free_bytes += self._current_bytes
        self._current_bytes = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase is not self._step:
            self._end_step(now)
            self._step = progress.phase
        if progress.phase is Phase.IMPORT:
            files = max(self._totals.files, self._met_files)  # there may be more by now
            progress = replace(progress, done=self._met_files, total=files)
        self._watch(replace(progress, whole=self._state(progress, now)))

    def end_part(self) -> None:
        """Note that all files met so far are in the archive."""
        self._end_step(time.monotonic())
        total_s = sum(self._spent_s.values())
        if self._met_bytes > self._done_bytes and total_s:
            self._shares = {step: self._spent_s[step] / total_s for step in _SHARES}
        self._spent_s = dict.fromkeys(_SHARES, 0.0)
        self._step, self._done_bytes = None, self._met_bytes

    def _end_step(self, now: float) -> None:
        if self._step in _SHARES:
            self._spent_s[self._step] += now - self._step_began_s
        self._step_began_s = now

    def _state(self, progress: Progress, now: float) -> WholeProgress:
        steps = list(_SHARES)
        part = 0.0
        if progress.phase in _SHARES:
            before = steps[: steps.index(progress.phase)]
            fraction = 1.0 if progress.phase is Phase.IMPORT else progress.done / max(progress.total or 1, 1)
            part = sum(self._shares[step] for step in before) + self._shares[progress.phase] * min(
                fraction, 1
            )
        done = self._done_bytes + (self._met_bytes - self._done_bytes) * part
        total = max(self._totals.size_bytes, self._met_bytes)
        rate = max(done - self._free_bytes, 0) / max(now - self._began_s, 0.001)
        return WholeProgress(
            done_bytes=round(done),
            total_bytes=total,
            bytes_per_s=rate,
            left_s=(total - done) / rate if rate > 0 else None,
        )
