"""The way of a page that scripts make: harvested twice with a browser, reviewed, compared, and opened again
as the browser saw it.
"""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from warcio.archiveiterator import ArchiveIterator

from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.errors import ConfigError
from webdepot.services.access import search
from webdepot.services.admin import doctor, setup
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.review import reviews

SCRIPT = """<div id=root></div><script>
fetch('/ti' + 'des.json').then(answer => answer.json()).then(tides => {
  document.title = `Water at ${tides.harbour}`;
  const inner = document.body.appendChild(document.createElement('p')).attachShadow({mode: 'open'});
  inner.innerHTML = `<style>b { color: red }</style><b>Sluice of ${tides.harbour}</b><i><i>Level</i></i>`;
  root.innerHTML = `<h1>Tides of ${tides.harbour}</h1><a href="/hig${'h'}">High water</a><img src="/fla${'g.p'}ng">`;
});
</script>"""
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def tell(site, harbour: str) -> None:
    site.page("/", "Harbour", SCRIPT)
    site.pages["/tides.json"] = (
        200,
        {"Content-Type": "application/json"},
        json.dumps({"harbour": harbour}).encode(),
    )
    site.pages["/flag.png"] = (200, {"Content-Type": "image/png"}, PNG)
    site.page("/high", "High water", "<p>At noon.</p>")


@pytest.mark.browser
def test_what_scripts_show_is_harvested_reviewed_compared_and_replayed(
    site, webdepot, serving, chromium: Browser, tmp_path: Path
):
    home = tmp_path / "home"
    setup.found(home, settings="[harvest]\nbrowser_sandbox = false\n")
    for harbour in ("Harlingen", "Delfzijl"):
        tell(site, harbour)
        options = ["--browser", "--allow-private", "--delay", "0", "--json"]
        report = json.loads(webdepot("archive", site.url, *options).stdout)
        assert report["state"] == "kept"
    assert site.requests["/tides.json"] == site.requests["/high"] == 2, "once for each harvest"

    found = [record for path in sorted(home.rglob("*.warc.gz")) for record in _records(path)]
    assert found.count(("resource", f"urn:view:{site.url}/", "image/png")) == 2
    assert found.count(("resource", f"urn:text:{site.url}/", "text/plain; charset=utf-8")) == 2

    with Archive.open(home) as archive:
        for words in ("Harlingen", "Delfzijl"):
            (hit,) = search.search(archive, f"tides {words}", reader=ANYONE).hits
            assert (hit.url, hit.title) == (f"{site.url}/", f"Water at {words}")
            (hit,) = search.search(archive, f"sluice {words} level", reader=ANYONE).hits
            assert hit.url == f"{site.url}/"
        assert not search.search(archive, "color", reader=ANYONE).hits
        harvests = harvests_service.latest(archive, 2)
        assert [harvest.counts["screenshots"] for harvest in harvests] == [1, 1]
        ((before, now),) = reviews.screenshot_pairs(archive, reviews.dossier(archive, harvests[0].id))
        assert before is not None and before.url == now.url == f"{site.url}/"
        mime, picture = reviews.read_screenshot(archive, now.id)
        assert mime == "image/png" and picture.startswith(b"\x89PNG")

    site.close()
    at = serving()
    page = chromium.new_page()
    page.goto(f"{at['portal']}/compare?url={site.url}/&at=99991231")
    read = "async (image) => [...new Uint8Array(await (await fetch(image.src)).arrayBuffer())]"
    assert bytes(page.locator("img.over").evaluate(read)) == picture

    page.goto(f"{at['portal']}/all/99991231/{site.url}/")
    inside = page.frame_locator("iframe")
    expect(inside.get_by_role("heading", name="Tides of Delfzijl")).to_be_visible(timeout=30_000)
    expect(inside.get_by_role("link", name="High water")).to_be_visible()
    assert inside.locator("img").evaluate("image => image.complete && image.naturalWidth") == 1
    page.close()


def _records(path: Path) -> list[tuple[str, str, str]]:
    with path.open("rb") as stream:
        return [
            (
                record.rec_type,
                record.rec_headers["WARC-Target-URI"] or "",
                record.rec_headers["Content-Type"] or "",
            )
            for record in ArchiveIterator(stream)
        ]


def test_a_harvest_that_wants_a_browser_where_there_is_none_does_not_begin(home: Path):
    (home / "webdepot.toml").write_text('[harvest]\nbrowser = "no-such-browser"\nfetch = "when-empty"\n')
    with Archive.open(home) as archive:
        with pytest.raises(ConfigError, match=r"no-such-browser.*apt install chromium"):
            runner.start_or_resume(
                archive, ["http://127.0.0.1:9/"], HarvestOptions.from_config(archive.config)
            )
        assert harvests_service.latest(archive, 5) == []
    (found,) = [check for check in doctor.examine(home) if check.name == "browser"]
    assert found.state == "error" and "apt install chromium" in found.remedy
    (home / "webdepot.toml").write_text('[harvest]\nbrowser = "no-such-browser"\n')
    assert [check.state for check in doctor.examine(home) if check.name == "browser"] == ["ok"], (
        "nothing asks for one"
    )
