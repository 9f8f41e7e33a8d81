"""Web hooks: messages to other programs when a harvest has ended or waits for review, and about alarms of the
depot.

A message is queued in the transaction of what it announces, and sent by the first process that finds it:
schedulers, servers and `webdepot webhook send` claim a message before they send it, as with letters. A
receiver that does not answer with a status 2xx is tried again, with longer and longer pauses. Redirects are
not followed, and addresses that are not public are refused unless the configuration names their network.
"""

import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from webdepot.archive import Archive
from webdepot.depot import signing
from webdepot.errors import InputError, RemoteError, WebdepotError
from webdepot.exchange import webhooks
from webdepot.exchange.webhooks import HookEvent, MessageState, Webhook, WebhookMessage
from webdepot.provenance import append, difference
from webdepot.services.exchange import oai_harvest

log = logging.getLogger(__name__)
BATCH = 100
MOST_SHOWN = 50
TIMEOUT_S = 15
EVERY_S = 10.0
"""How often a server or scheduler looks for messages to send."""
GONE = 410
"""The status with which a receiver refuses a message permanently."""
LONGEST_URL = 2000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStatus:
    hook: Webhook
    messages: Sequence[WebhookMessage]
    """The newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    sent: int
    failed: int
    """Tried without success; they are tried again, or were given up."""


# --- administration ---


def add(
    archive: Archive, name: str, url: str, events: Sequence[HookEvent], *, by: str = ""
) -> tuple[Webhook, str]:
    """A new hook and its secret. InputError if a value is wrong, Conflict if the name is taken."""
    if not _NAME.match(name):
        raise InputError(
            f"{name[:60]!r} is not a name for a web hook. Use at most 60 lower-case letters, digits, - and _."
        )
    wanted = tuple(dict.fromkeys(events)) or tuple(
        event for event in HookEvent if event is not HookEvent.TEST
    )
    with archive.database.transaction() as connection:
        hook = webhooks.add(
            connection,
            name=name,
            url=_checked_url(url),
            salt=secrets.token_hex(16),
            events=wanted,
            by=by or archive.agent,
            now=archive.clock(),
        )
        detail = difference({}, {"url": hook.url, "events": [event.value for event in hook.events]})
        append(connection, archive.event("added", "web hook", hook.name, by=by, detail=detail))
    return hook, secret_of(archive, hook)


def read_events(names: Sequence[str]) -> list[HookEvent]:
    """The events of these names; InputError if there is no such event."""
    known = {event.value: event for event in HookEvent if event is not HookEvent.TEST}
    for name in names:
        if name not in known:
            raise InputError(f"{name[:60]!r} is not an event of web hooks. Known: {', '.join(known)}.")
    return [known[name] for name in names]


def _checked_url(typed: str) -> str:
    try:
        parts = urlsplit(typed)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web = False
    if (
        not is_web
        or "@" in parts.netloc
        or parts.fragment
        or len(typed) > LONGEST_URL
        or not typed.isprintable()
    ):
        raise InputError(
            f"{typed[:100]!r} is not an address for a web hook. Write it like https://example.org/hook, "
            "without a password or a fragment."
        )
    if " " in typed or not typed.isascii():
        raise InputError(f"{typed[:100]!r} has characters that must be escaped in an address.")
    return typed


def every(archive: Archive) -> list[WebhookStatus]:
    """All hooks with their newest messages, by name."""
    with archive.database.reading() as connection:
        return [
            WebhookStatus(hook=hook, messages=webhooks.latest(connection, hook, MOST_SHOWN))
            for hook in webhooks.every(connection)
        ]


def remove(archive: Archive, name: str, *, by: str = "") -> Webhook:
    """Remove a hook and its queued messages."""
    with archive.database.transaction() as connection:
        hook = webhooks.get(connection, name)
        webhooks.remove(connection, hook)
        detail = difference({"url": hook.url, "events": [event.value for event in hook.events]}, {})
        append(connection, archive.event("removed", "web hook", hook.name, by=by, detail=detail))
    return hook


def test(archive: Archive, name: str) -> WebhookMessage:
    """Send a test message to a hook now; the message says what happened."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        hook = webhooks.get(connection, name)
        data = {"archive": archive.config.archive.name}
        message = webhooks.queue_for(connection, hook, HookEvent.TEST, secrets.token_hex(8), data, now=now)
        assert message is not None  # noqa: S101 - its key is new
        webhooks.claim(connection, message, now)
    return _send(archive, hook, message, is_final=True)


def secret_of(archive: Archive, hook: Webhook) -> str:
    """The secret with which a receiver checks the signatures of a hook."""
    key = signing.load_key(signing.key_path(archive.home))
    return hook.secret(key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()))


# --- sending ---


def deliver(
    archive: Archive, *, limit: int = 10_000, is_stopped: Callable[[], bool] = lambda: False
) -> WebhookDelivery:
    """Send what is due. After a failure, the other messages for the same receiver wait for the next
    delivery. Ends early when `is_stopped`.
    """
    sent = failed = 0
    failing: set[int] = set()
    while sent + failed < limit:
        now = archive.clock()
        with archive.database.reading() as connection:
            hooks = {hook.id: hook for hook in webhooks.every(connection)}
            due = [each for each in webhooks.due(connection, now, BATCH) if each.hook not in failing]
        if not due:
            break
        for message in due:
            if is_stopped():
                return WebhookDelivery(sent=sent, failed=failed)
            if message.hook in failing or not _claim(archive, message):
                continue
            outcome = _send(archive, hooks[message.hook], message)
            sent += outcome.state is MessageState.SENT
            if outcome.state is not MessageState.SENT:
                failed += 1
                failing.add(message.hook)
    if sent:
        with archive.database.transaction() as connection:
            webhooks.forget_old(connection, archive.clock())
    return WebhookDelivery(sent=sent, failed=failed)


def _claim(archive: Archive, message: WebhookMessage) -> bool:
    with archive.database.transaction() as connection:
        return webhooks.claim(connection, message, archive.clock())


def _send(
    archive: Archive, hook: Webhook, message: WebhookMessage, *, is_final: bool = False
) -> WebhookMessage:
    """Send a message that was claimed; return the message as it is now."""
    headers = webhooks.headers_of(message, secret_of(archive, hook), archive.clock())
    error, status = "", 0
    try:
        status = oai_harvest.client_for(archive).post(
            hook.url, message.body.encode(), headers, timeout_s=TIMEOUT_S
        )
        if not 200 <= status < 300:
            error = f"The receiver answered with the status {status}."
    except RemoteError as failure:
        error = str(failure)
    with archive.database.transaction() as connection:
        return webhooks.record(
            connection, message, error=error, is_final=is_final or status == GONE, now=archive.clock()
        )


@contextmanager
def sending(archive: Archive) -> Iterator[None]:
    """Send messages in a thread, a few seconds after they were queued, for as long as the context lasts."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            try:
                deliver(archive, is_stopped=stop.is_set)
            except WebdepotError as error:
                log.warning("web hooks could not be sent", extra={"error": str(error)})
            except Exception:
                log.exception("sending web hooks failed; it continues")
            stop.wait(EVERY_S)

    thread = threading.Thread(target=run, name="webhooks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
