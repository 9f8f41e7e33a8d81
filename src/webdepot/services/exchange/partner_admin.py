"""Partners as people manage them: add, list, give a token, look at what went wrong, try again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webdepot.archive import Archive
from webdepot.exchange import partners
from webdepot.exchange.partners import (
    OnWithdrawal,
    Partner,
    PartnerRecord,
    RecordState,
    Run,
    RunState,
    UrnCheck,
)
from webdepot.provenance import Event, append, difference

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
    by: str = "",
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
        append(connection, _event(archive, "added", name, url, difference({}, _told(added)), by=by))
    return added


def change(archive: Archive, name: str, **changes: Any) -> Partner:
    """Other settings for a partner, by the names of `Partner`; what is None stays."""
    with archive.database.transaction() as connection:
        before = partners.get(connection, name)
        partner = replace(before, **{key: value for key, value in changes.items() if value is not None})
        partners.check(partner)
        partners.change(connection, partner)
        names = ", ".join(sorted(key for key, value in changes.items() if value is not None))
        append(connection, _event(archive, "changed", name, names, difference(_told(before), _told(partner))))
    return partner


def remove(archive: Archive, name: str) -> None:
    with archive.database.transaction() as connection:
        before = partners.get(connection, name)
        partners.remove(connection, name)
        append(connection, _event(archive, "removed", name, "", difference(_told(before), {})))


def issue_token(archive: Archive, name: str) -> str:
    """A new token for a partner, shown once; the one before it ends."""
    with archive.database.transaction() as connection:
        had = bool(partners.get(connection, name).issued_token_hash)
        token = partners.issue_token(connection, name)
        detail = {
            "before": {"token of ours": "***" if had else ""},
            "after": {"token of ours": "*** (another)"},
        }
        append(connection, _event(archive, "issued", name, "token", detail))
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
    """Make refused records new again; how many."""
    with archive.database.transaction() as connection:
        partners.get(connection, name)
        count = partners.retry(connection, name, identifier)
        detail = {
            "before": {RecordState.REFUSED.value: count},
            "after": {RecordState.REFUSED.value: 0, RecordState.NEW.value: count},
        }
        append(
            connection,
            _event(
                archive, "to be tried again", name, f"{count} records {identifier}".strip(), detail, by=by
            ),
        )
        return count


def note_asked_for(archive: Archive, name: str, *, by: str = "") -> None:
    """That somebody wants the partner's list brought up to date now, and how it stood."""
    with archive.database.transaction() as connection:
        last = partners.last_run(connection, name)
        detail = {
            "before": {"run": last.state.value if last else ""},
            "after": {"run": RunState.RUNNING.value},
        }
        append(connection, _event(archive, "asked for", name, "", detail, by=by))


def _told(partner: Partner) -> dict[str, object]:
    """The settings of a partner for the record; its token is nobody's business."""
    names = ("url", "prefix", "set_spec", "collection", "urn_check", "on_withdrawal", "lmer")
    return {**{name: str(getattr(partner, name)) for name in names}, "token": "***" if partner.token else ""}


def _event(
    archive: Archive, action: str, name: str, message: str, detail: Mapping[str, object], *, by: str = ""
) -> Event:
    at, agent = archive.clock(), by or archive.agent
    return Event(
        at=at,
        agent=agent,
        action=action,
        subject_kind="partner",
        subject=name,
        message=message,
        detail=detail,
    )
