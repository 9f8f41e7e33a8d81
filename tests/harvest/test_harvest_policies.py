"""Policies of a harvest through the service: accounts, bandwidth, certificates, and a clock that jumps."""

import asyncio
import base64
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from harvest_fetch import certificate
from harvest_site import Site, whole
from test_whole_site import assert_complete, begin, build, found

from webdepot.archive import Archive
from webdepot.container.http import parse_head
from webdepot.container.reader import iter_records
from webdepot.errors import RemoteError
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.model import Harvest, HarvestState, RecordKind
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.times import utc_now
from webdepot.url import Url


def harvested(home: Path, *urls: str) -> Harvest:
    with Archive.open(home) as archive:
        return runner.run(
            archive, runner.start_or_resume(archive, urls, HarvestOptions.from_config(archive.config))
        )


def everything_written(home: Path) -> bytes:
    """All bytes below a home, containers unpacked."""
    written = BytesIO()
    for path in home.rglob("*"):
        if path.is_file() and path.name != "logins.toml":
            written.write(path.read_bytes())
    for path in home.glob("harvests/*/warc/*.warc.gz"):
        with path.open("rb") as stream:
            for record in iter_records(
                stream, path.name, on_finding=lambda finding: pytest.fail(str(finding))
            ):
                written.write(f"{record.fields}{record.head}".encode() + record.payload().read())
    return written.getvalue()


def answers(home: Path) -> dict[str, int]:
    statuses = {}
    for path in home.glob("harvests/*/warc/*.warc.gz"):
        with path.open("rb") as stream:
            for record in iter_records(
                stream, path.name, on_finding=lambda finding: pytest.fail(str(finding))
            ):
                if record.kind is RecordKind.RESPONSE and record.head is not None:
                    statuses[record.url] = record.head.status
    return statuses


# --- accounts ---


def test_http_authentication_is_answered_and_never_written_down(site: Site, tmp_path: Path) -> None:
    password = "hush-" + "q" * 9
    sent = b"Basic " + base64.b64encode(f"archive:{password}".encode())

    async def members(writer: asyncio.StreamWriter, asked) -> None:
        if sent in asked.raw:
            writer.write(
                whole("<title>Inside</title><a href=/more>more</a>" if asked.path == "/" else "more")
            )
        else:
            writer.write(
                whole(
                    "<p>who are you?</p>", status="401 Unauthorized", WWW_Authenticate='Basic realm="members"'
                )
            )
        await writer.drain()

    site.answers["/"] = site.answers["/more"] = members
    home = tmp_path / "home"
    found(home)
    (home / "logins.toml").write_text(
        f'["127.0.0.1"]\nuser = "archive"\npassword = "{password}"\norigins = ["{site.url}"]\ninsecure = true\n'
    )
    (home / "logins.toml").chmod(0o600)
    assert harvested(home, f"{site.url}/").state is HarvestState.FINISHED
    assert answers(home)[f"{site.url}/"] == answers(home)[f"{site.url}/more"] == 200
    written = everything_written(home)
    assert b"Inside" in written
    assert b"who are you" not in written
    for secret in (password.encode(), sent, sent.partition(b" ")[2]):
        assert secret not in written


def test_an_account_goes_to_its_own_host_alone(site: Site, tmp_path: Path) -> None:
    site.page("/", f"<a href=http://127.0.0.2:{site.port}/other>other</a>")
    site.page("/other", "other")
    home = tmp_path / "home"
    found(home)
    (home / "logins.toml").write_text(
        f'["127.0.0.1"]\nuser = "archive"\npassword = "hush"\norigins = ["{site.url}"]\ninsecure = true\n'
    )
    (home / "logins.toml").chmod(0o600)
    harvested(home, f"{site.url}/", f"http://127.0.0.2:{site.port}/")
    assert any(asked.host == "127.0.0.2" and asked.path == "/other" for asked in site.log)
    assert not any(b"authorization" in asked.raw.lower() for asked in site.log if asked.host != "127.0.0.1")


# --- bandwidth ---


def duration_of(home: Path, *urls: str) -> float:
    began_s = time.monotonic()
    assert harvested(home, *urls).state is HarvestState.FINISHED
    return time.monotonic() - began_s


def test_bandwidth_at_one_server_is_capped(site: Site, tmp_path: Path) -> None:
    size = 400_000
    site.page("/", bytes(size), mime="application/octet-stream")
    found(tmp_path / "home", "host_bytes_per_s = 400000\n")
    # Of a second's worth libcurl lets the first stretch through at once; half of it must have been held back.
    assert duration_of(tmp_path / "home", f"{site.url}/") >= 0.5


def test_bandwidth_of_all_servers_together_is_capped(site: Site, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        site.page(f"127.0.0.{number}/", "".join(f"<a href=/{letter}>" for letter in "abcd"))
        for letter in "abcd":
            site.page(f"127.0.0.{number}/{letter}", bytes(20_000), mime="application/octet-stream")
    found(tmp_path / "home", "bytes_per_s = 200000\n")
    took_s = duration_of(
        tmp_path / "home", *(f"http://127.0.0.{number}:{site.port}/" for number in (1, 2, 3))
    )
    assert took_s >= 12 * 20_000 / 200_000 * 0.7
    per_server = [asked for asked in site.log if asked.host == "127.0.0.2"]
    assert all(earlier.ended_s <= later.began_s for earlier, later in pairwise(per_server))


# --- certificates ---


@contextmanager
def secure_server(folder: Path) -> Iterator[int]:
    """A server with a certificate that no authority has signed; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder, "127.0.0.1"))
    loop, stop, ready, ports = asyncio.new_event_loop(), asyncio.Event(), threading.Event(), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await reader.readuntil(b"\r\n\r\n"):
                writer.write(
                    whole(f"<title>{asked.split()[1].decode()} behind a strange certificate</title>")
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def test_a_certificate_that_cannot_be_checked_is_refused_or_by_policy_accepted_and_said(
    tmp_path: Path,
) -> None:
    with secure_server(tmp_path) as port:
        url = f"https://127.0.0.1:{port}/"
        found(tmp_path / "strict", "tries = 1\n")
        with pytest.raises(RemoteError, match="Nothing was harvested"):
            harvested(tmp_path / "strict", url)
        found(tmp_path / "mild", 'tls = "accept"\n')
        assert harvested(tmp_path / "mild", url).state is HarvestState.FINISHED
        assert answers(tmp_path / "mild")[url] == 200
        assert b"certificates were not verified" in everything_written(tmp_path / "mild")


# --- clocks ---


@pytest.mark.parametrize("processes", [1])
def test_a_clock_that_jumps_loses_and_repeats_nothing(site: Site, tmp_path: Path, processes: int) -> None:
    plan, chance = build(site), Random(7)
    found(tmp_path / "home", f"processes = {processes}\n")

    def jumping() -> datetime:
        return utc_now() + timedelta(hours=chance.choice((-49, -1, 0, 0, 1, 30)))

    with Archive.open(tmp_path / "home", clock=jumping) as archive:
        harvest = runner.run(archive, begin(archive, plan))
        assert harvest.state is HarvestState.FINISHED
    # robots.txt is fetched again when a day has passed, by any clock; pages never are.
    pages = [(asked.host, asked.target) for asked in site.log if asked.path != "/robots.txt"]
    assert len(pages) == len(set(pages))
    assert_complete(tmp_path / "home", plan, but_robots=True)


# --- pages that take long to read ---


def test_a_page_is_read_for_links_no_longer_than_the_limit() -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n")
    style = "".join(f"a{{background:url(/{number}.png)}}" for number in range(5_000)).encode()
    url = Url("http://a.example/s.css")
    assert len(extract(url, head, BytesIO(style), LinkLimits()).links) == 5_000
    cut = extract(url, head, BytesIO(style), LinkLimits(time_s=0.0))
    assert 0 < len(cut.links) < 5_000
    assert "linksCutAtSecond:0" in cut.note
