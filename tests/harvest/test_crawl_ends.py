"""How crawls end: limits, stops, crashes and full disks that lose nothing, and the reason that is given."""

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import harvest_crawl
import pytest
from harvest_crawl import KEPT_NAME, QUICK, FileKeeper, kept, lines, page_lines, run
from harvest_site import Asked, Site, fill, of, whole

from ports import free_port
from webdepot.errors import NoSpace
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.pending_answer import Kept
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.report.result import CrawlProgress, End, Trouble
from webdepot.model import Visit
from webdepot.quality import verdict

# --- limits, stops, crashes ---


def test_the_limit_of_documents_is_exact_and_the_rest_waits(site: Site, tmp_path: Path) -> None:
    paths = fill(site, 60)
    result = run(tmp_path, [f"{site.url}/0"], limit_documents=20, workers=8)
    assert result.end is End.LIMIT_DOCUMENTS
    assert (result.counts["fetched"], len(kept(tmp_path))) == (20, 21)
    assert (
        result.reason
        == f"The limit of 20 documents was reached. {result.waiting} addresses were left waiting."
    )
    assert result.waiting > 0
    again = run(tmp_path, [f"{site.url}/0"])
    assert again.end is End.FINISHED
    assert sorted(kept(tmp_path)) == sorted(of(site, *paths, "/robots.txt"))
    assert max(Counter(site.paths()).values()) == 1


def test_the_limit_of_pages_does_not_count_parts_and_all_of_them_are_fetched(
    site: Site, tmp_path: Path
) -> None:
    for number in range(40):
        links = "".join(f'<a href="/{number * 3 + more}">' for more in (1, 2, 3))
        site.page(f"/{number}", f'<title>{number}</title>{links}<link rel=stylesheet href="/{number}.css">')
        site.page(f"/{number}.css", f'p {{ background: url("/{number}.png") }}', mime="text/css")
        site.page(f"/{number}.png", "picture", mime="image/png")
    result = run(tmp_path, [f"{site.url}/0"], limit_pages=7, workers=8)
    assert result.end is End.LIMIT_PAGES
    assert (result.counts["pages"], result.counts["fetched"]) == (7, 21)
    assert result.reason.startswith("The limit of 7 pages was reached. ") and result.waiting > 0
    again = run(tmp_path, [f"{site.url}/0"])
    assert again.end is End.FINISHED and again.counts["pages"] == 40
    assert max(Counter(site.paths()).values()) == 1


def test_a_limit_of_pages_that_is_not_reached_ends_as_usual(site: Site, tmp_path: Path) -> None:
    site.page("/", '<a href="/1"><a href="/missing"><img src="/no.png"><img src="/neither.png">')
    site.page("/1", "<title>One</title>")
    result = run(tmp_path, [f"{site.url}/"], limit_pages=3, workers=8)
    assert result.end is End.FINISHED
    assert (result.counts["pages"], result.counts["errors"], result.counts["failed_parts"]) == (2, 3, 2)


def test_what_the_owner_excludes_and_scripts_show_is_said_first(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /private", mime="text/plain")
    site.page(
        "/",
        '<meta name=robots content="noindex, nofollow"><p>Hello<a href="/1"><a href="/2"><img src="/x.png">',
    )
    site.page("/x.png", "picture", mime="image/png")
    site.page("/app", "<div id=root></div><script src=/app.js></script>")
    site.page("/app.js", "1", mime="text/javascript")
    result = run(tmp_path, of(site, "/", "/app", "/private/1"))
    assert result.reason.startswith("2 addresses of the site were left out because its pages say nofollow.")
    assert "One address was left out because robots.txt forbids it." in result.reason
    assert "One page is empty without its scripts." in result.reason
    assert "One page says noindex, which is meant for search engines; it was harvested." in result.reason
    assert result.reason.endswith("All other addresses in scope were fetched.")
    names = ("nofollow", "robots_refused", "empty_pages", "noindex_pages")
    assert [result.counts[name] for name in names] == [2, 1, 1, 1]
    verdict_ = verdict.of({}, result.counts)
    assert not verdict_ and "empty without" in str(verdict_.reason)


def test_the_limit_of_bytes(site: Site, tmp_path: Path) -> None:
    fill(site, 60)
    result = run(tmp_path, [f"{site.url}/0"], limit_bytes=2000, workers=1)
    assert result.end is End.LIMIT_BYTES
    assert 2000 <= result.counts["bytes"] < 3000


def test_the_limit_of_time_counts_over_all_runs(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: (
        whole(f"<a href=/{int(asked.path[1:] or 0) + 1}>") if asked.path[1:].isdigit() else None
    )
    result = run(tmp_path, of(site, "/0"), limit_time_s=0.4, manners=Manners(delay_s=0.05, delay_factor=0.0))
    assert result.end is End.LIMIT_TIME
    asked = len(site.log)
    assert run(tmp_path, of(site, "/0"), limit_time_s=0.4).end is End.LIMIT_TIME
    assert len(site.log) <= asked + 1


def test_stop_is_tidy_and_resuming_fetches_nothing_twice(site: Site, tmp_path: Path) -> None:
    paths = fill(site, 80)

    def stop_after_some(progress: CrawlProgress, stop: asyncio.Event) -> None:
        if progress.fetched >= 10:
            stop.set()

    result = run(tmp_path, [f"{site.url}/0"], on_progress=stop_after_some, progress_s=0.0)
    assert result.end is End.STOPPED
    assert 10 <= result.counts["fetched"] < 80
    assert "left waiting" in result.reason
    before = result.counts["fetched"]
    result = run(tmp_path, [f"{site.url}/0"])
    assert result.counts["fetched"] == len(paths) > before
    assert Counter(kept(tmp_path)) == Counter(of(site, *paths, "/robots.txt"))
    assert Counter(str(line["url"]) for line in page_lines(tmp_path)) == Counter(
        of(site, *paths, "/robots.txt")
    )


@pytest.mark.timeout(30)
def test_a_stop_does_not_wait_for_a_server_that_is_silent(site: Site, tmp_path: Path) -> None:
    async def silence(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(60)

    site.answers["/"] = silence

    def stop_when_asked(progress: CrawlProgress, stop: asyncio.Event) -> None:
        if "/" in site.paths():
            stop.set()

    result = run(
        tmp_path,
        of(site, "/"),
        on_progress=stop_when_asked,
        progress_s=0.01,
        limits=FetchLimits(timeout_s=60),
    )
    assert (result.end, result.waiting) == (End.STOPPED, 1)


def test_killed_at_any_moment_and_resumed_every_url_is_kept_exactly_once(site: Site, tmp_path: Path) -> None:
    paths = fill(site, 400)
    program = [sys.executable, str(Path(harvest_crawl.__file__)), str(tmp_path), f"{site.url}/0"]
    rng = random.Random(7)
    kills = 0
    for _ in range(6):
        process = subprocess.Popen(program)
        wanted = len(site.log) + rng.randrange(5, 70)
        while process.poll() is None and len(site.log) < wanted:
            time.sleep(0.002)
        if process.poll() is None:
            kills += 1
            process.send_signal(signal.SIGKILL)
        process.wait()
    result = run(tmp_path, [f"{site.url}/0"])
    assert kills >= 4
    assert (result.end, result.waiting) == (End.FINISHED, 0)
    expected = Counter(of(site, *paths, "/robots.txt"))
    assert Counter(kept(tmp_path)) == expected
    assert Counter(str(line["url"]) for line in page_lines(tmp_path)) == expected
    assert result.counts["fetched"] == len(paths)


def test_a_full_disk_ends_the_crawl_and_the_last_checkpoint_holds(site: Site, tmp_path: Path) -> None:
    paths = fill(site, 60)

    class Full(FileKeeper):
        count = 0

        def keep(self, visits: Sequence[Visit]) -> list[Kept]:
            self.count += len(visits)
            if self.count > 30:
                raise NoSpace("the disk is full")
            return super().keep(visits)

    with pytest.raises(NoSpace, match="the disk is full"):
        run(tmp_path, [f"{site.url}/0"], keeper_of=Full, checkpoint_s=0.0)
    frontier = LmdbFrontier(tmp_path / "frontier")
    assert frontier.marks()[KEPT_NAME] > 0
    frontier.close()
    run(tmp_path, [f"{site.url}/0"])
    assert Counter(kept(tmp_path)) == Counter(of(site, *paths, "/robots.txt"))


def test_a_server_that_dies_leaves_its_rest_waiting_and_is_finished_later(site: Site, tmp_path: Path) -> None:
    paths = fill(site, 40)
    alive = dict(site.answers)

    async def dead(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(60)

    def die(progress: CrawlProgress, stop: asyncio.Event) -> None:
        if progress.fetched >= 10 and site.answers.get("/0") is not dead:
            site.answers.update(dict.fromkeys(paths, dead))

    limits = FetchLimits(timeout_s=1.0)
    result = run(tmp_path, [f"{site.url}/0"], on_progress=die, progress_s=0.0, limits=limits, manners=QUICK)
    assert result.end is End.FINISHED
    assert result.waiting > 0
    assert "stopped answering" in result.reason
    site.answers.update(alive)
    lost = [str(line["url"]) for line in lines(tmp_path) if line["status"] == -4]
    assert len(lost) == 1
    result = run(tmp_path, [f"{site.url}/0"])
    assert result.waiting == 0
    assert max(Counter(kept(tmp_path)).values()) == 1


# --- why nothing came ---


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    async def look_up(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    result = run(tmp_path, ["http://nowhere.example/"], router=Router(look_up=look_up))
    assert (result.end, result.trouble) == (End.FINISHED, Trouble.NO_SUCH_HOST)
    assert "there is no host nowhere.example" in result.explain()
    assert "spelling" in result.explain()


def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    result = run(tmp_path, [f"http://127.0.0.1:{free_port()}/"])
    assert result.trouble is Trouble.UNREACHABLE
    assert "could not be reached" in result.explain()
    assert [line["status"] for line in lines(tmp_path)] == [-2, -2]


def test_a_private_address(site: Site, tmp_path: Path) -> None:
    result = run(tmp_path, of(site, "/"), allow_private=False)
    assert result.trouble is Trouble.PRIVATE_ADDRESS
    assert "--allow-private" in result.explain()
    assert site.log == []


def test_a_site_that_only_redirects_elsewhere(site: Site, tmp_path: Path) -> None:
    site.page("/", status="301 Moved", Location="http://elsewhere.example/")
    result = run(tmp_path, of(site, "/"))
    assert result.trouble is Trouble.MOVED_AWAY
    assert "redirects to http://elsewhere.example/" in result.explain()


def test_a_site_that_redirects_in_a_circle(site: Site, tmp_path: Path) -> None:
    site.page("/", status="302 Found", Location="/b")
    site.page("/b", status="302 Found", Location="/")
    result = run(tmp_path, of(site, "/"))
    assert result.trouble is Trouble.ONLY_REDIRECTS
    assert "without ever reaching a page" in result.explain()


def test_a_site_that_redirects_to_ever_new_addresses(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: whole("", status="302 Found", Location=f"/?session={len(site.log)}")
    result = run(tmp_path, of(site, "/"), robots=RobotsPolicy.IGNORE, limit_documents=50)
    assert (result.end, result.trouble) == (End.FINISHED, Trouble.ONLY_REDIRECTS)
    assert "without ever reaching a page" in result.explain()


def test_a_seed_that_moves_within_its_domain_takes_the_scope_with_it(site: Site, tmp_path: Path) -> None:
    places = dict.fromkeys(("example.org", "new.example.org"), f"127.0.0.1:{site.port}")
    site.page("example.org/", status="301 Moved", Location="http://new.example.org/start")
    site.page("new.example.org/start", "<a href=/next>")
    site.page("new.example.org/next", "end")
    result = run(tmp_path, ["http://example.org/"], connect_to=places)
    assert site.paths("new.example.org") == ["/robots.txt", "/start", "/next"]
    assert (result.trouble, result.seeds[0].status) == (None, 200)


def test_an_empty_site(site: Site, tmp_path: Path) -> None:
    site.page("/", b"")
    result = run(tmp_path, of(site, "/"))
    assert result.trouble is Trouble.EMPTY
    assert "is an empty page" in result.explain()


def test_a_site_of_errors(site: Site, tmp_path: Path) -> None:
    result = run(tmp_path, of(site, "/not-here"))
    assert result.trouble is Trouble.ERROR_ANSWERS
    assert "returned status 404" in result.explain()


def test_several_troubles_are_all_named(site: Site, tmp_path: Path) -> None:
    result = run(tmp_path, [f"{site.url}/not-here", f"http://127.0.0.1:{free_port()}/"])
    assert result.trouble is Trouble.SEVERAL
    assert "returned status 404" in result.explain()
    assert "could not be reached" in result.explain()


def test_one_good_seed_is_enough(site: Site, tmp_path: Path) -> None:
    site.page("/", "fine")
    result = run(tmp_path, [f"{site.url}/", f"http://127.0.0.1:{free_port()}/"])
    assert result.trouble is None
    assert [outcome.trouble for outcome in result.seeds] == [None, Trouble.UNREACHABLE]


def test_progress_tells_what_goes_on(site: Site, tmp_path: Path) -> None:
    fill(site, 40)
    reports: list[CrawlProgress] = []
    run(
        tmp_path,
        [f"{site.url}/0"],
        on_progress=lambda progress, stop: reports.append(progress),
        progress_s=0.0,
    )
    assert reports[-1].fetched == 47
    assert reports[-1].waiting == 0
    assert reports[-1].host == f"127.0.0.1:{site.port}"
    heads = {
        visit["url"]: visit["head"]
        for visit in map(json.loads, (tmp_path / KEPT_NAME).read_text().splitlines())
    }
    assert reports[-1].size_bytes == sum(
        int(str(line["size"])) + heads[line["url"]] for line in page_lines(tmp_path) if line["path"] != "P"
    )
    assert [progress.fetched for progress in reports] == sorted(progress.fetched for progress in reports)
    assert max(progress.rate for progress in reports) > 0


def test_the_notes_of_a_harvest_can_be_read_by_people(site: Site, tmp_path: Path) -> None:
    site.page("/", "x")
    run(tmp_path, of(site, "/"))
    frontier = LmdbFrontier(tmp_path / "frontier")
    assert json.loads(frontier.recall("totals") or b"")["fetched"] == 1
    frontier.close()
