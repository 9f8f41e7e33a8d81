"""The sample site in a real browser, as its visitors would have seen it: frames, slide show, fetched data,
the map's pins.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from webdepot.demo.resource import HOST, MAP_HOST
from webdepot.demo.server import DemoSite
from webdepot.demo.site import EDITIONS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoSite]:
    with DemoSite() as site:
        yield site


@pytest.fixture(scope="module")
def page(demo: DemoSite) -> Iterator[Page]:
    """A browser for which every host name leads to the sample site."""
    with sync_playwright() as playwright:
        rules = f"--host-resolver-rules=MAP * {demo.address}"
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", rules]
        )
        yield browser.new_page()
        browser.close()


def test_the_tour_of_2003_runs_in_frames(demo: DemoSite, page: Page) -> None:
    demo.show(EDITIONS[0])
    page.goto(f"http://{HOST}/rondleiding/")
    page.frame(name="menu").get_by_text("Zaal 2: grens").click()
    expect(page.frame_locator("frame[name=zaal]").get_by_text("De slagboom van de post")).to_be_visible()


def test_the_map_of_2009_explains_its_pins(demo: DemoSite, page: Page) -> None:
    demo.show(EDITIONS[2])
    page.goto(f"http://{MAP_HOST}/")
    page.get_by_title("Lurzebrug").click()
    expect(page.locator("#uitleg")).to_contain_text("In het midden liep de grens")


def test_the_pictures_of_2016_come_in_two_sizes(demo: DemoSite, page: Page) -> None:
    demo.show(EDITIONS[3])
    page.set_viewport_size({"width": 400, "height": 700})
    page.goto(f"http://{HOST}/bezoek.html")
    picture = page.locator("figure img")
    assert picture.evaluate("image => image.decode().then(() => image.currentSrc)").endswith(
        "/img/toren-480.jpg"
    )
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("link", name="Nieuws")).to_be_visible()


def test_the_collection_of_2024_is_fetched_by_script(demo: DemoSite, page: Page) -> None:
    demo.show(EDITIONS[4])
    page.set_viewport_size({"width": 1000, "height": 700})
    page.goto(f"http://{HOST}/collectie.html")
    expect(page).to_have_url(f"http://{HOST}/collectie/")
    expect(page.locator(".stuk")).to_have_count(6)
    page.get_by_role("button", name="textiel").click()
    expect(page.locator(".stuk h3")).to_have_text(["Tafellaken (teruggegeven)", "Smokkeljas"])
