"""Partners: other depots whose records we harvest and whose objects we ingest. Only rows of the database;
nothing here contacts a partner.

A run is one harvest of a partner's list. The token of the next page is stored with every page, in the
transaction that stores the records, so that a killed run resumes where it stopped. The next run starts from
the first response of the last complete run.

    record:  new ──> taken             its object is in our depot (or was there already)
              │ ╲──> refused           with the reason; `retry` makes it new again
              │ ╲──> described         nothing to ingest: a format without files
              ╰────> withdrawn         the partner deleted it
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from webdepot.errors import Conflict, InputError, NotFound
from webdepot.exchange.tables import partner_records, partner_runs, partners
from webdepot.reasons import said

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z", re.ASCII)
MOST_WARNINGS = 20


class UrnCheck(StrEnum):
    """What to do with an object whose URN has a wrong check digit."""

    WARN = "warn"
    REFUSE = "refuse"


class OnWithdrawal(StrEnum):
    """What to do when the partner deletes a record."""

    CLOSE = "close"
    """Keep our copy in the depot, but close it to readers and other partners."""
    NOTE = "note"
    """Record the deletion, and change nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    name: str
    url: str
    """Base URL of OAI-PMH."""
    prefix: str = "oai_mets_lmer"
    set_spec: str = ""
    collection: str = ""
    """The collection for its objects; `partner-NAME` by default."""
    token: str = ""
    """The token that we send to them."""
    issued_token_hash: str = ""
    """The hash of the token that they send to us."""
    urn_check: UrnCheck = UrnCheck.WARN
    on_withdrawal: OnWithdrawal = OnWithdrawal.CLOSE
    lmer: str = "1.2"
    """The LMER version that they get from us."""
    transfer: str = ""
    """The form in which they get objects in containers: `containers` or `files`; empty means the general
    setting.
    """
    added_at: datetime


class RunState(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRun:
    id: int
    partner: str
    state: RunState
    started_at: datetime
    ended_at: datetime | None = None
    since: str = ""
    first_response: str = ""
    resumption: str = ""
    pages: int = 0
    records: int = 0
    deleted: int = 0
    list_size: int = 0
    error: str = ""


class RecordState(StrEnum):
    NEW = "new"
    TAKEN = "taken"
    REFUSED = "refused"
    DESCRIBED = "described"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerRecord:
    partner: str
    identifier: str
    datestamp: str
    sets: tuple[str, ...]
    xml: str
    """The metadata as received; empty for a deleted record."""
    sha256: str
    """Of the metadata; `deleted` for a deleted record."""
    urn: str = ""
    state: RecordState
    reason: str = ""
    warnings: tuple[str, ...] = ()
    seen_at: datetime
    done_at: datetime | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether the partner has withdrawn the record."""
        return self.sha256 == "deleted"


def add(connection: Connection, partner: Partner) -> Partner:
    """Add a partner; Conflict if the name is taken, InputError if a field is wrong."""
    check(partner)
    if find(connection, partner.name) is not None:
        raise Conflict(f"There is already a partner {partner.name}. Choose another name.")
    partner = replace(partner, collection=partner.collection or f"partner-{partner.name}")
    connection.execute(insert(partners).values(**_values(partner)))
    return partner


def check(partner: Partner) -> None:
    """Raise InputError if a field is wrong."""
    if not _NAME.match(partner.name):
        raise InputError(
            "The name of a partner must have 1 to 40 characters: lower-case letters, digits, - and _."
        )
    if not re.match(r"https?://[^\s/?#]++[^\s?#]*+\Z", partner.url) or len(partner.url) > 1000:
        raise InputError(
            f"{partner.url[:200]} is not an OAI-PMH address. Write it like https://depot.example.org/oai"
        )
    if partner.lmer not in ("1.0", "1.2"):
        raise InputError(f"LMER {partner.lmer[:10]} is not supported. Use 1.2 or 1.0.")
    if partner.transfer not in ("", "containers", "files"):
        raise InputError(
            f"Objects cannot be delivered as {partner.transfer[:20]!r}. Use containers or files."
        )


def change(connection: Connection, partner: Partner) -> None:
    connection.execute(update(partners).where(partners.c.name == partner.name).values(**_values(partner)))


def remove(connection: Connection, name: str) -> None:
    """Remove a partner and its list; ingested objects stay."""
    get(connection, name)
    for table in (partner_records, partner_runs):
        connection.execute(delete(table).where(table.c.partner == name))
    connection.execute(delete(partners).where(partners.c.name == name))


def get(connection: Connection, name: str) -> Partner:
    partner = find(connection, name)
    if partner is None:
        raise NotFound(
            said(
                "missing_partner",
                "There is no partner {name}. List them: webdepot partner list",
                name=name[:60],
            )
        )
    return partner


def find(connection: Connection, name: str) -> Partner | None:
    row = connection.execute(select(partners).where(partners.c.name == name)).mappings().one_or_none()
    return _partner(row) if row else None


def every(connection: Connection) -> list[Partner]:
    return [
        _partner(row) for row in connection.execute(select(partners).order_by(partners.c.name)).mappings()
    ]


def issue_token(connection: Connection, name: str) -> str:
    """Create a token for a partner to send to us; only its hash is stored, and the previous token stops
    working.
    """
    token = secrets.token_urlsafe(24)
    change(connection, replace(get(connection, name), issued_token_hash=_hash(token)))
    return token


def find_by_token(connection: Connection, token: str) -> Partner | None:
    """The partner that this token was issued to."""
    if not token or len(token) > 200:
        return None
    row = (
        connection.execute(select(partners).where(partners.c.issued_token_hash == _hash(token)))
        .mappings()
        .one_or_none()
    )
    return _partner(row) if row else None


def begin_run(connection: Connection, partner: str, *, since: str, now: datetime) -> ListRun:
    values = {"partner": partner, "state": RunState.RUNNING.value, "started_at": now, "since": since}
    values |= {
        "first_response": "",
        "resumption": "",
        "pages": 0,
        "records": 0,
        "deleted": 0,
        "list_size": 0,
        "error": "",
    }
    row = (
        connection.execute(insert(partner_runs).values(**values).returning(*partner_runs.c)).mappings().one()
    )
    return _run(row)


def keep_run(connection: Connection, run: ListRun) -> None:
    values = asdict(run) | {"state": run.state.value}
    connection.execute(update(partner_runs).where(partner_runs.c.id == run.id).values(**values))


def last_run(connection: Connection, partner: str, *states: RunState) -> ListRun | None:
    chosen = (
        select(partner_runs)
        .where(partner_runs.c.partner == partner)
        .order_by(partner_runs.c.id.desc())
        .limit(1)
    )
    if states:
        chosen = chosen.where(partner_runs.c.state.in_([state.value for state in states]))
    row = connection.execute(chosen).mappings().one_or_none()
    return _run(row) if row else None


def keep_record(connection: Connection, record: PartnerRecord) -> bool:
    """Store a record of a list; True if it is new or changed. An unchanged record keeps its state."""
    before = find_record(connection, record.partner, record.identifier)
    if before is not None and (before.sha256, before.datestamp) == (record.sha256, record.datestamp):
        return False
    if before is not None and not record.urn:
        record = replace(record, urn=before.urn)
    values = asdict(record) | {
        "state": record.state.value,
        "sets": list(record.sets),
        "warnings": list(record.warnings),
    }
    if before is None:
        connection.execute(insert(partner_records).values(**values))
    else:
        here = (partner_records.c.partner == record.partner) & (
            partner_records.c.identifier == record.identifier
        )
        connection.execute(update(partner_records).where(here).values(**values))
    return True


def settle(
    connection: Connection,
    record: PartnerRecord,
    state: RecordState,
    *,
    now: datetime,
    reason: str = "",
    warnings: Sequence[str] = (),
    urn: str = "",
) -> None:
    """Store the result for a record."""
    here = (partner_records.c.partner == record.partner) & (partner_records.c.identifier == record.identifier)
    values: dict[str, Any] = {
        "state": state.value,
        "reason": reason[:4000],
        "warnings": list(warnings)[:MOST_WARNINGS],
        "done_at": now,
    }
    connection.execute(update(partner_records).where(here).values(**values | ({"urn": urn} if urn else {})))


def retry(connection: Connection, partner: str, identifier: str = "") -> int:
    """Reset refused records to new; returns how many."""
    chosen = (partner_records.c.partner == partner) & (partner_records.c.state == RecordState.REFUSED.value)
    if identifier:
        chosen &= partner_records.c.identifier == identifier
    return connection.execute(
        update(partner_records).where(chosen).values(state=RecordState.NEW.value, reason="")
    ).rowcount


def find_record(connection: Connection, partner: str, identifier: str) -> PartnerRecord | None:
    here = (partner_records.c.partner == partner) & (partner_records.c.identifier == identifier)
    row = connection.execute(select(partner_records).where(here)).mappings().one_or_none()
    return _record(row) if row else None


def in_state(
    connection: Connection, partner: str, state: RecordState, *, limit: int, after: str = ""
) -> list[PartnerRecord]:
    """Records in the order of their identifiers, after the identifier `after`."""
    chosen = select(partner_records).where(
        partner_records.c.partner == partner,
        partner_records.c.state == state.value,
        partner_records.c.identifier > after,
    )
    rows = connection.execute(chosen.order_by(partner_records.c.identifier).limit(limit)).mappings()
    return [_record(row) for row in rows]


def tally(connection: Connection, partner: str) -> dict[str, int]:
    """Number of records by state."""
    chosen = (
        select(partner_records.c.state, func.count())
        .where(partner_records.c.partner == partner)
        .group_by(partner_records.c.state)
    )
    return {row[0]: row[1] for row in connection.execute(chosen)}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _values(partner: Partner) -> dict[str, Any]:
    return asdict(partner) | {
        "urn_check": partner.urn_check.value,
        "on_withdrawal": partner.on_withdrawal.value,
    }


def _partner(row: RowMapping) -> Partner:
    return Partner(
        **dict(row)
        | {"urn_check": UrnCheck(row["urn_check"]), "on_withdrawal": OnWithdrawal(row["on_withdrawal"])}
    )


def _run(row: RowMapping) -> ListRun:
    return ListRun(**dict(row) | {"state": RunState(row["state"])})


def _record(row: RowMapping) -> PartnerRecord:
    values = {
        "state": RecordState(row["state"]),
        "sets": tuple(row["sets"]),
        "warnings": tuple(row["warnings"]),
    }
    return PartnerRecord(**dict(row) | values)
