"""WACZ: the input is its datapackage.json, next to files whose checksums it may name."""

from fuzz.scratch import folder
from webdepot.depot.bundle import submission

TOKENS = (
    b'{"resources": [', b'{"path": "archive/a.warc.gz", ',
    b'"hash": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}',
    b'"hash": "md5:d41d8cd98f00b204e9800998ecf8427e"}', b"../", b"/etc/passwd", b'"path": ', b"null", b"[]",
    b"{}", b"1e999", b"NaN", b'"\\ud800"', b'"\\u0000"', b'"archive"', b", ", b"]}",
    b'"profile": "data-package"',
)  # fmt: skip


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "archive").mkdir()
        (place / "archive" / "a.warc.gz").write_bytes(b"")
        (place / "datapackage.json").write_bytes(data)
        opened = submission.open_up(place, place)
        assert opened.reasons or opened.kind is submission.SubmissionKind.WACZ
