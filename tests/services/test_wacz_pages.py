"""WACZ files of Browsertrix and ArchiveWeb.page: their lists of pages give titles, texts and seeds, also in a
rebuilt index; texts and screenshots are used from containers of their own; other files are kept.
"""

import gzip
import hashlib
import json
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

import pytest
from test_search import found

from small_warcs import write_warc
from webdepot.archive import Archive
from webdepot.depot import package
from webdepot.depot.bundle import page_lists
from webdepot.depot.bundle.page_lists import ListedPage
from webdepot.model import Capture
from webdepot.services import pipeline
from webdepot.services.access.browse import page_pictures
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests
from webdepot.services.index import indexer
from webdepot.services.intake import submissions
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.url import key as key_of

SITE = "https://app.example/"
SHELL = b'<!doctype html><div id="app"></div><script src="app.js"></script>'
STORY = b"<!doctype html><title>Story</title><p>The miller wrote a long story about his mill and the river."
PAGES = (
    {"format": "json-pages-1.0", "id": "pages", "title": "Seed Pages", "hasText": "true"},
    {
        "id": "1",
        "url": SITE,
        "title": "The old windmill",
        "loadState": 4,
        "ts": "2024-05-17T12:29:58.123Z",
        "mime": "text/html",
        "status": 200,
        "seed": True,
        "depth": 0,
        "text": "Windmill of Veldwijk\nGrinds spelt on Saturdays",
    },
)
EXTRA = (
    {"format": "json-pages-1.0", "id": "extra-pages", "title": "Non-Seed Pages", "hasText": "true"},
    {
        "id": "2",
        "url": f"{SITE}story",
        "title": "Another title",
        "ts": "2024-05-17T12:30:02Z",
        "text": "Cookies?",
    },
    {
        "id": "3",
        "url": f"{SITE}late",
        "title": "Wrong visit",
        "ts": "2024-05-18T12:30:02Z",
        "text": "Tomorrow",
    },
)


def lines(rows: tuple[dict[str, object], ...]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def wacz(path: Path, files: Mapping[str, bytes]) -> Path:
    """A WACZ as Browsertrix writes it: containers stored, the rest compressed. The description may state more
    than the list of its files.
    """
    files = dict(files)
    described = json.loads(files.pop("datapackage.json", b"{}"))
    described["resources"] = [
        {"name": name, "path": name, "hash": f"sha256:{hashlib.sha256(data).hexdigest()}", "bytes": len(data)}
        for name, data in files.items()
    ]
    described |= {"profile": "data-package", "wacz_version": "1.1.1"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in (*files.items(), ("datapackage.json", json.dumps(described).encode())):
            is_stored = name.startswith("archive/")
            packed.writestr(name, data, zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED)
    return path


def resources(*rows: tuple[str, str, bytes]) -> bytes:
    """A container of its own with resource records: address, type and bytes."""
    packed = b""
    for url, mime, data in rows:
        head = {
            "WARC-Type": "resource",
            "WARC-Record-ID": f"<{uuid.uuid5(uuid.NAMESPACE_URL, url).urn}>",
            "WARC-Date": "2024-05-17T12:30:05.123Z",
            "WARC-Target-URI": url,
            "Content-Type": mime,
            "Content-Length": str(len(data)),
        }
        fields = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        packed += gzip.compress(f"WARC/1.1\r\n{fields}\r\n".encode() + data + b"\r\n\r\n", mtime=0)
    return packed


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    setup.create(tmp_path / "home", settings="[index]\nworkers = 1\n")
    with Archive.open(tmp_path / "home", agent="anna") as opened:
        yield opened


@pytest.fixture
def pages_warc(tmp_path: Path) -> bytes:
    pages = {SITE: SHELL, f"{SITE}story": STORY, f"{SITE}late": SHELL + b"<p>x"}
    return write_warc(tmp_path / "rec.warc.gz", pages).read_bytes()


def imported(archive: Archive, path: Path) -> ArchiveReport:
    reports: list[ArchiveReport] = []
    pipeline.import_files(archive, [path], collection="apps", on_package=reports.append)
    (report,) = reports
    return report


def urls(archive: Archive, query: str) -> list[str]:
    return [hit.url for hit in found(archive, query).hits]


def version(archive: Archive, url: str) -> Capture:
    (capture,) = archive.captures.versions(key_of(url))
    return capture


def title_of(archive: Archive, url: str) -> str:
    return replay.find_page_title(archive, version(archive, url)) or ""


@pytest.mark.parametrize("way", ["import", "submission"])
def test_titles_and_texts_of_the_list_of_pages_are_searched_also_after_a_rebuild(
    archive, pages_warc, tmp_path, way
):
    path = wacz(
        tmp_path / "crawl.wacz",
        {
            "archive/rec.warc.gz": pages_warc,
            "pages/pages.jsonl": lines(PAGES),
            "pages/extraPages.jsonl": lines(EXTRA),
            "logs/crawl.log": b"{}\n",
        },
    )
    if way == "import":
        report = imported(archive, path)
    else:
        received = submissions.receive(archive, path, collection="apps")
        assert received.report is not None, received.receipt.reasons
        report = received.report
    for _ in range(2):
        assert urls(archive, "spelt") == [SITE], "the page itself has no words"
        assert title_of(archive, SITE) == "The old windmill"
        assert title_of(archive, f"{SITE}story") == "Story", "the page has a title"
        assert urls(archive, "miller") == [f"{SITE}story"]
        assert not urls(archive, "cookies"), "the page has more words than the list"
        assert not urls(archive, "tomorrow"), "another visit of the page"
        indexer.rebuild(archive)
    assert report.harvest.seeds == (SITE,)
    assert report.package is not None
    kept = package.read(archive.store, report.package.id).inventory.files()
    names = {name.rpartition("submission/")[2] for name in kept if "/submission/" in name}
    assert {name.rpartition("/")[2] for name in names} >= {"pages.jsonl", "extraPages.jsonl", "crawl.log"}
    assert harvests.get(archive, report.harvest.id).seeds == (SITE,)


def test_texts_and_screenshots_in_containers_of_their_own_belong_to_their_pages(
    archive, pages_warc, tmp_path
):
    picture = b"\x89PNG\r\n\x1a\nview"
    path = wacz(
        tmp_path / "crawl.wacz",
        {
            "archive/rec-0-20240517123000000-0.warc.gz": pages_warc,
            "archive/text-20240517123005000.warc.gz": resources(
                (f"urn:text:{SITE}", "text/plain", b"Grinds barley on Sundays, and much more than that")
            ),
            "archive/screenshots-20240517123005000.warc.gz": resources(
                (f"urn:thumbnail:{SITE}", "image/jpeg", b"\xff\xd8small"),
                (f"urn:view:{SITE}", "image/png", picture),
                (f"urn:thumbnail:{SITE}story", "image/jpeg", b"\xff\xd8story"),
            ),
            "pages/pages.jsonl": lines(PAGES[:1]),
            "datapackage.json": json.dumps({"mainPageUrl": f"{SITE}story"}).encode(),
        },
    )
    report = imported(archive, path)
    assert urls(archive, "barley") == [SITE]
    assert report.harvest.seeds == (f"{SITE}story",)
    for url, mime in ((SITE, "image/png"), (f"{SITE}story", "image/jpeg")):
        shot = page_pictures.find(archive, version(archive, url))
        assert shot is not None
        assert shot.mime == mime


def test_a_list_of_pages_that_is_nonsense_changes_nothing(archive, pages_warc, tmp_path):
    junk = b'\x00\xff\n[1]\n{"url": 5}\n{"url": "' + b"[" * 5000 + b'\n{"url":"' + SITE.encode()
    junk += b'","ts":"2024-05-17T12:30:01Z","title":"\\ud800","text":' + b'["x"]}\n'
    path = wacz(tmp_path / "bad.wacz", {"archive/rec.warc.gz": pages_warc, "pages/pages.jsonl": junk})
    report = imported(archive, path)
    assert (report.captures, report.harvest.seeds) == (3, ())
    assert title_of(archive, SITE) in ("?", "")


def test_other_files_that_would_leave_the_package_are_not_kept_and_that_is_said(
    archive, pages_warc, tmp_path
):
    path = wacz(
        tmp_path / "evil.wacz", {"archive/rec.warc.gz": pages_warc, "../../outside.jsonl": lines(PAGES)}
    )
    outcomes = []
    pipeline.import_files(archive, [path], collection="apps", on_file=outcomes.append)
    assert [outcome.state for outcome in outcomes] == ["imported"]
    assert "its other files were not kept" in outcomes[0].reason
    assert not list(tmp_path.rglob("outside.jsonl"))


def test_dates_of_lists_are_read_in_each_form_that_writers_use():
    rows = [
        {"url": SITE, "ts": "2024-05-17T12:30:01.5Z"},
        {"url": SITE, "ts": "2024-05-17T14:30:01+02:00"},
        {"url": SITE, "ts": 1715949001000},
        {"url": SITE, "ts": "yesterday"},
        {"url": SITE, "ts": 10**30},
        {"url": "chrome://newtab", "ts": 1},
    ]
    pages = list(page_lists.iter_pages(BytesIO(lines(tuple(rows)))))
    assert [page.timestamp for page in pages] == ["20240517123001"] * 3 + ["", ""]


def test_a_line_that_is_too_long_is_skipped(monkeypatch):
    monkeypatch.setattr(page_lists, "LONGEST_LINE_BYTES", 100)
    data = lines(({"url": SITE, "text": "x" * 1000}, {"url": f"{SITE}b"}))
    assert list(page_lists.iter_pages(BytesIO(data))) == [ListedPage(url=f"{SITE}b")]
