"""Whole harvests of a small version of the benchmark's site, through the service: complete, and each address once, even after crashes.

The generator's list (`bench.site.expected`) says what must be in the containers; readers of other projects
check that they are valid.
"""

import collections
import contextlib
import io
import os
import random
import signal
import time
import warnings
from pathlib import Path

import pytest
from bench import site as generated
from bench.site import Plan
from harvest_site import Site, whole

from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.harvest import order_file
from webdepot.harvest.order_file import OrderVerb
from webdepot.model import Harvest, HarvestState, RecordKind
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.times import utc_now

SETTINGS = "[harvest]\nallow_private = true\ndelay_s = 0\nretry_delay_s = 0.02\nleast_free_bytes = 0\n[container]\ncheckpoint_s = 0.05\n"


def build(site: Site, *, pages: int = 12) -> Plan:
    """Three hosts at three addresses of the server; the endless path never ends."""
    hosts = [f"127.0.0.{number}" for number in (1, 2, 3)]
    plan = Plan(
        hosts=tuple(f"http://{host}:{site.port}" for host in hosts),
        pages=pages,
        page_bytes=3_000,
        pictures=3,
        duplicates=2,
        redirects=2,
        missing=2,
    )
    for number, host in enumerate(hosts):
        for answer in generated.iter_answers(plan, number):
            status = "200 OK" if answer.status == 200 else f"{answer.status} Found"
            location = {"Location": answer.location} if answer.location else {}
            site.page(f"{host}{answer.path}", answer.body, status=status, mime=answer.mime, **location)
    trap = whole(b'<!doctype html><title>Deeper</title><a href="deeper/">deeper</a>')
    site.fallback = lambda asked: trap if asked.path.startswith("/trap/") else None
    return plan


def found(home: Path, more: str = "") -> None:
    setup.create(home, settings=SETTINGS.replace("[container]", f"{more}[container]"))


def begin(archive: Archive, plan: Plan) -> Harvest:
    return runner.start_or_resume(archive, plan.seeds, HarvestOptions.from_config(archive.config))


def held(home: Path) -> collections.Counter[str]:
    """Addresses of answers in all containers."""
    urls: collections.Counter[str] = collections.Counter()
    for path in sorted(home.glob("harvests/*/warc/*.warc.gz")):
        with path.open("rb") as stream:
            for record in iter_records(
                stream, path.name, on_finding=lambda finding: pytest.fail(str(finding))
            ):
                if record.kind in (RecordKind.RESPONSE, RecordKind.REVISIT):
                    urls[record.url] += 1
    return urls


def assert_complete(home: Path, plan: Plan, *, but_robots: bool = False) -> None:
    """`but_robots`: robots.txt may be there more than once."""
    urls = held(home)
    wanted = generated.expected(plan)
    assert urls.keys() == wanted.keys()
    assert {
        url: count
        for url, count in urls.items()
        if count > 1 and not (but_robots and url.endswith("/robots.txt"))
    } == {}


@pytest.mark.parametrize("processes", [1, 2])
def test_every_reachable_address_once_and_no_other(site: Site, tmp_path: Path, processes: int) -> None:
    plan = build(site)
    found(tmp_path / "home", f"processes = {processes}\n")
    with Archive.open(tmp_path / "home") as archive:
        harvest = runner.run(archive, begin(archive, plan))
        assert harvest.state is HarvestState.FINISHED
        assert harvest.counts["waiting"] == 0
        assert harvest.counts["robots_refused"] == 3
        lines = (harvests.folder_of(archive, harvest) / "crawl.log").read_text().splitlines()
    assert_complete(tmp_path / "home", plan)
    assert not any("secret" in path or "outside" in path for path in site.paths())
    asked = collections.Counter((asked.host, asked.target) for asked in site.log)
    assert max(asked.values()) == 1, "nothing was asked twice"
    assert len(lines) >= len(generated.expected(plan))
    assert len(list((tmp_path / "home").glob("harvests/*/warc/*.gz"))) >= processes


def test_containers_are_sound_to_other_readers_and_hold_identical_content_once(
    site: Site, tmp_path: Path
) -> None:
    from warcio.checker import Checker

    plan = build(site)
    found(tmp_path / "home")
    with Archive.open(tmp_path / "home") as archive:
        harvest = runner.run(archive, begin(archive, plan))
    # Two twins on each of three hosts, with different words on each; a trap page is the same everywhere.
    assert harvest.counts["duplicates"] >= 3 + 3 * 4 - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from fastwarc.warc import ArchiveIterator
    for path in (tmp_path / "home").glob("harvests/*/warc/*.warc.gz"):
        checker = Checker(_Quiet([str(path)]))
        checker.process_all()
        assert checker.exit_value == 0
        with path.open("rb") as stream:
            kinds = collections.Counter(record.headers["WARC-Type"] for record in ArchiveIterator(stream))
        assert kinds["response"] + kinds["revisit"] == kinds["request"] == kinds["metadata"]
        _assert_revisits_refer(path)


class _Quiet:
    """The command line of `warcio check`."""

    def __init__(self, inputs: list[str]) -> None:
        self.inputs = inputs
        self.verbose = False


def _assert_revisits_refer(path: Path) -> None:
    """Each revisit names an earlier response of the same harvest with the same payload."""
    responses: dict[tuple[str, str], str] = {}
    with path.open("rb") as stream:
        for record in iter_records(stream, path.name, on_finding=lambda finding: pytest.fail(str(finding))):
            if record.kind is RecordKind.RESPONSE:
                responses[record.url, record.fields.get("WARC-Date") or ""] = record.payload_digest
            elif record.kind is RecordKind.REVISIT:
                place = (
                    record.fields.get("WARC-Refers-To-Target-URI") or "",
                    record.fields.get("WARC-Refers-To-Date") or "",
                )
                assert responses[place] == record.payload_digest


# --- faults ---


def run_in_child(home: Path, harvest: str) -> int:
    """Run the harvest in its own process group without output; the process id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    status = 1
    try:
        with Archive.open(home) as archive:
            runner.run(archive, harvests.get(archive, harvest))
        status = 0
    finally:
        os._exit(status)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "kills"), [(1, 20), (2, 3)])
def test_killed_at_random_moments_it_is_complete_in_the_end(
    site: Site, tmp_path: Path, processes: int, kills: int
) -> None:
    plan = build(site, pages=40)
    home = tmp_path / "home"
    found(home, f"processes = {processes}\n")
    with Archive.open(home) as archive:
        harvest = begin(archive, plan)
    chance = random.Random(3)
    for _ in range(kills):
        wanted = len(site.log) + chance.randrange(1, 20)
        child = run_in_child(home, harvest.id)
        while len(site.log) < wanted and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(0.001)
        with contextlib.suppress(ProcessLookupError):  # it may have been quicker
            os.killpg(child, signal.SIGKILL)
        if os.waitpid(child, 0)[1] == 0:
            break
    with Archive.open(home) as archive:
        current = harvests.get(archive, harvest.id)
        if current.state is not HarvestState.FINISHED:
            current = runner.run(archive, current)
        assert current.state is HarvestState.FINISHED
    assert_complete(home, plan)


def test_a_server_that_dies_and_returns_loses_nothing(site: Site, tmp_path: Path) -> None:
    plan = build(site)
    whole_answers = dict(site.answers)
    answered = 0

    async def dead(writer, asked) -> None:
        nonlocal answered
        answered += 1
        if answered > 12:
            site.answers.update(whole_answers)
        writer.transport.abort()

    found(tmp_path / "home")
    for path in list(site.answers):
        if "/p/" in path:
            site.answers[path] = dead
    with Archive.open(tmp_path / "home") as archive:
        harvest = runner.run(archive, begin(archive, plan))
        for _ in range(3):
            if not harvest.counts["waiting"]:
                break
            harvest = runner.run(archive, harvest)
    assert answered > 12
    assert_complete(tmp_path / "home", plan)
    tries = collections.Counter((asked.host, asked.target) for asked in site.log)
    assert max(tries.values()) <= 5


def test_orders_while_it_does_not_run_are_obeyed_once(site: Site, tmp_path: Path) -> None:
    plan = build(site)
    host = plan.hosts[0]
    site.page("127.0.0.1/added.html", "<title>Added</title>")
    found(tmp_path / "home")
    with Archive.open(tmp_path / "home") as archive:
        harvest = begin(archive, plan)
        folder = harvests.folder_of(archive, harvest)
        order_file.give(folder, OrderVerb.ADD, at=utc_now(), urls=[f"{host}/added.html"])
        order_file.give(folder, OrderVerb.STOP, at=utc_now())
        assert runner.run(archive, harvest).state is HarvestState.STOPPED
        assert runner.run(archive, harvest).state is HarvestState.FINISHED
    urls = held(tmp_path / "home")
    assert urls[f"{host}/added.html"] == 1
    assert set(urls.values()) == {1}


def test_nearly_full_disk_stops_it_and_it_goes_on_later(site: Site, tmp_path: Path) -> None:
    plan = build(site)
    home = tmp_path / "home"
    found(home)
    toml = home / "webdepot.toml"
    settings = toml.read_text()
    toml.write_text(settings.replace("least_free_bytes = 0", f"least_free_bytes = {1 << 60}"))
    with Archive.open(home) as archive:
        harvest = runner.run(archive, begin(archive, plan))
        assert harvest.state is HarvestState.STOPPED
        assert "Free some space" in harvest.reason
        assert site.log == []  # room is looked for before the first request
    toml.write_text(settings)
    with Archive.open(home) as archive:
        assert runner.run(archive, harvest).state is HarvestState.FINISHED
    assert_complete(home, plan)


def test_log_in_secrets_are_in_no_file(site: Site, tmp_path: Path) -> None:
    secret = "s3cr3t-" + "x" * 12

    async def login(writer, asked) -> None:
        writer.write(whole("welcome", Set_Cookie=f"session={secret}; Path=/"))
        await writer.drain()

    async def members(writer, asked) -> None:
        ok = f"session={secret}".encode() in asked.raw
        writer.write(whole("inside" if ok else "outside", status="200 OK" if ok else "403 Forbidden"))
        await writer.drain()

    site.page(
        "/login",
        "<form action=/enter method=post><input name=user><input name=pass><input type=hidden name=token value=t1></form>",
    )
    site.answers["/enter"] = login
    site.answers["/"] = members
    home = tmp_path / "home"
    found(home)
    (home / "logins.toml").write_text(
        f'["127.0.0.1"]\nform = "{site.url}/login"\nfields = {{ user = "me", pass = "{secret}" }}\n'
        f'origins = ["{site.url}"]\ninsecure = true\n'
    )
    (home / "logins.toml").chmod(0o600)
    with Archive.open(home) as archive:
        harvest = runner.run(
            archive,
            runner.start_or_resume(archive, [f"{site.url}/"], HarvestOptions.from_config(archive.config)),
        )
        assert harvest.state is HarvestState.FINISHED
    kept = io.BytesIO()
    for path in home.rglob("*"):
        if path.is_file() and path.name != "logins.toml":
            kept.write(path.read_bytes())
    for path in home.glob("harvests/*/warc/*.warc.gz"):
        with path.open("rb") as stream:
            for record in iter_records(
                stream, path.name, on_finding=lambda finding: pytest.fail(str(finding))
            ):
                kept.write(record.payload().read() + str(record.head).encode())
                if record.kind is RecordKind.RESPONSE and record.url == f"{site.url}/":
                    assert record.head is not None and record.head.status == 200
    assert secret.encode() not in kept.getvalue()
