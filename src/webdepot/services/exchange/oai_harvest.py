"""Harvesting the list of a partner: everything since the last complete run, page by page, each page kept
before the next is asked for.

1. A run that was killed or failed in the middle goes on with the token it kept; when the partner does not
   know the token any more, the same list is asked for from its beginning (records that are known change
   nothing).
2. A new run asks from the answer date of the first page of the last complete run, by the partner's clock,
   never by ours.
3. Records that say something new wait to be taken in (`services/exchange/takeover.py`); deletions are applied there
   too.
"""

import ipaddress
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from webdepot.archive import Archive
from webdepot.errors import RemoteError
from webdepot.exchange import partners
from webdepot.exchange.client import Client
from webdepot.exchange.oai.harvester import Circles, ListedRecord, ListPage, ProtocolError, Provider
from webdepot.exchange.partners import Partner, PartnerRecord, RecordState, Run, RunState
from webdepot.harvest.fetch.addresses import is_public
from webdepot.provenance import Event, Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase, Progress, Watch, unwatched

LONGEST_XML = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a run brought."""

    run: Run
    new: int
    """Records that said something new, deletions among them."""


def harvest(
    archive: Archive,
    name: str,
    *,
    from_the_beginning: bool = False,
    watch: Watch = unwatched,
    wait: Callable[[float], None] = time.sleep,
) -> Listed:
    """Bring the list of a partner up to date. RemoteError when it breaks off; what came is kept, and the next
    call goes on there.
    """
    with archive.database.reading() as connection:
        partner = partners.get(connection, name)
    with harvests.locked(folder_of(archive, name)):
        return _harvest(archive, partner, from_the_beginning, watch, wait)


def folder_of(archive: Archive, name: str) -> Path:
    """Where downloads from a partner lie while they are not whole."""
    return archive.home / "partners" / name


def _harvest(
    archive: Archive, partner: Partner, from_the_beginning: bool, watch: Watch, wait: Callable[[float], None]
) -> Listed:
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
    provider = Provider(
        base_url=partner.url, client=client_for(archive, partner), wait=wait, clock=archive.clock
    )
    try:
        return _run(archive, partner, provider, run, watch)
    except RemoteError as error:
        _fail(archive, name, str(error))
        raise


def client_for(archive: Archive, partner: Partner) -> Client:
    """Talks to public addresses, and to whatever address the partner itself has: the operator named that one."""
    own = _addresses_of(partner.url)
    anything = archive.config.harvest.allow_private

    def allowed(address: str) -> bool:
        return anything or is_public(address) or _plain(address) in own

    return Client(user_agent=archive.user_agent, allowed=allowed, token=partner.token)


def _addresses_of(url: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(urlsplit(url).hostname or "", None)
    except OSError:
        return frozenset()
    return frozenset(_plain(str(place[4][0])) for place in found)


def _plain(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return address


def _run(archive: Archive, partner: Partner, provider: Provider, run: Run, watch: Watch) -> Listed:
    new, circles = 0, Circles()
    is_left_over = bool(run.resumption)
    while True:
        page, run = _ask(partner, provider, run, is_left_over=is_left_over)
        is_left_over = False
        run, found = _keep(archive, partner, run, page)
        new += found
        watch(
            Progress(
                phase=Phase.FETCH,
                done=run.records,
                total=max(run.list_size, run.records) or None,
                note=f"{partner.name}, page {run.pages}",
            )
        )
        if run.state is RunState.COMPLETE:
            return Listed(run=run, new=new)
        circles.check(run.resumption)


def _ask(partner: Partner, provider: Provider, run: Run, *, is_left_over: bool) -> tuple[ListPage, Run]:
    """The next page. A token that an earlier call left may have ended meanwhile; one that was given just now
    must be good.
    """
    if run.resumption:
        try:
            return provider.list_records({"resumptionToken": run.resumption}), run
        except ProtocolError as error:
            if error.oai_code != "badResumptionToken" or not is_left_over:
                raise
            # The same list again; what is known is passed over.
            run = replace(run, resumption="", pages=0, records=0, deleted=0)
    return provider.list_records(_arguments(partner, run)), run


def _arguments(partner: Partner, run: Run) -> Mapping[str, str]:
    given = {"metadataPrefix": partner.prefix, "set": partner.set_spec, "from": run.since}
    return {name: value for name, value in given.items() if value}


def _keep(archive: Archive, partner: Partner, run: Run, page: ListPage) -> tuple[Run, int]:
    """One page in one transaction, with the place of the next."""
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
            append(connection, _event(archive, partner.name, "harvested", message, Outcome.SUCCESS))
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


def _fail(archive: Archive, name: str, words: str) -> None:
    with archive.database.transaction() as connection:
        run = partners.last_run(connection, name)
        if run is not None:
            partners.keep_run(
                connection, replace(run, state=RunState.FAILED, ended_at=archive.clock(), error=words[:2000])
            )
        append(connection, _event(archive, name, "harvested", words[:2000], Outcome.FAILURE))


def _event(archive: Archive, name: str, action: str, message: str, outcome: Outcome) -> Event:
    return Event(
        at=archive.clock(),
        agent=archive.agent,
        action=action,
        subject_kind="partner",
        subject=name,
        outcome=outcome,
        message=message,
    )
