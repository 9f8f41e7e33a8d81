"""Pages in a real browser as people see them: signed in, on a screen and on a phone, and accessible (axe).

With WEBDEPOT_TEST_PICTURES set to a folder, a screenshot of every checked page is saved there, in the
language WEBDEPOT_TEST_LANGUAGE.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

PASSWORD = "correct horse battery"
WIDTHS = (1280, 375)
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
_AXE = Path(__file__).parent / "web" / "vendor" / "axe.min.js"
LANGUAGE = os.environ.get("WEBDEPOT_TEST_LANGUAGE", "en")
_PICTURES = os.environ.get("WEBDEPOT_TEST_PICTURES", "")
needs_axe = pytest.mark.skipif(not _AXE.exists(), reason="python scripts/vendor.py --tests fetches axe")


@contextmanager
def signed_in(browser: Browser, portal: str, name: str) -> Iterator[Page]:
    """A page of a person who has signed in."""
    context = browser.new_context(
        viewport={"width": WIDTHS[0], "height": 900}, bypass_csp=True, locale=LANGUAGE
    )
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(f"{portal}/sign-in")
    page.fill("input[name=name]", name)
    page.fill("input[name=password]", PASSWORD)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)
    yield page
    context.close()


def look_at(page: Page, portal: str, path: str, *, status: int = 200) -> None:
    """Check that a page exists, fits a screen and a phone, and has no accessibility problem, on the screen in
    light and on the phone in dark colours.
    """
    for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        answer = page.goto(portal + path)
        assert answer is not None and answer.status == status, path
        _fits(page, path, width)
        assert _faults(page) == [], (path, scheme, width)
    page.emulate_media(color_scheme=SCHEMES[0])


def look(page: Page, name: str) -> None:
    """The same for the page that is open, for example the answer to a form; in light and dark colours."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            _fits(page, f"{name}-{scheme}", width)
            assert _faults(page) == [], (name, scheme, width)
    page.emulate_media(color_scheme=SCHEMES[0])
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})


def _fits(page: Page, name: str, width: int) -> None:
    if _PICTURES:
        file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
        page.screenshot(path=f"{_PICTURES}/{file}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)


def _faults(page: Page) -> list[tuple[str, str]]:
    """Accessibility problems of any severity, each with the first element that has it. Folded parts are
    opened first, as axe leaves out what is not shown.
    """
    page.evaluate("for (const part of document.querySelectorAll('main details')) part.open = true")
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { iframes: false, resultTypes: ['violations'] })")
    return [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]]
