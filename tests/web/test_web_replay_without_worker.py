"""Pages without a service worker: rewritten on the server, without scripts, and nothing leaks to the live
web.
"""

from collections.abc import Iterator

import pytest
from leaks import Leaks, launched
from museum import EDITIONS, SITE, Served, ask
from playwright.sync_api import Browser, expect


@pytest.fixture(scope="module")
def leaks() -> Iterator[Leaks]:
    with Leaks.listening() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def browser(leaks: Leaks, served: Served) -> Iterator[Browser]:
    with launched(leaks) as made:
        yield made


def test_a_page_is_rewritten_and_acts_no_more(served: Served):
    answer = ask(f"{served.replay}/museums/{EDITIONS[1]}ns_/{SITE}/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f'href="/museums/{EDITIONS[1]}ns_/{SITE}/style.css"' in answer.text
    assert f'src="/museums/{EDITIONS[1]}ns_/http://live.example.net/leak.png"' in answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'none'" in policy and policy.startswith("sandbox ") and "allow-scripts" not in policy
    assert answer.headers["Memento-Datetime"]
    picture = ask(f"{served.replay}/museums/{EDITIONS[1]}ns_/{SITE}/picture.png")
    assert (picture.status, picture.headers["Content-Type"], picture.body[:4]) == (
        200,
        "image/png",
        b"\x89PNG",
    )
    assert ask(f"{served.replay}/museums/{EDITIONS[1]}ns_/{SITE}/never").status == 404
    short = ask(f"{served.replay}/museums/2012ns_/{SITE}/")
    assert (short.status, short.headers["Location"].startswith("/museums/2012")) == (302, True)


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["no workers", "no scripts"])
def test_browsers_without_workers_see_the_page(browser: Browser, served: Served, leaks: Leaks, scripts: bool):
    context = browser.new_context(java_script_enabled=scripts, locale="en")
    try:
        # As in a page that came over plain HTTP, or in a private window of some browsers.
        context.add_init_script("delete Navigator.prototype.serviceWorker")
        page = context.new_page()
        page.goto(f"{served.portal}/museums/{EDITIONS[1]}/{SITE}/")
        frame = page.frame_locator("#frame")
        expect(frame.locator("h1")).to_have_text("Museum of clocks, edition 2")
        expect(frame.locator("h1")).to_have_css("color", "rgb(2, 100, 50)")
        expect(frame.locator("#fetched")).to_have_text("")
        frame.locator("#news").click()
        expect(frame.locator("h1")).to_have_text("News")
    finally:
        context.close()
    assert not [line for line in leaks.asked if "example" in line]
