"""Organisations as people manage them: list, read, correct the profile, accept or reject hosts, export.

What `discovery` finds is stored here first; corrections and decisions by people override it, now and in later
runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.provenance import append, difference
from webdepot.selection.domains import organisations
from webdepot.selection.domains.facts import bare_host, registrable
from webdepot.selection.domains.organisations import KnownHost, Organisation
from webdepot.selection.domains.ownership_rules import parse
from webdepot.selection.domains.profile import Corrections, checked_host, checked_range
from webdepot.text import csv_text

_COLUMNS = (
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


def list_organisations(archive: Archive) -> list[tuple[Organisation, Mapping[str, int]]]:
    """Every organisation with the number of its hosts of each kind."""
    with archive.database.reading() as connection:
        return organisations.list_all(connection)


def get(archive: Archive, typed: str = "") -> Organisation:
    """The organisation of a domain or of one of its hosts; without a name, the only one there is."""
    with archive.database.reading() as connection:
        if typed:
            return organisations.get(connection, registrable(checked_host(typed)))
        known = organisations.list_all(connection)
    if len(known) == 1:
        return known[0][0]
    names = ", ".join(item.root for item, _ in known) or "none is known yet"
    raise InputError(f"Name the organisation. Known: {names}.")


def hosts_of(
    archive: Archive, organisation: Organisation, *, own: str = "", limit: int = 100_000
) -> list[KnownHost]:
    """The hosts judged for an organisation; `own` selects one kind: own, ask, other, wait."""
    with archive.database.reading() as connection:
        return organisations.hosts(connection, organisation.id, own=own, limit=limit)


def counts_of(archive: Archive, organisation: Organisation) -> Mapping[str, int]:
    """How many hosts of each kind: own, ask, other, wait."""
    with archive.database.reading() as connection:
        return organisations.counts(connection, organisation.id)


def note_request(connection: Connection, archive: Archive, host: str, *, by: str) -> None:
    """Record that a person asked for a survey of an organisation, and when it was last surveyed."""
    known = organisations.find(connection, registrable(host))
    before = {"surveyed_at": known.surveyed_at.isoformat() if known else ""}
    detail = difference(before, {"survey": "asked for"})
    append(
        connection,
        archive.event("asked for", "organisation", registrable(host), message=host, detail=detail, by=by),
    )


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
    """Add values to the profile or remove them; they override what later lookups find."""
    removed = {text.strip() for text in remove}
    before = organisation.corrections

    def joined(known: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
        return tuple(value for value in dict.fromkeys((*known, *added)) if value and value not in removed)

    after = Corrections(
        names=joined(before.names, [" ".join(name.split()) for name in names]),
        ranges=joined(before.ranges, [checked_range(text) for text in ranges]),
        name_servers=joined(before.name_servers, [bare_host(name) for name in name_servers]),
        domains=joined(before.domains, [checked_host(name) for name in domains]),
        strangers=joined(before.strangers, [checked_host(name) for name in strangers]),
        removed=tuple(dict.fromkeys((*before.removed, *removed))),
    )
    with archive.database.transaction() as connection:
        changed = organisations.correct(connection, organisation, after)
        detail = difference(asdict(before), asdict(after))
        message = "the profile was corrected by hand"
        append(
            connection,
            archive.event(
                "corrected", "organisation", organisation.root, message=message, by=by, detail=detail
            ),
        )
    return changed


def decide(
    archive: Archive, organisation: Organisation, hosts: Sequence[str], *, accepted: bool, by: str = ""
) -> None:
    """Accept or reject hosts by hand; later runs respect the decision."""
    now, decided_by = archive.clock(), by or archive.agent
    decision = "accepted" if accepted else "rejected"
    with archive.database.transaction() as connection:
        known = {each.host: each.decision for each in organisations.hosts(connection, organisation.id)}
        for typed in hosts:
            host = checked_host(typed)
            organisations.decide(connection, organisation.id, host, accepted=accepted, by=decided_by, now=now)
            detail = difference({host: known.get(host, "")}, {host: decision})
            append(
                connection,
                archive.event(
                    decision, "organisation", organisation.root, message=host, by=by, detail=detail
                ),
            )


def parse_domain(typed: str) -> str:
    """A domain as people type it, in canonical form; InputError if it is not a domain name."""
    return checked_host(typed)


def parse_rules(texts: Sequence[str]) -> tuple[str, ...]:
    """Rules about hosts in canonical form; InputError for a text that is not a rule."""
    return tuple(str(parse(text)) for text in texts)


def as_csv(hosts: Sequence[KnownHost]) -> str:
    """The hosts as CSV. Cells that a spreadsheet would run as formulas are escaped."""
    rows: list[Sequence[object]] = [_COLUMNS]
    rows += [
        (
            host.host,
            host.domain,
            host.case or "",
            f"{host.score:.3f}",
            {True: "yes", False: "no", None: "ask"}[host.own],
            host.decision,
            host.decided_by,
            host.origin,
            " ".join(host.linked_by),
            "; ".join(host.evidence),
            host.judged_at.isoformat(),
        )
        for host in hosts
    ]
    return "".join(csv_text.written(rows))


def as_objects(hosts: Sequence[KnownHost]) -> list[dict[str, Any]]:
    """The hosts as `--json` prints them: a list of objects."""
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
