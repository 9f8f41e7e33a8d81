"""Take the screenshots for the README and the tutorial:

    python scripts/screenshots.py http://127.0.0.1:8080     of a running portal
    python scripts/screenshots.py --home demo-home          of an archive; its portal is started and stopped

Uses the Chromium of the distribution. Without --url, the latest page of the portal is shown in replay and in
the list of versions. In a demonstration, whose password everybody may know, staff pages are shown too; with
--staff, only those.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from webdepot.services.admin import demo_accounts

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
LARGEST_BYTES = 300_000


def main() -> int:
    parser = argparse.ArgumentParser(description="Take the screenshots for the README.")
    parser.add_argument(
        "portal", nargs="?", default="", help="address of a running portal, as `webdepot serve` prints it"
    )
    parser.add_argument("--home", type=Path, help="home of an archive to serve")
    parser.add_argument("--words", default="museum", help="what to search for")
    parser.add_argument("--url", default="", help="archived address to show")
    parser.add_argument("--at", default="", help="timestamp of the version to show; default: the latest")
    parser.add_argument("--staff", action="store_true", help="only the pages of staff")
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder for the screenshots")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="path of Chromium")
    options = parser.parse_args()
    if bool(options.portal) == bool(options.home):
        parser.error("give either the address of a running portal or --home")
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        with (
            served(options.home) if options.home else nullcontext(options.portal) as portal,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
            context = browser.new_context(
                viewport={"width": 1180, "height": 760}, color_scheme="light", locale="en-GB"
            )
            page, portal = context.new_page(), portal.rstrip("/")
            url = (f"{options.at}/" if options.at else "") + options.url if options.url else ""
            if not options.staff:
                take(page, portal, options.words, url, options.out)
            take_of_staff(page, portal, options.out)
            browser.close()
    except (Error, ValueError) as error:
        print(
            f"Failed: {str(error).splitlines()[0]}\nIs there a portal at {options.portal or options.home}?",
            file=sys.stderr,
        )
        return 1
    return 0


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Serve an archive for the length of the block; yields the address of its portal."""
    program = Path(sys.executable).parent / "webdepot"
    command = [str(program), "--home", str(home), "serve", "--port", "0", "--replay-port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["portal"]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def take(page: Page, portal: str, words: str, url: str, folder: Path) -> None:
    """Take all screenshots. `url` is an archived address, with or without TIMESTAMP/ before it; empty for the
    latest page.
    """
    page.goto(portal + "/")
    newest = page.locator(".cards a").first
    path = f"/all/{url}" if url else newest.get_attribute("href", timeout=5000) or "/"
    page.evaluate("document.activeElement.blur()")
    page.wait_for_load_state("networkidle")
    keep(page, folder / "home.png")
    page.goto(f"{portal}/search?q={words}")
    keep(page, folder / "search.png")
    page.goto(portal + path)
    page.frame_locator("#frame").locator("body:not(:has(#loading)) *").first.wait_for(timeout=20_000)
    page.wait_for_load_state("networkidle")
    keep(page, folder / "replay.png")
    page.locator(".notes a:not([data-back])").first.click()
    page.locator(".calendar").wait_for()
    keep(page, folder / "versions.png")


def take_of_staff(page: Page, portal: str, folder: Path) -> None:
    """Take screenshots of pages for staff; none if the sign-in page does not show the password."""
    page.goto(f"{portal}/sign-in")
    if not page.get_by_text(demo_accounts.PASSWORD).count():
        return
    page.locator("[name=name]").fill("curator")
    page.locator("[name=password]").fill(demo_accounts.PASSWORD)
    page.locator("main form button").first.click()
    page.goto(f"{portal}/dashboard")
    keep(page, folder / "dashboard.png")
    page.goto(f"{portal}/review")
    page.get_by_role("link", name="bezoek.html").first.click()
    page.locator(".compared-shots img").last.wait_for()
    page.wait_for_load_state("networkidle")
    keep(page, folder / "review.png")
    page.locator(".compared-shots .address a").first.click()
    page.frame_locator("#frame").locator("body:not(:has(#loading)) *").first.wait_for(timeout=20_000)
    page.wait_for_load_state("networkidle")
    keep(page, folder / "preview.png")


def keep(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    size_bytes = path.stat().st_size
    if size_bytes > LARGEST_BYTES:
        # Photographs make large PNG files; fewer colours are good enough for a README.
        from PIL import Image

        with Image.open(path) as picture:
            picture.convert("RGB").quantize(128).save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
