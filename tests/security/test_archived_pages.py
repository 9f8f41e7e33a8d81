"""Attacks of one archived page on the others, in a real browser: on the worker that shows them, on what it
stores, on its policy, and on the banner above them. Nothing is forged, and nothing arrives at the attacker.

Scripts run in the archived page without being rewritten, so they have what an archived script could get at
most: the native functions of the browser, in the origin of the archived site.
"""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from archived_attacks import ATTACK, ATTACKS, BARE, CLAIM
from leaks import WELCOME, Leaks, launched
from museum import Served, Warc, ask, make_home, serving
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect

pytestmark = pytest.mark.browser
STAMP = "20240102030405"
EVIL, VICTIM, SHOP = "http://evil.example", "http://victim.example", "http://shop.example"
GENUINE = "<!doctype html><title>Victim</title><h1>Genuine page of the victim</h1><p id=words></p>"
TELLING = """<script>
const words = document.getElementById("words");
const request = indexedDB.open("drafts", 1);
request.onupgradeneeded = () => request.result.createObjectStore("drafts");
request.onsuccess = () => {
  const got = request.result.transaction("drafts").objectStore("drafts").get("words");
  got.onsuccess = async () => {
    const blank = document.body.appendChild(document.createElement("iframe"));
    const cookies = [document.cookie, blank.contentDocument.cookie, blank.contentWindow.document.cookie];
    if (window.cookieStore) cookies.push((await cookieStore.getAll()).map((one) => one.name + one.value).join());
    const stored = got.result || localStorage.getItem("words") || cookies.join("");
    words.textContent = stored || "by the victim's own script";
  };
};
new BroadcastChannel("words").onmessage = (event) => { words.textContent = event.data; };
</script>"""
SHOW_COOKIES = "<script>document.getElementById('cookies').textContent = document.cookie || 'none'</script>"
SHOP_PAGE = (
    f"<title>Shop</title><h1>Shop</h1><p id=cookies></p><a id=other href='{VICTIM}/'>Other</a>{SHOW_COOKIES}"
)
CART = """<title>Cart</title><p id=cookies></p><p id=blank></p><a id=home href="/">Home</a><script>
document.cookie = "here=1";
document.cookie = "basket=2; path=/; secure; samesite=lax";
document.cookie = "wide=3; path=/; domain=.shop.example";
const later = new Date(Date.now() + 3600e3).toUTCString();
document.cookie = "lasting=4; path=/; expires=" + later;
document.cookie = "elsewhere=5; path=/other";
document.cookie = "foreign=6; path=/; domain=victim.example";
document.cookie = "gone=7; path=/; max-age=100";
document.cookie = "gone=; path=/; max-age=0";
document.cookie = "late=8; path=/; expires=Thu, 01 Jan 1998 00:00:00 GMT";
document.cookie = "hidden=9; path=/; httponly";
const blank = document.body.appendChild(document.createElement("iframe"));
document.getElementById("blank").textContent = blank.contentDocument.cookie;
</script>"""


@pytest.fixture(scope="module")
def attacker() -> Iterator[Leaks]:
    with Leaks.listening(WELCOME) as server:
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("attacked")
    warc = Warc(folder / "attack.warc.gz")
    warc.response(f"{EVIL}/", STAMP, b"<!doctype html><title>Evil</title><h1>EVIL</h1>")
    warc.response(f"{EVIL}/ext.js", STAMP, b"document.title = 'EXT RAN'", mime="text/javascript")
    warc.response(f"{EVIL}/direct.html", STAMP, b"<title>Direct</title>EVIL<script src=ext.js></script>")
    warc.response(
        f"{EVIL}/two-types",
        STAMP,
        b"<title>Two</title>EVIL<script>document.title = 'RAN'</script>"
        b"<meta http-equiv=refresh content='0; url=direct.html'>",
        mime="application/pdf",
        headers=[("Content-Type", "text/html")],
    )
    warc.response(f"{EVIL}/one-header", STAMP, b"<title>One</title>", mime="application/pdf, text/html")
    warc.response(f"{EVIL}/ran", STAMP, b"<title>Ran</title><h1>RAN</h1><script src=/where.js></script>")
    warc.response(f"{EVIL}/where.js", STAMP, b"fetch('/ran-here')", mime="text/javascript")
    away = [("Location", f"{EVIL}/ran")]
    warc.response(f"{VICTIM}/away", STAMP, b"", status="302 Found", headers=away)
    warc.response(f"{VICTIM}/script", STAMP, f"<script>location = '{EVIL}/ran'</script>".encode())
    warc.response(f"{SHOP}/framed", STAMP, f"<iframe src='{EVIL}/ran'></iframe>".encode())
    warc.response(f"{VICTIM}/", STAMP, (GENUINE + TELLING).encode())
    for url in (f"{SHOP}/", "http://m.shop.example/"):
        warc.response(url, STAMP, SHOP_PAGE.encode())
    warc.response(f"{SHOP}/cart/", STAMP, (CART + SHOW_COOKIES).encode())
    with serving(make_home(folder / "home", warc.write())) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # The attacker is on loopback, which this browser reaches without a proxy: what leaks arrives there.
    with Leaks.listening() as leaks, launched(leaks) as made:
        yield made
        assert not [line for line in leaks.asked if ".example" in line]


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context()
    yield made
    made.close()


def open_evil(context: BrowserContext, served: Served) -> Page:
    page = context.new_page()
    page.goto(f"{served.portal}/all/{STAMP}/{EVIL}/")
    expect(page.frame_locator("#frame").locator("h1")).to_have_text("EVIL", timeout=20_000)
    return page


def policies(served: Served) -> dict[str, str]:
    """The headers that everything from the worker must have."""
    first = ask(f"{served.replay}/sw.js").text.partition("\n")[0]
    headers = dict(json.loads(first.removeprefix("self.webdepot = ").removesuffix(";"))["headers"])
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    return {name.lower(): value for name, value in headers.items()}


def expect_genuine(context: BrowserContext, served: Served, attacker: Leaks) -> None:
    """The victim's page in a new tab is what was archived, with our policy, and nobody was told."""
    seen: list[Response] = []
    page = context.new_page()
    page.on("response", lambda response: seen.append(response))
    page.goto(f"{served.portal}/all/{STAMP}/{VICTIM}/")
    inside = page.frame_locator("#frame")
    expect(inside.locator("h1")).to_have_text("Genuine page of the victim", timeout=20_000)
    expect(inside.locator("#words")).to_have_text("by the victim's own script")
    expect(page.locator(".page-address")).to_have_text(f"{VICTIM}/")
    assert "FORGED" not in page.frames[1].content()
    shown = [one for one in seen if f"{STAMP}mp_/{VICTIM}/" in one.url and "/-/start/" not in one.url]
    assert shown
    for response in shown:
        for name, value in policies(served).items():
            assert response.headers[name] == value
    page.wait_for_timeout(300)
    expect(inside.locator("#words")).to_have_text("by the victim's own script")
    assert (attacker.connections, attacker.asked) == (0, [])
    page.close()


def run(page: Page, served: Served, attacker: Leaks, attack: str) -> None:
    given = {"attack": attack, "attacker": attacker.url, "stamp": STAMP, "victim": VICTIM}
    assert page.frames[1].url.startswith(served.pages(EVIL))
    assert page.frames[1].evaluate(ATTACK, given) == "done"


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_page_cannot_change_how_another_is_shown(
    context: BrowserContext, served: Served, attacker: Leaks, attack: str
):
    evil = open_evil(context, served)
    run(evil, served, attacker, attack)
    expect_genuine(context, served, attacker)
    evil.close()
    expect_genuine(context, served, attacker)


def test_nor_with_all_attacks_together(context: BrowserContext, served: Served, attacker: Leaks):
    evil = open_evil(context, served)
    for attack in ATTACKS:
        run(evil, served, attacker, attack)
    evil.close()
    expect_genuine(context, served, attacker)


def test_everything_that_the_worker_answers_has_our_policy(
    context: BrowserContext, served: Served, attacker: Leaks
):
    """Documents that it makes itself included: blank ones, of blobs, of texts, and its errors."""
    page = open_evil(context, served)
    seen: list[Response] = []
    page.on("response", lambda response: seen.append(response))
    page.frames[1].evaluate(
        """async ({ stamp, evil }) => {
          const blob = URL.createObjectURL(new Blob(["<h1>blob</h1>"], { type: "text/html" })).split("/").pop();
          const texts = btoa(encodeURIComponent("<h1>text</h1>"));
          const addresses = ["about:blank", `blob:${blob}/${evil}/`, "srcdoc:" + texts, `${evil}/missing`,
                             "__wb_module_decl.js", "nonsense:x", `${evil}/ext.js`];
          for (const modifier of ["mp_", "if_", "oe_"]) {
            for (const address of addresses) {
              const frame = document.createElement("iframe");
              HTMLElement.prototype.setAttribute.call(frame, "src", `/all/${stamp}${modifier}/${address}`);
              document.body.append(frame);
            }
          }
          for (const address of addresses) await fetch(`/all/${stamp}mp_/${address}`).catch(() => 0);
          await new Promise((resolve) => setTimeout(resolve, 1500));
        }""",
        {"stamp": STAMP, "evil": EVIL},
    )
    made = [one for one in seen if one.from_service_worker and f"/all/{STAMP}" in one.url]
    assert len(made) > 15
    for response in made:
        for name, value in policies(served).items():
            assert response.headers.get(name) == value, response.url
    assert (attacker.connections, attacker.asked) == (0, [])


def test_the_worker_is_the_same_whatever_it_is_asked_with(served: Served):
    plain = ask(f"{served.replay}/sw.js")
    for query in ("?x", "?replayPrefix=w&injectScripts=//evil", "?root=all&serveIndex=1"):
        assert ask(f"{served.replay}/sw.js{query}").body == plain.body
    again = ask(f"{served.replay}/sw.js", headers={"If-None-Match": plain.headers["ETag"]})
    assert again.status == 304 and "Service-Worker-Allowed" not in plain.headers


def test_the_banner_does_not_believe_the_page(context: BrowserContext, served: Served, attacker: Leaks):
    """A page that says it is another gets the other one opened; it cannot stay below a banner that is not
    its own.
    """
    page = open_evil(context, served)
    page.frames[1].evaluate(CLAIM, {"url": f"{VICTIM}/", "ts": STAMP})
    expect(page.locator(".page-address")).to_have_text(f"{VICTIM}/", timeout=20_000)
    for _ in range(20):
        if page.locator(".page-address").inner_text() == f"{VICTIM}/":
            assert "EVIL" not in page.frame_locator("#frame").locator("html").inner_text()
        page.wait_for_timeout(50)
    expect(page.frame_locator("#frame").locator("h1")).to_have_text("Genuine page of the victim")


def test_the_banner_does_not_move_to_another_site_without_opening_it(context: BrowserContext, served: Served):
    """In-page navigation moves the banner within the site only, and to what was archived only."""
    page = open_evil(context, served)
    page.frames[1].evaluate(
        """async ({ victim, evil }) => {
          const say = (url, wb_type) => window.parent.postMessage({ url, ts: "", wb_type }, "*");
          for (const url of [victim + "/", evil + "@victim.example/", evil + ":80@victim.example/", "//victim.example/",
                             "blob:" + victim + "/", "nonsense", `${evil}/../${victim}/`]) {
            say(url, "replace-url");
            await new Promise((resolve) => setTimeout(resolve, 50));
          }
          say(evil + "/direct.html", "replace-url");
        }""",
        {"victim": VICTIM, "evil": EVIL},
    )
    expect(page.locator(".page-address")).to_have_text(f"{EVIL}/direct.html")
    assert page.frame_locator("#frame").locator("h1").inner_text() == "EVIL", "the page was not loaded again"
    page.frames[1].evaluate(
        """(victim) => {
          window.parent.postMessage({ url: victim, ts: "", wb_type: "replace-url" }, "*");
          window.parent.postMessage({ url: victim, ts: "", wb_type: "load", title: "Victim" }, "*");
        }""",
        f"{VICTIM}/",
    )
    expect(page.frame_locator("#frame").locator("h1")).to_have_text(
        "Genuine page of the victim", timeout=20_000
    )
    expect(page.locator(".page-address")).to_have_text(f"{VICTIM}/")


def test_a_page_cannot_take_the_whole_window(context: BrowserContext, served: Served, attacker: Leaks):
    """Opened without its frame while the worker is there, it is sent to its frame before it can act."""
    open_evil(context, served)
    page = context.new_page()
    for modifier in ("mp_", "if_", "oe_"):
        page.goto(f"{served.pages(EVIL)}/all/{STAMP}{modifier}/{EVIL}/direct.html")
        page.wait_for_timeout(300)
        assert page.title() != "EXT RAN" or page.url.startswith(served.frame)
    assert (attacker.connections, attacker.asked) == (0, [])


@pytest.mark.parametrize("modifier", ["sw_", "js_", "cs_", "im_", "oe_", "fw_", "id_", "ns_", "wkr_", "xx_"])
@pytest.mark.parametrize("destination", [None, "document", "iframe", "empty", "script"])
def test_every_modifier_is_sandboxed(served: Served, modifier: str, destination: str | None):
    headers = {"Sec-Fetch-Dest": destination} if destination else {}
    answer = ask(f"{served.replay}/all/{STAMP}{modifier}/{EVIL}/direct.html", headers=headers)
    assert answer.headers.get_all("Content-Type") == [answer.headers["Content-Type"]]
    (policy,) = answer.headers.get_all("Content-Security-Policy")
    words = policy.partition(";")[0].split()
    assert words[0] == "sandbox" and "allow-scripts" not in words


@pytest.mark.parametrize("modifier", ["mp_", "if_", "fr_"])
@pytest.mark.parametrize("destination", [None, "document", "iframe", "frame", "object", "embed", "empty"])
def test_pages_for_the_worker_are_never_sent_without_it(
    served: Served, modifier: str, destination: str | None
):
    headers = {"Sec-Fetch-Dest": destination} if destination else {}
    answer = ask(f"{served.replay}/all/{STAMP}{modifier}/{EVIL}/direct.html", headers=headers)
    policy = answer.headers["Content-Security-Policy"]
    assert b"EVIL" not in answer.body or policy.startswith("sandbox;")
    assert "script-src 'self'" not in policy and "'unsafe" not in policy.replace("style-src 'unsafe", "")


@pytest.mark.parametrize("path", ["two-types", "one-header"])
@pytest.mark.parametrize("modifier", ["id_", "sw_", "ns_", "oe_"])
def test_a_capture_with_two_types_has_one(served: Served, path: str, modifier: str):
    answer = ask(f"{served.replay}/all/{STAMP}{modifier}/{EVIL}/{path}")
    assert answer.headers.get_all("Content-Type") == ["application/pdf"]


@pytest.mark.parametrize("path", ["two-types", "direct.html"])
@pytest.mark.parametrize("modifier", ["id_", "sw_", "js_", "oe_"])
def test_a_capture_opened_directly_runs_nothing(
    context: BrowserContext, served: Served, path: str, modifier: str
):
    page = context.new_page()
    downloaded = []
    page.on("download", lambda download: downloaded.append(download))
    try:
        page.goto(f"{served.replay}/all/{STAMP}{modifier}/{EVIL}/{path}")
    except Exception as error:
        assert "Download" in str(error) or "ERR_ABORTED" in str(error), error
    page.wait_for_timeout(300)
    assert page.title() not in ("RAN", "EXT RAN")
    assert not any(frame.url.endswith("direct.html") for frame in page.frames if path == "two-types")


def test_too_many_cookies_do_not_close_the_archive(context: BrowserContext, served: Served) -> None:
    """A hostile page fills the cookies of all archived sites; the reader loads the next page again and sees
    it.
    """
    evil = open_evil(context, served)
    evil.frames[1].evaluate(
        """() => {
            const range = document.createRange();
            range.selectNodeContents(document.body);
            range.insertNode(document.createElement("iframe"));
            const bare = window[window.length - 1];
            const native = Object.getOwnPropertyDescriptor(bare.Document.prototype, "cookie");
            const parent = location.hostname.slice(location.hostname.indexOf(".") + 1);
            for (let n = 0; n < 40; n++) {
              native.set.call(bare.document, `c${n}=${"x".repeat(3500)}; path=/; domain=${parent}`);
            }
        }"""
    )
    assert len(context.cookies(served.pages(VICTIM))) == 40
    evil.close()
    page = context.new_page()
    page.goto(f"{served.portal}/all/{STAMP}/{VICTIM}/")
    page.wait_for_function("() => document.readyState === 'complete'")
    page.reload()
    heading = page.frame_locator("#frame").locator("h1")
    expect(heading).to_have_text("Genuine page of the victim", timeout=20_000)
    assert context.cookies(served.pages(VICTIM)) == []


def test_a_cookie_for_all_sites_is_read_by_none(context: BrowserContext, served: Served) -> None:
    """Neither by a page of another site nor by the frame around it: its language stays."""
    evil = open_evil(context, served)
    evil.frames[1].evaluate(
        f"""() => {{
          const bare = {BARE};
          for (const pair of ["words=FORGED", "language=nl", "pass=FORGED"]) {{
            bare.document.cookie = pair + "; path=/; domain=webdepot.localhost";
          }}
        }}"""
    )
    assert len(context.cookies(served.pages(VICTIM))) == 3, "the browser sends them"
    page = context.new_page()
    page.goto(f"{served.frame}/all/{STAMP}/{VICTIM}/")
    expect(page.frame_locator("#frame").locator("#words")).to_have_text("by the victim's own script")
    assert page.locator("html").get_attribute("lang") == "en"
    shown = page.frames[1].evaluate("() => [document.cookie, 'cookieStore' in window]")
    assert shown == ["", False]


def test_a_page_does_not_get_into_the_origin_of_another(
    context: BrowserContext, served: Served, attacker: Leaks
) -> None:
    """Not by its own frame, by frames in it, by requests, by forms; not even where the worker is installed."""
    expect_genuine(context, served, attacker)
    evil = open_evil(context, served)
    theirs = served.pages(VICTIM)
    loaded = evil.frames[1].evaluate(
        f"""async (theirs) => {{
          const bare = {BARE};
          const fetch = bare.fetch.bind(bare);
          const page = `${{theirs}}/all/{STAMP}mp_/{EVIL}/direct.html`;
          const raw = `${{theirs}}/all/{STAMP}id_/{VICTIM}/`;
          const loaded = [];
          const when = (element, name, attribute, address) => new Promise((resolve) => {{
            element.onload = () => resolve(loaded.push(name));
            element.onerror = resolve;
            setTimeout(resolve, 1000);
            bare.Element.prototype.setAttribute.call(element, attribute, address);
            bare.document.body.append(element);
          }});
          const make = (name) => bare.document.createElement(name);
          for (const mode of ["cors", "no-cors"]) {{
            await fetch(raw, {{ mode }}).then(() => loaded.push(mode), () => 0);
          }}
          await when(make("script"), "script", "src", theirs + "/-/archived_page.js");
          await when(make("img"), "picture", "src", raw);
          const frame = make("iframe");
          bare.document.body.append(frame);
          frame.src = page;
          const form = Object.assign(make("form"), {{ action: page, target: "_self" }});
          bare.document.body.append(form);
          bare.HTMLFormElement.prototype.submit.call(form);
          if (bare.open(page)) loaded.push("window");
          return loaded;
        }}""",
        theirs,
    )
    assert loaded == []
    evil.frames[1].evaluate(
        f"(theirs) => {{ location = `${{theirs}}/all/{STAMP}mp_/{EVIL}/direct.html`; }}", theirs
    )
    wait_until(evil, lambda: not evil.frames[1].url.startswith(served.pages(EVIL)))
    assert not any(frame.url.startswith(theirs) for frame in evil.frames)
    assert not any(frame.title() == "EXT RAN" for frame in evil.frames)
    expect_genuine(context, served, attacker)


def test_a_page_of_the_live_web_cannot_frame_an_archived_one(context: BrowserContext, served: Served) -> None:
    open_evil(context, served).close()
    with Leaks.listening(WELCOME) as live:
        page = context.new_page()
        page.goto(live.url)
        for path in (
            f"/all/{STAMP}mp_/{EVIL}/",
            f"/-/start/all/{STAMP}mp_/{EVIL}/",
            f"/all/{STAMP}ns_/{EVIL}/",
        ):
            page.evaluate(
                "(src) => new Promise((done) => { const frame = document.createElement('iframe');"
                " frame.onload = done; frame.src = src; document.body.replaceChildren(frame); })",
                served.pages(EVIL) + path,
            )
            wait_until(page, lambda: page.frames[1].url == "chrome-error://chromewebdata/")


def test_a_link_to_another_site_opens_its_own_origin(context: BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto(f"{served.portal}/all/{STAMP}/{SHOP}/")
    inside = page.frame_locator("#frame")
    inside.locator("#other").click()
    expect(inside.locator("h1")).to_have_text("Genuine page of the victim", timeout=20_000)
    expect(page.locator(".page-address")).to_have_text(f"{VICTIM}/")
    assert page.frames[1].url.startswith(served.pages(VICTIM))
    page.go_back()
    expect(inside.locator("h1")).to_have_text("Shop", timeout=20_000)
    assert page.frames[1].url.startswith(served.pages(SHOP))


@pytest.mark.parametrize("path", ["away", "script"])
def test_where_a_redirect_leads_to_runs_on_its_own_origin(
    context: BrowserContext, served: Served, path: str
) -> None:
    page = context.new_page()
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.goto(f"{served.portal}/all/{STAMP}/{VICTIM}/{path}")
    expect(page.locator(".page-address")).to_have_text(f"{EVIL}/ran", timeout=20_000)
    expect(page.frame_locator("#frame").locator("h1")).to_have_text("RAN", timeout=20_000)
    wait_until(page, lambda: any("ran-here" in url for url in seen))
    assert all(url.startswith(served.pages(EVIL)) for url in seen if "ran-here" in url)


def test_frames_of_other_sites_in_a_page_are_shown(context: BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto(f"{served.portal}/all/{STAMP}/{SHOP}/framed")
    inside = page.frame_locator("#frame").frame_locator("iframe")
    expect(inside.locator("h1")).to_have_text("RAN", timeout=20_000)
    assert page.frames[-1].url.startswith(served.pages(SHOP))
    inside.locator("body").evaluate(
        f"() => {{ location = '{served.pages(SHOP)}/all/{STAMP}mp_/{VICTIM}/'; }}"
    )
    expect(inside.locator("h1")).to_have_text("Genuine page of the victim", timeout=20_000)


def test_cookies_of_a_site_work_as_it_expects(context: BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto(f"{served.portal}/all/{STAMP}/{SHOP}/cart/")
    inside = page.frame_locator("#frame")
    expect(inside.locator("#cookies")).to_have_text("here=1; basket=2; wide=3; lasting=4", timeout=20_000)
    expect(inside.locator("#blank")).to_have_text("here=1; basket=2; wide=3; lasting=4")
    inside.locator("#home").click()
    expect(inside.locator("#cookies")).to_have_text("basket=2; wide=3; lasting=4", timeout=20_000)
    assert context.cookies(served.pages(SHOP)) == []
    # An archived host is shown on one name, so a neighbour in its domain has cookies of its own.
    page.goto(f"{served.portal}/all/{STAMP}/http://m.shop.example/")
    expect(inside.locator("#cookies")).to_have_text("none", timeout=20_000)


def test_a_host_that_cannot_be_reached_is_explained(context: BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.route(re.compile(r"//[^/]+\.webdepot\.localhost"), lambda route: route.abort("namenotresolved"))
    page.goto(f"{served.portal}/all/{STAMP}/{VICTIM}/")
    host = served.pages(VICTIM).removeprefix("http://")
    expect(page.locator("#unreachable")).to_contain_text(f"cannot reach {host}")
    expect(page.locator("#frame")).to_be_hidden()


def wait_until(page: Page, is_true: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_true():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not happen")
