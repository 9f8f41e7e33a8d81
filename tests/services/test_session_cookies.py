"""Old containers with session cookies of a log-in: the depot keeps its bytes, but no copy that leaves the archive
has the values.
"""

import gzip
import io
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from small_warcs import write_warc
from webdepot.access.policy import ANYONE, Reader
from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.errors import NotPermitted
from webdepot.services import pipeline
from webdepot.services.access.export import export
from webdepot.services.access.export.export import ExportForm
from webdepot.services.access.replay import replay, replay_answer, session_cookies
from webdepot.services.admin import setup
from webdepot.services.exchange import object_delivery

MEMBERS, OTHERS = "https://members.example/page", "https://open.example/page"
PAGE = b"<title>Mill</title><p>The windmill of the members"
LOGINS = """["members.example"]
user = "archive"
password = "p"
"""


@pytest.fixture
def kept(tmp_path: Path):
    """An archive with one container, in which two hosts set cookies; one of them has a log-in."""
    pages = {
        url: gzip.decompress(
            write_warc(
                tmp_path / "one.warc.gz",
                {url: PAGE},
                mime=f"text/html\r\nSet-Cookie: sid={value}; Path=/; HttpOnly",
            ).read_bytes()
        )
        for url, value in ((MEMBERS, "SECRET"), (OTHERS, "harmless"))
    }
    path = tmp_path / "old.warc.gz"
    path.write_bytes(b"".join(map(gzip.compress, pages.values())))
    setup.create(tmp_path / "home", settings="[index]\nworkers = 1\n")
    logins = tmp_path / "home" / "logins.toml"
    logins.write_text(LOGINS)
    logins.chmod(0o600)
    with Archive.open(tmp_path / "home") as archive:
        yield archive, pipeline.import_files(archive, [path], collection="mills").taken


def heads_in(data: bytes) -> dict[str, str | None]:
    """The cookie of each record; all of them must be whole."""
    findings: list = []
    read = {}
    for record in iter_records(io.BytesIO(data), "x", on_finding=findings.append):
        read[record.url] = record.head.get("set-cookie")
        assert record.payload().read() == PAGE
    assert findings == []
    return read


@pytest.mark.parametrize("form", [ExportForm.WARC, ExportForm.WACZ])
def test_exported_records_have_no_session_cookies(kept, form):
    archive, _ = kept
    data = b"".join(export.export(archive, "windmill", form, reader=ANYONE))
    if form is ExportForm.WACZ:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            data = packed.read("archive/data.warc.gz")
    assert heads_in(data) == {
        MEMBERS: "sid=[removed]; Path=/; HttpOnly",
        OTHERS: "sid=harmless; Path=/; HttpOnly",
    }


def test_partners_do_not_get_the_container_but_staff_does(kept):
    archive, taken = kept
    with pytest.raises(NotPermitted, match="session cookies"):
        object_delivery.hand_over(archive, taken.harvest.id, reader=ANYONE)
    assert object_delivery.hand_over(archive, taken.harvest.id, reader=Reader.staff("Ada")).transfer.files
    (archive.home / "logins.toml").write_text(LOGINS.replace("members.example", "elsewhere.example"))
    assert object_delivery.hand_over(archive, taken.harvest.id, reader=ANYONE).transfer.files


def test_terminals_get_no_cookies_of_a_login(kept):
    archive, _ = kept
    for url, expected in ((MEMBERS, []), (OTHERS, ["sid=harmless; Path=/; HttpOnly"])):
        with closing(replay.open_capture(archive, url, "2024", collection="mills", reader=ANYONE)) as opened:
            answer = replay_answer.for_proxy(
                opened,
                accept_encoding=None,
                byte_range=None,
                has_cookies=not session_cookies.concern(archive, opened.capture.url),
            )
            assert [value for name, value in answer.headers if name.lower() == "set-cookie"] == expected


def test_without_a_readable_file_of_log_ins_every_origin_counts(kept):
    archive, _ = kept
    (archive.home / "logins.toml").write_text("not toml")
    assert session_cookies.concern(archive, OTHERS)
    (archive.home / "logins.toml").unlink()
    assert not session_cookies.concern(archive, MEMBERS)
