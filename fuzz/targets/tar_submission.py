"""Submissions as tar files: plain ones, and packed with gzip, bzip2 or xz."""

from fuzz.scratch import folder
from fuzz.submissions import open_up

TOKENS = (
    b"ustar\x0000", b"ustar  \0", b"0000644\0", b"00000000010\0", b"././@LongLink", b"././@PaxHeader",
    b"11 path=abc\n", b"20 size=1\n", b"GNU.sparse.map=", b"GNU.sparse.size=9999999999\n", b"../a", b"/etc/x",
    b"a.warc.gz", b"\x80\0\0\0\0\0\0\x01\0\0\0\0", b"\xff" * 12, b"\x1f\x8b\x08\0", b"BZh9", b"\xfd7zXZ\0",
    b"\0" * 512, b"1", b"2", b"5", b"L", b"x", b"g", b"S", b"hdrcharset=BINARY\n",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "a.tar").write_bytes(_with_checksums(data))
        open_up(place / "a.tar", place / "unpacked")


def _with_checksums(data: bytes) -> bytes:
    """The right checksum in every header of a plain tar file, which mutation alone would not find."""
    blocks = [bytearray(data[at : at + 512]) for at in range(0, len(data), 512)]
    for block in blocks:
        if len(block) == 512 and block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
    return b"".join(blocks)
