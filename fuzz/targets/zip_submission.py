"""Submissions as ZIP files."""

from fuzz.scratch import folder
from fuzz.submissions import open_up

TOKENS = (
    b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"\x14\0\0\0\x08\0", b"../a",
    b"a/../../b", b"/etc/x", b"archive/a.warc.gz", b"datapackage.json", b"bagit.txt", b"\xff\xff\xff\xff",
    b"\x01\0\x18\0", b"\0\0\xed\xa1", b"\x0c\0", b"\x0e\0", b"\x09\0", b"data/", b"mets.xml", b"\0" * 12,
    b"\\",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "a.zip").write_bytes(data)
        open_up(place / "a.zip", place / "unpacked")
