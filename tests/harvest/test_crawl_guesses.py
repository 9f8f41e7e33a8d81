"""Crawls of sites with scripts: what they load, guesses, closed ports and jump menus."""

import asyncio
import json
from pathlib import Path

from harvest_crawl import lines, run
from harvest_site import Site, fill

from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.report.result import CrawlProgress
from webdepot.harvest.scope import software_rules
from webdepot.harvest.scope.membership import ScopeKind

CATALOGUE = software_rules.of_package()


def test_modules_and_workers_are_taken_to_any_depth_without_guessing(site: Site, tmp_path: Path) -> None:
    site.page("/", "<script type=module src=/js/m0.js></script><script src=/js/old.js></script>")
    for number in range(8):
        script = f'import x from "./m{number + 1}.js"; import("/far/d{number}.js")'
        site.page(f"/js/m{number}.js", script, mime="text/javascript")
    site.page("/js/old.js", "new Worker('worker/w.js')", mime="text/javascript")
    site.page("/worker/w.js", "importScripts('lib.js')", mime="text/javascript")
    for path in ("/js/m8.js", "/worker/lib.js", *(f"/far/d{number}.js" for number in range(8))):
        site.page(path, "1", mime="text/javascript")
    result = run(tmp_path, [f"{site.url}/"])
    assert result.counts["errors"] == 0
    assert {f"/js/m{number}.js" for number in range(9)} < set(site.paths())
    assert {f"/far/d{number}.js" for number in range(8)} < set(site.paths())
    assert {"/worker/w.js", "/worker/lib.js"} < set(site.paths())


def test_guesses_stay_in_the_scope_and_wrong_ones_count_nowhere(site: Site, tmp_path: Path) -> None:
    guesses = "'http://other.example/x.js'", "'http://www.example.org:1/y.js'", "'/none.js'", "'/moved.js'"
    site.page("www.example.org/", f"<script src=/a.js></script><script>load({guesses[0]})</script>")
    site.page("www.example.org/a.js", f"load({', '.join(guesses)})", mime="text/javascript")
    site.page("www.example.org/moved.js", "", status="302 Found", Location="http://other.example/z.js")
    site.page("other.example/robots.txt", "", mime="text/plain")
    result = run(
        tmp_path,
        ["http://www.example.org/"],
        connect_to=dict.fromkeys(("www.example.org", "other.example"), f"127.0.0.1:{site.port}"),
        links=LinkLimits(guess=True),
    )
    assert site.paths("other.example") == []
    assert {"/none.js", "/moved.js"} < set(site.paths("www.example.org"))
    assert (result.counts["errors"], result.waiting) == (0, 0)


def test_wrong_guesses_of_a_library_do_not_hide_what_a_page_asks_for(site: Site, tmp_path: Path) -> None:
    names = ", ".join(f"'/icons/{number}.png'" for number in range(40))
    site.page("/", "<script src=/library.js></script><a href=/table.html>table</a>")
    site.page("/library.js", f"load({names})", mime="text/javascript")
    site.page("/table.html", "<script>new Table({rows: 'rows.json'})</script>")
    site.page("/rows.json", "[]", mime="application/json")
    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))
    assert "/rows.json" in site.paths()
    assert len([path for path in site.paths() if path.startswith("/icons/")]) == 20


def test_what_was_only_guessed_is_no_longer_a_guess_when_a_page_names_it(site: Site, tmp_path: Path) -> None:
    names = ", ".join(f"'/icons/{number}.png'" for number in range(40))
    site.page("/", "<script src=/library.js></script><a href=/manual.html>manual</a>")
    site.page("/library.js", f"load({names}, '/api/ships.json', '/log.html')", mime="text/javascript")
    site.page("/manual.html", "<div data-spec-url=/api/ships.json></div><a href=/log.html>log</a>")
    site.page("/api/ships.json", "{}", mime="application/json")
    site.page("/log.html", "<p>The log")
    result = run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))
    assert {"/api/ships.json", "/log.html"} < set(site.paths())
    assert result.counts["pages"] == 3


def test_a_guessed_host_that_does_not_answer_leaves_nothing_waiting(
    site: Site, closed_port: int, tmp_path: Path
) -> None:
    site.page("/", f"<script>load('http://127.0.0.1:{closed_port}/x.js')</script>")
    result = run(tmp_path, [f"{site.url}/"], scope=ScopeKind.ANY, links=LinkLimits(guess=True))
    assert [line["status"] for line in lines(tmp_path) if str(closed_port) in str(line["url"])]
    assert (result.counts["errors"], result.waiting) == (0, 0)
    assert result.explain().endswith("All addresses in scope were fetched.")


def test_a_closed_port_does_not_stop_the_rest_of_its_machine(
    site: Site, closed_port: int, tmp_path: Path
) -> None:
    """The closed port is tried again only after an hour; the crawl is stopped when all the rest is done."""
    fill(site, 20)
    site.page("/", f"<img src=http://127.0.0.1:{closed_port}/x.png><a href=/0>x</a>")

    def stop_when_done(progress: CrawlProgress, stop: asyncio.Event) -> None:
        if progress.fetched >= 28 or progress.elapsed_s > 120:
            stop.set()

    manners = Manners(delay_s=0.0, delay_factor=0.0, retry_delay_s=3600.0)
    result = run(tmp_path, [f"{site.url}/"], manners=manners, progress_s=0.05, on_progress=stop_when_done)
    assert result.counts["fetched"] == 28
    assert result.waiting == 1


def test_menus_are_followed(site: Site, tmp_path: Path) -> None:
    site.page("/", "<select><option value=a.html>A</option><option value=/b/>B</option></select>")
    site.page("/a.html", "a")
    site.page("/b/", "b")
    run(tmp_path, [f"{site.url}/"])
    assert {"/a.html", "/b/"} < set(site.paths())


def test_nothing_is_guessed_below_the_interface_of_a_blog(site: Site, tmp_path: Path) -> None:
    """The interface is a part of a page, which its script fetches; what it names is content, or nothing."""
    site.page(
        "/",
        '<meta name="generator" content="WordPress 6.1"><script>fetch("/wp-json/wp/v2/media")</script>'
        '<link rel="https://api.w.org/" href="/wp-json/">',
    )
    sizes = {f"s{number}": {"file": f"photo-{number}x512.jpg"} for number in range(30)}
    media = {
        "source_url": f"{site.url}/wp-content/photo.jpg",
        "media_details": {"file": "2025/01/photo.jpg", "sizes": sizes},
        "_links": {"self": [{"href": f"{site.url}/wp-json/wp/v2/media/9"}]},
    }
    site.page("/wp-json/wp/v2/media", json.dumps([media]), mime="application/json")
    site.page("/wp-content/photo.jpg", "jpg", mime="image/jpeg")
    result = run(
        tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True, software=CATALOGUE), software=CATALOGUE
    )
    assert "/wp-content/photo.jpg" in site.paths()
    assert [path for path in site.paths() if path.startswith("/wp-json")] == ["/wp-json/wp/v2/media"]
    assert result.counts["left_out_apis"] > 30
