"""Partners as people manage them: add, list, give a token, look at what went wrong, try again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from webdepot.archive import Archive
from webdepot.exchange import partners
from webdepot.exchange.partners import OnWithdrawal, Partner, PartnerRecord, RecordState, Run, RunState, UrnCheck
from webdepot.provenance import Event, append

SHOWN_FAILURES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerStatus:
    partner: Partner
    last: Run | None
    """The newest run, whatever became of it."""
    complete: Run | None
    """The newest complete one."""
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
) -> Partner:
    """A new partner. Nothing is asked of it yet."""
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
        append(connection, _event(archive, "added", name, url))
    return added


def change(archive: Archive, name: str, **changes: Any) -> Partner:
    """Other settings for a partner, by the names of `Partner`; what is None stays."""
    with archive.database.transaction() as connection:
        partner = replace(partners.get(connection, name), **{key: value for key, value in changes.items() if value is not None})
        partners.check(partner)
        partners.change(connection, partner)
        append(connection, _event(archive, "changed", name, ", ".join(sorted(key for key, value in changes.items() if value is not None))))
    return partner


def remove(archive: Archive, name: str) -> None:
    with archive.database.transaction() as connection:
        partners.remove(connection, name)
        append(connection, _event(archive, "removed", name, ""))


def issue_token(archive: Archive, name: str) -> str:
    """A new token for a partner, shown once; the one before it ends."""
    with archive.database.transaction() as connection:
        token = partners.issue_token(connection, name)
        append(connection, _event(archive, "issued", name, "token"))
    return token


def status(archive: Archive, name: str, *, failures: int = SHOWN_FAILURES) -> PartnerStatus:
    with archive.database.reading() as connection:
        partner = partners.get(connection, name)
        return PartnerStatus(
            partner=replace(partner, token="***" if partner.token else ""),
            last=partners.last_run(connection, name),
            complete=partners.last_run(connection, name, RunState.COMPLETE),
            counts=partners.tally(connection, name),
            failures=partners.in_state(connection, name, RecordState.REFUSED, limit=failures) if failures else (),
        )


def every(archive: Archive) -> list[PartnerStatus]:
    with archive.database.reading() as connection:
        names = [partner.name for partner in partners.every(connection)]
    return [status(archive, name, failures=0) for name in names]


def retry(archive: Archive, name: str, identifier: str = "") -> int:
    """Make refused records new again; how many."""
    with archive.database.transaction() as connection:
        partners.get(connection, name)
        return partners.retry(connection, name, identifier)


def _event(archive: Archive, action: str, name: str, message: str) -> Event:
    return Event(at=archive.clock(), agent=archive.agent, action=action, subject_kind="partner", subject=name, message=message)
