"""Results downloaded as WACZ are replayed by another archive, with everything that their pages need."""

import gzip
import json
import zipfile
from collections.abc import Iterator

import pytest
from leaks import Leaks, launched
from museum import EDITIONS, NOW, PICTURE, SITE, Served, Warc, ask, make_home, serving
from playwright.sync_api import Browser, expect

from webdepot.access.policy import ANYONE, RuleAnswer
from webdepot.archive import Archive
from webdepot.services import pipeline
from webdepot.services.access import rules
from webdepot.services.access.export import export
from webdepot.services.access.export.export import ExportForm
from webdepot.services.admin import setup


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Leaks.listening() as leaks, launched(leaks) as made:
        yield made


def records(archive: Archive, words: str) -> list[tuple[str, str]]:
    """(address, day) of each record of an export."""
    data = gzip.decompress(b"".join(export.export(archive, words, ExportForm.WARC, reader=ANYONE)))
    heads = [block.partition(b"\r\n\r\n")[0].decode() for block in data.split(b"WARC/1.1\r\n")[1:]]
    fields = [dict(line.split(": ", 1) for line in head.splitlines()) for head in heads]
    return [(each["WARC-Target-URI"], each["WARC-Date"][:10]) for each in fields]


@pytest.mark.browser
def test_an_exported_wacz_is_replayed_with_picture_and_style(served: Served, browser: Browser, tmp_path):
    wacz = tmp_path / "search.wacz"
    wacz.write_bytes(
        ask(f"{served.portal}/search/export?q=clock+edition&from=2012-06&to=2012-06&form=wacz").body
    )
    with zipfile.ZipFile(wacz) as made:
        pages = [json.loads(line) for line in made.read("pages/pages.jsonl").splitlines()]
        lines = made.read("indexes/index.cdx").decode().splitlines()
    assert [page["url"] for page in pages[1:]] == [f"{SITE}/", f"{SITE}/"]
    assert {line.split(" ")[0] for line in lines} == {
        f"org,example){path}" for path in ("/", "/app.js", "/picture.png", "/style.css")
    }
    setup.create(tmp_path / "home", clock=lambda: NOW)
    with Archive.open(tmp_path / "home", clock=lambda: NOW) as archive:
        pipeline.import_files(archive, [wacz], collection="taken", in_place=True)
    with serving(tmp_path / "home") as other:
        page = browser.new_page()
        try:
            page.goto(f"{other.portal}/all/{EDITIONS[1]}/{SITE}/")
            inside = page.frame_locator("#frame")
            expect(inside.locator("h1")).to_have_text("Museum of clocks, edition 2", timeout=20_000)
            assert (
                inside.locator("#picture").evaluate(
                    "picture => picture.decode().then(() => picture.naturalWidth)"
                )
                == 2
            )
            assert (
                inside.locator("h1").evaluate("element => getComputedStyle(element).color")
                == "rgb(2, 100, 50)"
            )
        finally:
            page.close()


def test_parts_are_those_nearest_in_time_and_parts_of_parts_and_nothing_closed(tmp_path):
    site, early, late = "http://parts.example", "20100101000000", "20200101000000"
    warc = Warc(tmp_path / "parts.warc.gz")
    warc.response(
        f"{site}/",
        early,
        b"<title>Whole</title>A windmill.<link rel=stylesheet href=/s.css>"
        b"<img src=/moved.png><iframe src=/f.html>",
    )
    warc.response(f"{site}/", late, b"<title>Later</title><p>A harbour.<img src=/new.png>")
    for stamp in (early, late):
        warc.response(f"{site}/s.css", stamp, b"@import '/more.css'; p { color: red }", mime="text/css")
        warc.response(f"{site}/more.css", stamp, b"p { background: url(/ground.png) }", mime="text/css")
        warc.response(f"{site}/ground.png", stamp, PICTURE, mime="image/png")
        warc.response(f"{site}/new.png", stamp, PICTURE + stamp.encode(), mime="image/png")
        warc.response(f"{site}/secret.png", stamp, PICTURE + b"secret", mime="image/png")
    warc.response(
        f"{site}/moved.png",
        early,
        b"",
        mime="text/plain",
        status="302 Found",
        headers=(("Location", "/there.png"),),
    )
    warc.response(f"{site}/there.png", late, PICTURE + b"there", mime="image/png")
    warc.response(
        f"{site}/f.html",
        early,
        b"<title>Frame</title><img src=/secret.png><a href=/linked.html>a link is no part</a>",
    )
    warc.response(f"{site}/linked.html", early, b"<title>Linked</title>")
    home = make_home(tmp_path / "home", warc.write())
    with Archive.open(home, clock=lambda: NOW) as archive:
        found = records(archive, "windmill")
        assert found[0] == (f"{site}/", "2010-01-01") and len(found) == len(set(found))
        expected = {
            "/s.css": 2010,
            "/more.css": 2010,
            "/ground.png": 2010,
            "/moved.png": 2010,
            "/there.png": 2020,
            "/f.html": 2010,
        }
        assert {(url.removeprefix(site), int(day[:4])) for url, day in found[1:]} == {
            *expected.items(),
            ("/secret.png", 2010),
        }
        assert sorted(records(archive, "harbour")) == [
            (f"{site}/", "2020-01-01"),
            (f"{site}/new.png", "2020-01-01"),
        ]
        rules.add(archive, f"{site}/secret.png", answer=RuleAnswer.HIDE, reason="closed")
        assert (f"{site}/secret.png", "2010-01-01") not in records(archive, "windmill")
        rules.add(archive, f"{site}/ground.png", answer=RuleAnswer.HIDE, captured_to="2015")
        assert (f"{site}/ground.png", "2020-01-01") in records(archive, "windmill"), (
            "the nearest that is open, as replay shows it"
        )
