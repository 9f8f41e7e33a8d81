"""Which domains belong to an organisation, found through the network: profile, survey, server configurations,
scan.

`discover` builds the profile of the organisation and surveys its hosts; everything is stored. People then
correct it through `organisations`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from webdepot import event_loop
from webdepot.archive import Archive
from webdepot.model import Finding
from webdepot.provenance import append, difference
from webdepot.selection.domains import organisations, vhosts
from webdepot.selection.domains.facts import HostFacts, registrable
from webdepot.selection.domains.host_discovery import HostDiscovery
from webdepot.selection.domains.lookup import probe
from webdepot.selection.domains.lookup.resolver import Resolver
from webdepot.selection.domains.lookup.sources import LiveSources
from webdepot.selection.domains.organisations import KnownHost, Organisation
from webdepot.selection.domains.ownership_signs import HostOrigin
from webdepot.selection.domains.profile import OrganisationProfile, checked_host
from webdepot.selection.domains.profiler import profile_of
from webdepot.selection.domains.verdict import HostJudgement
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.services.selection import organisations as organisations_service
from webdepot.services.selection.lookup_network import judge_of, open_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The result of a survey."""

    organisation: Organisation
    hosts: tuple[KnownHost, ...]
    asked: Mapping[str, int]
    """Queries that were sent, by kind."""
    left_out: int
    """Candidates beyond the limit of hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """Addresses of a range that answered, the names found there, and the hosts judged."""

    answering: tuple[probe.Answering, ...]
    names: tuple[str, ...]
    hosts: tuple[KnownHost, ...]


def discover(
    archive: Archive, typed: str, *, allow_private: bool = False, watch: Watch = unwatched, by: str = ""
) -> Discovery:
    """Find the domains of an organisation from one of them; store profile, verdicts and evidence."""
    host = checked_host(typed)
    return event_loop.run(_discover(archive, host, allow_private, watch, by=by))


def read_vhosts(
    archive: Archive,
    organisation: Organisation,
    paths: Sequence[Path],
    *,
    allow_private: bool = False,
    watch: Watch = unwatched,
) -> tuple[list[KnownHost], tuple[Finding, ...]]:
    """Add the hosts in these web server configurations (sector 4); each is examined like any other."""
    configuration = vhosts.read(paths)
    if not configuration.hosts:
        return [], configuration.findings
    named = dict.fromkeys(configuration.hosts, HostOrigin.VHOST)
    judged = event_loop.run(_examine(archive, organisation, named, allow_private, watch))
    return [host for host in judged if host.host in named], configuration.findings


def scan(
    archive: Archive,
    organisation: Organisation,
    ranges: Sequence[str] = (),
    *,
    allow_private: bool = False,
    watch: Watch = unwatched,
) -> ScanResult:
    """Probe the declared ranges for web servers; examine the names in their certificates and reverse DNS."""
    config = archive.config.discovery
    networks = probe.checked(ranges, config.own_ranges, is_on=config.scan)
    return event_loop.run(_scan(archive, organisation, networks, allow_private, watch))


def scan_ranges(archive: Archive, ranges: Sequence[str] = ()) -> list[str]:
    """The ranges that a scan would probe, to show before it starts; refuses like the scan itself."""
    config = archive.config.discovery
    return [str(network) for network in probe.checked(ranges, config.own_ranges, is_on=config.scan)]


# --- profile and survey ---


async def _discover(archive: Archive, host: str, allow_private: bool, watch: Watch, *, by: str) -> Discovery:
    config, now = archive.config.discovery, archive.clock()
    async with open_sources(archive, allow_private=allow_private) as sources:
        profile, facts = await profile_of(host, sources, now=now, ports=(config.http_port, config.https_port))
        with archive.database.transaction() as connection:
            before = organisations.find(connection, registrable(host))
            organisation = organisations.save(connection, profile, now=now)
            detail = difference(_profile_detail(before.found) if before else {}, _profile_detail(profile))
            append(
                connection,
                archive.event(
                    "profiled", "organisation", organisation.root, message=profile.name, by=by, detail=detail
                ),
            )
        return await _survey(archive, organisation, sources, facts, watch, by=by)


def _profile_detail(profile: OrganisationProfile) -> dict[str, object]:
    names = ("names", "ranges", "name_servers", "registrant", "mail_domains", "domains")
    return {name: [item.value for item in getattr(profile, name)] for name in names}


async def _survey(
    archive: Archive,
    organisation: Organisation,
    sources: LiveSources,
    facts: HostFacts | None,
    watch: Watch,
    *,
    by: str,
) -> Discovery:
    config = archive.config.discovery
    judge = judge_of(archive, organisation, sources)

    def progress(done: int, waiting: int, host: str) -> None:
        watch(Progress(phase=Phase.DISCOVER, done=done, waiting=waiting, note=host))

    discovery = HostDiscovery(
        judge=judge, workers=config.workers, limit_hosts=config.limit_hosts, progress=progress
    )
    named = {
        **dict.fromkeys(organisation.corrections.domains, HostOrigin.PERSON),
        **dict.fromkeys(judge.decisions, HostOrigin.PERSON),
    }
    surveyed = await discovery.run(organisation.profile.host, root_facts=facts, extra=named)
    learned = replace(judge.profile, strangers=organisation.found.strangers)
    rows = [(item.judgement, item.case, item.linked_by) for item in surveyed]
    organisation, known = store_survey(archive, learned, rows, by=by)
    met = {item.judgement.host for item in surveyed}
    hosts = tuple(host for host in known if host.host in met)
    return Discovery(
        organisation=organisation, hosts=hosts, asked=dict(sources.asked), left_out=discovery.left_out
    )


def store_survey(
    archive: Archive,
    profile: OrganisationProfile,
    rows: Sequence[tuple[HostJudgement, int, Sequence[str]]],
    *,
    by: str,
) -> tuple[Organisation, list[KnownHost]]:
    """Store what a survey found: the profile, and verdicts with their sector and the hosts that link there.
    Returns the organisation with all its known hosts.
    """
    now = archive.clock()
    with archive.database.transaction() as connection:
        organisation = organisations.save(connection, profile, now=now)
        before = organisations.counts(connection, organisation.id)
        organisations.save_hosts(connection, organisation.id, rows, now=now)
        members = sum(judgement.own is True for judgement, _, _ in rows)
        message = f"{members} of {len(rows)} hosts belong to {organisation.profile.name}"
        detail = difference(before, organisations.counts(connection, organisation.id))
        event = archive.event(
            "surveyed", "organisation", organisation.root, message=message, by=by, detail=detail
        )
        append(connection, event)
        return organisation, organisations.hosts(connection, organisation.id)


# --- single hosts ---


async def _examine(
    archive: Archive,
    organisation: Organisation,
    named: Mapping[str, HostOrigin],
    allow_private: bool,
    watch: Watch,
) -> tuple[KnownHost, ...]:
    """Judge only these hosts, without following links, and store the verdicts. A host known from a survey
    keeps its sector and the hosts that link to it.
    """
    known = {host.host: host for host in organisations_service.hosts_of(archive, organisation)}
    rows: list[tuple[HostJudgement, int, Sequence[str]]] = []
    async with open_sources(archive, allow_private=allow_private) as sources:
        judge = judge_of(archive, organisation, sources)
        for number, (host, origin) in enumerate(named.items()):
            judged = await judge.examine(host, origin)
            before = known.get(host)
            case = before.case if before is not None and before.case else _case(judged)
            rows.append((judged, case, before.linked_by if before is not None else ()))
            watch(Progress(phase=Phase.DISCOVER, done=number + 1, total=len(named), note=host))
    with archive.database.transaction() as connection:
        counts = organisations.counts(connection, organisation.id)
        organisations.save_hosts(connection, organisation.id, rows, now=archive.clock())
        detail = difference(counts, organisations.counts(connection, organisation.id))
        message = f"{len(rows)} hosts"
        append(
            connection,
            archive.event("examined", "organisation", organisation.root, message=message, detail=detail),
        )
        return tuple(organisations.hosts(connection, organisation.id))


def _case(judged: HostJudgement) -> int:
    """The sector of a host to which no link is known (see `host_discovery`); 0 if its place is not known."""
    if not judged.is_resolved:
        return 0
    return 4 if judged.is_inside else 5


async def _scan(
    archive: Archive, organisation: Organisation, ranges: Sequence[Any], allow_private: bool, watch: Watch
) -> ScanResult:
    config = archive.config.discovery
    total = sum(network.num_addresses for network in ranges)
    resolver = Resolver(config.resolver, timeout_s=config.timeout_s)
    answering: list[probe.Answering] = []
    names: dict[str, None] = {}
    async with open_sources(archive, allow_private=True) as sources:
        walk = probe.probe(
            ranges,
            ports=(config.http_port, config.https_port),
            per_second=config.scan_per_s,
            timeout_s=config.timeout_s / 2,
            progress=lambda done: watch(Progress(phase=Phase.DISCOVER, done=done, total=total)),
        )
        async for server in walk:
            answering.append(server)
            if config.https_port in server.ports:
                certificate = await sources.certificate(server.address, (server.address,))
                names.update(dict.fromkeys(certificate.names if certificate else ()))
            pointer = await resolver.pointer(server.address)
            names.update({pointer: None} if pointer else {})
    named = {name: HostOrigin.SCAN for name in names if "." in name and not name.rpartition(".")[2].isdigit()}
    hosts = await _examine(archive, organisation, named, allow_private, watch) if named else ()
    return ScanResult(
        answering=tuple(answering),
        names=tuple(named),
        hosts=tuple(host for host in hosts if host.host in named),
    )
