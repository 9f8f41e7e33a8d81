"""Browse without a query: the home page, collections, pictures of pages in lists, results grouped by site."""

import io
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from museum import NOW, PASSWORD, Answer, Served, Warc, ask, make_home, serving, sign_in
from PIL import Image
from playwright.sync_api import sync_playwright

from looks import look_at, needs_axe
from webdepot.access.policy import RuleAnswer
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.access import rules
from webdepot.services.harvest import harvests
from webdepot.services.quality import harvest_check
from webdepot.url import key as key_of
from webdepot.web.language import format_words
from webdepot.web.language.language import load

CLOCKS, SHIPS, CLOSED = "http://www.clocks.example", "http://ships.example", "http://closed.example"
OLD, NEW = "20090618120000", "20240418120000"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def browsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("browse")
    drawn = io.BytesIO()
    Image.new("RGB", (1280, 3000), "navy").save(drawn, "PNG")
    shot = {"WARC-Type": "resource", "Content-Type": "image/png"}
    warcs = []
    for stamp in (OLD, NEW):
        warc = Warc(folder / f"{stamp}.warc.gz")
        for site in (CLOCKS, SHIPS, CLOSED):
            year = f"<title>Tower of {stamp[:4]}</title><p>A tower at {site}</p>".encode()
            warc.response(f"{site}/", stamp, year)
            warc.raw(f"urn:view:{site}/", stamp, drawn.getvalue(), shot)
        for number in range(5):
            warc.response(
                f"{CLOCKS}/{number}", stamp, f"<title>Tower {number}</title>tower {number}".encode()
            )
        warcs.append(warc.write())
    home = make_home(folder / "home", *warcs, collection="towers")
    with Archive.open(home, clock=lambda: NOW) as archive:
        for harvest in harvests.latest(archive, 5):
            harvest_check.note_screenshots(archive, harvest)
        rules.add(archive, f"{CLOSED}/", answer=RuleAnswer.HIDE)
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], NOW)
    with serving(home) as running:
        yield running


def test_the_home_page_shows_a_card_for_each_site_with_its_picture(browsed: Served):
    answer = ask(f"{browsed.portal}/")
    assert len(answer.body) < 100_000
    cards = re.findall(r'<a href="/all/(\d{14})/([^"]+)">\s*<img ([^>]+)>', answer.text)
    assert sorted((stamp, url) for stamp, url, _ in cards) == [
        *((OLD, f"{site}/") for site in (SHIPS, CLOCKS)),
        *((NEW, f"{site}/") for site in (SHIPS, CLOCKS)),
    ], "few sites: earlier years too"
    assert all('width="320" height="200" alt=""' in image for _, _, image in cards)
    assert CLOSED not in answer.text
    assert "2009: 8 captures" in answer.text and "2010: 0 captures" in answer.text, "what the bars say"
    assert 'href="/collections/towers"' in answer.text


def test_a_picture_is_a_small_new_image_and_closed_with_its_page(browsed: Served):
    picture = ask(f"{browsed.portal}/picture?url={CLOCKS}/&at={NEW}&size=hit")
    assert (picture.status, picture.headers["Content-Type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(picture.body)).size == (240, 150)
    staff = {"Cookie": sign_in(browsed, "curator")}
    path = f"/picture?url={CLOSED}/&at={NEW}"
    assert ask(browsed.portal + path).status == ask(browsed.portal + path, headers=staff).status == 404
    for wrong in ("", f"?url={CLOCKS}/&at={NEW}&size=huge", f"?url={CLOCKS}/&at=x"):
        assert ask(f"{browsed.portal}/picture{wrong}").status == 400
    assert ask(f"{browsed.portal}/picture?url={CLOCKS}/1&at={NEW}").status == 404, "no picture of it"


def _save(browsed: Served, **fields: str) -> Answer:
    return ask(
        f"{browsed.portal}/collections/towers/edit",
        "POST",
        headers=FORM | {"Cookie": sign_in(browsed, "curator"), "Sec-Fetch-Site": "same-origin"},
        body=urlencode(fields).encode(),
    )


def test_staff_describe_a_collection_and_hide_it(browsed: Served):
    page = f"{browsed.portal}/collections/towers"
    assert ask(f"{page}/edit").status in (302, 303, 401, 403)
    assert "<h1>towers</h1>" in ask(page).text
    wrong = _save(browsed, title="x" * 201, text="Kept <b>words", public="1")
    assert wrong.status == 400 and "Kept &lt;b&gt;words" in wrong.text and 'role="alert"' in wrong.text
    chosen = f"{OLD} {SHIPS}/"
    assert _save(browsed, title="Towers", text="One.\n\nTwo.", public="1", picture=chosen).status == 303
    text = ask(page).text
    assert "<h1>Towers</h1>" in text and "<p>Two.</p>" in text
    assert f"/towers/{OLD}/{SHIPS}/" in text, "the chosen picture"
    assert 'name="collection" value="towers"' in text, "searching within it"
    assert f'href="/towers/{NEW}/{CLOCKS}/"' in text and CLOSED not in text
    assert "Towers" in ask(f"{browsed.portal}/collections").text
    assert _save(browsed, title="Towers", text="").status == 303
    assert ask(page).status == 404 and ask(f"{browsed.portal}/collections/nothing").status == 404
    assert "towers" not in ask(f"{browsed.portal}/collections").text
    assert "towers" not in ask(f"{browsed.portal}/search?q=tower").text.partition("<select")[2]
    assert ask(page, headers={"Cookie": sign_in(browsed, "curator")}).status == 200
    assert _save(browsed, public="1").status == 303


def test_results_have_pictures_short_facts_and_can_be_grouped_by_site(browsed: Served):
    flat = ask(f"{browsed.portal}/search?q=tower").text
    assert f"/picture?url={urlencode({'': CLOCKS + '/'})[1:]}&amp;at=" in flat
    assert '<span title="text/html">HTML</span>' in flat and flat.count('class="hit-menu"') == 7
    grouped = ask(f"{browsed.portal}/search?q=tower&group=site").text
    sites = re.findall(r'class="site-group" aria-label="([^"]+)"', grouped)
    assert sorted(sites) == ["ships.example", "www.clocks.example"]
    assert "6 pages found on this site" in grouped and grouped.count("<article>") == 4, "three of a site"
    assert "More from www.clocks.example" in grouped and "group=site" in grouped
    assert f'href="/all/{OLD}/{SHIPS}/' in grouped and ">2009</a>" in grouped, "versions by year"
    assert ask(f"{browsed.portal}/search?q=tower&group=site&page=2").status == 200


@pytest.mark.parametrize(
    ("name", "mime", "short"),
    [
        ("Hypertext Markup Language 5", "text/html", "HTML 5"),
        ("Extensible Hypertext Markup Language 1.0", "text/html", "XHTML 1.0"),
        ("Acrobat PDF 1.4 - Portable Document Format", "application/pdf", "PDF 1.4"),
        ("Acrobat PDF 1.4 - Portable Document Format 1.4", "application/pdf", "PDF 1.4"),
        ("", "text/html", "HTML"),
        ("", "text/plain", "Tekst"),
        ("Something rare", "application/x-rare", "Something rare"),
        ("", "application/x-rare", "application/x-rare"),
    ],
)
def test_formats_have_short_names(name: str, mime: str, short: str):
    assert format_words.of_format(load("nl"), name, mime) == short


@pytest.mark.browser
@needs_axe
def test_the_pages_are_accessible_fit_a_phone_and_do_not_move(browsed: Served):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_context(bypass_csp=True, color_scheme="dark").new_page()
        at = urlencode({"url": f"{CLOCKS}/", "at": NEW})
        why = urlencode({"q": "tower", "key": key_of(f"{CLOCKS}/")})
        for path in (
            *("/", "/collections", "/collections/towers", "/catalogue/subjects", "/sign-in"),
            *("/search", "/search?q=tower", "/search?q=tower&group=site", "/search?q=nothing"),
            *("/search/images?q=tower", "/search/trend?w=tower", f"/search/why?{why}"),
            *(f"/evidence?{at}", f"/compare?{at}", "/help", "/about", "/developers"),
        ):
            look_at(page, browsed.portal, path)
        page.add_init_script(
            "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(each => "
            "window.shift += each.value)).observe({type: 'layout-shift', buffered: true})"
        )
        page.goto(f"{browsed.portal}/", wait_until="networkidle")
        assert page.evaluate("window.shift") == 0
        browser.close()
