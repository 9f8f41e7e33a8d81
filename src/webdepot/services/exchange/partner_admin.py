"""Manage partners: add, change, list, issue a token, see failures, retry."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.exchange import partners
from webdepot.exchange.partners import (
    ListRun,
    OnWithdrawal,
    Partner,
    PartnerRecord,
    RecordState,
    RunState,
    UrnCheck,
)
from webdepot.provenance import append, difference

SHOWN_FAILURES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerStatus:
    partner: Partner
    last: ListRun | None
    """The newest run, complete or not."""
    complete: ListRun | None
    """The newest complete run."""
    counts: dict[str, int]
    """Records by state."""
    failures: Sequence[PartnerRecord] = ()


def add(
    archive: Archive,
    name: str,
    url: str,
    *,
    prefix: str = "oai_mets_lmer",
    set_spec: str = "",
    collection: str = "",
    token: str = "",
    urn_check: UrnCheck = UrnCheck.WARN,
    on_withdrawal: OnWithdrawal = OnWithdrawal.CLOSE,
    lmer: str = "1.2",
    transfer: str = "",
    by: str = "",
) -> Partner:
    """Add a partner, without contacting it yet."""
    partner = Partner(
        name=name,
        url=url.strip(),
        prefix=prefix,
        set_spec=set_spec,
        collection=collection,
        token=token,
        urn_check=urn_check,
        on_withdrawal=on_withdrawal,
        lmer=lmer,
        transfer=transfer,
        added_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        added = partners.add(connection, partner)
        detail = difference({}, _settings(added))
        append(connection, archive.event("added", "partner", name, message=url, detail=detail, by=by))
    return added


def change(archive: Archive, name: str, **changes: Any) -> Partner:
    """Change settings of a partner, named as in `Partner`; None leaves a setting as it is."""
    with archive.database.transaction() as connection:
        before = partners.get(connection, name)
        partner = replace(before, **{key: value for key, value in changes.items() if value is not None})
        partners.check(partner)
        partners.change(connection, partner)
        names = ", ".join(sorted(key for key, value in changes.items() if value is not None))
        detail = difference(_settings(before), _settings(partner))
        append(connection, archive.event("changed", "partner", name, message=names, detail=detail))
    return partner


def remove(archive: Archive, name: str) -> None:
    with archive.database.transaction() as connection:
        before = partners.get(connection, name)
        partners.remove(connection, name)
        append(
            connection, archive.event("removed", "partner", name, detail=difference(_settings(before), {}))
        )


def issue_token(archive: Archive, name: str) -> str:
    """Issue a new token to a partner; the previous token stops working. It is shown only once."""
    with archive.database.transaction() as connection:
        had = bool(partners.get(connection, name).issued_token_hash)
        token = partners.issue_token(connection, name)
        detail = {
            "before": {"token of ours": "***" if had else ""},
            "after": {"token of ours": "*** (another)"},
        }
        append(connection, archive.event("issued", "partner", name, message="token", detail=detail))
    return token


def status(archive: Archive, name: str, *, failures: int = SHOWN_FAILURES) -> PartnerStatus:
    with archive.database.reading() as connection:
        partner = partners.get(connection, name)
        return PartnerStatus(
            partner=replace(partner, token="***" if partner.token else ""),
            last=partners.last_run(connection, name),
            complete=partners.last_run(connection, name, RunState.COMPLETE),
            counts=partners.tally(connection, name),
            failures=partners.in_state(connection, name, RecordState.REFUSED, limit=failures)
            if failures
            else (),
        )


def every(archive: Archive) -> list[PartnerStatus]:
    with archive.database.reading() as connection:
        names = [partner.name for partner in partners.every(connection)]
    return [status(archive, name, failures=0) for name in names]


def retry(archive: Archive, name: str, identifier: str = "", *, by: str = "") -> int:
    """Reset refused records to new, so that they are tried again; return how many."""
    with archive.database.transaction() as connection:
        partners.get(connection, name)
        count = partners.retry(connection, name, identifier)
        detail = {
            "before": {RecordState.REFUSED.value: count},
            "after": {RecordState.REFUSED.value: 0, RecordState.NEW.value: count},
        }
        message = f"{count} records {identifier}".strip()
        append(
            connection,
            archive.event("to be tried again", "partner", name, message=message, detail=detail, by=by),
        )
        return count


def record_request(connection: Connection, archive: Archive, name: str, *, by: str = "") -> None:
    """Record the event that a person asked to harvest the partner's list now."""
    last = partners.last_run(connection, name)
    detail = {
        "before": {"run": last.state.value if last else ""},
        "after": {"run": RunState.RUNNING.value},
    }
    append(connection, archive.event("asked for", "partner", name, detail=detail, by=by))


def _settings(partner: Partner) -> dict[str, object]:
    """The settings of a partner for an event; the token is not shown."""
    names = ("url", "prefix", "set_spec", "collection", "urn_check", "on_withdrawal", "lmer")
    return {**{name: str(getattr(partner, name)) for name in names}, "token": "***" if partner.token else ""}
