"""A harvest in one process, controlled and watched from another; its reports before and after it is in the
depot; pages of the portal.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from small_sites import small_site
from webdepot.archive import Archive
from webdepot.cli.main import build_app
from webdepot.errors import Conflict, InputError
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.order_file import OrderVerb
from webdepot.harvest.report.reports import ReportKind
from webdepot.model import Answer, HarvestState
from webdepot.services.admin import setup
from webdepot.services.depot import deposit
from webdepot.services.harvest import control, harvests, profiles, runner
from webdepot.services.harvest.options import DOCUMENTS_FOR_A_PAGE, HarvestOptions
from webdepot.services.index import indexer
from webdepot.services.review import reviews

PROGRAM = str(Path(sys.executable).parent / "webdepot")


class _Endless(BaseHTTPRequestHandler):
    """Page N links to N+1 and N+2 without an end, to a film, and to another site; `last` ends it."""

    last = 10**9

    def do_GET(self) -> None:
        number = self.path.strip("/p") or "0"
        known = number.isdigit() and int(number) <= self.last
        here = int(number) if known else 0
        links = "".join(f"<a href=/p{here + step}>x</a>" for step in (1, 2) if here + step <= self.last)
        body = f"<title>{here}</title>{links}<a href=/film.avi>film</a><a href=http://elsewhere.example/{here}>y</a>".encode()
        body = body if known else b"nothing here"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html" if known else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def endless() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Endless", (_Endless,), {}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    setup.create(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def running(home: Path, endless: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`webdepot archive` in a separate process, and the id of its harvest."""
    command = [PROGRAM, "--home", str(home), "--json", "--quiet", "archive", f"{endless}/p0"]
    options = ["--allow-private", "--delay", "0.02", "--no-deposit", "--reject", r"\.avi$"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with Archive.open(home) as archive:
            harvest = until(lambda: next(iter(harvests.latest(archive, 1)), None), process)
            until(
                lambda: (found := control.watch(archive, harvest.id)).live and found.live.fetched >= 5,
                process,
            )
        yield process, harvest.id
    finally:
        process.kill()
        process.communicate()


def until(ask: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> object:
    """The first result of `ask` that is not empty."""
    ends_s = time.monotonic() + 30
    while not (found := ask()):
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate()[1].decode())
        assert time.monotonic() < ends_s, "nothing came of it"
        time.sleep(0.05)
    return found


def fetched(archive: Archive, harvest: str) -> int:
    watched = control.watch(archive, harvest)
    return watched.live.fetched if watched.live else 0


def test_a_running_harvest_is_paused_changed_resumed_and_stopped_from_another_process(
    home: Path, running: tuple[subprocess.Popen[bytes], str], endless: str
) -> None:
    process, harvest = running
    with Archive.open(home, agent="the tester") as archive:
        control.give(archive, harvest, OrderVerb.PAUSE, reason="a test")
        until(lambda: (found := control.watch(archive, harvest)).live and found.live.paused, process)
        before = until(lambda: fetched(archive, harvest) or None)
        watched = control.watch(archive, harvest)
        assert watched.is_running
        assert watched.standing.paused
        assert watched.live is not None
        assert watched.live.refusals["reject"] == 1
        assert watched.live.refusals["outside"] >= 5
        assert watched.live.hosts[0].fetched >= 5
        assert watched.live.estimate.to_come > 0
        assert fetched(archive, harvest) == before

        control.add(archive, harvest, [f"{endless}/film.avi"], reason="the only film")
        control.remove(archive, harvest, ["/p1000000$"])
        control.change(archive, harvest, {"delay_s": 0.05})
        order = control.give(archive, harvest, OrderVerb.RESUME)
        assert order.number == 5
        assert order.by == "the tester"
        until(lambda: fetched(archive, harvest) > int(str(before)) + 20, process)

        rejected = control.report(archive, harvest, ReportKind.REJECTED)
        assert {row["name"]: row["refused"] for row in rejected.rows}["reject"] == 1
        control.give(archive, harvest, OrderVerb.STOP)
        process.communicate(timeout=60)
        assert process.returncode == 130
        found = control.watch(archive, harvest)
        assert found.harvest.state is HarvestState.STOPPED
        assert not found.is_running
        assert found.options.delay_s == 0.05
        assert [
            row["name"]
            for row in control.report(archive, harvest, ReportKind.STATUS).rows
            if row["name"] == "404"
        ]  # the added film
        with pytest.raises(Conflict, match="webdepot harvest resume"):
            control.give(archive, harvest, OrderVerb.PAUSE)
        with pytest.raises(InputError):
            control.change(archive, harvest, {"collection": "x"})


def test_an_aborted_harvest_is_over_and_its_reports_come_from_the_depot(
    home: Path, running: tuple[subprocess.Popen[bytes], str]
) -> None:
    process, harvest = running
    with Archive.open(home) as archive:
        control.reject(archive, harvest, [r"/p7$"])
        control.give(archive, harvest, OrderVerb.ABORT, reason="wrong site")
        process.communicate(timeout=60)
        found = control.watch(archive, harvest).harvest
        assert found.state is HarvestState.FINISHED
        assert "Given up by request" in found.reason
        assert found.counts["outside"] > 0
        with pytest.raises(Conflict):
            control.add(archive, harvest, ["http://a.example/"])
        live = {kind: control.report(archive, harvest, kind).rows for kind in ReportKind}
        run = [PROGRAM, "--home", str(home), "--json", "harvest"]
        subprocess.run([*run, "keep", harvest], check=True, capture_output=True)
        kept = {kind: control.report(archive, harvest, kind).rows for kind in ReportKind}
        assert kept == live
        asked = profiles.explain(archive, found.seeds[0].replace("/p0", "/p7"), target=str(found.target))
        assert asked.verdict.rule == "reject"  # as ordered while it ran
        done = subprocess.run(
            [*run, "report", harvest, "--kind", "status", "--csv"], check=True, capture_output=True, text=True
        ).stdout
        assert done.splitlines()[0] == "name,documents,bytes,example,reason"
        lines = subprocess.run(
            [*run, "report", harvest, "--kind", "hosts"], check=True, capture_output=True, text=True
        ).stdout
        assert json.loads(lines.splitlines()[0])["documents"] == found.counts["fetched"] + 1  # robots.txt


def test_a_killed_harvest_is_not_a_running_one(
    home: Path, running: tuple[subprocess.Popen[bytes], str]
) -> None:
    process, harvest = running
    process.kill()
    process.wait()
    program = [PROGRAM, "--home", str(home)]
    for command in (["show", harvest], ["list"]):
        shown = subprocess.run([*program, "harvest", *command], capture_output=True, text=True, check=True)
        assert "  interrupted  " in shown.stdout
        assert f"webdepot harvest resume {harvest}" in " ".join(shown.stdout.split())
    with Archive.open(home) as archive:
        course = control.course_of(archive, harvests.get(archive, harvest))
        assert course.counts["fetched"] >= 5
        with pytest.raises(Conflict, match=f"it is interrupted. Resume it: .* abort {harvest}"):
            control.give(archive, harvest, OrderVerb.ABORT)
    abort = [*program, "--json", "harvest", "abort", harvest, "--reason", "wrong site"]
    done = subprocess.run(abort, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["state"] == "kept"
    with Archive.open(home) as archive:
        ended = harvests.get(archive, harvest)
        assert "Given up by request" in ended.reason and ended.counts["fetched"] >= 1
        assert control.course_of(archive, ended).name == "kept"


def test_a_harvest_that_ends_with_an_error_says_so(home: Path, endless: str) -> None:
    with Archive.open(home) as archive:
        options = replace(HarvestOptions.from_config(archive.config), allow_private=True)
        harvest = runner.start_or_resume(archive, [f"{endless}/p0"], options)
        frontier = harvests.folder_of(archive, harvest) / "frontier"
        with closing(LmdbFrontier(frontier)) as damaged:
            damaged.remember("totals", b"not JSON")
            damaged.commit({})
        with pytest.raises(ValueError, match="Expecting value"):
            runner.run(archive, harvest)
        course = control.course_of(archive, harvests.get(archive, harvest.id))
        assert course.name == "stopped"
        assert course.reason.startswith("It ended with an error: JSONDecodeError: Expecting value")


def test_scope_is_explained_for_a_target_by_the_rules_of_its_last_harvest(
    home: Path, running: tuple[subprocess.Popen[bytes], str], endless: str
) -> None:
    with Archive.open(home) as archive:
        target = str(harvests.get(archive, running[1]).target)
        film = profiles.explain(archive, f"{endless}/other.avi", target=target)
        assert (film.verdict.answer, film.verdict.rule) == (Answer.REJECT, "reject")
        assert [step.rule for step in film.steps if step.decides] == [r"reject \.avi$"]
        page = profiles.explain(archive, f"{endless}/p7", target=target)
        assert (page.verdict.answer, page.verdict.rule) == (Answer.ACCEPT, "host")
        control.reject(archive, running[1], [r"/p7$"])
        assert profiles.explain(archive, f"{endless}/p7", target=target).verdict.rule == "reject"
        run = [
            PROGRAM,
            "--home",
            str(home),
            "--json",
            "scope",
            "explain",
            f"{endless}/other.avi",
            "--target",
            target,
        ]
        done = subprocess.run(run, check=False, capture_output=True, text=True)
        assert done.returncode == 1
        assert json.loads(done.stdout)["rule"] == "reject"


def test_what_cannot_be_asked_is_said(home: Path) -> None:
    with Archive.open(home) as archive:
        with pytest.raises(InputError, match="seed"):
            profiles.explain(archive, "http://a.example/")
        with pytest.raises(InputError, match="hops"):
            profiles.explain(archive, "http://a.example/", seeds=["http://a.example/"], path="LZ")


def test_a_resumed_harvest_stays_out_of_the_depot_with_no_deposit(home: Path) -> None:
    with small_site(lambda path: "<p>One page" if path == "/" else "") as site:
        with Archive.open(home) as archive:
            options = replace(HarvestOptions.from_config(archive.config), allow_private=True, delay_s=0.0)
            harvest = runner.start_or_resume(archive, [f"{site}/"], options)
            harvests.mark_direct(archive, harvest)  # as `webdepot archive` does before it begins
        done = CliRunner().invoke(
            build_app(), ["--home", str(home), "harvest", "resume", harvest.id, "--no-deposit", "--quiet"]
        )
    assert done.exit_code == 0, done.output
    with Archive.open(home) as archive:
        assert harvests.get(archive, harvest.id).state is HarvestState.FINISHED
        assert deposit.find_package(archive, harvest.id) is None
        # The operator wanted it to be seen: a rebuild gives the same index. A rejection hides it for good.
        count = archive.captures.total()
        assert indexer.rebuild(archive).captures == count > 0
        reviews.reject(archive, harvest.id, words="a holding page")
        assert archive.captures.total() == archive.texts.total() == 0
        reviews.reopen(archive, harvest.id, words="it is the site")
        assert indexer.update(archive).captures == 0


def _blog(path: str) -> str:
    """A blog with the marks of WordPress; what it has no page for, it answers with one page for all."""
    if path in ("/robots.txt", "/sitemap.xml") or path.endswith(".js"):
        return ""
    head = '<meta name="generator" content="WordPress 6.1"><script>const a = ["./chunk", "./other"]</script>'
    links = "".join(f'<a href="{link}">x</a>' for link in ("/post/", "/post/?replytocom=7", "/wp-json/wp/v2"))
    return f"{head}<p>Words about the sea and {path}{links}" if path in ("/", "/post/") else "<p>We are sorry"


def test_what_is_not_content_is_counted_explained_and_can_be_included(home: Path) -> None:
    def call(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(build_app(), ["--home", str(home), *words])
        return done.exit_code, done.output

    def answers(*words: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in call("--json", *words)[1].splitlines()]

    with small_site(_blog) as site:
        archive_it = ["archive", f"{site}/", "--allow-private", "--delay", "0", "--no-deposit"]
        wrong = CliRunner().invoke(build_app(), ["--home", str(home), *archive_it, "--include", "nonsense"])
        assert isinstance(wrong.exception, InputError)
        assert "include has 'nonsense'; it may contain apis, " in str(wrong.exception)
        (result,) = [each for each in answers(*archive_it, "--quiet") if "harvest" in each]
        harvest = str(result["harvest"])
        assert result["left_out"] == {"replies": 1, "apis": 1}
        counts = result["findings"]
        assert isinstance(counts, dict)
        assert (counts["quality.left-out"], counts["quality.says-missing"]) == (2, 4)
        traps = answers("harvest", "report", harvest, "--kind", "traps")
        assert [(row["name"], row["refused"]) for row in traps] == [("soft 404", 4)]
        (software,) = answers("harvest", "report", harvest, "--kind", "software")
        assert (software["name"], software["example"]) == ("wordpress", f"{site}/")
        reply = f"{site}/post/?replytocom=7"
        with Archive.open(home) as opened:
            target = str(harvests.get(opened, harvest).target)
        (asked,) = answers("scope", "explain", reply, "--target", target)
        assert (asked["answer"], asked["rule"]) == ("reject", "replies")
        assert [step["rule"] for step in asked["steps"] if step["decides"]] == ["software"]  # type: ignore[attr-defined]
        (asked,) = answers("scope", "explain", reply, "--seed", f"{site}/")
        assert asked["answer"] == "accept"
        (asked,) = answers("scope", "explain", reply, "--seed", f"{site}/", "--software", "wordpress")
        assert str(asked["reason"]).startswith("WordPress rule 4 (replies): replytocom")
        (home / "profiles").mkdir(exist_ok=True)
        (home / "profiles" / "talk.toml").write_text('include = ["replies"]')
        ask = [
            "scope",
            "explain",
            reply,
            "--seed",
            f"{site}/",
            "--profile",
            "talk",
            "--software",
            "wordpress",
        ]
        assert answers(*ask)[0]["answer"] == "accept"
        _, output = call(*archive_it, "--include", "replies")
        assert "Left out    1 address that is not content: 1 apis" in output
        assert "--include all" in output
    assert "replytocom" in call("scope", "software", "wordpress")[1]
    assert call("scope", "software", "nonsense")[0] != 0
    assert {"kind": "replies", "text": "reply, share and vote links"} in answers("scope", "software")


def _endless(path: str) -> str:
    """A page with a frame, which contains two more, and so on."""
    if path == "/":
        return "<p>Words about the sea<iframe src=/f1></iframe>"
    number = int(path.removeprefix("/f")) if path.startswith("/f") else 0
    return f"<iframe src=/f{2 * number}></iframe><iframe src=/f{2 * number + 1}></iframe>" if number else ""


def test_a_limit_of_pages_ends_a_site_with_endless_parts(home: Path) -> None:
    with small_site(_endless) as site, Archive.open(home) as archive:
        options = replace(
            HarvestOptions.from_config(archive.config), delay_s=0.0, allow_private=True, limit_pages=1
        )
        harvest = runner.run(archive, runner.start_or_resume(archive, [f"{site}/"], options))
    assert harvest.counts["pages"] == 1 and harvest.counts["fetched"] == DOCUMENTS_FOR_A_PAGE
    assert harvest.reason.startswith("The limit of 100 documents was reached.")
