"""Proxy mode in a real browser: every probe of the probe site works, and only the proxy is contacted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from probe_site import GROUPS, HOST, harvested
from proxied import Proxied, serving_proxy

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    home = harvested(tmp_path_factory.mktemp("probe") / "home", udp_port=9)
    with serving_proxy(home) as running:
        yield running


@pytest.fixture(scope="module")
def browser(proxied: Proxied) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            # Browsers offer half of what the probes test to secure origins only.
            args=["--no-sandbox", *QUIET, f"--unsafely-treat-insecure-origin-as-secure=http://{HOST}"],
            proxy={"server": proxied.proxy},
        )
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, ignore_https_errors=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("group", GROUPS)
def test_every_mechanism_works_through_the_proxy(page: Page, group: str):
    page.goto(f"http://{HOST}/{group}.html")
    expect(page.locator("html[data-done]")).to_be_attached(timeout=40_000)
    told: dict[str, str] = page.evaluate("told")
    assert {name: words for name, words in told.items() if words != "ok"} == {}
    assert len(told) >= GROUPS[group]


def test_the_page_of_the_proxy_itself(page: Page):
    page.goto("http://webdepot.proxy/")
    page.get_by_label("Date").fill("2012")
    page.get_by_role("button").click()
    expect(page.get_by_label("Date")).to_have_value("31 December 2012")
    page.get_by_label("Date").fill("")
    page.get_by_role("button").click()
    expect(page.get_by_label("Date")).to_have_value("")


@pytest.mark.skipif(not AXE.exists(), reason="python scripts/vendor.py --tests fetches axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_the_proxy_fit_a_phone_and_keep_nobody_out(
    browser: Browser, scheme: Literal["light", "dark"]
):
    context = browser.new_context(
        viewport={"width": 375, "height": 700}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    for address in ("http://webdepot.proxy/", f"http://{HOST}/nothing-of-the-kind"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, address
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [each["id"] for each in found["violations"]] == [], address
    context.close()
