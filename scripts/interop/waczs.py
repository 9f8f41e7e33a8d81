"""WACZ files: are ours shown by the programs of others, and theirs taken in whole?"""

import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import installing
from installing import PLACE, ROOT, Unavailable
from running import Different, Tool, run, same, version_of
from world import SITE, WEBDEPOT, World, files, small_warcs

from captures import pywb_version

JS_WACZ = "@harvard-lil/js-wacz"


def _wacz(world: World) -> str:
    run(
        [PLACE / "bin" / "wacz", "validate", "-f", world.folder / "later.wacz"],
        expected="Validation succeeded",
    )
    return version_of("wacz")


def _wacz_pages(world: World) -> str:
    """Title and text of a list of pages in a WACZ that py-wacz has written."""
    folder = _crawled(world.folder / "py-wacz")
    create = [PLACE / "bin" / "wacz", "create", "-o", "app.wacz", "-p", "pages/pages.jsonl", "app.warc.gz"]
    run(create, folder=folder)
    _find_text_of_pages(folder)
    return version_of("wacz")


def _js_wacz(world: World) -> str:
    """Title and text of a list of pages in a WACZ that js-wacz has written."""
    place = installing.npm(JS_WACZ, "js-wacz")
    folder = _crawled(world.folder / "js-wacz")
    program = place.parent.parent / ".bin" / "js-wacz"
    run([program, "create", "-f", "app.warc.gz", "-o", "app.wacz", "--pages", "pages"], folder=folder)
    _find_text_of_pages(folder)
    return json.loads((place / "package.json").read_text())["version"]


def _crawled(folder: Path) -> Path:
    """A folder with a container and the list of its pages: a page without words has its text in the list."""
    (folder / "pages").mkdir(parents=True)
    pages = [
        {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"},
        {"url": f"{SITE}app", "ts": "2024-03-01T00:00:00Z", "title": "Sails", "text": "Canvas and spars"},
    ]
    (folder / "pages" / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    small_warcs.write_warc(
        folder / "app.warc.gz", {f"{SITE}app": b"<script></script>"}, when=datetime(2024, 3, 1, tzinfo=UTC)
    )
    return folder


def _find_text_of_pages(folder: Path) -> None:
    own = [WEBDEPOT, "--home", folder / "home"]
    run([*own, "init"])
    run([*own, "import", folder / "app.wacz"])
    run([*own, "search", "canvas"], expected="Sails")


def _pywb_wacz(world: World) -> str:
    manager = ROOT / ".pywb" / "bin" / "wb-manager"
    if not manager.exists():
        raise Unavailable("make install-test installs it")
    run([manager, "init", "x"], folder=world.folder)
    run([manager, "add", "--unpack-wacz", "x", world.folder / "later.wacz"], folder=world.folder)
    (index,) = (world.folder / "collections" / "x" / "indexes").iterdir()
    same(len(index.read_text().splitlines()), 3)
    return pywb_version()


def _replayweb(world: World) -> str:
    """Show the unchanged page of the later harvest in ReplayWeb.page in Chromium."""
    from playwright.sync_api import Error, sync_playwright

    package = installing.npm_alone("replaywebpage")
    site = world.folder / "player"
    (site / "replay").mkdir(parents=True)
    shutil.copy(package / "ui.js", site)
    shutil.copy(package / "sw.js", site / "replay")
    shutil.copy(world.folder / "later.wacz", site)
    (site / "index.html").write_text(
        '<!doctype html><script src="ui.js"></script>'
        f'<replay-web-page source="later.wacz" url="{SITE}" ts="20250101000000" style="height:600px">'
        "</replay-web-page>"
    )
    with files(site) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        for _ in range(60):
            time.sleep(0.5)
            for frame in page.frames:
                try:
                    if "It turns." in frame.content():
                        return json.loads((package / "package.json").read_text())["version"]
                except Error:
                    continue
    raise Different("the page was not shown within 30 s")


TOOLS = (
    Tool(name="py-wacz", source="PyPI", what="validate a WACZ export", check=_wacz),
    Tool(name="py-wacz", source="PyPI", what="its list of pages is used", check=_wacz_pages),
    Tool(name="pywb", source="PyPI", what="take in a WACZ export", check=_pywb_wacz),
    Tool(name="js-wacz", source="npm", what="its list of pages is used", check=_js_wacz),
    Tool(name="ReplayWeb.page", source="npm", what="replay a WACZ of a later harvest", check=_replayweb),
)
