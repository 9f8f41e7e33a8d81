"""Copies on real S3: filled, audited, repaired; a server without conditional writes; one that fails and lies;
keys that cannot delete.
"""

import http.client
import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from depot_samples import content_of, write_warc

from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.depot import copies, fixity, package, places
from webdepot.depot.copies import CopyState
from webdepot.depot.fixity import AuditOutcome
from webdepot.depot.ocfl import layout, objects
from webdepot.errors import NotPermitted, RemoteError
from webdepot.services import pipeline
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.depot import audit, storage_places, withdrawal


@pytest.fixture
def keys(monkeypatch, seaweed):
    """Credentials come from the environment, by the name of the place."""
    for name in ("MAIN", "CLOUD", "CARELESS", "FLAKY", "VAULT"):
        monkeypatch.setenv(f"WEBDEPOT_PLACE_{name}_ACCESS_KEY", seaweed.access_key)
        monkeypatch.setenv(f"WEBDEPOT_PLACE_{name}_SECRET_KEY", seaweed.secret_key)


def object_key(server, address: str, key: str) -> dict[str, str]:
    return {"Bucket": server.bucket, "Key": f"{urlsplit(address).path.strip('/')}/{key}"}


@pytest.mark.parametrize("kind", ["seaweed", "rclone"])
def test_a_copy_in_a_bucket_is_whole_is_damaged_and_is_mended(request, archive, keep_site, keys, kind):
    server = request.getfixturevalue(kind)
    kept = keep_site(1)
    address = server.new_address()
    place = storage_places.add_place(archive, "cloud", address)
    assert place.refuses_overwriting is (kind == "seaweed")
    assert storage_places.fill(archive).copied == 1
    store = places.open_store("cloud", address)
    assert not list(fixity.verify_package(store, kept.id))
    client = server.client()
    inventory = objects.read_inventory(store, kept.id)
    for number, key in enumerate(
        [
            *objects.frame(inventory),
            *(f"{layout.folder_of(kept.id)}/{p[0]}" for p in inventory.manifest.values()),
        ]
    ):
        if number % 2:
            client.put_object(**object_key(server, address, key), Body=b"not what it was")
        else:
            client.delete_object(**object_key(server, address, key))
    report = audit.audit(archive, packages=[kept.id])
    assert report.counts == {AuditOutcome.WHOLE: 1, AuditOutcome.REPAIRED: 1}
    assert not list(fixity.verify_package(store, kept.id))
    client.close()


def test_the_main_place_in_a_bucket_indexing_and_replay_go_on(tmp_path, seaweed, keys):
    """Nothing of the depot is on this machine; a page is opened by reading its part of the container."""
    home = tmp_path / "home"
    setup.create(home, settings=f'[depot]\nplace = "{seaweed.new_address()}"\n')
    pages = {
        f"https://x.example/{number}": b"<!doctype html><title>X</title><p>windmill " + b"x" * 1000 * number
        for number in range(5)
    }
    write_warc(tmp_path / "x.warc.gz", pages)
    with Archive.open(home, agent="anna") as archive:
        report = pipeline.import_files(archive, [tmp_path / "x.warc.gz"], collection="x")
        assert report.taken is not None
        assert report.taken.captures == 5
        assert not (home / "depot").exists()
        for url, body in pages.items():
            opened = replay.open_capture(archive, url, "20240517123001", collection="all", reader=ANYONE)
            assert opened.payload.read() == body
            opened.close()
        storage_places.add_place(archive, "local", str(tmp_path / "local"))
        assert storage_places.fill(archive).copied == 1
        assert audit.audit(archive, older_than_days=0).alarms == []
        assert report.taken.package is not None
        done = withdrawal.withdraw(archive, report.taken.package.id, reason="court", approved_by="Piet")
        assert done.waiting == ()
        assert not list(archive.store.keys(layout.folder_of(report.taken.package.id)))


class Flaky:
    """A proxy before the server that fails, throttles, breaks off and hides keys from lists, in turn."""

    def __init__(self, endpoint: str) -> None:
        target = urlsplit(endpoint)
        self.failing = True
        self.away = False
        self.requests = 0
        lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with lock:
                    proxy.requests += 1
                    turn = proxy.requests
                if proxy.away:
                    self.close_connection = True
                    return
                if proxy.failing and turn % 4 == 0:
                    self.answer((503, 500, 429)[turn // 4 % 3], {}, b"<Error><Code>SlowDown</Code></Error>")
                    return
                connection = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=30)
                headers = {
                    name: value for name, value in self.headers.items() if name.lower() not in ("connection",)
                }
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                data = response.read()
                if "list-type=2" in self.path and proxy.failing:
                    data = self.stale(data)
                self.answer(response.status, dict(response.getheaders()), data)
                connection.close()

            def stale(self, data: bytes) -> bytes:
                """A stale list, without any key."""
                start, stop = data.find(b"<Contents>"), data.rfind(b"</Contents>")
                return data[:start] + data[stop + len(b"</Contents>") :] if start >= 0 else data

            def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                length = (
                    headers.get("Content-Length", str(len(data)))
                    if self.command == "HEAD"
                    else str(len(data))
                )
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # The signature covers the name of the host: the server must believe it is the proxy.
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def flaky(seaweed) -> Iterator[Flaky]:
    made = Flaky(seaweed.endpoint)
    yield made
    made.close()


def test_a_server_that_fails_throttles_and_shows_stale_lists(archive, keep_site, seaweed, flaky, keys, clock):
    kept = [keep_site(number) for number in range(1, 3)]
    address = f"s3://{seaweed.bucket}/{seaweed.new_prefix()}?endpoint={flaky.endpoint}"
    storage_places.add_place(archive, "flaky", address)
    while storage_places.fill(archive).waiting:
        pass
    assert audit.audit(archive, packages=[each.id for each in kept]).counts == {AuditOutcome.WHOLE: 4}
    flaky.away = True
    clock.pass_days(91)
    report = audit.audit(archive)
    assert report.counts[AuditOutcome.AWAY] >= 1
    assert report.lost == 0
    with archive.database.reading() as connection:
        assert {copy.state for each in kept for copy in copies.of_package(connection, each.id)} == {
            CopyState.WHOLE
        }
    flaky.away = False
    assert audit.audit(archive).counts.get(AuditOutcome.AWAY, 0) == 0
    flaky.failing = False
    store = places.open_store("flaky", address)
    for each in kept:
        assert not list(fixity.verify_package(store, each.id))


def test_a_package_is_written_through_stale_lists_after_an_interrupted_try(
    archive, seaweed, flaky, keys, tmp_path
):
    """An interrupted write left content that the list does not show: repeating it must overwrite it."""
    store = places.open_store(
        "flaky", f"s3://{seaweed.bucket}/{seaweed.new_prefix()}?endpoint={flaky.endpoint}"
    )
    content = content_of(tmp_path, 1)
    store.put(
        f"{layout.folder_of(content.id)}/v1/content/metadata/package.json",
        io.BytesIO(b"half"),
        overwrite=True,
    )
    facts = package.build(store, content)
    assert facts.package.id == content.id
    assert not [found for found in fixity.verify_package(store, content.id) if found.severity == "error"]


def test_keys_that_cannot_delete_leave_the_copy_in_peace(archive, keep_site, seaweed, keys, monkeypatch):
    """The portal has read-only keys: it cannot delete or overwrite, and a withdrawal says what is left."""
    kept = keep_site(1)
    address = seaweed.new_address()
    storage_places.add_place(archive, "vault", address, write_once=True)
    storage_places.fill(archive)
    monkeypatch.setenv("WEBDEPOT_PLACE_VAULT_ACCESS_KEY", "auditor")
    monkeypatch.setenv("WEBDEPOT_PLACE_VAULT_SECRET_KEY", "auditor-secret")
    with Archive.open(archive.home, agent="portal") as portal:
        store = portal.stores()["vault"]
        key = f"{layout.folder_of(kept.id)}/inventory.json"
        with pytest.raises((NotPermitted, RemoteError)):
            store.delete(key)
        assert audit.audit(portal, packages=[kept.id]).counts == {AuditOutcome.WHOLE: 2}
        done = withdrawal.withdraw(portal, kept.id, reason="court", approved_by="Piet")
        assert done.waiting == ("vault",)
        assert not list(fixity.verify_package(store, kept.id)), "the vault has it still"


def test_object_lock_refuses_to_delete_a_version_and_the_copy_can_be_had_again(
    archive, keep_site, seaweed, keys
):
    """Write-once enforced by the server: even the keeper's keys cannot remove the bytes."""
    from datetime import UTC, datetime, timedelta

    from botocore.exceptions import ClientError

    kept = keep_site(1)
    client = seaweed.client()
    bucket = "locked-depot"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    storage_places.add_place(
        archive, "vault", f"s3://{bucket}/d?endpoint={seaweed.endpoint}", write_once=True
    )
    storage_places.fill(archive)
    key = next(
        entry["Key"]
        for entry in client.list_objects_v2(Bucket=bucket)["Contents"]
        if entry["Key"].endswith(".warc.gz")
    )
    client.put_object_retention(
        Bucket=bucket,
        Key=key,
        Retention={"Mode": "COMPLIANCE", "RetainUntilDate": datetime.now(UTC) + timedelta(days=1)},
    )
    version = client.head_object(Bucket=bucket, Key=key)["VersionId"]
    with pytest.raises(ClientError):
        client.delete_object(Bucket=bucket, Key=key, VersionId=version)
    client.delete_object(Bucket=bucket, Key=key)  # S3 allows this: a delete marker hides the key
    assert audit.audit(archive, packages=[kept.id]).counts == {
        AuditOutcome.WHOLE: 1,
        AuditOutcome.REPAIRED: 1,
    }
    assert (
        client.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read()
        == next((archive.home / "depot").rglob("*.warc.gz")).read_bytes()
    )
    client.close()
