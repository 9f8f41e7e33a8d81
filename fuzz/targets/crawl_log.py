"""Crawl logs, which a delivered package contains: the quality check and the page of a harvest read them."""

from fuzz.scratch import folder
from webdepot.harvest.report import log
from webdepot.quality.check_database import CheckDatabase

TOKENS = (
    b'{"at": "2020-01-01T00:00:00.000Z", ', b'"status": 200, ', b'"url": "http://a.example/", ',
    b'"size": 5, ', b'"mime": "text/html", ', b'"reason": "", ', b'"rule": "", ', b'"path": "L", ',
    b'"note": ""}\n', b"\n", b"Infinity", b"null", b"[", b"{", b"1e999", b"NaN", b'"\\ud800"',
    b"99999999999999999999",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with folder() as place:
        path = place / log.JSON_NAME
        path.write_bytes(data)
        log.recent(place, 50)
        database = CheckDatabase()
        try:
            database.add_log(path)
            database.finish()
            database.count_documents()
        finally:
            database.close()
