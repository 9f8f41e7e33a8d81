"""Pages of quality, formats, depot and statistics, and error pages, in a real browser: they fit screens and
phones, are accessible, and their forms work.
"""

from collections.abc import Iterator

import pytest
from leaks import Leaks, launched
from museum import EDITIONS, NOW, PASSWORD, SITE, Served, serving
from playwright.sync_api import Browser, Page, expect

from looks import WIDTHS, look, look_at, needs_axe, signed_in
from webdepot.access.policy import AccessPoint, Reader, RuleAnswer
from webdepot.access.usage import Metric
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.depot.ocfl import layout
from webdepot.services import pipeline
from webdepot.services.access import lending, rules, statistics
from webdepot.services.admin import setup
from webdepot.services.depot import audit, storage_places
from webdepot.services.depot import status as status_service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def kept(tmp_path_factory, museum) -> Iterator[tuple[Served, list[str]]]:
    """An archive with a harvest in two places, one of them damaged, and the addresses of its pages."""
    home = tmp_path_factory.mktemp("staff") / "archive"
    setup.create(home, clock=lambda: NOW)
    with Archive.open(home, clock=lambda: NOW) as archive:
        taken = pipeline.import_files(archive, [museum], collection="museums").taken
        accounts.add(archive.database, "anna", PASSWORD, [Role.CURATOR, Role.ADMINISTRATOR], NOW)
        storage_places.add_place(archive, "second", str(home.parent / "second"))
        package = status_service.list_packages(archive, limit=1)[0].package.id
        damaged = next((home / "depot" / layout.folder_of(package)).rglob("*.warc.gz"))
        damaged.write_bytes(damaged.read_bytes()[:-1])
        audit.audit(archive, packages=[package])
        _read_and_close(archive)
    pages = [
        f"/review/{taken.harvest.id}",
        "/formats",
        "/formats?collection=museums",
        "/formats/watch",
        "/formats/registry",
    ]
    pages += ["/formats/registry?format=fmt/101", "/depot", "/depot/packages", f"/depot/packages/{package}"]
    pages += [
        "/statistics",
        f"/all/{EDITIONS[1]}/http://mixed.example/",
        f"/all/{EDITIONS[1]}/{SITE}/news.html",
        "/all/2012/nowhere.example",
    ]
    with serving(home, clock=home.parent / "clock") as running:
        yield running, pages


def _read_and_close(archive: Archive) -> None:
    """One page is closed by a rule, another is being read by somebody; and something was read this month."""
    rules.add(
        archive,
        "http://mixed.example/",
        answer=RuleAnswer.REFUSE,
        public_text="Closed at the owner's wish, until 2031.",
    )
    rules.add(archive, f"{SITE}/news.html", answer=RuleAnswer.LEND)
    capture = archive.captures.closest("org,example)/news.html", EDITIONS[1])
    assert capture is not None and lending.hold(archive, capture, Reader(seat="another terminal"))
    counter = statistics.Counter(archive)
    for point, url in (
        (AccessPoint.PUBLIC, f"{SITE}/"),
        (AccessPoint.READING_ROOM, f"{SITE}/a-long-address/{'x' * 80}"),
    ):
        counter.note(Metric.REQUESTS, collection="museums", site="example.org", url=url, point=point)
    counter.write()


STATUSES = {"mixed.example": 451, "news.html": 423, "nowhere": 404}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Leaks.listening() as leaks, launched(leaks) as made:
        yield made


@pytest.fixture
def page(browser: Browser, kept) -> Iterator[Page]:
    with signed_in(browser, kept[0].portal, "anna") as made:
        yield made


@needs_axe
def test_every_page_fits_and_keeps_nobody_out(page: Page, kept):
    served, paths = kept
    for path in paths:
        look_at(
            page,
            served.portal,
            path,
            status=next((status for part, status in STATUSES.items() if part in path), 200),
        )


SHIFTS = """window.shifts = [];
new PerformanceObserver((list) => { for (const each of list.getEntries()) window.shifts.push(
  [each.value, ...each.sources.map((one) => one.node?.outerHTML?.slice(0, 100))]) })
  .observe({ type: "layout-shift", buffered: true });"""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_a_page_loads(page: Page, kept, width: int):
    served, paths = kept
    page.add_init_script(SHIFTS)
    page.set_viewport_size({"width": width, "height": 900})
    readers = ["/", "/search?q=news", "/collections", "/collections/museums", f"/all/*/{SITE}/"]
    staff = ["/dashboard", "/targets", "/harvests", "/review", "/rules", paths[0], "/depot", "/formats"]
    for path in (*readers, f"/all/{EDITIONS[1]}/{SITE}/", *staff):
        page.goto(served.portal + path)
        if page.locator("#frame").count():
            page.locator(".print-out.ready").wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
        assert page.evaluate("window.shifts") == [], path


def test_a_finding_is_ignored_and_stays_so(page: Page, kept):
    served, paths = kept
    page.goto(served.portal + paths[0] + "?lang=nl")
    expect(page.locator(".finding").first).to_contain_text("Onderdeel van")
    expect(page.get_by_text("Genegeerd", exact=True)).to_have_count(0)
    page.locator(".finding li button.link").first.click()
    look(page, "ignore-asked")
    page.get_by_role("button", name="Yes, ignore it").click()
    page.wait_for_url("**begun=ignored**")
    page.locator("form[action$='/check'] button").click()
    page.wait_for_url(lambda url: "begun" not in url)
    page.goto(served.portal + paths[0] + "?lang=nl")
    expect(page.get_by_text("Genegeerd", exact=True)).to_have_count(1)


def test_the_alarm_and_the_registry(page: Page, kept):
    served, _ = kept
    page.goto(f"{served.portal}/depot")
    expect(page.locator("[role=alert]").first).to_be_visible()
    page.goto(f"{served.portal}/formats/registry?format=fmt/101")
    page.fill("textarea[name=note], input[name=note]", "Looked at in a browser.")
    page.locator("form:has([name=puid]) button").first.click()
    page.wait_for_url("**/formats/registry?format=**")
    expect(page.locator("[name=note]").first).to_have_value("Looked at in a browser.")
