"""Test crawls: what they show about a scope, and that they keep nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from small_sites import cleared, small_site
from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound, NotPermitted
from webdepot.services.admin import setup
from webdepot.services.harvest import crawl_test, harvests, profiles
from webdepot.services.permission import owner_answers
from webdepot.services.permission.owner_answers import OwnerReply

PROFILE = 'delay_s = 0\nfetch = "plain"\n[[rules]]\nreject = "extension"\nof = ["avi"]\n'
PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /private/\n",
    "/": "<title>Home</title><p>The home page has enough text to be read without scripts.</p>"
    "<a href=/film.avi>f</a><a href=/film2.avi>f</a><a href=/private/a>p</a><a href=http://else.example/>e</a>"
    "<a href=/gone>g</a>" + "".join(f"<a href=/page{number}>{number}</a>" for number in range(9)),
    "/page0": "<title>App</title><div id=app></div><script src=/app.js></script>",
} | {
    f"/page{number}": f"<title>{number}</title><p>Page {number} says something.</p>" for number in range(1, 9)
}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    setup.create(tmp_path / "home", settings="[harvest]\nallow_private = true\n")
    with Archive.open(tmp_path / "home") as archive:
        profiles.save(archive, "quick", PROFILE)
        yield archive


@pytest.fixture
def site() -> Iterator[str]:
    with small_site(lambda path: PAGES.get(path, "")) as address:
        yield f"{address}/"


def test_a_test_crawl_shows_what_is_taken_and_left_out_and_keeps_nothing(archive: Archive, site: str):
    done = crawl_test.run(archive, crawl_test.begin(archive, [site], profile="quick"))
    assert (done.state, done.pages, done.empty_pages, done.waiting) == ("done", 10, 1, 0)
    left_out = {row.name: (row.count, row.examples[0]) for row in done.sample.left_out}
    assert left_out["outside"] == (1, "http://else.example/")
    assert left_out["extension"] == (2, f"{site}film.avi")
    assert left_out["robots"] == (1, f"{site}private/a")
    assert [(row.name, row.examples) for row in done.sample.errors if row.name == "404"]
    assert sum(row.count for row in done.sample.taken) >= 10
    assert [row.count for row in done.sample.robots] == [200]
    read = crawl_test.get(archive, done.id)
    assert (read.sample, read.note) == (done.sample, done.note), "another process shows the same"
    kept = [path for path in archive.home.rglob("*") if path.suffix in (".gz", ".open", ".jsonl")]
    assert not kept and not list(archive.home.glob(".testing-*")) and not harvests.latest(archive, 9)


def test_it_stops_at_its_limit_and_says_what_else_is_in_scope(archive: Archive, site: str):
    done = crawl_test.run(archive, crawl_test.begin(archive, [site], profile="quick", limit_pages=3))
    assert done.pages == 3 and done.waiting >= 5 and f"{site}page8" in done.waiting_examples


def test_what_cannot_be_tested_is_refused(archive: Archive, site: str):
    for wrong in ([], ["no address"], [f"{site}{number}" for number in range(21)]):
        with pytest.raises(InputError):
            crawl_test.begin(archive, wrong)
    with pytest.raises(InputError, match="between 1 and 50"):
        crawl_test.begin(archive, [site], limit_pages=51)
    with pytest.raises(NotFound, match="profile"):
        crawl_test.begin(archive, [site], profile="nothing")
    owner_answers.reply(archive, cleared(archive, site), OwnerReply.REFUSAL, words="no")
    with pytest.raises(NotPermitted):
        crawl_test.begin(archive, [site], profile="quick")
    with pytest.raises(NotFound):
        crawl_test.get(archive, "../../../etc/xx")


def test_private_addresses_are_refused_as_configured(tmp_path: Path, site: str):
    setup.create(tmp_path / "home", settings="[harvest]\nallow_private = false\n")
    with Archive.open(tmp_path / "home") as archive:
        done = crawl_test.run(archive, crawl_test.begin(archive, [site]))
    assert done.pages == 0 and "no public address" in str(done.sample.errors) + str(done.sample.left_out)
