"""Harvest a partner's record list by OAI-PMH: everything since the last complete run, page by page. Each page
is stored before the next is requested.

1. A run that was killed or failed resumes with its stored resumption token. If the partner no longer accepts
   the token, the same list is requested from its beginning (known records change nothing).
2. A new run starts from the response date of the first page of the last complete run: the partner's clock is
   used, never ours.
3. New and changed records wait to be ingested (`services/exchange/partner_ingest.py`); deletions are applied
   there too.
"""

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot.archive import Archive
from webdepot.errors import RemoteError
from webdepot.exchange import partners
from webdepot.exchange.client import PartnerClient
from webdepot.exchange.oai.harvester import (
    ListedRecord,
    ListPage,
    LoopDetector,
    ProtocolError,
    RemoteRepository,
)
from webdepot.exchange.partners import ListRun, Partner, PartnerRecord, RecordState, RunState
from webdepot.harvest.fetch.host_addresses import is_allowed
from webdepot.provenance import Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase, Progress, Watch, unwatched

LONGEST_XML = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ListHarvest:
    """The result of a run."""

    run: ListRun
    new: int
    """New and changed records, including deletions."""


def harvest(
    archive: Archive,
    name: str,
    *,
    from_the_beginning: bool = False,
    watch: Watch = unwatched,
    wait: Callable[[float], None] = time.sleep,
) -> ListHarvest:
    """Bring a partner's list up to date. RemoteError if it breaks off; received pages are kept, and the next
    call resumes there.
    """
    with archive.database.reading() as connection:
        partner = partners.get(connection, name)
    with harvests.locked(folder_of(archive, name)):
        return _harvest(archive, partner, from_the_beginning, watch, wait)


def folder_of(archive: Archive, name: str) -> Path:
    """The folder for incomplete downloads from a partner."""
    return archive.home / "partners" / name


def _harvest(
    archive: Archive, partner: Partner, from_the_beginning: bool, watch: Watch, wait: Callable[[float], None]
) -> ListHarvest:
    name = partner.name
    with archive.database.transaction() as connection:
        run = partners.last_run(connection, name)
        if run is None or run.state is RunState.COMPLETE or from_the_beginning:
            complete = None if from_the_beginning else partners.last_run(connection, name, RunState.COMPLETE)
            run = partners.begin_run(
                connection, name, since=complete.first_response if complete else "", now=archive.clock()
            )
        else:
            run = replace(run, state=RunState.RUNNING, error="")
            partners.keep_run(connection, run)
    provider = RemoteRepository(
        base_url=partner.url, client=client_for(archive, partner), wait=wait, clock=archive.clock
    )
    try:
        return _run(archive, partner, provider, run, watch)
    except RemoteError as error:
        _fail(archive, name, str(error))
        raise


def client_for(archive: Archive, partner: Partner | None = None) -> PartnerClient:
    """A client that connects to public addresses, and to private ones that the configuration allows; with the
    token of a partner.
    """
    config = archive.config.harvest
    networks = tuple(map(ipaddress.ip_network, config.private_networks))

    def allowed(address: str) -> bool:
        return config.allow_private or is_allowed(address, networks)

    return PartnerClient(
        user_agent=archive.user_agent, allowed=allowed, token=partner.token if partner else ""
    )


def _run(
    archive: Archive, partner: Partner, provider: RemoteRepository, run: ListRun, watch: Watch
) -> ListHarvest:
    new, loops = 0, LoopDetector()
    is_left_over = bool(run.resumption)
    while True:
        page, run = _fetch_page(partner, provider, run, is_left_over=is_left_over)
        is_left_over = False
        run, new_on_page = _store_page(archive, partner, run, page)
        new += new_on_page
        watch(
            Progress(
                phase=Phase.FETCH,
                done=run.records,
                total=max(run.list_size, run.records) or None,
                note=f"{partner.name}, page {run.pages}",
            )
        )
        if run.state is RunState.COMPLETE:
            return ListHarvest(run=run, new=new)
        loops.check(run.resumption)


def _fetch_page(
    partner: Partner, provider: RemoteRepository, run: ListRun, *, is_left_over: bool
) -> tuple[ListPage, ListRun]:
    """The next page. A token that an earlier call left may have ended meanwhile; one that was given just now
    must be good.
    """
    if run.resumption:
        try:
            return provider.list_records({"resumptionToken": run.resumption}), run
        except ProtocolError as error:
            if error.oai_code != "badResumptionToken" or not is_left_over:
                raise
            # The same list again; known records are skipped.
            run = replace(run, resumption="", pages=0, records=0, deleted=0)
    return provider.list_records(_arguments(partner, run)), run


def _arguments(partner: Partner, run: ListRun) -> Mapping[str, str]:
    arguments = {"metadataPrefix": partner.prefix, "set": partner.set_spec, "from": run.since}
    return {name: value for name, value in arguments.items() if value}


def _store_page(archive: Archive, partner: Partner, run: ListRun, page: ListPage) -> tuple[ListRun, int]:
    """Store a page and the token of the next in one transaction; return the run, and how many records are
    new.
    """
    now = archive.clock()
    is_last = not page.token
    run = replace(
        run,
        state=RunState.COMPLETE if is_last else RunState.RUNNING,
        ended_at=now if is_last else None,
        first_response=run.first_response or page.response_date[:20],
        resumption=page.token,
        pages=run.pages + 1,
        records=run.records + len(page.records),
        deleted=run.deleted + sum(record.is_deleted for record in page.records),
        list_size=page.list_size or run.list_size,
    )
    with archive.database.transaction() as connection:
        new = sum(partners.keep_record(connection, _row(archive, partner, record)) for record in page.records)
        partners.keep_run(connection, run)
        if is_last:
            message = f"{run.records} records in {run.pages} pages, {run.deleted} of them deleted"
            append(connection, archive.event("harvested", "partner", partner.name, message=message))
    return run, new


def _row(archive: Archive, partner: Partner, record: ListedRecord) -> PartnerRecord:
    is_large = len(record.xml) > LONGEST_XML
    return PartnerRecord(
        partner=partner.name,
        identifier=record.identifier,
        datestamp=record.datestamp,
        sets=record.sets,
        xml="" if is_large else record.xml,
        sha256=record.sha256,
        state=RecordState.NEW,
        reason="the record is too large" if is_large else "",
        seen_at=archive.clock(),
    )


def _fail(archive: Archive, name: str, message: str) -> None:
    with archive.database.transaction() as connection:
        run = partners.last_run(connection, name)
        if run is not None:
            partners.keep_run(
                connection,
                replace(run, state=RunState.FAILED, ended_at=archive.clock(), error=message[:2000]),
            )
        failure = archive.event("harvested", "partner", name, message=message[:2000], outcome=Outcome.FAILURE)
        append(connection, failure)
