"""Web hooks: what is announced, how it is signed, and what happens when the receiver does not answer."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clocks import MovedClock
from small_sites import cleared, small_site
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.exchange import webhooks as rows
from webdepot.exchange.webhooks import DELAYS, HookEvent, MessageState
from webdepot.services.depot import alarm
from webdepot.services.exchange import webhooks
from webdepot.services.harvest import harvests, profiles
from webdepot.services.review import reviews
from webdepot.services.schedule import plans, scheduler


@dataclass
class Receiver:
    url: str = ""
    statuses: list[int] = field(default_factory=list)
    """The answers to the next requests; 204 after them."""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def types(self) -> list[str]:
        return [json.loads(body)["type"] for _, _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(
                (self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "2" if len(receiver.got) % 2 else "0")
            self.end_headers()
            if len(receiver.got) % 2:
                self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock(datetime(2026, 5, 1, 12, tzinfo=UTC))


@pytest.fixture
def archive(home: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    monkeypatch.setenv("WEBDEPOT_HARVEST_ALLOW_PRIVATE", "true")
    with Archive.open(home, agent="test", clock=clock) as opened:
        yield opened


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver checks it (Standard Webhooks)."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(wanted, headers["webhook-signature"])


def test_harvests_reviews_and_alarms_are_announced_once(archive: Archive, receiver: Receiver):
    _, secret = webhooks.add(archive, "all", receiver.url, [])
    webhooks.add(archive, "alarms", receiver.url, [HookEvent.DEPOT_ALARM])
    profiles.save(archive, "quick", "delay_s = 0\nworkers = 1\n")
    with small_site(lambda path: f"<title>{path}</title>") as site:
        turn = plans.run_now(archive, cleared(archive, f"{site}/"), profile="quick")
        scheduler.run_due(archive)
    reviews.settle(archive, harvests.get(archive, turn.harvest))  # again, as after a crash
    assert webhooks.deliver(archive).sent == 2
    assert receiver.types() == ["harvest.finished", "harvest.to_review"]
    finished = json.loads(receiver.got[0][2])
    assert finished["data"]["harvest"] == turn.harvest and finished["data"]["state"] == "finished"
    assert finished["data"]["counts"]["fetched"] >= 1
    alarm.send(archive, ["H-1 in main: damaged"])
    assert webhooks.deliver(archive).sent == 2
    assert receiver.types()[2:] == ["depot.alarm"] * 2
    assert json.loads(receiver.got[2][2])["data"] == {
        "alarms": ["H-1 in main: damaged"], "count": 1, "path": "/api/depot",
    }  # fmt: skip
    assert webhooks.deliver(archive).sent == 0
    own = [(headers, body) for _, headers, body in receiver.got if is_signed(secret, headers, body)]
    assert len(own) == 3 and len({headers["webhook-id"] for headers, _ in own}) == 3
    assert not is_signed(secret, own[0][0], own[0][1] + b" ")


def announce(archive: Archive, *keys: str) -> None:
    with archive.database.transaction() as connection:
        for key in keys:
            rows.queue(connection, HookEvent.DEPOT_ALARM, key, {"key": key}, now=archive.clock())


def states(archive: Archive) -> list[tuple[MessageState, int]]:
    return [(each.state, each.tries) for status in webhooks.every(archive) for each in status.messages]


def test_a_receiver_that_fails_is_tried_again_later_and_given_up_at_last(
    archive: Archive, receiver: Receiver, clock: MovedClock
):
    webhooks.add(archive, "hook", receiver.url, [])
    announce(archive, "one", "two")
    receiver.statuses = [500]
    assert webhooks.deliver(archive) == webhooks.WebhookDelivery(sent=0, failed=1)
    assert len(receiver.got) == 1, "the second message waits: the receiver is down"
    assert webhooks.deliver(archive).sent == 1, "the second one, which was not tried yet"
    assert webhooks.deliver(archive).sent == 0
    clock.now += DELAYS[0]
    assert webhooks.deliver(archive).sent == 1
    ids = [headers["webhook-id"] for _, headers, _ in receiver.got]
    assert ids[0] == ids[2] != ids[1]
    announce(archive, "three")
    receiver.statuses = [503] * (len(DELAYS) + 1)
    for delay in (*DELAYS, timedelta(days=9)):
        assert webhooks.deliver(archive).failed == 1
        clock.now += delay
    assert states(archive)[0] == (MessageState.GIVEN_UP, len(DELAYS) + 1)
    assert "503" in webhooks.every(archive)[0].messages[0].error
    assert webhooks.deliver(archive) == webhooks.WebhookDelivery(sent=0, failed=0)


def test_redirects_are_not_followed_and_gone_is_final(archive: Archive, receiver: Receiver):
    webhooks.add(archive, "hook", receiver.url, [])
    announce(archive, "one")
    receiver.statuses = [302]
    assert webhooks.deliver(archive).failed == 1
    assert [path for path, _, _ in receiver.got] == ["/hook"]
    announce(archive, "two")
    receiver.statuses = [410]
    assert webhooks.deliver(archive).failed == 1
    assert states(archive) == [(MessageState.GIVEN_UP, 1), (MessageState.WAITING, 1)]


def test_two_senders_send_a_message_once_and_a_killed_one_does_not_keep_it(
    archive: Archive, receiver: Receiver, clock: MovedClock
):
    webhooks.add(archive, "hook", receiver.url, [])
    announce(archive, *map(str, range(20)))
    with Archive.open(archive.home, clock=clock) as other:
        threads = [threading.Thread(target=webhooks.deliver, args=(each,)) for each in (archive, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(json.loads(body)["data"]["key"] for _, _, body in receiver.got) == sorted(
        map(str, range(20))
    )
    announce(archive, "claimed")
    with archive.database.transaction() as connection:
        (message,) = rows.due(connection, clock.now, 10)
        assert rows.claim(connection, message, clock.now)
        assert not rows.claim(connection, message, clock.now)
    assert webhooks.deliver(archive).sent == 0
    clock.now += rows.CLAIM_LASTS
    assert webhooks.deliver(archive).sent == 1


def test_private_addresses_are_refused_unless_the_configuration_names_them(
    home: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    with Archive.open(home) as archive:
        webhooks.add(archive, "hook", receiver.url, [])
        message = webhooks.test(archive, "hook")
    assert message.state is MessageState.GIVEN_UP and "not a public address" in message.error
    assert receiver.got == []
    monkeypatch.setenv("WEBDEPOT_HARVEST_PRIVATE_NETWORKS", "127.0.0.0/8")
    with Archive.open(home) as archive:
        assert webhooks.test(archive, "hook").state is MessageState.SENT
    assert receiver.types() == ["test"]


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "http://a:b@example.org/",
     "http://example.org/#x", "http://example.org/a b", "http://[::1/", "http://example.org:99999/",
     "http://example.org/\r\nX: y"],
)  # fmt: skip
def test_an_address_that_is_not_one_is_refused(archive: Archive, url: str):
    with pytest.raises(InputError):
        webhooks.add(archive, "hook", url, [])


def test_hooks_are_named_once_removed_whole_and_their_secret_is_not_stored(
    archive: Archive, receiver: Receiver
):
    hook, secret = webhooks.add(archive, "hook", receiver.url, [])
    assert HookEvent.TEST not in hook.events
    announce(archive, "one")
    with pytest.raises(Conflict):
        webhooks.add(archive, "hook", receiver.url, [])
    with pytest.raises(InputError):
        webhooks.add(archive, "Not A Name", receiver.url, [])
    assert webhooks.secret_of(archive, webhooks.every(archive)[0].hook) == secret
    for path in archive.home.glob("webdepot.db*"):
        assert secret.removeprefix("whsec_").encode() not in path.read_bytes()
    webhooks.remove(archive, "hook")
    assert webhooks.every(archive) == [] and webhooks.deliver(archive).sent == 0
    with pytest.raises(NotFound):
        webhooks.remove(archive, "hook")


def test_messages_are_sent_beside_a_scheduler(archive: Archive, receiver: Receiver):
    webhooks.add(archive, "hook", receiver.url, [])
    announce(archive, "one")
    with webhooks.sending(archive):
        for _ in range(500):
            if receiver.got:
                break
            threading.Event().wait(0.02)
    assert receiver.types() == ["depot.alarm"]
    assert states(archive) == [(MessageState.SENT, 1)]
