"""CDX with 9 and 11 columns, CDXJ and ZipNum: exported from one index, imported into another, and read by other tools."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.archive import Archive
from webdepot.errors import CorruptData, InputError
from webdepot.index import cdx, zipnum
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.cdx.cdx_server import CdxFileForm
from webdepot.url import key as key_of

TEN = "sha1:" + "A2B3C4D5" * 4


def capture(url: str, stamp: str, at: int, **changed) -> Capture:
    values = {
        "key": key_of(url),
        "timestamp": stamp,
        "url": url,
        "kind": RecordKind.RESPONSE,
        "status": 200,
        "mime": "text/html",
        "digest": TEN,
        "location": Location(container=f"{at % 3}.warc.gz", offset=at, length=10),
    }
    return Capture(**{**values, **changed})


def some(count: int = 50) -> list[Capture]:
    made = [capture(f"http://www.example.org/{at % 7}", f"2019010100{at:04d}", at) for at in range(count)]
    made.append(
        capture(
            "http://example.org/moved", "20200101000000", 900, status=301, redirect="http://example.org/0"
        )
    )
    made.append(
        capture("http://example.org/0", "20210101000000", 901, kind=RecordKind.REVISIT, mime="warc/revisit")
    )
    return sorted(made, key=lambda one: (one.key, one.timestamp))


@pytest.mark.parametrize("form", list(CdxFileForm))
def test_an_index_goes_out_and_comes_in_again(archive: Archive, tmp_path: Path, form: CdxFileForm):
    for container in sorted({one.location.container for one in some()}):
        archive.captures.add(
            container, [one for one in some() if one.location.container == container], collection="c"
        )
    path = tmp_path / ("out.cdxj.gz" if form is CdxFileForm.ZIPNUM else f"out.{form}")
    assert cdx_server.export(archive, path, form) == len(some())
    for container, _ in list(archive.captures.containers()):
        archive.captures.remove(container)
    done = cdx_server.import_(archive, path, collection="d")
    assert (done.captures, done.containers, done.unknown) == (
        len(some()),
        3,
        ("0.warc.gz", "1.warc.gz", "2.warc.gz"),
    )
    back = list(archive.captures.scan("", "\x7f"))
    if form is CdxFileForm.CDX9:
        assert [(one.key, one.timestamp, one.location.offset) for one in back] == [
            (one.key, one.timestamp, one.location.offset) for one in some()
        ]
    else:
        assert back == some()
    assert list(archive.captures.scan("", "\x7f", collection="c")) == []


def test_zipnum_members_begin_where_the_list_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zipnum, "LINES", 7)
    path = tmp_path / "all.cdxj.gz"
    assert zipnum.write(some(), path) == len(some())
    data, seen = path.read_bytes(), []
    for line in (tmp_path / "all.idx").read_text().splitlines():
        first, part, offset, length, _ = line.split("\t")
        text = gzip.decompress(data[int(offset) : int(offset) + int(length)]).decode()
        assert text.startswith(first) and part == zipnum.PART
        seen += text.splitlines()
    assert len(seen) == len(some()) and seen == sorted(seen)
    assert (tmp_path / "all.loc").read_text() == f"{zipnum.PART}\tall.cdxj.gz\n"


@pytest.mark.parametrize(
    "text", ["a b c\n", " CDX N b a\n", " CDX N b a m s k r V g\norg,x)/ 2019 http://x.org/ - - - - 1 f\n"]
)
def test_a_line_that_is_not_cdx_is_reported_with_its_number(text: str):
    with pytest.raises(InputError, match=r"index\.cdx, line \d"):
        list(cdx.read(text.splitlines(keepends=True), name="index.cdx"))


def test_a_file_that_was_cut_off_is_reported(archive: Archive, tmp_path: Path):
    path = tmp_path / "cut.cdxj.gz"
    zipnum.write(some(), path)
    path.write_bytes(path.read_bytes()[:-20])
    archive.captures.total()
    with pytest.raises(CorruptData, match=r"cut\.cdxj\.gz"):
        cdx_server.import_(archive, path, collection="c")
    assert archive.captures.total() == 0


@given(st.text())
def test_any_text_is_cdx_or_refused(text: str):
    try:
        list(cdx.read(text.split("\n"), name="x"))
    except InputError as error:
        assert "line" in str(error)


def test_requests_and_metadata_in_a_cdx_file_are_not_captures():
    lines = [
        " CDX N b a m s k r M S V g",
        *(
            f"example,mill)/ 20240101000000 https://mill.example/ {mime} - - - - 10 {offset} a.warc.gz"
            for offset, mime in enumerate(("warc/request", "text/html", "warc/metadata", "warc/warcinfo"))
        ),
    ]
    assert [capture.location.offset for capture in cdx.read(lines, name="x.cdx")] == [1]


def test_lines_of_outbackcdx_with_14_columns_and_aliases_are_imported(archive: Archive, tmp_path: Path):
    path = tmp_path / "captures.cdx"
    path.write_text(
        "@alias http://old.example.org/ http://www.example.org/\n"
        f"- 20200101000000 http://example.org/a text/html 200 {TEN[5:]} - - 1043 333 a.warc.gz - - -\n"
        f"- 20210101000000 http://example.org/a warc/revisit 200 {TEN[5:]} - - 500 7000 b.warc.gz 1043 333 a.warc.gz\n"
        f"- 20220101000000 http://example.org/a text/html 200 {TEN[5:]} - - 12 34 c.warc.gz\n"
    )
    assert cdx_server.import_(archive, path, collection="d").captures == 3
    first, revisit, last = archive.captures.versions(key_of("http://example.org/a"))
    assert (first.location, revisit.kind, revisit.location, last.location) == (
        Location(container="a.warc.gz", offset=333, length=1043),
        RecordKind.REVISIT,
        Location(container="b.warc.gz", offset=7000, length=500),
        Location(container="c.warc.gz", offset=34, length=12),
    )
