"""Pictures of archived pages: made from the archive alone, kept in the package, shown only with the page."""

import io
from pathlib import Path

import pytest
from PIL import Image

from databases import configure
from small_warcs import write_warc
from webdepot.access.policy import ANYONE, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import ConfigError, NotFound
from webdepot.services import pipeline
from webdepot.services.access import lookup, rules
from webdepot.services.access.browse import page_pictures
from webdepot.services.access.browse.page_pictures import PictureSize
from webdepot.services.depot import pictures
from webdepot.services.depot.pictures import PicturesReport
from webdepot.services.index import indexer
from webdepot.services.quality import format_watch

SITE = "http://a.org"
RED = b"<title>Red</title><style>body { margin: 0; background: #c00 }</style><img src='/blue.png'>"
PAGES = {f"{SITE}/": RED, f"{SITE}/two": RED, "http://closed.org/": RED}
STAMP = "20240517123001"


def _blue() -> bytes:
    drawn = io.BytesIO()
    Image.new("RGB", (1280, 400), "blue").save(drawn, "PNG")
    return drawn.getvalue()


def _import(home: Path, tmp_path: Path) -> None:
    pages = write_warc(tmp_path / "pages.warc.gz", PAGES)
    image = write_warc(tmp_path / "image.warc.gz", {f"{SITE}/blue.png": _blue()}, mime="image/png")
    with Archive.open(home) as archive:
        pipeline.import_files(archive, [pages, image], collection="colours")
        rules.add(archive, "http://closed.org/", answer=RuleAnswer.REFUSE)


@pytest.mark.browser
def test_pictures_are_made_once_kept_in_the_depot_and_are_not_files_of_the_site(home: Path, tmp_path: Path):
    configure(home, "[harvest]\nbrowser_sandbox = false\n")
    _import(home, tmp_path)
    with Archive.open(home) as archive:
        files = format_watch.collection(archive).shares
        assert pictures.build(archive) == PicturesReport(made=1, harvests=1), "the one open start page"
        other = lookup.find_closest(archive, f"{SITE}/two", STAMP, collection="all", reader=ANYONE)
        assert page_pictures.find(archive, other) is None
        pictures.build_page(archive, other)
        assert page_pictures.find(archive, other) is not None
        assert pictures.build(archive, pages=9) == PicturesReport(), "every page has one"
        shown = page_pictures.small(
            archive, f"{SITE}/", STAMP, PictureSize.CARD, collection="all", reader=ANYONE
        )
        card = Image.open(io.BytesIO(shown))
        top, bottom = card.getpixel((300, 50)), card.getpixel((300, 380))
        assert card.size == (640, 400)
        assert top[2] > 200 > 60 > top[0] and bottom[0] > 150 > 60 > bottom[2], "the image, on red"
        assert format_watch.collection(archive).shares == files
        status = indexer.status(archive)
        assert status.containers == status.with_captures == status.with_words
        rules.add(archive, f"{SITE}/blue.png", answer=RuleAnswer.HIDE)
        with pytest.raises(NotFound):  # the image is in the picture
            page_pictures.small(archive, f"{SITE}/", STAMP, PictureSize.HIT, collection="all", reader=ANYONE)


def test_without_a_browser_it_is_said_what_to_install(home: Path):
    configure(home, '[harvest]\nbrowser = "no-such-browser"\n')
    with Archive.open(home) as archive, pytest.raises(ConfigError, match="Install one"):
        pictures.build(archive)
