"""Soft 404: hosts that answer 200 to everything are recognised by a request for a page that cannot exist."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from harvest_crawl import FileKeeper, kept, lines, run
from harvest_site import Asked, Site, whole

from webdepot.harvest.answer import Kept
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.scope.missing_pages import SUSPICIOUS
from webdepot.model import Visit

SORRY = (
    "<!doctype html><title>Sorry</title><p>There is no {path} here (request {number})."
    '<a href="more/">more</a> <a href="other/">other</a>'
)


class _Repeats(FileKeeper):
    """Knows payloads that it kept before, as the service's keeper does."""

    def __init__(self, folder: Path, marks: Mapping[str, int]) -> None:
        super().__init__(folder, marks)
        self._known: set[str] = set()

    def keep(self, visit: Visit) -> Kept:
        made = super().keep(visit)
        repeated = made.digest in self._known
        self._known.add(made.digest)
        return Kept(digest=made.digest, duplicate=repeated, repeated=repeated)


def _says_yes_to_all(site: Site, text: str) -> None:
    def answer(asked: Asked) -> bytes:
        return whole(
            text.format(path=asked.target, number=hashlib.sha1(asked.target.encode()).hexdigest()[:6] + "7")
        )

    site.fallback = answer


def test_a_host_that_says_yes_to_all_is_found_out(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", status="404 Not Found")
    site.page(
        "/", "".join(f'<a href="/s{number}/">section</a>' for number in range(3)) + '<a href="/real.html">'
    )
    site.page("/real.html", '<title>Real</title><a href="/real2.html">')
    site.page("/real2.html", "<title>Real, too</title>")
    _says_yes_to_all(site, SORRY.replace("{path}", "page").replace("{number}", ""))

    run(tmp_path, [f"{site.url}/"], keeper_of=_Repeats, limit_pages=400)

    logged = lines(tmp_path)
    probes = [line for line in logged if line["note"] == "soft404Probe"]
    assert len(probes) == 1
    assert probes[0]["url"] not in kept(tmp_path)
    assert any(line["note"] == "warcRevisit:digest,soft404" for line in logged)
    assert {f"{site.url}/real.html", f"{site.url}/real2.html"} <= set(kept(tmp_path))
    # Without the test each response leads to two more, without end; here only those queued before it are
    # fetched.
    assert SUSPICIOUS < len(kept(tmp_path)) < 100


def test_guesses_at_such_a_host_are_wrong_guesses(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", status="404 Not Found")
    guesses = "".join(f"load('/guess-{number}.html');" for number in range(60))
    site.page("/", f"<script>{guesses}</script>")
    _says_yes_to_all(site, SORRY)

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    notes = [line["note"] for line in lines(tmp_path)]
    assert notes.count("soft404Probe") == 1
    assert notes.count("soft404") == 60
    assert not any("more/" in url for url in kept(tmp_path))


def test_an_honest_host_is_asked_once_and_believed(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<script>load('/guess.html'); load('/none.html')</script>")
    site.page("/guess.html", '<a href="/behind.html">')
    site.page("/behind.html", "<p>found</p>")

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    notes = [line["note"] for line in lines(tmp_path)]
    assert (notes.count("soft404Probe"), notes.count("soft404")) == (1, 0)
    assert f"{site.url}/behind.html" in kept(tmp_path)


def test_where_robots_forbids_the_question_it_is_not_asked(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "User-agent: *\nAllow: /guess\nAllow: /$\nDisallow: /\n", mime="text/plain")
    site.page("/", "<script>load('/guess.html')</script>")
    site.page("/guess.html", "<p>found</p>")

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    assert sorted(set(site.paths())) == ["/", "/guess.html", "/robots.txt"]
