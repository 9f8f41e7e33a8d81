"""Which domains belong to an organisation: found before a harvest, decided during it, corrected by people.

`discover` is phase one and two in one call: profile, survey, everything kept. `network` opens the look-ups
that the configuration names; the harvest's decide rules (`services.harvest.host_gate`) stand on the same.
"""

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from webdepot import sheets
from webdepot.archive import Archive
from webdepot.errors import ConfigError, InputError
from webdepot.harvest.fetch.addresses import Router
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Finding
from webdepot.provenance import Event, append, difference
from webdepot.selection.domains import organisations, vhosts
from webdepot.selection.domains.evidence import Origin
from webdepot.selection.domains.facts import Facts, bare_host, registrable
from webdepot.selection.domains.lookup import probe
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers
from webdepot.selection.domains.lookup.http_query import Asker
from webdepot.selection.domains.lookup.pace import Pace
from webdepot.selection.domains.lookup.rdap import Rdap
from webdepot.selection.domains.lookup.resolver import Resolver
from webdepot.selection.domains.lookup.sources import LiveSources
from webdepot.selection.domains.lookup.transparency import Transparency
from webdepot.selection.domains.lookup.whois import Whois
from webdepot.selection.domains.organisations import KnownHost, Organisation
from webdepot.selection.domains.profile import Corrections, Profile, checked_range
from webdepot.selection.domains.profile import checked_host as checked_host
from webdepot.selection.domains.profiler import profile_of
from webdepot.selection.domains.rules import parse
from webdepot.selection.domains.survey import Survey
from webdepot.selection.domains.verdict import Bounds, Judge
from webdepot.services.progress import Phase, Progress, Watch, unwatched

LOOKUPS_NAME = "lookups.db"
LIMIT_PAGE_BYTES = 4 << 20
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a survey found."""

    organisation: Organisation
    hosts: tuple[KnownHost, ...]
    asked: Mapping[str, int]
    """Questions that went out, by kind."""
    left_out: int
    """Candidates beyond the limit of hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    answering: tuple[probe.Answering, ...]
    names: tuple[str, ...]
    hosts: tuple[KnownHost, ...]


def discover(
    archive: Archive, typed: str, *, allow_private: bool = False, watch: Watch = unwatched, by: str = ""
) -> Discovery:
    """Find the organisation's domains from one of them, and keep profile, verdicts and evidence."""
    host = checked_host(typed)
    return in_event_loop(_discover(archive, host, {}, allow_private, watch, by=by))


def note_asked_for(archive: Archive, host: str, *, by: str) -> None:
    """That somebody wants an organisation looked through now, and since when it is known."""
    with archive.database.transaction() as connection:
        known = organisations.find(connection, registrable(host))
        before = {"surveyed_at": known.surveyed_at.isoformat() if known else ""}
        detail = difference(before, {"survey": "asked for"})
        append(
            connection,
            archive.event("asked for", "organisation", registrable(host), message=host, detail=detail, by=by),
        )


def listed(archive: Archive) -> list[tuple[Organisation, Mapping[str, int]]]:
    with archive.database.reading() as connection:
        return organisations.list_all(connection)


def get(archive: Archive, typed: str = "") -> Organisation:
    """By any of its hosts' registrable domain; without a name, the only one there is."""
    with archive.database.reading() as connection:
        if typed:
            return organisations.get(connection, registrable(checked_host(typed)))
        known = organisations.list_all(connection)
    if len(known) == 1:
        return known[0][0]
    names = ", ".join(item.root for item, _ in known) or "none is known yet"
    raise InputError(f"Say which organisation is meant ({names}).")


def hosts_of(
    archive: Archive, organisation: Organisation, *, own: str = "", limit: int = 100_000
) -> list[KnownHost]:
    with archive.database.reading() as connection:
        return organisations.hosts(connection, organisation.id, own=own, limit=limit)


def counts_of(archive: Archive, organisation: Organisation) -> Mapping[str, int]:
    """How many hosts of each kind: own, ask, other, wait."""
    with archive.database.reading() as connection:
        return organisations.counts(connection, organisation.id)


def correct(
    archive: Archive,
    organisation: Organisation,
    *,
    names: Sequence[str] = (),
    ranges: Sequence[str] = (),
    name_servers: Sequence[str] = (),
    domains: Sequence[str] = (),
    strangers: Sequence[str] = (),
    remove: Sequence[str] = (),
    by: str = "",
) -> Organisation:
    """Add to the profile, or strike something from it; kept, and above whatever later look-ups say."""
    removed = {text.strip() for text in remove}
    said = organisation.corrections

    def joined(known: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
        return tuple(value for value in dict.fromkeys((*known, *added)) if value and value not in removed)

    new = Corrections(
        names=joined(said.names, [" ".join(name.split()) for name in names]),
        ranges=joined(said.ranges, [checked_range(text) for text in ranges]),
        name_servers=joined(said.name_servers, [bare_host(name) for name in name_servers]),
        domains=joined(said.domains, [checked_host(name) for name in domains]),
        strangers=joined(said.strangers, [checked_host(name) for name in strangers]),
        removed=tuple(dict.fromkeys((*said.removed, *removed))),
    )
    with archive.database.transaction() as connection:
        changed = organisations.correct(connection, organisation, new)
        detail = difference(asdict(said), asdict(new))
        append(
            connection,
            _event(
                archive,
                organisation,
                "corrected",
                "the profile was corrected by hand",
                agent=by,
                detail=detail,
            ),
        )
    return changed


def decide(
    archive: Archive, organisation: Organisation, hosts: Sequence[str], *, accepted: bool, by: str = ""
) -> None:
    """Accept or reject by hand; later runs respect it."""
    now, who = archive.clock(), by or archive.agent
    with archive.database.transaction() as connection:
        known = {each.host: each.decision for each in organisations.hosts(connection, organisation.id)}
        for typed in hosts:
            host = checked_host(typed)
            organisations.decide(connection, organisation.id, host, accepted=accepted, by=who, now=now)
            word = "accepted" if accepted else "rejected"
            append(
                connection,
                _event(
                    archive,
                    organisation,
                    word,
                    host,
                    agent=who,
                    detail=difference({host: known.get(host, "")}, {host: word}),
                ),
            )


def read_vhosts(
    archive: Archive,
    organisation: Organisation,
    paths: Sequence[Path],
    *,
    allow_private: bool = False,
    watch: Watch = unwatched,
) -> tuple[list[KnownHost], tuple[Finding, ...]]:
    """Add what these server configurations host (case 4); each name is examined like any other."""
    found = vhosts.read(paths)
    if not found.hosts:
        return [], found.findings
    extra = dict.fromkeys(found.hosts, Origin.VHOST)
    discovery = in_event_loop(_examine(archive, organisation, extra, allow_private, watch))
    wanted = set(found.hosts)
    return [host for host in discovery if host.host in wanted], found.findings


def scan(
    archive: Archive,
    organisation: Organisation,
    ranges: Sequence[str] = (),
    *,
    allow_private: bool = False,
    watch: Watch = unwatched,
) -> Scanned:
    """Probe the declared ranges for web servers and examine the names that their certificates and reverse DNS
    give.
    """
    given = archive.config.discovery
    chosen = probe.checked(ranges, given.own_ranges, is_on=given.scan)
    return in_event_loop(_scan(archive, organisation, chosen, allow_private, watch))


def scan_ranges(archive: Archive, ranges: Sequence[str] = ()) -> list[str]:
    """What a scan would walk, for showing it before the start; refuses like the scan itself."""
    given = archive.config.discovery
    return [str(network) for network in probe.checked(ranges, given.own_ranges, is_on=given.scan)]


def checked_rules(texts: Sequence[str]) -> tuple[str, ...]:
    """Rules about hosts in their one spelling; InputError for what is none."""
    return tuple(str(parse(text)) for text in texts)


def as_csv(hosts: Sequence[KnownHost]) -> str:
    """The table as CSV. Cells that a spreadsheet would take for formulas are disarmed."""
    rows: list[Sequence[object]] = [
        (
            "host",
            "domain",
            "case",
            "score",
            "own",
            "decision",
            "decided by",
            "found by",
            "linked by",
            "evidence",
            "judged at",
        )
    ]
    for host in hosts:
        own = {True: "yes", False: "no", None: "ask"}[host.own]
        row = [
            host.host,
            host.domain,
            host.case or "",
            f"{host.score:.3f}",
            own,
            host.decision,
            host.decided_by,
            host.origin,
        ]
        row += [" ".join(host.linked_by), "; ".join(host.evidence), host.judged_at.isoformat()]
        rows.append(row)
    return "".join(sheets.written(rows))


def as_objects(hosts: Sequence[KnownHost]) -> list[dict[str, Any]]:
    """The form of `--json`: one list of objects."""
    return [
        {
            "host": host.host,
            "own": host.own,
            "score": round(host.score, 4),
            "case": host.case or None,
            "evidence": host.evidence,
            "domain": host.domain,
            "decision": host.decision or None,
            "found_by": host.origin,
            "linked_by": list(host.linked_by),
        }
        for host in hosts
    ]


# --- the network ---


@asynccontextmanager
async def network(archive: Archive, *, allow_private: bool) -> AsyncIterator[LiveSources]:
    """Look-ups as the configuration names them, kept in `lookups.db`."""
    given = archive.config.discovery
    resolver = Resolver(given.resolver, timeout_s=given.timeout_s)
    kept = KeptAnswers(archive.index_folder / LOOKUPS_NAME, archive.clock)
    router = Router(allow_private=allow_private, look_up=look_up_of(resolver), timeout_s=given.timeout_s)
    # Registries stand where the operator says, which may be this machine.
    trusted = Router(
        allow_private=True,
        look_up=look_up_of(resolver) if given.resolver else None,
        timeout_s=given.timeout_s,
    )
    limits = FetchLimits(
        timeout_s=given.timeout_s * 4, connect_timeout_s=given.timeout_s, body_bytes=LIMIT_PAGE_BYTES
    )
    agent = archive.user_agent
    with authorities(given.extra_ca_file) as ca_file:
        fetchers = [
            CurlFetcher(user_agent=agent, limits=limits, router=route, clock=archive.clock, ca_file=ca_file)
            for route in (router, trusted)
        ]
        pace = Pace(given.registry_pause_s)
        asker = Asker(fetchers[1], pace, archive.clock)
        try:
            yield LiveSources(
                resolver=resolver,
                fetcher=fetchers[0],
                rdap=Rdap(given.rdap_bootstrap, asker, kept),
                whois=Whois(given.whois, pace, kept, timeout_s=given.timeout_s * 2),
                transparency=Transparency(given.ct_search, asker),
                kept=kept,
                pace=Pace(given.page_pause_s),
                clock=archive.clock,
                extra_ca_file=given.extra_ca_file,
                allows=router.allows,
                https_port=given.https_port,
                timeout_s=given.timeout_s,
            )
        finally:
            for fetcher in fetchers:
                await fetcher.close()
            kept.close()


def look_up_of(resolver: Resolver) -> Any:
    """The resolver in the form that the fetcher's router asks for."""

    async def look_up(host: str) -> Sequence[str]:
        records, _ = await resolver.host(host)
        if not records.addresses:
            raise socket.gaierror(
                socket.EAI_NONAME if records.status == "none" else socket.EAI_AGAIN, records.detail
            )
        return records.addresses

    return look_up


class authorities:  # noqa: N801 - read as a verb in a `with` line
    """One file of the system's certificate authorities and the operator's, while the block lasts; None when
    the system's are enough.
    """

    def __init__(self, extra_ca_file: str) -> None:
        self._extra = extra_ca_file
        self._file: Any = None

    def __enter__(self) -> Path | None:
        if not self._extra:
            return None
        try:
            extra = Path(self._extra).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"discovery.extra_ca_file = {self._extra!r} cannot be read: {error.strerror}."
            ) from error
        usual = ssl.get_default_verify_paths().cafile
        self._file = tempfile.NamedTemporaryFile(suffix=".pem")
        self._file.write(
            (Path(usual).read_bytes() + b"\n" if usual and Path(usual).exists() else b"") + extra
        )
        self._file.flush()
        return Path(self._file.name)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def judge_of(archive: Archive, organisation: Organisation, sources: LiveSources) -> Judge:
    """A judge that knows the profile and every decision of a curator."""
    given = archive.config.discovery
    with archive.database.reading() as connection:
        decisions = organisations.decisions(connection, organisation.id)
    return _judge(archive, sources, organisation.profile, decisions, (given.http_port, given.https_port))


def _judge(
    archive: Archive,
    sources: LiveSources,
    profile: Profile,
    decisions: Mapping[str, bool],
    ports: tuple[int, int],
) -> Judge:
    given = archive.config.discovery
    if given.ignore_at > given.follow_at:
        raise ConfigError(
            "discovery.ignore_at is higher than discovery.follow_at. Set it to the lower of the two."
        )
    bounds = Bounds(follow_at=given.follow_at, ignore_at=given.ignore_at)
    return Judge(
        sources=sources, profile=profile, now=archive.clock(), bounds=bounds, decisions=decisions, ports=ports
    )


# --- the work ---


async def _discover(
    archive: Archive,
    host: str,
    extra: Mapping[str, Origin],
    allow_private: bool,
    watch: Watch,
    *,
    by: str = "",
) -> Discovery:
    given, now = archive.config.discovery, archive.clock()
    async with network(archive, allow_private=allow_private) as sources:
        found, facts = await profile_of(host, sources, now=now, ports=(given.http_port, given.https_port))
        with archive.database.transaction() as connection:
            before = organisations.find(connection, registrable(host))
            organisation = organisations.save(connection, found, now=now)
            detail = difference(_told(before.found) if before else {}, _told(found))
            append(connection, _event(archive, organisation, "profiled", found.name, agent=by, detail=detail))
        return await _survey(archive, organisation, sources, facts, extra, watch, by=by)


def _told(profile: Profile) -> dict[str, object]:
    """What is known of an organisation, for the record."""
    names = ("names", "ranges", "name_servers", "registrant", "mail_domains", "domains")
    return {name: [told.value for told in getattr(profile, name)] for name in names}


async def _survey(
    archive: Archive,
    organisation: Organisation,
    sources: LiveSources,
    facts: Facts | None,
    extra: Mapping[str, Origin],
    watch: Watch,
    *,
    by: str = "",
) -> Discovery:
    given = archive.config.discovery
    judge = judge_of(archive, organisation, sources)

    def progress(done: int, waiting: int, host: str) -> None:
        watch(Progress(phase=Phase.DISCOVER, done=done, waiting=waiting, note=host))

    survey = Survey(judge=judge, workers=given.workers, limit_hosts=given.limit_hosts, progress=progress)
    named = {
        **extra,
        **dict.fromkeys(organisation.corrections.domains, Origin.PERSON),
        **dict.fromkeys(judge.decisions, Origin.PERSON),
    }
    seen = await survey.run(organisation.profile.host, root_facts=facts, extra=named)
    learned = replace(judge.profile, strangers=organisation.found.strangers)
    now = archive.clock()
    with archive.database.transaction() as connection:
        before = organisations.counts(connection, organisation.id)
        organisation = organisations.save(connection, learned, now=now)
        rows = [(item.judgement, item.case, item.linked_by) for item in seen]
        organisations.save_hosts(connection, organisation.id, rows, now=now)
        members = sum(item.judgement.own is True for item in seen)
        words = f"{members} of {len(seen)} hosts belong to {organisation.profile.name}"
        detail = difference(before, organisations.counts(connection, organisation.id))
        append(connection, _event(archive, organisation, "surveyed", words, agent=by, detail=detail))
        found = organisations.hosts(connection, organisation.id)
    met = {item.judgement.host for item in seen}
    hosts = tuple(host for host in found if host.host in met)
    return Discovery(
        organisation=organisation, hosts=hosts, asked=dict(sources.asked), left_out=survey.left_out
    )


async def _examine(
    archive: Archive,
    organisation: Organisation,
    extra: Mapping[str, Origin],
    allow_private: bool,
    watch: Watch,
) -> tuple[KnownHost, ...]:
    """Judge these hosts alone, without a walk, and keep the verdicts. A host that a survey knows keeps its
    case and linkers.
    """
    async with network(archive, allow_private=allow_private) as sources:
        judge = judge_of(archive, organisation, sources)
        known = {host.host: host for host in hosts_of(archive, organisation)}
        rows = []
        for number, (host, origin) in enumerate(extra.items()):
            judged = await judge.examine(host, origin)
            before = known.get(host)
            case = (
                before.case
                if before is not None and before.case
                else 4
                if judged.is_inside
                else 5
                if judged.is_resolved
                else 0
            )
            rows.append((judged, case, before.linked_by if before is not None else ()))
            watch(Progress(phase=Phase.DISCOVER, done=number + 1, total=len(extra), note=host))
    with archive.database.transaction() as connection:
        counted = organisations.counts(connection, organisation.id)
        organisations.save_hosts(connection, organisation.id, rows, now=archive.clock())
        detail = difference(counted, organisations.counts(connection, organisation.id))
        append(connection, _event(archive, organisation, "examined", f"{len(rows)} hosts", detail=detail))
        return tuple(organisations.hosts(connection, organisation.id))


async def _scan(
    archive: Archive, organisation: Organisation, ranges: Sequence[Any], allow_private: bool, watch: Watch
) -> Scanned:
    given = archive.config.discovery
    total = sum(network.num_addresses for network in ranges)
    resolver = Resolver(given.resolver, timeout_s=given.timeout_s)
    answering, names = [], {}
    async with network(archive, allow_private=True) as sources:
        walk = probe.probe(
            ranges,
            ports=(given.http_port, given.https_port),
            per_second=given.scan_per_s,
            timeout_s=given.timeout_s / 2,
            progress=lambda done: watch(Progress(phase=Phase.DISCOVER, done=done, total=total)),
        )
        async for found in walk:
            answering.append(found)
            certificate = (
                await sources.certificate(found.address, (found.address,))
                if given.https_port in found.ports
                else None
            )
            pointer = await resolver.pointer(found.address)
            names.update(
                dict.fromkeys((*(certificate.names if certificate else ()), *([pointer] if pointer else [])))
            )
    good = {name: Origin.SCAN for name in names if "." in name and not name.rpartition(".")[2].isdigit()}
    hosts = await _examine(archive, organisation, good, allow_private, watch) if good else ()
    return Scanned(
        answering=tuple(answering),
        names=tuple(good),
        hosts=tuple(host for host in hosts if host.host in good),
    )


def in_event_loop(work: Coroutine[None, None, _Result]) -> _Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _event(
    archive: Archive,
    organisation: Organisation,
    action: str,
    message: str,
    *,
    agent: str = "",
    detail: Mapping[str, object] | None = None,
) -> Event:
    return Event(
        at=archive.clock(),
        agent=agent or archive.agent,
        action=action,
        subject_kind="organisation",
        subject=organisation.root,
        message=message,
        detail=detail or {},
    )
