"""Soft 404: pages that say the same as one that cannot exist are recognised by what they say."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from harvest_crawl import kept, lines, run
from harvest_site import Site, whole

from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.scope.missing_pages import FIRST_DOCUMENTS

SORRY = (
    "<!doctype html><title>{path}</title><h1>{path}</h1><p>There is nothing about {path} here yet."
    '<a href="more/">more</a> <a href="other/">other</a>'
)
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda path: path,
    "underscores": lambda path: path.strip("/").replace("/", "_"),
    "colons": lambda path: path.strip("/").replace("/", ":"),
    "encoded": lambda path: quote(path, safe=""),
    "lower case": lambda path: path.lower(),
    "titles": lambda path: path.strip("/").replace("/", " » ").replace("-", " ").title(),
    "run together": lambda path: path.replace("/", "").replace("-", ""),
    "only the last": lambda path: path.rstrip("/").rpartition("/")[2],
    "not at all": lambda path: "",
}


def _says_yes_to_all(site: Site, form: Callable[[str], str]) -> None:
    site.fallback = lambda asked: whole(SORRY.format(path=form(unquote(asked.target))))


def _annotations(folder: Path) -> list[str]:
    return [note for line in lines(folder) for note in str(line["note"]).split(",") if note]


@pytest.mark.parametrize("form", FORMS)
def test_a_host_that_says_yes_to_all_is_found_out(site: Site, tmp_path: Path, form: str) -> None:
    site.page("/robots.txt", status="404 Not Found")
    site.page(
        "/",
        "".join(f'<a href="/Wind-{letter}/Sea/">section</a>' for letter in "abcdefghij")
        + '<a href="/real.html">',
    )
    site.page("/real.html", '<h1>Real</h1><p>There is something about winds here.<a href="/real2.html">')
    site.page("/real2.html", "<p>Real, too")
    _says_yes_to_all(site, FORMS[form])

    run(tmp_path, [f"{site.url}/"], limit_pages=400)

    probes = [str(line["url"]) for line in lines(tmp_path) if line["note"] == "soft404Probe"]
    assert probes and not set(probes) & set(kept(tmp_path))
    assert {f"{site.url}/real.html", f"{site.url}/real2.html"} <= set(kept(tmp_path))
    # Without the test each response leads to two more, without end; here only those queued before it.
    assert len(kept(tmp_path)) < 13 + 3 * FIRST_DOCUMENTS
    assert "soft404" in _annotations(tmp_path)


@pytest.mark.parametrize("form", ["as it is", "underscores"])
def test_guesses_at_such_a_host_are_wrong_guesses_and_end(site: Site, tmp_path: Path, form: str) -> None:
    site.page("/robots.txt", status="404 Not Found")
    guesses = "".join(f"load('./widget/guess-{number}');" for number in range(60))
    site.page("/", f"<script>{guesses}</script>")
    _says_yes_to_all(site, FORMS[form])

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    notes = _annotations(tmp_path)
    assert notes.count("soft404Probe") == 1
    assert notes.count("soft404") == 20
    assert not any("more/" in url for url in kept(tmp_path))
    assert [line["rule"] for line in lines(tmp_path)].count("guesses") == 40


def test_guesses_that_redirect_to_nothing_are_wrong_guesses_and_end(site: Site, tmp_path: Path) -> None:
    """As at a wiki, which writes the first letter of a title as a capital."""
    guesses = "".join(f"load('./widget-{number}.js');" for number in range(60))
    site.page("/", f"<script>{guesses}</script>")
    site.fallback = lambda asked: (
        whole("", status="301 Moved", location=asked.path.replace("widget", "Widget"))
        if "widget" in asked.path
        else None
    )
    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))
    assert [line["rule"] for line in lines(tmp_path)].count("guesses") >= 30


def test_files_and_pages_are_asked_about_separately(site: Site, tmp_path: Path) -> None:
    """Many servers answer 404 for files that do not exist, and a page for everything else."""
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<script>load('./name'); load('./picture.png')</script>")
    site.fallback = lambda asked: None if "." in asked.path else whole("<p>Welcome to our front page")

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    probes = [line for line in lines(tmp_path) if line["note"] == "soft404Probe"]
    assert sorted(int(str(line["status"])) for line in probes) == [200, 404]
    assert _annotations(tmp_path).count("soft404") == 1


def test_guesses_in_a_folder_with_its_own_answer_end(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<script src=/lib/all.js></script>")
    guesses = "".join(f"load('./guess-{letter}');" for letter in "abcdefghijklmnopqrstuvwxyz")
    site.page("/lib/all.js", guesses, mime="text/javascript")
    site.fallback = lambda asked: (
        whole("<p>Nothing here, go away") if asked.path.startswith("/lib/") else None
    )

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    assert _annotations(tmp_path).count("soft404") == 19
    assert [line["rule"] for line in lines(tmp_path)].count("guesses") == 6


def test_an_honest_host_is_asked_once_and_believed(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<script>load('/guess.html'); load('/none.html')</script>")
    site.page("/guess.html", '<a href="/behind.html">')
    site.page("/behind.html", "<p>found</p>")

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    notes = _annotations(tmp_path)
    assert (notes.count("soft404Probe"), notes.count("soft404")) == (1, 0)
    assert f"{site.url}/behind.html" in kept(tmp_path)


def test_where_robots_forbids_the_question_it_is_not_asked(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", "User-agent: *\nAllow: /guess\nAllow: /$\nDisallow: /\n", mime="text/plain")
    site.page("/", "<script>load('/guess.html')</script>")
    site.page("/guess.html", "<p>found</p>")

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    assert sorted(set(site.paths())) == ["/", "/guess.html", "/robots.txt"]


def test_pages_that_differ_in_few_words_keep_their_links(site: Site, tmp_path: Path) -> None:
    """A template says much on every page; what is not in the address makes the difference."""
    frame = "<p>Museum of the sea, open daily. " + "Ropes and sails. " * 50
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "".join(f'<a href="/room/{letter}">room</a>' for letter in "abcdefghijklm"))
    for number, letter in enumerate("abcdefghijklm"):
        site.page(f"/room/{letter}", f"{frame}<p>{'knot ' * (number + 1)}<a href='/thing/{letter}'>thing</a>")
        site.page(f"/thing/{letter}", f"<p>thing {letter}")
    site.fallback = lambda asked: whole(f"{frame}<a href='x/'>")

    run(tmp_path, [f"{site.url}/"], limit_pages=200)

    assert {f"/thing/{letter}" for letter in "abcdefghijklm"} <= {asked.path for asked in site.log}


def test_a_shell_is_not_a_page_that_says_something(site: Site, tmp_path: Path) -> None:
    """Without a browser all routes of a single-page application are the same shell, and so is the probe."""
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<script>load('./route')</script>" + "".join(f'<a href="/r/{n}">' for n in range(3)))
    site.fallback = lambda asked: (
        None if "." in asked.path else whole('<div id="root"></div><script src="/app.js"></script>')
    )
    site.page("/app.js", "start()", mime="text/javascript")

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    assert {f"{site.url}/r/{number}" for number in range(3)} <= set(kept(tmp_path))


def test_what_was_found_out_is_known_after_a_restart(site: Site, tmp_path: Path) -> None:
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<script>load('./a'); load('./b'); load('./c')</script>")
    _says_yes_to_all(site, FORMS["underscores"])

    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True), limit_pages=2)
    run(tmp_path, [f"{site.url}/"], links=LinkLimits(guess=True))

    notes = _annotations(tmp_path)
    assert (notes.count("soft404Probe"), notes.count("soft404")) == (1, 3)
