"""Web hooks in the database: addresses of other programs, and the messages that wait for them.

Messages follow Standard Webhooks (https://www.standardwebhooks.com), for which there are libraries in most
languages:

    webhook-id           msg_HOOK_NUMBER; the same when a message is repeated
    webhook-timestamp    Unix time of sending
    webhook-signature    v1,BASE64 of HMAC-SHA256 over ID.TIMESTAMP.BODY

The key of a hook is derived from the archive's private key and a random salt, so that a stolen copy of the
database cannot sign messages.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, or_, select, update

from webdepot.errors import Conflict, NotFound
from webdepot.exchange.tables import webhook_messages, webhooks
from webdepot.model import Harvest
from webdepot.times import to_iso

SECRET_PREFIX = "whsec_"  # noqa: S105 - not a secret
CLAIM_LASTS = timedelta(minutes=5)
DELAYS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 480, 1440))
"""How long to wait after each failed attempt; after the last one the message is given up."""
KEPT_DAYS = 30
"""How long messages that were sent or given up stay in the list."""


class HookEvent(StrEnum):
    """What a hook can be called for."""

    HARVEST_FINISHED = "harvest.finished"
    """A harvest ended; its state says whether anything was harvested."""
    REVIEW_WAITING = "harvest.to_review"
    """A harvest waits for a reviewer."""
    DEPOT_ALARM = "depot.alarm"
    """An audit found damage that cannot be repaired, or a place that cannot be reached."""
    TEST = "test"


class MessageState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    id: int
    name: str
    url: str
    salt: str
    events: tuple[HookEvent, ...]
    created_by: str
    created_at: datetime

    def secret(self, archive_key: bytes) -> str:
        """The secret that the receiver needs, in the form of Standard Webhooks."""
        key = hmac.new(archive_key, f"webhook {self.salt}".encode(), hashlib.sha256).digest()
        return SECRET_PREFIX + base64.b64encode(key).decode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookMessage:
    id: int
    hook: int
    event: HookEvent
    body: str
    state: MessageState
    tries: int
    queued_at: datetime
    next_at: datetime
    sent_at: datetime | None
    error: str

    @property
    def name(self) -> str:
        return f"msg_{self.hook}_{self.id}"


def headers_of(message: WebhookMessage, secret: str, now: datetime) -> dict[str, str]:
    """The signed headers of a message that is sent now."""
    timestamp = str(int(now.timestamp()))
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message.name}.{timestamp}.{message.body}".encode()
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")
    return {
        "Content-Type": "application/json",
        "webhook-id": message.name,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


# --- hooks ---


def add(
    connection: Connection,
    *,
    name: str,
    url: str,
    salt: str,
    events: Sequence[HookEvent],
    by: str,
    now: datetime,
) -> Webhook:
    """Store a new hook; Conflict if there is one with this name."""
    if find(connection, name) is not None:
        raise Conflict(f"There is already a web hook {name}. Remove it first: webdepot webhook remove {name}")
    values = {
        "name": name,
        "url": url,
        "salt": salt,
        "events": [event.value for event in events],
        "created_by": by[:200],
        "created_at": now,
    }
    return _hook(connection.execute(insert(webhooks).values(**values).returning(webhooks)).mappings().one())


def find(connection: Connection, name: str) -> Webhook | None:
    row = connection.execute(select(webhooks).where(webhooks.c.name == name)).mappings().one_or_none()
    return _hook(row) if row is not None else None


def get(connection: Connection, name: str) -> Webhook:
    hook = find(connection, name)
    if hook is None:
        raise NotFound(f"There is no web hook {name[:60]}. List them: webdepot webhook list")
    return hook


def every(connection: Connection) -> list[Webhook]:
    rows = connection.execute(select(webhooks).order_by(webhooks.c.name)).mappings()
    return [_hook(row) for row in rows]


def remove(connection: Connection, hook: Webhook) -> None:
    """Remove a hook with its messages."""
    connection.execute(delete(webhook_messages).where(webhook_messages.c.hook == hook.id))
    connection.execute(delete(webhooks).where(webhooks.c.id == hook.id))


# --- messages ---


def queue(
    connection: Connection, event: HookEvent, key: str, data: Mapping[str, object], *, now: datetime
) -> int:
    """Queue a message for every hook that wants this event; returns how many. A hook that already had a
    message with this key gets no second one, so that a step that is repeated after a crash announces nothing
    twice.
    """
    wanting = [hook for hook in every(connection) if event in hook.events]
    return sum(queue_for(connection, hook, event, key, data, now=now) is not None for hook in wanting)


def data_of(harvest: Harvest) -> dict[str, object]:
    """The fields about a harvest in a message."""
    return {
        "harvest": harvest.id,
        "target": harvest.target,
        "kind": harvest.kind.value,
        "state": harvest.state.value,
        "reason": str(harvest.reason),
        "collection": harvest.collection,
        "counts": dict(harvest.counts),
        "path": f"/api/harvests/{harvest.id}",
    }


def queue_for(
    connection: Connection,
    hook: Webhook,
    event: HookEvent,
    key: str,
    data: Mapping[str, object],
    *,
    now: datetime,
) -> WebhookMessage | None:
    """Queue a message for one hook; None if the hook already had a message with this key."""
    body = {"type": event.value, "timestamp": to_iso(now), "data": dict(data)}
    column = webhook_messages.c
    known = select(column.id).where(column.hook == hook.id, column.key == f"{event.value} {key}"[:300])
    if connection.execute(known).first() is not None:
        return None
    values = {
        "hook": hook.id,
        "event": event.value,
        "key": f"{event.value} {key}"[:300],
        "body": json.dumps(body, ensure_ascii=False),
        "state": MessageState.WAITING.value,
        "tries": 0,
        "queued_at": now,
        "next_at": now,
        "error": "",
    }
    return _message(
        connection.execute(insert(webhook_messages).values(**values).returning(webhook_messages))
        .mappings()
        .one()
    )


def due(connection: Connection, now: datetime, limit: int) -> list[WebhookMessage]:
    """Messages to send now, the oldest first."""
    column = webhook_messages.c
    chosen = select(webhook_messages).where(
        column.state == MessageState.WAITING.value, column.next_at <= now, _is_free(now)
    )
    rows = connection.execute(chosen.order_by(column.next_at, column.id).limit(limit)).mappings()
    return [_message(row) for row in rows]


def claim(connection: Connection, message: WebhookMessage, now: datetime) -> bool:
    """Reserve a message for the sender that asks; False if another one has it or has sent it. A claim ends
    after `CLAIM_LASTS`, in case its sender was killed.
    """
    column = webhook_messages.c
    claimed = connection.execute(
        update(webhook_messages)
        .where(
            column.id == message.id,
            column.state == MessageState.WAITING.value,
            column.tries == message.tries,
            _is_free(now),
        )
        .values(claimed_until=now + CLAIM_LASTS)
        .returning(column.id)
    )
    return claimed.first() is not None


def record(
    connection: Connection, message: WebhookMessage, *, error: str, is_final: bool, now: datetime
) -> WebhookMessage:
    """The message after an attempt: sent if there is no error, else waiting for the next try or given up."""
    tries = message.tries + 1
    values: dict[str, Any] = {"tries": tries, "claimed_until": None, "error": error[:2000]}
    if not error:
        values |= {"state": MessageState.SENT.value, "sent_at": now}
    elif is_final or tries > len(DELAYS):
        values |= {"state": MessageState.GIVEN_UP.value}
    else:
        values |= {"next_at": now + DELAYS[tries - 1]}
    changed = update(webhook_messages).where(webhook_messages.c.id == message.id).values(**values)
    return _message(connection.execute(changed.returning(webhook_messages)).mappings().one())


def latest(connection: Connection, hook: Webhook, limit: int) -> list[WebhookMessage]:
    """The newest messages of a hook."""
    chosen = select(webhook_messages).where(webhook_messages.c.hook == hook.id)
    rows = connection.execute(chosen.order_by(webhook_messages.c.id.desc()).limit(limit)).mappings()
    return [_message(row) for row in rows]


def forget_old(connection: Connection, now: datetime) -> None:
    """Delete messages that were sent or given up long ago."""
    column = webhook_messages.c
    connection.execute(
        delete(webhook_messages).where(
            column.state != MessageState.WAITING.value, column.queued_at < now - timedelta(days=KEPT_DAYS)
        )
    )


def _is_free(now: datetime) -> Any:
    column = webhook_messages.c.claimed_until
    return or_(column.is_(None), column <= now)


def _hook(row: RowMapping | Mapping[str, Any]) -> Webhook:
    return Webhook(
        id=row["id"],
        name=row["name"],
        url=row["url"],
        salt=row["salt"],
        events=tuple(map(HookEvent, row["events"])),
        created_by=row["created_by"],
        created_at=row["created_at"],
    )


def _message(row: RowMapping | Mapping[str, Any]) -> WebhookMessage:
    return WebhookMessage(
        id=row["id"],
        hook=row["hook"],
        event=HookEvent(row["event"]),
        body=row["body"],
        state=MessageState(row["state"]),
        tries=row["tries"],
        queued_at=row["queued_at"],
        next_at=row["next_at"],
        sent_at=row["sent_at"],
        error=row["error"],
    )
