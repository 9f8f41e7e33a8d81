"""What a reader reaches by clicks in a page is harvested: an app of one shell, in a real Chromium.

One crawl; each test looks at one kind of click. Addresses are put together by the scripts, so that nothing but
a click finds them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harvest_crawl import FileKeeper, kept, run
from harvest_site import Site, running_site, whole

from webdepot.harvest.browser import exploration
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.fetch.fetch_mode import Fetching, Screenshots

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
SHELL = """<!doctype html><title>App</title>
<nav><button id=fleet>Fleet</button> <span role=link id=crew tabindex=0>Crew</span> <a href=/ports>Ports</a> <a href=/ports?do=change>Change</a> <button onclick="data('edi' + 'tor')">Edit page</button>
<a href=#/harbour>Harbour</a></nav>
<main id=view></main>
<script>
const view = document.getElementById('view');
const data = (name) => fetch('/da' + 'ta/' + name).then(answer => answer.text());
const show = async () => {
  const name = location.hash ? location.hash.slice(2) : location.pathname.slice(1) || 'home';
  document.title = 'App: ' + name;
  if (name === 'home') home(); else view.innerHTML = `<h1>The ${name}</h1><p>${await data(name)}</p>`
    + (name === 'harbour' ? '<a href=#/pi' + 'er>Pier</a>' : '')
    + (/^lock/.test(name) ? '<button onclick=onwards()>Onwards</button>' : '');
};
const onwards = () => { location.hash = '#/lock-' + Math.min(Number(location.hash.slice(-1)) + 1, 4); };
const go = (address) => { history.pushState({}, '', address); show(); };
document.getElementById('fleet').onclick = () => go('/fle' + 'et');
document.getElementById('crew').addEventListener('click', () => go('/cr' + 'ew?sort=name'));
document.addEventListener('click', event => {
  if (event.target.matches('[href*=change]')) { event.preventDefault(); data('chan' + 'ged'); return; }
  if (event.target.matches('a[href^="/"]')) { event.preventDefault(); data('by-cli' + 'ck'); go(event.target.pathname); }
});
onpopstate = show;
function home() {
  view.innerHTML = `<p>Welcome</p> <a href=#/de${'ck'}>Deck</a> <a href=#/bri${'dge'}>Bridge</a> <a href=#/lock-1>Lock</a>
  <ul id=list></ul><button id=more>Load more</button>
  <div role=tablist><button role=tab aria-selected=true>One</button><button role=tab id=two>Two</button></div><p id=panel></p>
  <button aria-expanded=false id=opener>History</button><p id=fold hidden>Built in a shipyard</p>
  <details><summary>Notes</summary>Folded words</details>
  <select id=year><option>2001</option><option>2002</option><option>2003</option></select>
  <div style="cursor:pointer" id=card>A card</div>
  <div id=slides></div><div style="cursor:pointer" class="slider__arrow slider__arrow--next" id=arrow></div>
  <span style="cursor:pointer" id=session>&gt;&gt;&gt;</span>
  <div style="cursor:pointer" id=poster>The launch of a ship</div>
  <form action=/sent><input name=q><button>Search</button><button type=button id=inner>Filter</button></form>
  <button id=out>Sign out</button> <button id=again>Again</button> <button id=before>Back</button>
  <button id=leave>Elsewhere</button> <a href=/plain id=stays>Stays</a> <button id=sends>Help</button>`;
  const on = (id, act) => { document.getElementById(id).onclick = act; };
  let page = 1;
  on('more', async () => {
    const text = await data('page-' + ++page);
    list.insertAdjacentHTML('beforeend', `<li><a href=/da${'ta'}/item-${page}>${text} ${page}</a>`);
    if (page === 4) more.remove();
  });
  on('two', async () => { panel.textContent = await data('tab'); });
  on('opener', () => { fold.hidden = false; data('fold'); });
  on('card', () => data('card'));
  let slide = 1;
  on('arrow', async () => { slides.textContent = await data('slide-' + (slide = slide % 3 + 1)); });
  on('poster', () => { poster.innerHTML = '<video preload=none src=/da' + 'ta/film></video>'; });
  let session = 0;
  on('session', () => data('session-' + ++session));
  on('inner', () => data('filter'));
  on('out', () => data('signed-out'));
  on('again', () => location.reload());
  on('before', () => history.back());
  on('leave', () => { location = '/da' + 'ta/elsewhere'; });
  on('sends', () => document.forms[0].requestSubmit());
  document.forms[0].addEventListener('submit', () => data('submitted'));
  year.onchange = () => data('year-' + year.value);
}
show();
</script>"""
BANNER = """<!doctype html><title>Banner</title><p>Page under a banner</p>
<div id=banner style="position:fixed;bottom:0">We use cookies. <a href=/privacy>More</a>
<button onclick="answer('accepted')">Accept all</button> <button onclick="answer('rejected')">Nur notwendige</button></div>
<dialog open id=news>Subscribe to our news <button onclick="fetch('/da' + 'ta/news-agreed')">Agree</button></dialog>
<script>function answer(how) { fetch('/da' + 'ta/' + how); banner.remove(); }</script>"""
ENDLESS = """<!doctype html><title>Endless</title><body><script>
let n = 0;
const add = () => {
  for (let more = 0; more < 20; more++) {
    const button = document.createElement('button'), number = n++;
    button.textContent = 'Room ' + number;
    button.onclick = () => { fetch('/da' + 'ta/room?' + number); add(); };
    document.body.append(button);
  }
};
add();
</script>"""
HOST = "http://app.example"
MOST_CLICKS = 30
"""For the page that never ends; the others need fewer."""


class Harvested:
    def __init__(self, site: Site, folder: Path, keeper: FileKeeper) -> None:
        self.kept = [url.removeprefix(HOST) for url in kept(folder)]
        self.asked = [asked.target for asked in site.log]
        self.texts = {
            name.removeprefix(f"urn:text:{HOST}"): text.decode()
            for name, text in keeper.attached.items()
            if name.startswith("urn:text:")
        }
        self.titles = {name.removeprefix(f"urn:text:{HOST}"): title for name, title in keeper.titles.items()}
        self.links = dict(keeper.outlinks[f"{HOST}/"])


class TitleKeeper(FileKeeper):
    """Also remembers the titles."""

    def __init__(self, folder: Path, marks: dict[str, int]) -> None:
        super().__init__(folder, marks)
        self.titles: dict[str, str] = {}

    def write(self, visit, kept, *, outlinks=(), attached=()) -> None:
        super().write(visit, kept, outlinks=outlinks, attached=attached)
        self.titles |= {each.url: each.title for each in attached}


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harvested]:
    folder = tmp_path_factory.mktemp("exploration")
    keepers: list[TitleKeeper] = []

    def keeper(where: Path, marks: dict[str, int]) -> TitleKeeper:
        keepers.append(TitleKeeper(where, marks))
        return keepers[-1]

    with running_site() as site, pytest.MonkeyPatch.context() as patch:
        patch.setattr(exploration, "MOST_CLICKS", MOST_CLICKS)
        for path in ("/", "/fleet", "/crew", "/ports", "/harbour"):
            site.page(path, SHELL)
        site.page("/banner", BANNER)
        site.page("endless.example/", ENDLESS)
        site.page("/plain", "<p>plain")
        site.fallback = lambda asked: (
            whole(f"words of {asked.path[6:]}", mime="text/plain")
            if asked.path.startswith("/data/")
            else None
        )
        run(
            folder,
            [f"{HOST}/", f"{HOST}/banner", "http://endless.example/"],
            connect_to=dict.fromkeys(("app.example", "endless.example"), f"127.0.0.1:{site.port}"),
            keeper_of=keeper,
            browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=2, agent="Webdepot/1 (test)", call_s=60.0),
            fetch=Fetching.BROWSER,
            screenshots=Screenshots.NONE,
            page_time_s=120.0,
            rejects=(r"do=change",),
        )
        yield Harvested(site, folder, keepers[0])


@pytest.mark.parametrize("route", ["/fleet", "/crew?sort=name", "/ports"])
def test_a_route_behind_a_click_is_a_page_of_its_own(harvested: Harvested, route: str):
    name = route[1:].partition("?")[0]
    assert harvested.links[f"{HOST}{route}"] == "L" and harvested.kept.count(route) == 1
    assert harvested.titles[route] == f"App: {name}"
    assert f"The {name}\n\nwords of {name}" in harvested.texts[route]
    assert f"words of {name}" not in harvested.texts["/"]


@pytest.mark.parametrize(
    "name",
    [
        *("page-2", "page-3", "page-4", "tab", "fold", "year-2002", "year-2003"),
        *("slide-1", "slide-2", "slide-3", "card", "filter", "harbour", "pier", "deck", "bridge", "by-click"),
        *("lock-1", "lock-2", "lock-3", "lock-4"),
    ],
)
def test_data_behind_a_click_is_captured_once(harvested: Harvested, name: str):
    assert harvested.asked.count(f"/data/{name}") == harvested.kept.count(f"/data/{name}") == 1


def test_a_button_that_leads_elsewhere_on_each_page_is_clicked_on_all_and_others_are_not():
    memory, host = exploration.ClickMemory(), "app.example"
    for number in range(1, 5):
        memory.note(host, "next", is_fruitful=False, destination=f"{HOST}/ship/{number}")
        memory.note(host, "home", is_fruitful=False, destination=f"{HOST}/")
        memory.note(host, "colours", is_fruitful=False)
    assert [memory.is_fruitless(host, key) for key in ("next", "home", "colours")] == [False, True, True]


def test_a_prompt_is_not_a_sign_for_the_next_page(harvested: Harvested):
    assert [path for path in harvested.asked if "session" in path] == ["/data/session-1"]


def test_a_player_behind_its_poster_is_played(harvested: Harvested):
    assert "/data/film" in harvested.asked and harvested.kept.count("/data/film") == 1


@pytest.mark.parametrize("address", ["/data/item-2", "/data/item-4", "/data/elsewhere", "/plain"])
def test_links_that_clicks_show_or_follow_are_links(harvested: Harvested, address: str):
    assert harvested.links[f"{HOST}{address}"] == "L" and harvested.kept.count(address) == 1


def test_revealed_text_is_text_of_the_page(harvested: Harvested):
    text = harvested.texts["/"]
    for words in (
        "Welcome",
        "words of page-4 4",
        "words of tab",
        "Built in a shipyard",
        "words of harbour",
        "words of bridge",
    ):
        assert words in text


def test_nothing_is_submitted_or_signed_out(harvested: Harvested):
    assert not any(target.startswith(("/sent", "/data/sub", "/data/signed")) for target in harvested.asked)


def test_links_that_the_rules_reject_and_editors_are_not_clicked(harvested: Harvested):
    assert "/data/editor" not in harvested.asked and "/ports?do=change" not in harvested.asked
    assert "/data/changed" not in harvested.asked


def test_a_consent_banner_is_rejected_and_other_dialogs_are_not_answered(harvested: Harvested):
    assert "/data/rejected" in harvested.asked and "/data/accepted" not in harvested.asked
    assert harvested.texts["/banner"].startswith("Page under a banner")
    assert "cookies" not in harvested.texts["/banner"]


def test_a_page_with_ever_more_buttons_ends(harvested: Harvested):
    rooms = [target for target in harvested.asked if target.startswith("/data/room?")]
    assert 1 < len(rooms) <= MOST_CLICKS
