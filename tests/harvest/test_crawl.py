"""Whole crawls against real servers: complete, each page once, polite, recoverable, and ended with a reason."""

import asyncio
import io
import os
import pkgutil
import signal
import time
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pikepdf
import pytest
from harvest_crawl import FileKeeper, kept, lines, run
from harvest_site import Asked, Site, fill, of, whole

from webdepot.errors import InputError
from webdepot.guard.process import Limits
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.links import pdf
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.report.result import End, Trouble
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind

# --- complete and once ---


def test_everything_in_scope_is_fetched_once_and_nothing_else(site: Site, tmp_path: Path) -> None:
    paths = fill(site, 120)
    site.page(
        "/0",
        "<a href=/1><a href=/2><a href=http://other.example/><a href=/robots.txt><a href=/gone><img src=/i0.png>",
    )
    result = run(tmp_path, [f"{site.url}/0"])
    expected = sorted(of(site, *paths, "/gone", "/robots.txt"))
    assert sorted(kept(tmp_path)) == expected
    probes = [str(line["url"]) for line in lines(tmp_path) if line["note"] == "soft404Probe"]
    assert len(probes) == 1
    assert sorted(of(site, *site.paths())) == sorted([*expected, *probes])
    assert (result.end, result.trouble, result.waiting) == (End.FINISHED, None, 0)
    assert result.counts["fetched"] == len(expected) - 1  # robots.txt is not counted
    assert result.counts["errors"] == 1
    assert result.explain().endswith("All addresses in scope were fetched.")


def test_robots_txt_comes_first_and_is_kept_and_logged(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /no\n", mime="text/plain")
    site.page("/", "x")
    run(tmp_path, [f"{site.url}/"])
    assert site.paths() == ["/robots.txt", "/"]
    assert kept(tmp_path) == of(site, "/robots.txt", "/")
    assert [(line["path"], line["status"]) for line in lines(tmp_path)] == [("P", 200), ("", 200)]


def test_embedded_parts_come_from_other_hosts_after_their_robots_txt(site: Site, tmp_path: Path) -> None:
    hosts = ("www.example.org", "cdn.example", "shut.example")
    site.page(
        "www.example.org/",
        "<img src=http://cdn.example/x.png><img src=http://shut.example/y.png><a href=http://cdn.example/page>",
    )
    site.page("cdn.example/x.png", b"png", mime="image/png")
    site.page("shut.example/robots.txt", "User-agent: *\nDisallow: /", mime="text/plain")
    result = run(
        tmp_path,
        ["http://www.example.org/"],
        connect_to=dict.fromkeys(hosts, f"127.0.0.1:{site.port}"),
        allow_private=False,
    )
    assert site.paths("cdn.example") == ["/robots.txt", "/x.png"]
    assert site.paths("shut.example") == ["/robots.txt"]
    assert result.counts["robots_refused"] == 1


def test_outlinks_are_told_to_the_keeper_with_their_hops(site: Site, tmp_path: Path) -> None:
    site.page("/", "<a href=/x><img src=/y.png><a href=http://other.example/>")
    keepers: list[FileKeeper] = []

    def keeper_of(folder: Path, marks: Mapping[str, int]) -> FileKeeper:
        keepers.append(FileKeeper(folder, marks))
        return keepers[0]

    run(tmp_path, [f"{site.url}/"], keeper_of=keeper_of)
    outlinks = keepers[0].outlinks[f"{site.url}/"]
    assert outlinks == [
        (f"{site.url}/x", "L"),
        (f"{site.url}/y.png", "E"),
        ("http://other.example/", "L"),
    ]


def test_sitemaps_of_robots_txt_are_read(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "Sitemap: /map.xml", mime="text/plain")
    site.page("/map.xml", f"<urlset><url><loc>{site.url}/hidden</loc></url></urlset>", mime="application/xml")
    site.page("/", "nothing here")
    run(tmp_path, [f"{site.url}/"])
    assert "/hidden" in site.paths()


def pdf_with_link(address: str) -> bytes:
    document, out = pikepdf.new(), io.BytesIO()
    action = pikepdf.Dictionary(S=pikepdf.Name.URI, URI=pikepdf.String(address))
    link = pikepdf.Dictionary(Type=pikepdf.Name.Annot, Subtype=pikepdf.Name.Link, A=action)
    document.add_blank_page().obj["/Annots"] = pikepdf.Array([link])
    document.save(out)
    return out.getvalue()


def test_other_hosts_are_asked_while_the_links_of_a_pdf_are_read(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that reads them stands still until five more pages of the other host are asked for."""
    monkeypatch.setattr(pdf, "LIMITS", Limits(time_s=300.0, longest_s=300.0))
    monkeypatch.setattr(pdf, "_idle", [])
    assert pdf.references(pdf_with_link("http://a.example/"), most=1)
    (reader,) = pdf._idle
    os.kill(reader.pid, signal.SIGSTOP)
    asked_since: list[int] = []
    is_sent = False

    async def send_pdf(writer: asyncio.StreamWriter, asked: Asked) -> None:
        nonlocal is_sent
        writer.write(whole(pdf_with_link("http://a.example/linked"), mime="application/pdf"))
        await writer.drain()
        is_sent = True

    async def send_page(writer: asyncio.StreamWriter, asked: Asked) -> None:
        number = int(asked.target[1:])
        if is_sent:
            asked_since.append(number)
        if len(asked_since) == 5:
            os.kill(reader.pid, signal.SIGCONT)
        writer.write(whole(f"<a href=/{number + 1}>" if len(asked_since) < 5 else "the end"))
        await writer.drain()

    site.answers["a.example/x.pdf"] = send_pdf
    site.page("a.example/linked", "found in the PDF")
    for number in range(1, 200):
        site.answers[f"b.example/{number}"] = send_page
    places = dict.fromkeys(("a.example", "b.example"), f"127.0.0.1:{site.port}")
    try:
        run(
            tmp_path,
            ["http://a.example/x.pdf", "http://b.example/1"],
            connect_to=places,
            limits=FetchLimits(timeout_s=300.0),
        )
    finally:
        reader.close()
    assert len(asked_since) == 5
    assert site.paths("a.example")[-1] == "/linked"


def test_hops_outside_the_scope(site: Site, tmp_path: Path) -> None:
    hosts = ("a.example", "b.example", "c.example", "d.example")
    for host, following in pairwise(hosts):
        site.page(f"{host}/", f"<a href=http://{following}/><a href=/deeper>")
    places = dict.fromkeys(hosts, f"127.0.0.1:{site.port}")
    run(tmp_path, ["http://a.example/"], connect_to=places, scope_limits=ScopeLimits(hops_outside=2))
    asked = {f"{one.host}{one.target}" for one in site.log if one.target != "/robots.txt"}
    assert asked == {"a.example/", "a.example/deeper", "b.example/", "b.example/deeper", "c.example/"}


def test_what_a_rule_rejects_is_logged_once(site: Site, tmp_path: Path) -> None:
    site.page("/", "<img src=/film.avi><a href=/2>")
    site.page("/2", "<img src=/film.avi><a href=/other.avi>")
    run(tmp_path, [f"{site.url}/"], rejects=(r"\.avi$",))
    refused = [line for line in lines(tmp_path) if line["status"] == -5000]
    assert [(line["url"], line["rule"]) for line in refused] == [
        (f"{site.url}/film.avi", "reject"),
        (f"{site.url}/other.avi", "reject"),
    ]
    assert not any(path.endswith(".avi") for path in site.paths())


def test_a_wrong_expression_is_told_before_anything_is_asked(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run(tmp_path, [f"{site.url}/"], rejects=("(",))
    assert site.log == []


# --- robots.txt ---


def test_a_site_that_shuts_everybody_out_ends_at_once_and_says_so(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /", mime="text/plain")
    result = run(tmp_path, of(site, "/", "/other"))
    assert site.paths() == ["/robots.txt"]
    assert (result.end, result.trouble) == (End.FINISHED, Trouble.ROBOTS)
    assert result.shut_out == (f"127.0.0.1:{site.port}",)
    assert "excludes all crawlers" in result.reason
    assert "Disallow: /" in result.explain()
    refused = [line for line in lines(tmp_path) if line["status"] == -9998]
    assert sorted(str(line["url"]) for line in refused) == sorted(of(site, "/", "/other"))


def test_robots_txt_can_be_ignored_but_is_still_kept(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /", mime="text/plain")
    site.page("/", "x")
    result = run(tmp_path, of(site, "/"), robots=RobotsPolicy.IGNORE)
    assert site.paths() == ["/robots.txt", "/"]
    assert (result.trouble, result.shut_out) == (None, ())


def test_robots_txt_with_an_error_of_the_server_forbids_all(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "down", status="503 Service Unavailable")
    result = run(tmp_path, of(site, "/"))
    assert site.paths() == ["/robots.txt"] * 5
    assert result.trouble is Trouble.ROBOTS
    assert "robots.txt answers 503" in result.explain()


def test_redirects_of_robots_txt_are_followed_and_count_for_both_hosts(site: Site, tmp_path: Path) -> None:
    places = dict.fromkeys(("a.example", "www.a.example"), f"127.0.0.1:{site.port}")
    site.page("a.example/robots.txt", status="301 Moved", Location="http://www.a.example/robots.txt")
    site.page("a.example/", status="301 Moved", Location="http://www.a.example/")
    site.page("www.a.example/robots.txt", "User-agent: *\nDisallow: /no", mime="text/plain")
    site.page("www.a.example/", "<a href=/no><a href=http://a.example/no><a href=/yes>")
    run(tmp_path, ["http://a.example/"], connect_to=places)
    assert sorted(f"{asked.host}{asked.target}" for asked in site.log) == [
        *(
            "a.example/",
            "a.example/robots.txt",
            "www.a.example/",
            "www.a.example/robots.txt",
            "www.a.example/yes",
        )
    ]


def test_robots_txt_that_redirects_for_ever_means_no_rules(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: (
        whole("", status="302 Found", Location=f"{asked.path}x")
        if asked.path.startswith("/robots.txt")
        else whole("page")
    )
    result = run(tmp_path, of(site, "/"))
    assert [path for path in site.paths() if "robots" in path] == [
        f"/robots.txt{'x' * number}" for number in range(6)
    ]
    assert result.trouble is None


def test_a_hundred_robots_rules_hold_for_each_page(site: Site, tmp_path: Path) -> None:
    site.page(
        "/robots.txt",
        "User-agent: *\n" + "".join(f"Disallow: /d{number}/\n" for number in range(100)),
        mime="text/plain",
    )
    site.page("/", "".join(f"<a href=/d{number}/x><a href=/ok{number}>" for number in range(100)))
    result = run(tmp_path, of(site, "/"))
    assert result.counts["robots_refused"] == 100
    assert not any(path.endswith("/x") for path in site.paths())
    assert sum(path.startswith("/ok") for path in site.paths()) == 100


# --- politeness, from the server's log ---


def overlaps(log: list[Asked]) -> bool:
    return any(
        later.began_s < earlier.ended_s
        for earlier, later in pairwise(sorted(log, key=lambda asked: asked.began_s))
    )


def test_one_request_at_a_time_and_the_pause_kept_for_each_server(site: Site, tmp_path: Path) -> None:
    hosts = [f"h{number}.example" for number in range(6)]

    async def slow(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(0.02)
        asked.ended_s = time.monotonic()
        writer.write(
            whole("".join(f"<a href=http://{host}/{number}>" for host in hosts for number in range(5)))
        )
        await writer.drain()

    for host in hosts:
        for number in range(5):
            site.answers[f"{host}/{number}"] = slow
    # Two hosts at each of three addresses.
    places = {host: f"127.0.0.{1 + number % 3}:{site.port}" for number, host in enumerate(hosts)}
    run(
        tmp_path,
        ["http://h0.example/0"],
        connect_to=places,
        scope=ScopeKind.ANY,
        workers=10,
        manners=Manners(delay_s=0.05, delay_factor=0.0),
    )
    by_server = [
        [asked for asked in site.log if places[asked.host] == place] for place in set(places.values())
    ]
    assert [len(log) for log in by_server] == [12] * 3
    for log in by_server:
        assert not overlaps(log)
        assert min(later.began_s - earlier.ended_s for earlier, later in pairwise(log)) >= 0.05
    assert overlaps(site.log), "different servers are asked at the same time"


def test_the_pause_grows_with_the_time_of_the_answer_and_with_crawl_delay(site: Site, tmp_path: Path) -> None:
    async def slow(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(0.1)
        asked.ended_s = time.monotonic()
        writer.write(whole("<a href=/after>"))
        await writer.drain()

    site.answers["/"] = slow
    run(tmp_path / "factor", of(site, "/"), manners=Manners(delay_s=0.0, delay_factor=2.0))
    page, after = (next(asked for asked in site.log if asked.target == target) for target in ("/", "/after"))
    assert after.began_s - page.ended_s >= 0.2
    site.log.clear()
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0.3", mime="text/plain")
    run(tmp_path / "delay", of(site, "/"), manners=Manners(delay_s=0.0, delay_factor=0.0))
    page, after = (next(asked for asked in site.log if asked.target == target) for target in ("/", "/after"))
    assert after.began_s - page.ended_s >= 0.3


def test_too_many_requests_holds_for_the_whole_host(site: Site, tmp_path: Path) -> None:
    answers = iter([whole("busy", status="429 Too Many Requests", Retry_After="1"), whole("<p>fine")])

    async def busy(writer: asyncio.StreamWriter, asked: Asked) -> None:
        asked.ended_s = time.monotonic()
        writer.write(next(answers))

    site.answers["/busy"] = busy
    site.page("/", "<img src=/busy><a href=/other>")
    site.page("/other", "x")
    waits: dict[str, int] = {}
    result = run(
        tmp_path,
        of(site, "/"),
        progress_s=0.05,
        on_progress=lambda progress, stop: waits.update({wait.host: wait.status for wait in progress.waits}),
    )
    times = {index: asked.began_s for index, asked in enumerate(site.log)}
    assert list(waits.values()) == [429], "people who watch see what it waits for"
    assert site.paths() == ["/robots.txt", "/", "/busy", "/busy", "/other"]
    assert times[3] - site.log[2].ended_s >= 1.0
    assert (result.counts["errors"], kept(tmp_path).count(f"{site.url}/busy")) == (0, 1)


def test_at_most_five_tries_with_growing_distance_and_the_others_go_on(site: Site, tmp_path: Path) -> None:
    site.page("/broken", "oops", status="500 Internal Server Error")
    site.page("/", "<img src=/broken>" + "".join(f"<a href=/{number}>" for number in range(5)))
    run(
        tmp_path,
        of(site, "/"),
        manners=Manners(delay_s=0.0, delay_factor=0.0, retry_delay_s=0.05, retry_factor=2.0),
    )
    tries = [asked.began_s for asked in site.log if asked.target == "/broken"]
    assert len(tries) == 5
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert all(gap >= distance for gap, distance in zip(gaps, (0.05, 0.1, 0.2, 0.4), strict=True))
    assert site.paths()[-1] == "/broken", "the other pages did not wait for it"
    line = next(line for line in lines(tmp_path) if line["url"] == f"{site.url}/broken")
    assert (line["status"], line["tries"]) == (500, 5)
    assert kept(tmp_path).count(f"{site.url}/broken") == 1


def test_a_lost_connection_is_tried_again(site: Site, tmp_path: Path) -> None:
    answers = iter([b"", b"", whole("<p>at last")])

    async def flaky(writer: asyncio.StreamWriter, asked: Asked) -> None:
        data = next(answers)
        writer.write(data)
        if not data:
            writer.close()

    site.answers["/"] = flaky
    result = run(tmp_path, of(site, "/"))
    assert result.counts == {**result.counts, "fetched": 1, "errors": 0}


# --- hostile sites ---


def test_redirect_loops_and_endless_redirects_end(site: Site, tmp_path: Path) -> None:
    site.page("/", "<a href=/loop1><a href=/far/0>")
    site.page("/loop1", status="302 Found", Location="/loop2")
    site.page("/loop2", status="302 Found", Location="/loop1")
    site.fallback = lambda asked: (
        whole("", status="302 Found", Location=f"/far/{int(asked.path[5:]) + 1}")
        if asked.path.startswith("/far/")
        else None
    )
    run(tmp_path, of(site, "/"))
    assert Counter(site.paths())["/loop1"] == Counter(site.paths())["/loop2"] == 1
    assert sum(path.startswith("/far/") for path in site.paths()) == 11


def test_an_endless_calendar_ends_with_the_hops(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: (
        whole(f"<a href=/day?n={int(asked.target.partition('=')[2] or 0) + 1}>next</a>")
        if asked.path == "/day"
        else None
    )
    result = run(tmp_path, of(site, "/day"), scope_limits=ScopeLimits(hops=30))
    assert result.end is End.FINISHED
    assert result.counts["fetched"] == 31


def test_relative_links_gone_wrong_end_with_repeating_segments(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: whole("<a href='a/b/'>deeper</a>")
    result = run(tmp_path, of(site, "/"))
    assert result.end is End.FINISHED
    assert result.counts["fetched"] <= 8


def test_a_site_of_every_nastiness_does_not_end_the_crawl(site: Site, tmp_path: Path) -> None:
    async def drip(writer: asyncio.StreamWriter, asked: Asked) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(100):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    nasty = {
        "/no-http": b"what?\r\n\r\n",
        "/status": b"HTTP/1.1 nonsense\r\n\r\n",
        "/flood": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 50_000 + b"\r\n",
        "/chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n<a href=/found-in-lie>",
        "/short": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999\r\n\r\n<a href=/found-in-part>",
        "/latin1": b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n<a href='/caf\xe9'>",
        "/location": b"HTTP/1.1 302 Found\r\nLocation: http://[::bad\r\nContent-Length: 0\r\n\r\n",
    }
    for path, data in nasty.items():
        site.raw(path, data)
    site.answers["/drip"] = drip
    site.page("/huge", "<p>" + "x" * 300_000)
    links = [
        *nasty,
        "/drip",
        "/huge",
        "/ok",
        "http://127.0.0.2:1/private",
        "javascript:x",
        "data:,x",
        "http://user:secret@[bad/",
    ]
    site.page("www.example.org/", "".join(f"<a href='{link}'>" for link in links))
    result = run(
        tmp_path,
        ["http://www.example.org/"],
        scope=ScopeKind.ANY,
        connect_to={"www.example.org": f"127.0.0.1:{site.port}"},
        allow_private=False,
        limits=FetchLimits(timeout_s=0.5, body_bytes=200_000),
        links=LinkLimits(page_bytes=50_000),
    )
    assert (result.end, result.trouble) == (End.FINISHED, None)
    by_url = {str(line["url"]).removeprefix("http://www.example.org"): line for line in lines(tmp_path)}
    assert {path: by_url[path]["status"] for path in ("/no-http", "/status", "/flood")} == dict.fromkeys(
        ["/no-http", "/status", "/flood"], -5
    )
    assert by_url["/short"]["note"] == "discTrunc"
    assert by_url["/drip"]["note"] == "timeTrunc"
    assert by_url["/huge"]["note"] == "lenTrunc,linksCutAtByte:50000"
    assert by_url["http://127.0.0.2:1/private"]["status"] == -5001
    assert {"/found-in-part", "/caf%C3%A9", "/ok"} <= set(site.paths())


# --- errors of this program ---


@pytest.mark.parametrize(
    ("step", "is_kept"),
    [
        ("webdepot.harvest.politeness.server_turns.ServerTurns.ask", False),
        ("webdepot.harvest.crawl_state.CrawlState.extract", True),
        ("webdepot.harvest.link_intake.LinkIntake.take_in", True),
        ("webdepot.harvest.judge.CrawlJudge.learn", True),
    ],
)
def test_an_error_of_the_program_on_one_page_does_not_end_the_crawl(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, is_kept: bool
) -> None:
    paths = fill(site, 20)
    owner, _, name = step.rpartition(".")
    usual = getattr(pkgutil.resolve_name(owner), name)

    def failing(self, subject, *given, **named):
        candidate = getattr(subject, "candidate", subject)
        if candidate.url.endswith("/7"):
            raise ZeroDivisionError("on this page")
        return usual(self, subject, *given, **named)

    monkeypatch.setattr(step, failing)
    result = run(tmp_path, [f"{site.url}/0"], program_errors=1)
    assert result.end is End.FINISHED and result.counts["program_errors"] == 1
    assert result.counts["errors"] == (not is_kept)
    assert set(of(site, *paths)) - set(kept(tmp_path)) == set(of(site, *(() if is_kept else ["/7"])))
    [line] = [line for line in lines(tmp_path) if str(line["url"]).endswith("/7")]
    assert "ZeroDivisionError: on this page (test_crawl.py" in f"{line['reason']}{line['note']}"


def test_an_error_of_the_archive_ends_the_crawl(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(site, 5)

    def failing(*given: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("webdepot.harvest.link_intake.LinkIntake.take_in", failing)
    with pytest.raises(OSError, match="Input/output error"):
        run(tmp_path, [f"{site.url}/0"])
