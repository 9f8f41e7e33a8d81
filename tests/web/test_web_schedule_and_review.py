"""Plan, watch, review and dashboard in the portal: over HTTP and in a real browser, by keyboard, without
scripts, on a phone.
"""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode, urljoin

import pytest
from museum import PASSWORD, Answer, Served, Warc, ask, serving, sign_in
from playwright.sync_api import Browser, Page, expect, sync_playwright
from sqlalchemy import delete

from looks import LANGUAGE, look, look_at, needs_axe
from small_sites import cleared, small_site
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.harvest import harvest_rows
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.harvest.order_file import OrderVerb
from webdepot.harvest.tables import harvests as harvests_table
from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, TargetId
from webdepot.selection import plan_dates
from webdepot.services.admin import setup, target_view, tasks
from webdepot.services.admin.tasks import UnderWay
from webdepot.services.harvest import control, profiles, runner
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched
from webdepot.services.review import reviews
from webdepot.services.schedule import plans, scheduler
from webdepot.services.selection import targets
from webdepot.url import Url

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f0005000201a0d2ec4d0000000049454e44ae426082"
)
HOSTILE = "<img src=x onerror=alert(1)>"


GATE = threading.Semaphore(0)
"""Pages under /slow wait for it, one by one."""


def page_of(path: str) -> str:
    if path.startswith("/slow"):
        GATE.acquire(timeout=20)
    links = (
        "".join(f"<a href=/slow{number}>x</a>" for number in range(6))
        if path == "/live"
        else "<a href=/2>two</a>"
    )
    return f"<title>{HOSTILE}</title>{links}<img src=/missing.png>" if path != "/missing.png" else ""


@dataclass
class Office:
    served: Served
    site: str
    first: TargetId
    second: TargetId
    harvests: list[str]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with small_site(page_of) as running:
        yield running


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, site: str) -> Iterator[Office]:
    """Staff, two sites that may be harvested, one that may not, and two harvests that wait for a reviewer."""
    home = tmp_path_factory.mktemp("schedule") / "home"
    setup.create(home, settings="[harvest]\nallow_private = true\n")
    now = datetime.now(UTC)
    with Archive.open(home, agent="Ada") as archive:
        profiles.save(archive, "quick", "delay_s = 0\nworkers = 1\n")
        for role in Role:
            accounts.add(archive.database, role.value, PASSWORD, [role], now)
        first, second = (cleared(archive, f"{site}/{name}") for name in ("one", "two"))
        targets.enter(archive, targets.draft([f"{site}/three"], name=HOSTILE))
        dates = plan_dates.read_dates(
            "daily", first_on=(now + timedelta(days=1)).date().isoformat(), at_time="22:00"
        )
        for number in (first, second):
            plans.set_plan(archive, number, dates, profile="quick")
            plans.run_now(archive, number)
        harvests = [turn.harvest for turn in scheduler.run_due(archive)]
    with serving(home) as served:
        yield Office(served, site, first, second, harvests)
    GATE.release(100)


@pytest.fixture(scope="module")
def cookies(office: Office) -> dict[str, str]:
    return {
        role.value: sign_in(office.served, role.value)
        for role in (Role.CURATOR, Role.REVIEWER, Role.ADMINISTRATOR)
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield made
        made.close()


def signed_in(browser: Browser, office: Office, cookie: str, **given) -> Page:
    context = browser.new_context(**given)
    name, _, value = cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": office.served.portal}])
    return context.new_page()


def get(office: Office, path: str, cookie: str) -> Answer:
    return ask(office.served.portal + path, headers={"Cookie": cookie})


def post(office: Office, path: str, cookie: str, **fields: str) -> Answer:
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    return ask(office.served.portal + path, "POST", headers=headers, body=urlencode(fields).encode())


def last_answer(url: str) -> Answer:
    """The answer after all redirects."""
    for _ in range(6):
        answer = ask(url)
        if answer.status not in (301, 302, 303, 307):
            break
        url = urljoin(url, answer.headers["Location"])
    return answer


def pages_of(office: Office) -> list[str]:
    harvest = office.harvests[1]
    day = (datetime.now(UTC) + timedelta(days=3)).date()
    return [
        *(
            "/dashboard",
            "/schedule",
            f"/schedule?day={day}",
            "/schedule/targets",
            f"/schedule/targets/{office.first}",
            "/schedule/queue",
        ),
        *(
            "/review",
            f"/review/{harvest}",
            "/harvests",
            f"/harvests/{harvest}",
            "/users",
            "/users/curator",
            "/account",
            "/audit",
        ),
    ]


def test_a_plan_is_made_in_the_portal(office: Office, cookies):
    path, curator = f"/schedule/targets/{office.second}", cookies["curator"]
    fields = {
        "order": "set",
        "frequency": "cron",
        "cron": "0 4 * * SUN",
        "first_on": "2026-01-01",
        "opens": "22:00",
        "closes": "06:00",
    }
    assert post(office, path, curator, **fields, profile="quick").status == 303
    text = get(office, path, curator).text
    assert 'value="0 4 * * SUN"' in text and 'value="22:00"' in text and "May be harvested" in text
    assert "0 4 * * SUN" in get(office, "/schedule/targets?frequency=cron", curator).text
    wrong = post(office, path, curator, **fields | {"cron": "every day"})
    assert wrong.status == 400 and "five fields" in wrong.text and "every day" in wrong.text
    assert post(office, path, curator, **fields | {"profile": "nothing"}).status == 400
    assert post(office, path, curator, order="pause").status == 303
    assert "paused" in get(office, "/schedule/targets?active=no", curator).text
    assert post(office, path, curator, order="resume").status == 303
    assert post(office, path, cookies["reviewer"], order="pause").status == 403


def test_missing_things_are_named_and_names_of_strangers_are_harmless(office: Office, cookies):
    with office.served.archive() as archive:
        third = targets.find(archive, HOSTILE).id
    page = get(office, f"/schedule/targets/{third}", cookies["curator"])
    assert "May not be harvested now" in page.text and "judge it against the criteria" in page.text
    assert HOSTILE not in page.text and "&lt;img src=x" in page.text
    refused = post(office, f"/schedule/targets/{third}", cookies["curator"], order="run")
    assert refused.status == 403 and "may not be harvested" in refused.text


def test_review_says_what_is_missing_and_decisions_need_their_reasons(office: Office, cookies):
    path, reviewer = f"/review/{office.harvests[0]}", cookies["reviewer"]
    text = get(office, path, reviewer).text
    assert "Missing parts" in text and "/missing.png" in text and "There is no earlier harvest" in text
    assert HOSTILE not in text
    seed = f"{office.site}/one"
    assert post(office, f"{path}/rate", reviewer, url=seed, rating="broken", words=HOSTILE).status == 303
    wrong = post(office, f"{path}/rate", reviewer, url="nowhere at all", rating="good")
    assert wrong.status == 400 and 'value="nowhere at all"' in wrong.text
    for shown in (path, f"/harvests/{office.harvests[0]}"):
        text = get(office, shown, reviewer).text
        assert "rating-broken" in text and "&lt;img src=x" in text and HOSTILE not in text
    assert post(office, f"{path}/decide", cookies["curator"], order="accept").status == 403
    assert post(office, f"{path}/decide", reviewer, order="reject", words="").status == 400
    assert post(office, f"{path}/note", cookies["curator"], words=HOSTILE).status == 303
    assert (
        post(
            office, f"{path}/decide", reviewer, order="reject", words="parts are missing", confirmed="yes"
        ).status
        == 303
    )
    assert office.harvests[0] in get(office, "/review?state=rejected", reviewer).text
    refused = post(office, f"{path}/decide", reviewer, order="accept")
    assert refused.status == 409 and "Possible now: reopen" in refused.text
    assert (
        post(office, f"{path}/decide", reviewer, order="reopen", words="it is as it should be").status == 303
    )
    page = get(office, path, reviewer).text
    assert "rejected – parts are missing" in page and HOSTILE not in page


def test_a_harvest_in_check_is_not_offered_for_review(office: Office, cookies):
    """It is shown apart, and neither the menu nor the dashboard counts it as work for a reviewer."""
    with office.served.archive() as archive, archive.database.transaction() as connection:
        in_check = Harvest(
            id=HarvestId("20260101000000-unchecked-abc123"),
            target=office.first,
            kind=HarvestKind.HARVEST,
            state=HarvestState.FINISHED,
            seeds=(Url("https://unchecked.example/"),),
            collection="all",
            settings={},
            started_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        before = tasks.open_work(archive)
        harvest_rows.begin(connection, in_check)
    path, reviewer = f"/review/{in_check.id}", cookies["reviewer"]
    try:
        with office.served.archive() as archive:
            work = tasks.open_work(archive)
            assert reviews.list_in_check(archive, HarvestFilter()).rows == [in_check]
            assert target_view.view(archive, office.first, roles=frozenset()).path.to_review != in_check.id
        assert work.waiting == before.waiting and work.under_way[UnderWay.CHECKED] == 1
        to_review, _, apart = get(office, "/review", reviewer).text.partition('<h2 id="in-check">')
        assert path not in to_review and path in apart and "waiting for its check" in apart
        with office.served.archive() as archive:
            others = [each.id for each in reviews.list_waiting(archive, HarvestFilter()).rows]
        assert all(f"/review/{other}" in to_review and other not in apart for other in others)
        page = get(office, path, reviewer).text
        assert "The check of this harvest is not finished" in page and 'value="accept"' not in page
        assert "no earlier harvest" not in page
        assert path not in get(office, "/review?state=kept", reviewer).text
    finally:
        with office.served.archive() as archive, archive.database.transaction() as connection:
            connection.execute(delete(harvests_table).where(harvests_table.c.id == in_check.id))


def test_staff_see_a_harvest_before_they_accept_it_and_nobody_else_does(
    office: Office, cookies, browser: Browser
):
    harvest, seed = office.harvests[0], f"{office.site}/one"
    shelf = f"review-{harvest}"
    page = signed_in(browser, office, cookies["reviewer"])
    page.goto(f"{office.served.portal}/review/{harvest}")
    page.get_by_role("link", name=seed, exact=True).first.click()
    inside = page.frame_locator("#frame")
    expect(inside.get_by_role("link", name="two")).to_be_visible(timeout=30_000)
    assert page.url.startswith(f"{office.served.frame}/{shelf}/")
    expect(inside.locator("img")).to_have_attribute("data-webdepot-missing", "")
    expect(page.get_by_text("readers do not see this page")).to_be_visible()
    inside.get_by_role("link", name="two").click()
    expect(page.locator(".page-address")).to_have_text(f"{office.site}/2", timeout=30_000)
    expect(inside.get_by_role("link", name="two")).to_be_visible(timeout=30_000)
    (token,) = [
        one["value"] for one in page.context.cookies(office.served.frame) if one["name"].startswith("pass-")
    ]
    page.get_by_role("link", name="Back to the review").click()
    expect(page).to_have_url(f"{office.served.portal}/review/{harvest}")
    page.context.close()
    raw = f"{office.served.replay}/{shelf}~{token}/20260101000000id_/{office.site}"
    assert ask(f"{raw}/2").status == 200
    assert ask(f"{raw}/one").status == 404, "a pass is for one page"
    assert ask(f"{raw}/one".replace(f"{shelf}~", "all~")).status == 404
    for origin in (office.served.portal, office.served.frame, office.served.replay):
        for step in (
            "20260101000000",
            "20260101000000id_",
            "20260101000000sw_",
            "*",
            "timemap/link",
            "timegate",
        ):
            asked = f"{origin}/{shelf}/{step}/{seed}"
            assert last_answer(asked).status == 404, asked
    for path in (f"/{shelf}/cdx?url={seed}", f"/search?q=two&collection={shelf}", f"/versions?url={seed}"):
        assert seed + "<" not in ask(office.served.portal + path).text
    assert get(office, f"/{shelf}/*/{seed}", cookies["reviewer"]).status == 404, "only single pages are shown"


def test_screenshots_are_shown_side_by_side(office: Office, cookies, tmp_path: Path):
    with office.served.archive() as archive:
        warc = Warc(tmp_path / "shots.warc.gz")
        warc.response("http://shots.example/", "20260101000000", b"<title>x</title>")
        warc.raw(
            "urn:view:http://shots.example/",
            "20260101000000",
            PNG,
            {"WARC-Type": "resource", "Content-Type": "image/png"},
        )
        warc.raw(
            "urn:view:http://evil.example/",
            "20260101000000",
            b"<script>",
            {"WARC-Type": "resource", "Content-Type": "text/html"},
        )
        taken = warc_files.take_files(archive, [warc.write()], collection="shots", watch=unwatched)
        assert taken.harvest is not None
        reviews.examine(archive, taken.harvest)
    text = get(office, f"/review/{taken.harvest.id}", cookies["reviewer"]).text
    found = re.findall(r'src="(/review/pictures/\d+)"', text)
    assert len(found) == 1 and "evil.example" not in text
    picture = get(office, found[0], cookies["reviewer"])
    assert picture.headers["Content-Type"] == "image/png" and picture.body == PNG
    assert (
        "sandbox" in picture.headers["Content-Security-Policy"]
        and picture.headers["X-Content-Type-Options"] == "nosniff"
    )
    assert get(office, "/review/pictures/999", cookies["reviewer"]).status == 404


def test_the_dashboard_counts_and_its_csv_agrees(office: Office, cookies):
    text = get(office, "/dashboard", cookies["curator"]).text
    assert re.search("harvests? to review", text) and "<svg" in text and "Sites by state" in text
    table = get(office, "/dashboard.csv", cookies["curator"]).text.splitlines()
    assert table[0] == "section,name,value" and "targets,cleared,2" in table
    months = get(office, "/dashboard/months.csv", cookies["curator"]).text.splitlines()
    assert months[0] == "month,harvests,documents,size_bytes,errors" and months[-1].startswith(
        f"{datetime.now(UTC):%Y-%m},"
    )


def test_harvests_are_listed_by_state_and_target(office: Office, cookies):
    assert office.harvests[0] not in get(office, f"/harvests?target={office.second}", cookies["curator"]).text
    assert "/harvests/" in get(office, f"/harvests?target={office.second}", cookies["curator"]).text
    assert office.harvests[1] not in get(office, "/harvests?state=failed", cookies["curator"]).text


@needs_axe
def test_pages_about_the_archive_and_its_profiles_are_accessible(office: Office, cookies, browser: Browser):
    page = signed_in(browser, office, cookies["administrator"], bypass_csp=True, locale=LANGUAGE)
    paths = ["/status", "/jobs", "/machines", "/profiles", "/profiles/quick", "/profiles/quick?view=text"]
    reports = (f"/harvests/{office.harvests[1]}/reports/{kind}" for kind in ("status", "rejected"))
    for path in (*paths, *reports, "/scope", "/review?state=rejected"):
        look_at(page, office.served.portal, path)
    page.context.close()


@needs_axe
def test_no_page_has_a_fault_of_accessibility_nor_is_wider_than_a_phone(
    office: Office, cookies, browser: Browser
):
    page = signed_in(browser, office, cookies["administrator"], bypass_csp=True, locale=LANGUAGE)
    for path in pages_of(office):
        look_at(page, office.served.portal, path)
    for name, seeds in (("done", f"{office.site}/"), ("nothing", "http://127.0.0.1:9/")):
        page.goto(f"{office.served.portal}/scope/test")
        page.fill("[name=addresses]", seeds)
        page.locator("main form button").first.click()
        page.wait_for_url(re.compile("/scope/test/[0-9a-f]+"))
        page.locator("main .state:not(.running)").first.wait_for(timeout=60_000)
        page.reload()
        look(page, f"test-crawl-{name}")
    page.context.close()


def test_pages_speak_three_languages(office: Office, cookies):
    for code, words in (("nl", "Planning"), ("de", "Planung"), ("en", "Schedule")):
        for path in pages_of(office):
            joined = f"{path}{'&' if '?' in path else '?'}lang={code}"
            text = get(office, joined, cookies["administrator"]).text
            assert f'<html lang="{code}">' in text and words in text, path


def test_by_keyboard_and_without_scripts_a_harvest_is_accepted_and_public(
    office: Office, cookies, browser: Browser
):
    harvest = office.harvests[1]
    page = signed_in(browser, office, cookies["reviewer"], java_script_enabled=False)
    page.goto(f"{office.served.portal}/review/{harvest}")
    words = page.get_by_label("Reason")
    for _ in range(60):
        page.keyboard.press("Tab")
        if words.evaluate("each => each === document.activeElement"):
            break
    page.keyboard.type("whole enough")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Yes, accept it").press("Enter")
    expect(page.locator(".state.kept, .notice").first).to_be_visible(timeout=30_000)
    with office.served.archive() as archive:
        for _ in range(300):
            if (
                harvests_service.get(archive, harvest).state is HarvestState.KEPT
                and archive.captures.total() > 0
            ):
                break
            threading.Event().wait(0.1)
        assert harvests_service.get(archive, harvest).state is HarvestState.KEPT
    assert ask(f"{office.served.portal}/all/*/{office.site}/two").status == 200
    assert ask(f"{office.served.portal}/all/*/{office.site}/one").status == 404, (
        "what waits for review is not public"
    )
    page.goto(f"{office.served.portal}/review/{harvest}")
    expect(page.get_by_text("accepted – whole enough")).to_be_visible()
    page.context.close()


def steer(page: Page) -> None:
    """Every command to a running harvest on its live page, one after another, each visible on the page."""
    page.get_by_text("Abort harvest …").click()
    page.get_by_label("Reason").first.fill("the owner telephones")
    page.get_by_role("button", name="Pause harvest").click()
    expect(page.get_by_role("button", name="Resume harvest")).to_be_visible(timeout=20_000)
    expect(page.locator(".state.stopped")).to_be_visible(timeout=20_000)
    page.get_by_role("button", name="Resume harvest").click()
    expect(page.get_by_role("button", name="Pause harvest")).to_be_visible(timeout=20_000)
    page.locator("summary", has_text="Change limits").click()
    page.locator("#limit_pages").fill("5000")
    page.get_by_role("button", name="Save limits", exact=True).click()
    expect(page.get_by_text("limit_pages = 5000")).to_be_visible()
    page.get_by_text("Add or remove addresses").click()
    page.locator("#urls").fill(page.get_by_role("heading", level=1).inner_text().strip() + "2")
    page.get_by_role("button", name="Add addresses", exact=True).click()
    page.get_by_text("Add or remove addresses").click()
    page.locator("#patterns").fill("/slow5")
    page.locator("button[value=reject]").click()
    page.get_by_role("button", name="Yes, exclude them").click()
    expect(page.locator("#orders ~ div tbody tr")).to_have_count(5, timeout=20_000)
    page.get_by_role(
        "button", name="Stop harvest"
    ).click()  # pending requests are given up: nothing more comes from the site


def test_a_running_harvest_is_watched_and_steered_live(office: Office, cookies, browser: Browser):
    with Archive.open(office.served.home, agent="Ada") as archive:
        options = profiles.options_of(archive, "quick")
        harvest = runner.start_or_resume(archive, [f"{office.site}/live"], options)
        worker = threading.Thread(target=runner.run, args=(archive, harvest))
        worker.start()
        try:
            page = signed_in(browser, office, cookies["curator"])
            page.goto(f"{office.served.portal}/harvests/{harvest.id}")
            expect(page.locator("[data-events]")).to_have_count(1, timeout=20_000)
            page.evaluate("window.untouched = true")
            GATE.release(2)
            expect(page.get_by_role("cell", name=f"{office.site}/slow0")).to_be_visible(timeout=20_000)
            assert page.evaluate("window.untouched"), "it came without a reload"
            steer(page)
            worker.join(30)
            # The script reloads the page once when it has ended.
            expect(page.locator("[data-events]")).to_have_count(0, timeout=20_000)
            expect(page.locator(".state.stopped")).to_be_visible()
            page.context.close()
        finally:
            GATE.release(100)
            worker.join(30)
        watched = control.watch(archive, harvest.id)
        given = [order.verb for order in watched.orders]
        assert given == [
            OrderVerb.PAUSE,
            OrderVerb.RESUME,
            OrderVerb.CHANGE,
            OrderVerb.ADD,
            OrderVerb.CHANGE,
            OrderVerb.STOP,
        ]
        assert {order.by for order in watched.orders} == {"curator"} and watched.options.limit_pages == 5000
        assert (
            watched.options.reject[-1] == "/slow5"
            and harvests_service.get(archive, harvest.id).state is HarvestState.STOPPED
        )
    assert not worker.is_alive()
    stream = get(office, f"/harvests/{harvest.id}/events", cookies["curator"])
    assert stream.headers["Content-Type"].startswith("text/event-stream")
    assert stream.text.startswith("event: live\ndata: ") and stream.text.endswith("event: ended\ndata:\n\n")
