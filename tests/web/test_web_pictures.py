"""Images: found by their descriptions, shown as thumbnails from the replay origin, never when they are
closed.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from museum import NOW, SITE, Served, Warc, ask, make_home, serving
from PIL import Image
from playwright.sync_api import sync_playwright

from webdepot.access.policy import AccessPoint, Reader, RuleAnswer
from webdepot.archive import Archive
from webdepot.formats.thumbnail import Thumbnailer
from webdepot.services.access import images, rules
from webdepot.services.access.browse import thumbnail_cache

STAMP = "20150607080910"
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


def picture(colour: str = "navy", size: tuple[int, int] = (640, 480), kind: str = "PNG") -> bytes:
    made = io.BytesIO()
    Image.new("RGBA" if kind == "PNG" else "RGB", size, colour).save(made, kind)
    return made.getvalue()


PAGE = b"""<title>The old harbour</title><h1>Harbour</h1><p>About ships and water,
a page with pictures of all kinds.
<img src="/pictures/red-windmill.png" alt="A windmill at dawn">
<img src="lighthouse.jpg" alt=""><img src="/missing.png" alt="windmill, not kept">
<img src="/secret.png" alt="windmill that nobody may see"><img src="/broken.png" alt="windmill in pieces">"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("pictures")
    warc = Warc(folder / "pictures.warc.gz").response(f"{SITE}/harbour/", STAMP, PAGE)
    warc.response(f"{SITE}/pictures/red-windmill.png", STAMP, picture(), mime="image/png")
    warc.response(f"{SITE}/harbour/lighthouse.jpg", STAMP, picture("red", kind="JPEG"), mime="image/jpeg")
    warc.response(f"{SITE}/secret.png", STAMP, picture("green"), mime="image/png")
    warc.response(
        f"{SITE}/broken.png", STAMP, b"\x89PNG\r\n\x1a\n and then nothing of the kind", mime="image/png"
    )
    home = make_home(folder / "home", warc.write())
    with Archive.open(home, clock=lambda: NOW) as archive:
        rules.add(
            archive, "www.example.org/secret.png", answer=RuleAnswer.REFUSE, access_point=AccessPoint.PUBLIC
        )
    with serving(home) as running:
        yield running


def test_pictures_are_found_by_description_and_file_name_and_closed_ones_are_not(served: Served):
    found = json.loads(ask(f"{served.portal}/api/images?q=windmill").text)
    assert [image["url"] for image in found["images"]] == [
        f"{SITE}/pictures/red-windmill.png",
        f"{SITE}/broken.png",
    ]
    assert found["images"][0]["page"] == {
        "url": f"{SITE}/harbour/",
        "title": "The old harbour",
        "timestamp": STAMP,
    }
    assert [
        image["url"] for image in json.loads(ask(f"{served.portal}/api/images?q=lighthouse").text)["images"]
    ] == [f"{SITE}/harbour/lighthouse.jpg"]
    by_page = json.loads(ask(f"{served.portal}/api/images?q=harbour").text)["images"]
    assert f"{SITE}/pictures/red-windmill.png" in {image["url"] for image in by_page}
    assert ask(f"{served.portal}/api/images?q=%22").status == 400
    assert "secret" not in ask(f"{served.portal}/search/images?q=windmill").text


def test_a_thumbnail_comes_from_the_replay_origin_alone(served: Served):
    path = f"/-/thumbnail/all/{STAMP}/{SITE}/pictures/red-windmill.png"
    answer = ask(served.replay + path)
    assert (answer.status, answer.headers["Content-Type"], answer.headers["X-Content-Type-Options"]) == (
        200,
        "image/jpeg",
        "nosniff",
    )
    small = Image.open(io.BytesIO(answer.body))
    assert (small.size, small.format) == ((240, 180), "JPEG")
    assert ask(served.replay + path).body == answer.body
    assert ask(served.portal + path).status == 404
    assert ask(f"{served.replay}/-/thumbnail/all/{STAMP}/{SITE}/broken.png").status == 404
    assert ask(f"{served.replay}/-/thumbnail/all/{STAMP}/{SITE}/harbour/").status == 404
    assert ask(f"{served.replay}/-/thumbnail/all/{STAMP}/{SITE}/secret.png").status == 451


def test_the_gate_is_asked_before_the_cache(served: Served, tmp_path):
    with served.archive() as archive:
        reader = Reader(name="", access_point=AccessPoint.STAFF)
        assert images.thumbnail(archive, f"{SITE}/secret.png", STAMP, reader=reader)
        assert list((archive.home / "cache" / "thumbnails").rglob("*.jpg"))
    assert ask(f"{served.replay}/-/thumbnail/all/{STAMP}/{SITE}/secret.png").status == 451
    with served.archive() as archive:
        thumbnail_cache.clear(archive)
        assert not (archive.home / "cache" / "thumbnails").exists()


def test_bombs_and_garbage_give_nothing_and_the_next_picture_is_made():
    maker = Thumbnailer()
    try:
        wide = io.BytesIO()
        Image.new("1", (30_000, 30_000)).save(wide, "PNG")
        for hostile in (
            wide.getvalue(),
            b"",
            b"GIF89a",
            picture(kind="JPEG")[:200],
            b"<svg onload='x'/>",
            b"\0" * 100_000,
        ):
            assert maker.make(hostile) is None
        assert maker.make(picture()) is not None
    finally:
        maker.close()


@pytest.mark.browser
def test_the_screen_of_pictures(served: Served):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.goto(f"{served.portal}/search?q=windmill")
        page.click("text=Images")
        page.wait_for_load_state("networkidle")
        assert page.locator(".pictures img").first.evaluate("image => image.naturalWidth") == 240
        assert page.locator(".pictures li").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(AXE.read_text())
        assert page.evaluate("axe.run().then(r => r.violations.map(v => v.id))") == []
        browser.close()
