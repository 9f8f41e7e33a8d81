"""Staff see archived pages that others may not, on origins without sessions; others do not see them because
of it.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from leaks import Leaks, launched
from museum import EDITIONS, NOW, PASSWORD, SITE, Served, ask, make_home, serving
from playwright.sync_api import expect

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.access import rules
from webdepot.web.replay import staff_passes

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, museum) -> Iterator[Served]:
    home = make_home(tmp_path_factory.mktemp("closed") / "home", museum)
    with Archive.open(home, clock=lambda: NOW) as archive:
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], NOW)
        rules.add(archive, SITE, answer=RuleAnswer.REFUSE, public_text="For staff.")
        rules.add(archive, SITE, answer=RuleAnswer.SHOW, access_point=AccessPoint.STAFF)
    with serving(home) as running:
        yield running


def test_staff_open_what_is_closed_to_others(closed: Served):
    page_of = f"/all/{EDITIONS[1]}/{SITE}/"
    assert ask(closed.portal + page_of).status == ask(closed.frame + page_of).status == 451
    with Leaks.listening() as leaks, launched(leaks) as browser:
        page = browser.new_page()
        page.goto(f"{closed.portal}/sign-in?to={page_of}")
        page.get_by_label("Name").fill("curator")
        page.get_by_label("Password").fill(PASSWORD)
        page.locator("main button").click()
        inside = page.frame_locator("#frame")
        expect(inside.locator("#fetched")).to_have_text(f"fetched {EDITIONS[1]}", timeout=30_000)
        assert page.url == closed.frame + page_of
        assert "pass" not in page.frames[1].evaluate("document.cookie")
        (cookie,) = [one for one in page.context.cookies(closed.frame) if one["name"].startswith("pass-")]
        assert cookie["httpOnly"]
        inside.locator("#news").click()
        expect(page.locator(".page-title")).to_have_text("News of 2012", timeout=30_000)
        assert page.url == f"{closed.frame}/all/{EDITIONS[1]}/{SITE}/news.html"
        expect(inside.locator("h1")).to_have_text("News", timeout=30_000)
        browser.close()
    token = cookie["value"]
    raw = f"{closed.replay}/all/{EDITIONS[1]}id_/{SITE}/"
    passed = f"{closed.replay}/all~TOKEN/{EDITIONS[1]}id_/{SITE}/"
    assert ask(passed.replace("TOKEN", token)).status == 200
    good = {"Cookie": f"{staff_passes.COOKIE}={token}"}
    assert ask(raw, headers=good).status == 451, "archived scripts can set cookies there"
    assert ask(f"{closed.portal}/status", headers=good).status == 303, "no session of the portal"
    assert ask(closed.portal + page_of, headers=good).status == 451
    for wrong in (f"{int(token[:8], 16) + 9:08x}{token[8:]}", f"{token[:40]}{'0' * 32}", "0" * 72):
        assert ask(passed.replace("TOKEN", wrong)).status == 451
        entered = ask(f"{closed.frame}/-/pass/{wrong}/all/{EDITIONS[1]}/{SITE}/")
        assert entered.status == 302 and "Set-Cookie" not in entered.headers
    for wrong in ("x", "", f"{token}0"):
        assert ask(passed.replace("TOKEN", wrong)).status == 400


def test_a_pass_ends_and_leads_nowhere_else(closed: Served):
    with closed.archive() as here, closed.archive() as other_portal:
        token = staff_passes.make(here.database, NOW, AccessPoint.STAFF, collection="all", url=f"{SITE}/")
        assert staff_passes.is_valid(other_portal.database, token, NOW)
        for later in (timedelta(hours=2), timedelta(days=3)):
            assert not staff_passes.is_valid(here.database, token, NOW + later)
        assert not staff_passes.is_valid(here.database, token, NOW - timedelta(days=1))
    for target in ("/evil.example/", "//evil.example/", "/\\evil.example"):
        location = ask(f"{closed.frame}/-/pass/{token}/{target}").headers["Location"]
        assert location.startswith("/") and not location.startswith(("//", "/\\"))
