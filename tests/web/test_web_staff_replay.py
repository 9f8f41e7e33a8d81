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
from webdepot.accounts.accounts import Role
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
        (cookie,) = [one for one in page.context.cookies(closed.replay) if one["name"] == staff_passes.COOKIE]
        assert cookie["httpOnly"]
        browser.close()
    raw = f"{closed.replay}/all/{EDITIONS[1]}id_/{SITE}/"
    good = {"Cookie": f"{staff_passes.COOKIE}={cookie['value']}"}
    assert ask(raw, headers=good).status == 200
    assert ask(f"{closed.portal}/status", headers=good).status == 303, "no session of the portal"
    assert ask(closed.portal + page_of, headers=good).status == 451
    until, _, signed = cookie["value"].partition(".")
    for wrong in (f"{int(until) + 9}.{signed}", f"{until}.{'0' * 64}", "x", "", f"{until}.{signed}0"):
        assert ask(raw, headers={"Cookie": f"{staff_passes.COOKIE}={wrong}"}).status == 451
        entered = ask(f"{closed.replay}/-/pass/{wrong or 'x'}/all/{EDITIONS[1]}id_/{SITE}/")
        assert entered.status == 302 and "Set-Cookie" not in entered.headers


def test_a_pass_ends_and_leads_nowhere_else(closed: Served):
    token = staff_passes.make(NOW)
    assert staff_passes.is_valid(token, NOW) and not staff_passes.is_valid(token, NOW + timedelta(hours=2))
    for target in ("/evil.example/", "//evil.example/", "/\\evil.example"):
        location = ask(f"{closed.replay}/-/pass/{token}/{target}").headers["Location"]
        assert location.startswith("/") and not location.startswith(("//", "/\\"))
