"""Make the pictures of the README from a portal:

    python scripts/screenshots.py http://127.0.0.1:8080     one that runs
    python scripts/screenshots.py --home demo-home          one that is started for it

Drives the distribution's Chromium. Without --url the newest page of the portal is shown; its versions and its
replay too.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
LARGEST_BYTES = 300_000


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the pictures of the README from a running portal.")
    parser.add_argument(
        "portal", nargs="?", default="", help="address of a running portal, as `webdepot serve` prints it"
    )
    parser.add_argument("--home", type=Path, help="home of an archive to serve for this")
    parser.add_argument("--words", default="museum", help="what to search for")
    parser.add_argument("--url", default="", help="archived address to show")
    parser.add_argument("--at", default="", help="timestamp of the version to show; the latest without it")
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder for the pictures")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser to drive")
    given = parser.parse_args()
    if bool(given.portal) == bool(given.home):
        parser.error("name a running portal or --home, one of them")
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        with (
            served(given.home) if given.home else nullcontext(given.portal) as portal,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
            context = browser.new_context(
                viewport={"width": 1180, "height": 760}, color_scheme="light", locale="en-GB"
            )
            take(
                context.new_page(),
                portal.rstrip("/"),
                given.words,
                (f"{given.at}/" if given.at else "") + given.url if given.url else "",
                given.out,
            )
            browser.close()
    except (Error, ValueError) as error:
        print(
            f"No pictures: {str(error).splitlines()[0]}\nIs there a portal at {given.portal or given.home}?",
            file=sys.stderr,
        )
        return 1
    return 0


@contextmanager
def served(home: Path) -> Iterator[str]:
    """The address of a portal that serves a home as long as the block runs."""
    program = Path(sys.executable).parent / "webdepot"
    command = [str(program), "--home", str(home), "serve", "--port", "0", "--replay-port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["portal"]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def take(page: Page, portal: str, words: str, url: str, folder: Path) -> None:
    """`url` is an archived address, with or without a timestamp before it; empty for the newest page."""
    page.goto(portal + "/")
    newest = page.locator(".cards a").first
    path = f"/all/{url}" if url else newest.get_attribute("href", timeout=5000) or "/"
    page.evaluate("document.activeElement.blur()")
    keep(page, folder / "home.png")
    page.goto(f"{portal}/search?q={words}")
    keep(page, folder / "search.png")
    page.goto(portal + path)
    page.frame_locator("#frame").locator("body:not(:has(#loading)) *").first.wait_for(timeout=20_000)
    page.wait_for_load_state("networkidle")
    keep(page, folder / "replay.png")
    page.locator(".notes a").first.click()
    page.locator(".calendar").wait_for()
    keep(page, folder / "versions.png")


def keep(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    size_bytes = path.stat().st_size
    if size_bytes > LARGEST_BYTES:
        # Photographs in an archived page make large PNGs: fewer colours do for a README.
        from PIL import Image

        with Image.open(path) as picture:
            picture.convert("RGB").quantize(128).save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
