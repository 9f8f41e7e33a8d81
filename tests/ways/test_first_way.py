"""The first steps of a user: archive a site, kill the process, resume, import an old WARC, search, open a page, step
through its versions.
"""

import gzip
import json
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from warcio.archiveiterator import ArchiveIterator

PAGES = 60


def fill(site) -> set[str]:
    """A front page with links to news pages, each with a picture and a style sheet of its own."""
    links = "".join(f'<a href="/news/{number}">News {number}</a> ' for number in range(PAGES))
    site.page(
        "/", "Town museum", f'<p>The windmill exhibition opens in spring.</p><img src="/mill.png">{links}'
    )
    for number in range(PAGES):
        site.page(f"/news/{number}", f"News {number}", f"<p>Report number {number} about the lighthouse.</p>")
    png = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc000000301010018dd8db00000000049454e44ae426082"
    )
    site.pages["/mill.png"] = (200, {"Content-Type": "image/png"}, png)
    return {site.url + path for path in site.pages}


def old_warc(path: Path, url: str) -> None:
    """The front page as another tool kept it in 2012: WARC 1.0, without digests."""
    html = b"<!doctype html><title>Town museum of old</title><h1>Town museum of old</h1><p>The steam tram stops here in 2012.</p>"
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(html), html)
    header = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\nWARC-Date: 2012-05-06T07:08:09Z\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    path.write_bytes(gzip.compress(header.encode() + block + b"\r\n\r\n"))


def responses(home: Path) -> list[str]:
    """Every response record in every container of the depot, read by another library."""
    urls = []
    for path in sorted(home.rglob("*.warc.gz")):
        with path.open("rb") as stream:
            urls += [
                record.rec_headers["WARC-Target-URI"]
                for record in ArchiveIterator(stream)
                if record.rec_type == "response"
            ]
    return urls


@pytest.mark.browser
def test_from_a_url_to_a_page_in_the_browser_and_back_in_time(
    program, site, webdepot, serving, chromium: Browser, tmp_path
):
    expected = fill(site)
    home = tmp_path / "home"
    command = [program, "--home", home, "archive", site.url, "--allow-private", "--delay", "0.02", "--quiet"]
    first = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE)
    site.wait_for_requests(PAGES // 2)
    first.send_signal(signal.SIGKILL)
    first.communicate()

    report = json.loads(webdepot("archive", site.url, "--allow-private", "--delay", "0", "--json").stdout)
    assert report["state"] == "kept"
    kept = [url for url in responses(home) if "robots.txt" not in url]
    assert sorted(kept) == sorted(expected)
    assert not list(home.rglob("*.open"))

    old_warc(tmp_path / "old.warc.gz", site.url + "/")
    imported = json.loads(webdepot("import", tmp_path / "old.warc.gz", "--json").stdout)
    assert imported["captures"] == 1

    hits = [json.loads(line) for line in webdepot("search", "windmill", "--json").stdout.splitlines()]
    assert [hit["url"] for hit in hits] == [site.url + "/"]
    assert hits[0]["title"] == "Town museum"
    assert "windmill" in hits[0]["snippet"]
    assert hits[0]["versions"] == 2

    site.close()
    at = serving()
    page = chromium.new_page()
    page.goto(at["portal"])
    page.get_by_role("searchbox").first.fill("windmill")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Town museum").first.click()
    inside = page.frame_locator("iframe")
    expect(inside.get_by_role("heading", name="Town museum")).to_be_visible(timeout=30_000)
    expect(inside.locator("body")).to_contain_text("windmill exhibition")
    assert inside.locator("img").evaluate("image => image.complete && image.naturalWidth") == 1

    page.get_by_role("link", name="First").first.click()
    expect(page.frame_locator("iframe").get_by_role("heading", name="Town museum of old")).to_be_visible(
        timeout=30_000
    )
    expect(page.frame_locator("iframe").locator("body")).to_contain_text("steam tram")
    assert "20120506070809" in page.url
    page.close()
