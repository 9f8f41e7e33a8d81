"""Organisations and the hosts judged for them, in the database: look-ups and decisions by people."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Text,
    and_,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)

from webdepot.errors import NotFound
from webdepot.reasons import said
from webdepot.selection.domains.facts import from_json, to_json
from webdepot.selection.domains.profile import Corrections, OrganisationProfile, corrected
from webdepot.selection.domains.verdict import HostJudgement
from webdepot.selection.tables import organisation_hosts, organisations

_BATCH = 200
_SHOWN_SIGNS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Organisation:
    id: int
    root: str
    found: OrganisationProfile
    """The profile as looked up, without corrections."""
    corrections: Corrections
    created_at: datetime
    surveyed_at: datetime

    @property
    def profile(self) -> OrganisationProfile:
        """The profile in use: with corrections by people."""
        return corrected(self.found, self.corrections, at=self.surveyed_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """A host with its verdict and, if a person decided, that decision and person."""

    host: str
    domain: str
    case: int
    score: float
    own: bool | None
    signs: tuple[Mapping[str, Any], ...]
    """Code, weight and text of each sign."""
    origin: str
    linked_by: tuple[str, ...]
    decision: str
    """`accepted`, `rejected`, or empty if no person has decided."""
    decided_by: str
    judged_at: datetime

    @property
    def shown(self) -> str:
        """The host in readable form: IDN in its own letters."""
        try:
            return self.host.encode("ascii").decode("idna") if "xn--" in self.host else self.host
        except UnicodeError:
            return self.host

    @property
    def evidence(self) -> list[str]:
        if self.own is None and not self.case and not self.signs:
            return ["it does not resolve at present; it is examined again in the next run"]
        return [f"{sign['words']} ({sign['weight']:+.1f})" for sign in self.signs]


def save(connection: Connection, profile: OrganisationProfile, *, now: datetime) -> Organisation:
    """Store a profile; earlier corrections by people are kept."""
    row = (
        connection.execute(select(organisations).where(organisations.c.root == profile.root))
        .mappings()
        .one_or_none()
    )
    values = {"name": profile.name[:300], "profile": to_json(profile), "surveyed_at": now}
    if row is None:
        connection.execute(
            insert(organisations).values(root=profile.root, corrections={}, created_at=now, **values)
        )
    else:
        connection.execute(update(organisations).where(organisations.c.id == row["id"]).values(**values))
    return get(connection, profile.root)


def correct(connection: Connection, organisation: Organisation, corrections: Corrections) -> Organisation:
    """Store the corrections of an organisation; they replace earlier ones."""
    connection.execute(
        update(organisations)
        .where(organisations.c.id == organisation.id)
        .values(corrections=to_json(corrections))
    )
    return get(connection, organisation.root)


def get(connection: Connection, root: str) -> Organisation:
    organisation = find(connection, root)
    if organisation is None:
        raise NotFound(
            said(
                "missing_organisation",
                "The organisation {root} is not known. "
                "Look for its domains first: webdepot organisation discover {root}",
                root=root,
            )
        )
    return organisation


def find(connection: Connection, root: str) -> Organisation | None:
    row = (
        connection.execute(select(organisations).where(organisations.c.root == root)).mappings().one_or_none()
    )
    return _organisation(row) if row is not None else None


def list_all(connection: Connection) -> list[tuple[Organisation, Mapping[str, int]]]:
    """Every organisation with the number of its hosts of each kind."""
    rows = connection.execute(select(organisations).order_by(organisations.c.name)).mappings().all()
    return [(_organisation(row), counts(connection, row["id"])) for row in rows]


def counts(connection: Connection, organisation: int) -> Mapping[str, int]:
    """How many hosts are `own`, `other`, `ask` or `wait` (do not resolve)."""
    grouped = select(organisation_hosts.c.own, func.count()).where(
        organisation_hosts.c.organisation == organisation
    )
    return {row[0]: row[1] for row in connection.execute(grouped.group_by(organisation_hosts.c.own))}


def save_hosts(
    connection: Connection,
    organisation: int,
    rows: Iterable[tuple[HostJudgement, int, Sequence[str]]],
    *,
    now: datetime,
) -> None:
    """Store judgements with sector and linking hosts; decisions by people are kept."""
    waiting = list(rows)
    for start in range(0, len(waiting), _BATCH):
        batch = waiting[start : start + _BATCH]
        names = [judged.host for judged, _, _ in batch]
        mine = organisation_hosts.c.organisation == organisation
        known = {
            row.host: row
            for row in connection.execute(
                select(organisation_hosts).where(mine, organisation_hosts.c.host.in_(names))
            )
        }
        connection.execute(delete(organisation_hosts).where(mine, organisation_hosts.c.host.in_(names)))
        connection.execute(
            insert(organisation_hosts), [_host_values(organisation, item, known, now) for item in batch]
        )


def decide(
    connection: Connection, organisation: int, host: str, *, accepted: bool, by: str, now: datetime
) -> None:
    """Store a person's decision about a host, even if no survey has found it."""
    mine = (organisation_hosts.c.organisation == organisation, organisation_hosts.c.host == host)
    values = {
        "decision": "accepted" if accepted else "rejected",
        "decided_by": by[:200],
        "own": "own" if accepted else "other",
    }
    if connection.execute(update(organisation_hosts).where(*mine).values(**values)).rowcount:
        return
    connection.execute(
        insert(organisation_hosts).values(
            organisation=organisation,
            host=host,
            domain=host,
            case=0,
            score=1.0 if accepted else 0.0,
            signs=[],
            origin="named by a person",
            linked_by=[],
            judged_at=now,
            **values,
        )
    )


def hosts(
    connection: Connection, organisation: int, *, own: str = "", limit: int = 100_000
) -> list[KnownHost]:
    """Members first, then undecided hosts, then the others; by score. `own` selects one kind: own, ask,
    other, wait.
    """
    chosen = select(organisation_hosts).where(organisation_hosts.c.organisation == organisation)
    if own:
        chosen = chosen.where(organisation_hosts.c.own == own)
    order = {"own": 0, "ask": 1, "wait": 2, "other": 3}
    rows = connection.execute(
        chosen.order_by(organisation_hosts.c.score.desc(), organisation_hosts.c.host).limit(limit)
    ).mappings()
    return sorted(map(_known, rows), key=lambda host: order[_kind_of(host.own, is_resolved=True)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a harvest needs to know about a host that was decided before; the reason is built on demand."""

    host: str
    own: bool
    score: float
    decision: str
    decided_by: str
    signs_json: str

    @property
    def reason(self) -> str:
        state = "belongs" if self.own else "does not belong"
        signs = json.loads(self.signs_json)[:_SHOWN_SIGNS]
        evidence = "; ".join(f"{sign['words']} ({sign['weight']:+.1f})" for sign in signs)
        why = f"{self.decision} by {self.decided_by}" if self.decision else evidence
        return f"{self.host} {state}, score {self.score:.2f}: {why or 'there is no evidence for it'}"


def remembered(connection: Connection, organisation: int, *, since: datetime | None) -> Iterator[Remembered]:
    """Hosts that a person decided and, if `since` is given, those with a clear verdict since then."""
    table = organisation_hosts.c
    by_evidence = and_(table.own.in_(("own", "other")), table.judged_at >= since) if since else false()
    chosen = select(
        table.host, table.own, table.score, table.decision, table.decided_by, type_coerce(table.signs, Text)
    ).where(table.organisation == organisation, or_(table.decision != "", by_evidence))
    for host, own, score, decision, decided_by, signs in connection.execute(chosen):
        yield Remembered(
            host=host,
            own=own == "own",
            score=score,
            decision=decision,
            decided_by=decided_by,
            signs_json=signs,
        )


def decisions(connection: Connection, organisation: int) -> dict[str, bool]:
    """Decisions by curators: host -> whether it belongs."""
    chosen = select(organisation_hosts.c.host, organisation_hosts.c.decision).where(
        organisation_hosts.c.organisation == organisation, organisation_hosts.c.decision != ""
    )
    return {row.host: row.decision == "accepted" for row in connection.execute(chosen)}


def _kind_of(own: bool | None, *, is_resolved: bool) -> str:
    return {True: "own", False: "other", None: "ask"}[own] if is_resolved else "wait"


def _host_values(
    organisation: int, item: tuple[HostJudgement, int, Sequence[str]], known: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    judged, case, linkers = item
    before = known.get(judged.host)
    decided = before.decision if before is not None else ""
    own = _kind_of(judged.own, is_resolved=judged.is_resolved or judged.own is not None)
    return {
        "organisation": organisation,
        "host": judged.host,
        "domain": judged.domain,
        "case": case,
        "score": round(judged.score, 4),
        "own": {"accepted": "own", "rejected": "other"}.get(decided, own),
        "signs": [{"code": sign.code, "weight": sign.weight, "words": sign.words} for sign in judged.signs],
        "origin": judged.origin.value,
        "linked_by": list(linkers),
        "decision": decided,
        "decided_by": before.decided_by if before is not None else "",
        "judged_at": now,
    }


def _organisation(row: RowMapping) -> Organisation:
    return Organisation(
        id=row["id"],
        root=row["root"],
        found=from_json(OrganisationProfile, row["profile"]),
        corrections=from_json(Corrections, row["corrections"]),
        created_at=row["created_at"],
        surveyed_at=row["surveyed_at"],
    )


def _known(row: RowMapping) -> KnownHost:
    values = {
        name: row[name]
        for name in ("host", "domain", "case", "score", "origin", "decision", "decided_by", "judged_at")
    }
    own = {"own": True, "other": False}.get(row["own"])
    return KnownHost(own=own, signs=tuple(row["signs"]), linked_by=tuple(row["linked_by"]), **values)
