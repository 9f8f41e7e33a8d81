"""Harvests whose parts are run by harvesters of any machine: offered, watched and brought together.

1. `run` offers the parts, and watches them until none has anything to do. It does not fetch anything itself.
   One process at a time watches a harvest; if it is killed, a job watches instead.
2. Then containers and logs are brought from the working place into the folder of the harvest, where the next
   steps expect them. The objects stay until the harvest is in the depot.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from webdepot import leases
from webdepot.archive import Archive
from webdepot.errors import Conflict, RemoteError, WebdepotError
from webdepot.harvest.parts import part_rows
from webdepot.harvest.parts.part_rows import PartRow, PartState
from webdepot.harvest.parts.progress_json import progress_of, result_from_json
from webdepot.harvest.report import live
from webdepot.harvest.report.result import CrawlProgress, CrawlResult, End, left_waiting, stopped_reason
from webdepot.model import Harvest, HarvestState
from webdepot.reasons import together
from webdepot.services.harvest import crawler, harvests, processes
from webdepot.services.harvest import options as harvest_options
from webdepot.services.progress import Watch

_LOOK_EVERY_S = 1.0
_LIMITS = (End.LIMIT_PAGES, End.LIMIT_DOCUMENTS, End.LIMIT_BYTES, End.LIMIT_TIME)


@contextmanager
def watching(archive: Archive, harvest: Harvest) -> Iterator[None]:
    """Offer a harvest, and be the process that ends it. Conflict if another one is."""
    options, name = harvest_options.from_kept(harvest.settings), leases.name_holder()
    lease_s, end = archive.config.cluster.lease_s, threading.Event()
    with archive.database.transaction() as connection:
        part_rows.offer(
            connection,
            harvest.id,
            archive.config.harvest.processes,
            needs_browser=harvest_options.wants_browser(options),
            again=harvest.state is not HarvestState.RUNNING,
        )
        if not part_rows.watch(connection, harvest.id, name, lease_s=lease_s):
            raise Conflict(
                f"Another process is watching harvest {harvest.id}. Wait until it has finished, or stop it."
            )

    def renew() -> None:
        while not end.wait(lease_s / 3):
            with suppress(WebdepotError, SQLAlchemyError), archive.database.leasing() as connection:
                part_rows.watch(connection, harvest.id, name, lease_s=lease_s)

    thread = threading.Thread(target=renew, name="watched-harvest", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        with suppress(WebdepotError, SQLAlchemyError), archive.database.leasing() as connection:
            part_rows.stop_watching(connection, harvest.id, name)


def run(archive: Archive, harvest: Harvest, watch: Watch) -> CrawlResult:
    """Watch a harvest to its end or a stop, and bring its files into its folder. RemoteError if a part
    failed. Called inside `watching`.
    """
    folder = harvests.folder_of(archive, harvest)
    with (
        closing(live.Publisher(folder, archive.clock)) as publisher,
        _stopped_by_signals() as is_stopping,
    ):
        parts = _watch(archive, harvest, crawler.reporter(publisher, watch), is_stopping)
    harvests.gather(archive, harvest, parts)
    return _result(parts)


def _watch(
    archive: Archive,
    harvest: Harvest,
    report: Callable[[CrawlProgress], None],
    is_stopping: threading.Event,
) -> Sequence[PartRow]:
    is_stopped = False
    while True:
        try:
            with archive.database.leasing() as connection:
                if is_stopping.is_set() and not is_stopped:
                    part_rows.stop(connection, harvest.id)
                    is_stopped = True
                parts = part_rows.of_harvest(connection, harvest.id)
        except RemoteError as error:
            if not error.retry:
                raise
            time.sleep(_LOOK_EVERY_S)  # harvesters wait for the database as well
            continue
        shown = [each for part in parts if (each := progress_of(part.live)) is not None]
        if shown:
            report(processes.add_up(shown))
        if all(part.is_done for part in parts):
            return parts
        time.sleep(_LOOK_EVERY_S)


def _result(parts: Sequence[PartRow]) -> CrawlResult:
    """The result of all parts; RemoteError if one failed."""
    failed = next((part for part in parts if part.state is PartState.ENDED and part.reason), None)
    if failed is not None:
        raise RemoteError(
            f"The harvest was stopped because part {failed.part + 1} failed: {failed.reason} "
            "What was saved is not lost: resume the harvest.",
            retry=True,
        )
    results = [result_from_json(part.result) for part in parts if part.result]
    if not results:
        return CrawlResult(
            end=End.STOPPED,
            reason=stopped_reason(),
            counts={"waiting": 0},
            seeds=(),
            shut_out=(),
            trouble=None,
            elapsed_s=0.0,
        )
    merged = processes.merge(results, next((each.end for each in results if each.end in _LIMITS), None))
    if parts[0].is_stopping and merged.end is End.FINISHED:
        # Parts that nobody held when it was stopped have older results, or none.
        reason = together([stopped_reason(), left_waiting(merged.waiting)])
        return replace(merged, end=End.STOPPED, reason=reason, trouble=None)
    return merged


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C or TERM; only the main thread receives signals."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: event.set()) for number in numbers]
    try:
        yield event
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
