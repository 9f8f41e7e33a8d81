"""The audit trail: every change with its values before and after, as a page and as CSV."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from webdepot.provenance import Event, EventFilter, Outcome
from webdepot.services.admin import audit_trail
from webdepot.text.csv_text import written
from webdepot.times import to_iso
from webdepot.web.forms import find_number
from webdepot.web.language import event_words
from webdepot.web.site import language_of, render, site_of

ROWS = 100
KINDS = (
    "target",
    "harvest",
    "case",
    "person",
    "criteria",
    "letter template",
    "profile",
    "organisation",
    "partner",
    "partner record",
    "title",
    "access rule",
    "lent page",
    "package",
    "container",
    "submission",
    "place",
    "archive",
)
"""The kinds of things that events are about."""
_FIELDS = ("agent", "action", "subject_kind", "subject", "outcome", "since", "until")
_COLUMNS = (
    "at",
    "agent",
    "action",
    "subject_kind",
    "subject",
    "outcome",
    "message",
    "before",
    "after",
    "detail",
)


def show_list(request: Request) -> Response:
    archive, fields, spoken = site_of(request).archive, _fields(request), language_of(request)
    older = find_number(request.query_params.get("older", ""))
    events = audit_trail.trail(archive, _query(fields), limit=ROWS, older_than=older or 0)
    query = urlencode({name: value for name, value in fields.items() if value})
    return render(
        request,
        "audit.html",
        events=events,
        fields=fields,
        actions=audit_trail.known_actions(archive),
        outcomes=list(Outcome),
        query=query,
        older=events[-1][0] if len(events) == ROWS else 0,
        kinds=KINDS,
        message_of=partial(event_words.message_of, spoken),
        changes_of=partial(event_words.changes_of, spoken),
    )


def as_csv(request: Request) -> Response:
    """The whole trail, streamed."""
    archive, query = site_of(request).archive, _query(_fields(request))

    def lines() -> Iterator[str]:
        yield from written([_COLUMNS], end="\n")
        yield from written(map(_row, audit_trail.iter_trail(archive, query)), end="\n")

    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=headers)


def _fields(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "").strip()[:500] for name in _FIELDS}


def _query(fields: dict[str, str]) -> EventFilter:
    until = _day(fields["until"])
    others = {name: fields[name] for name in ("agent", "action", "subject_kind", "subject", "outcome")}
    return EventFilter(
        since=_day(fields["since"]), until=until + timedelta(days=1) if until else None, **others
    )


def _day(text: str) -> datetime | None:
    """The beginning of a day as browsers send it; None for anything else."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _row(event: Event) -> list[object]:
    others = {name: value for name, value in event.detail.items() if name not in ("before", "after")}
    parts = [event.detail.get("before"), event.detail.get("after"), others or None]
    return [
        to_iso(event.at),
        *(event.agent, event.action, event.subject_kind, event.subject, event.outcome.value, event.message),
        *("" if part is None else _plain(part) for part in parts),
    ]


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
