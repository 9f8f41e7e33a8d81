"""Search on the web: pages and interfaces over HTTP, and the screens in a real browser."""

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from museum import EDITIONS, SITE, Served, ask, sign_in
from playwright.sync_api import Browser, sync_playwright
from warcio.archiveiterator import ArchiveIterator

from webdepot.index.text.weights import WEIGHTS
from webdepot.web import charts
from webdepot.web.language.language import CODES, load

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
ATOM = "{http://www.w3.org/2005/Atom}"


def test_results_can_be_narrowed_explained_and_taken_along(served: Served):
    text = ask(f"{served.portal}/search?q=clock").text
    for part in (
        "/search/why?q=clock&amp;key=",
        "/search/export?q=clock&amp;form=csv",
        "/search.atom?q=clock",
        "data-narrow=",
        "relative=1",
    ):
        assert part in text
    narrow = ask(f"{served.portal}/search?q=clock&from=2009&to=2010").text
    assert 'data-moment="2009-03"' in narrow
    assert ask(f"{served.portal}/search?q=clock&relative=1").status == 200


def test_the_web_as_it_stood_and_years_with_their_counts(served: Served):
    text = ask(f"{served.portal}/search?q=edition&as_of=2012-06-01").text
    assert f'<h2><a href="/all/{EDITIONS[2]}/{SITE}/#search=' in text  # the last of that day
    assert "as_of=2012-06-01" in text.partition("search/why")[2][:200] and 'value="2012-06-01"' in text
    assert ask(f"{served.portal}/search?q=edition&as_of=2008").text.count("<article>") == 0
    assert (
        "as_of"
        not in ask(f"{served.portal}/search?q=edition&as_of=yesterday").text.partition("search/why")[2][:200]
    )
    years = ask(f"{served.portal}/search?q=edition").text.partition("<h2>Year (captures)</h2>")[2]
    assert (
        "from=2012&amp;to=2012" in years.partition("2009")[0]
        and '>2012</a> <span class="quiet">2</span>' in years
    )


def test_why(served: Served):
    text = ask(f"{served.portal}/search/why?q=clock&key=org,example)/").text
    assert "Why this page was found" in text and f"/all/{EDITIONS[0]}/{SITE}/" in text
    assert ask(f"{served.portal}/search/why?q=clock&key=org,unknown)/").status == 404


def test_trend_as_picture_table_and_csv(served: Served):
    text = ask(f"{served.portal}/search/trend?w=clock&w=news").text
    assert text.count('class="dot dot-1"') == text.count('class="dot dot-2"') == 3, "2009, 2012 and 2019"
    assert "<polyline" not in text, "there are gaps between"
    assert "2010–2011" in text and text.count("no captures") == 2
    rows = list(csv.DictReader(io.StringIO(ask(f"{served.portal}/search/trend?w=clock&format=csv").text)))
    assert rows[0]["year"] == "2009" and int(rows[0]["clock"]) >= 1
    assert ask(f"{served.portal}/search/trend?" + "&".join(["w=x"] * 7)).status == 400
    wrong = ask(f"{served.portal}/search/trend?w=type%3Afoo&lang=nl")
    assert wrong.status == 400 and "Onbekend type" in wrong.text and 'value="type:foo"' in wrong.text


def test_a_slip_is_mended(served: Served):
    assert "Did you mean:" in ask(f"{served.portal}/search?q=clokc").text


def test_exports(served: Served):
    answer = ask(f"{served.portal}/search/export?q=clock&form=warc")
    assert answer.headers["Content-Type"] == "application/warc"
    assert len(list(ArchiveIterator(io.BytesIO(answer.body)))) >= 4
    assert ask(f"{served.portal}/search/export?q=clock&form=nonsense").status == 400


def test_the_interface_for_machines_is_what_it_says_it_is(served: Served):
    described = json.loads(ask(f"{served.portal}/api/openapi.json").text)
    answer = json.loads(ask(f"{served.portal}/api/search?q=clock&limit=1").text)
    schema = described["paths"]["/api/search"]["get"]["responses"]["200"]["content"]["application/json"][
        "schema"
    ]
    assert answer.keys() == schema["properties"].keys()
    assert answer["hits"][0].keys() == schema["properties"]["hits"]["items"]["properties"].keys()
    assert json.loads(ask(f"{served.portal}/api/suggest?q=clo").text)[1][0] == "clock"
    assert ask(f"{served.portal}/api/search?q=befor:2010").status == 400
    read = {path: item["get"] for path, item in described["paths"].items() if "get" in item}
    public = [path for path, operation in read.items() if "security" not in operation]
    for path in (path for path in public if path.startswith(("/api/", "/search")) and "{" not in path):
        assert ask(f"{served.portal}{path}?q=clock&w=clock&form=csv").status == 200
    links = ElementTree.fromstring(ask(f"{served.portal}/opensearch.xml").body)
    assert any("{searchTerms}" in link.get("template", "") for link in links)


def test_saved_searches_have_a_feed_that_needs_no_session(served: Served):
    cookie = {"Cookie": sign_in(served, "reader"), "Origin": served.portal}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (
        ask(
            f"{served.portal}/searches", "POST", headers={**cookie, **form}, body=b"q=clock&name=Clocks"
        ).status
        == 303
    )
    text = ask(f"{served.portal}/searches", headers=cookie).text
    token = text.partition("/searches/")[2].partition(".atom")[0]
    feed = ElementTree.fromstring(ask(f"{served.portal}/searches/{token}.atom").body)
    assert feed.findtext(f"{ATOM}title", "").startswith("Clocks")
    assert feed.findall(f"{ATOM}entry")
    for answered, status, kept in (("", 200, 200), ("&confirmed=yes", 303, 404)):
        body = f"remove={token}{answered}".encode()
        asked = ask(f"{served.portal}/searches", "POST", headers={**cookie, **form}, body=body)
        assert asked.status == status and ("Remove this saved search?" in asked.text) is (status == 200)
        assert ask(f"{served.portal}/searches/{token}.atom").status == kept


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.mark.browser
def test_the_histogram_narrows_by_dragging_and_by_keyboard(served: Served, browser: Browser):
    page = browser.new_page()
    page.goto(f"{served.portal}/search?q=clock")
    bars = page.locator("li[data-moment]")
    first, last = bars.first.bounding_box(), bars.last.bounding_box()
    page.mouse.move(first["x"] + 3, first["y"] + 20)
    page.mouse.down()
    page.mouse.move(last["x"] + 3, last["y"] + 20, steps=8)
    page.mouse.up()
    page.wait_for_url("**from=2009&to=2019**")
    page.goto(f"{served.portal}/search?q=clock")
    page.locator("li[data-moment] a").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**from=2009&to=2011**")
    page.close()


@pytest.mark.browser
@pytest.mark.skipif(not AXE.exists(), reason="python scripts/vendor.py --tests fetches axe")
@pytest.mark.parametrize(
    "path", ["/search?q=clock", "/search/trend?w=clock&w=news", "/search/why?q=clock&key=org,example)/"]
)
def test_no_findings_about_accessibility(served: Served, browser: Browser, path):
    for width in (1280, 375):
        page = browser.new_page(viewport={"width": width, "height": 800}, bypass_csp=True)
        page.goto(served.portal + path)
        page.add_script_tag(path=str(AXE))
        found = page.evaluate("axe.run(document, { iframes: false, resultTypes: ['violations'] })")
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.close()


def test_a_year_without_a_harvest_is_a_gap_in_the_trend():
    volume = {2001: 2, 2002: 2, 2005: 4, 2007: 1}
    clock = {2001: 1, 2002: 2, 2005: 2}
    drawn = charts.of_trend({"clock": clock, "never": {}}, volume, relative=True, spoken=load("en"))
    [(_, [line], dots), (_, [zeros], _)] = drawn.lines
    assert drawn.years == list(range(2001, 2008))
    assert line.split()[1] == "166.7,20.0", "two years together are a line"
    assert [(round(dot.x), round(dot.y), dot.words) for dot in dots][2:] == [
        (667, 155, "2005: 50.0\u00a0%"),
        (1000, 290, "2007: 0.0\u00a0%"),
    ], "a year alone is a dot"
    assert zeros.split()[0] == "0.0,290.0", "a year with a harvest and without the word is a zero"
    assert [label for label, _ in drawn.rows] == ["2001", "2002", "2003–2004", "2005", "2006", "2007"]


@pytest.mark.parametrize(
    "highest, ticks",
    [
        (1, ["0", "1"]),
        (4, ["0", "1", "2", "3", "4"]),
        (7, ["0", "2", "4", "6", "8"]),
        (12000, ["0", "5,000", "10,000", "15,000"]),
    ],
)
def test_the_trend_has_an_axis_of_round_values(highest: int, ticks: list[str]):
    drawn = charts.of_trend({"a": {2001: highest}}, {2001: highest}, relative=False, spoken=load("en"))
    assert [value for _, value in drawn.ticks] == ticks
    assert drawn.ticks[0][0] == 290 and drawn.ticks[-1][0] == 20


@pytest.mark.parametrize("code", CODES)
def test_every_part_that_is_ranked_has_a_name(code: str) -> None:
    texts = load(code).texts
    assert [part for part in WEIGHTS if f"search.part_{part}" not in texts] == []


def test_a_year_among_the_words_is_offered_as_the_year_of_the_captures(served: Served):
    text = ask(f"{served.portal}/search?q=edition+2012").text
    narrowed = re.search(r'Only as the web was in 2012: <a href="([^"]+)"><strong>edition</strong>', text)
    assert narrowed is not None
    answer = ask(served.portal + html.unescape(narrowed[1])).text
    assert "page found" in answer and "Only as the web was" not in answer
    best = re.search(r'Or the best match, as it was in 2012: <a href="(/all/2012/[^"#]+)#search=', text)
    assert best is not None and "/all/2012" in ask(served.portal + best[1]).headers["Location"]
    for typed in ("2012", "edition", "%22edition+2012%22", "edition+2012&from=2009", "edition+3012"):
        assert "Only as the web was" not in ask(f"{served.portal}/search?q={typed}").text, typed
