"""Checksums: compute while streaming, parse, compare.

Notation is WARC's labelled digest (ISO 28500, 5.8): `algorithm:value`. SHA-1 is written in base32 as every
existing index has it, SHA-256 in hexadecimal as OCFL and BagIt have it; both spellings are read for both.
"""

import hashlib
import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_HEX = re.compile(r"[0-9a-fA-F]+")
_USUAL = re.compile(r"sha1:[A-Z2-7]{32}")
_BASE32 = re.compile(r"[a-zA-Z2-7]+")
# From RFC 4648's digits (A-Z, 2-7) to those of Python's int (0-9, a-v).
_TO_PYTHON = str.maketrans(
    string.ascii_uppercase + string.ascii_lowercase + "234567",
    (string.digits + string.ascii_lowercase[:16]) * 2 + "qrstuv",
)
_TO_PYTHON_BYTES = bytes(_TO_PYTHON.get(code, code) for code in range(256))
_DIGITS = (string.ascii_uppercase + "234567").encode().ljust(256)


def _halves(bits: int, lane_bits: int, lanes: int) -> tuple[int, int, int]:
    """To move numbers of so many bits, one in each lane, apart into two halves: masks of the upper and lower
    ones, and how far.
    """
    lower = sum(((1 << bits // 2) - 1) << (lane_bits * lane) for lane in range(lanes))
    return lower << bits // 2, lower, lane_bits // 2 - bits // 2


_SPREAD = tuple(_halves(160 >> step, 256 >> step, 1 << step) for step in range(5))


@dataclass(frozen=True, slots=True)
class Digest:
    """A checksum as bytes, so that two spellings of the same value are equal."""

    algorithm: str
    value: bytes

    def __str__(self) -> str:
        if self.algorithm == "sha1":
            return sha1_label(self.value)
        return f"{self.algorithm}:{self.value.hex()}"


def sha1_label(value: bytes) -> str:
    """`sha1:` and the 20 bytes in base32 (RFC 4648); base64.b32encode is a loop in Python over each digit.

    The 160 bits are moved apart, in halves of halves, until each byte has five of them: a digit each."""
    (
        (upper, lower, by),
        (upper2, lower2, by2),
        (upper3, lower3, by3),
        (upper4, lower4, by4),
        (upper5, lower5, by5),
    ) = _SPREAD
    number = int.from_bytes(value, "big")
    number = (number & upper) << by | number & lower
    number = (number & upper2) << by2 | number & lower2
    number = (number & upper3) << by3 | number & lower3
    number = (number & upper4) << by4 | number & lower4
    number = (number & upper5) << by5 | number & lower5
    return f"sha1:{number.to_bytes(32, 'big').translate(_DIGITS).decode('ascii')}"


def parse(text: str) -> Digest | None:
    """Read `sha1:…`, `sha-256:…` or a bare SHA-1, in base32 or hexadecimal of either case; None for anything
    else.
    """
    usual = _find_usual(text)
    if usual is not None:
        return Digest("sha1", usual)
    label, colon, spelled = text.strip().partition(":")
    if not colon:
        label, spelled = "sha1", label
    algorithm = label.lower().replace("-", "")
    size = _SIZES.get(algorithm)
    if size is None:
        return None
    spelled = spelled.rstrip("=")
    if _HEX.fullmatch(spelled) and len(spelled) == size * 2:
        return Digest(algorithm, bytes.fromhex(spelled))
    surplus_bits = len(spelled) * 5 - size * 8
    if not 0 <= surplus_bits < 5 or not _BASE32.fullmatch(spelled):
        return None
    return Digest(algorithm, (int(spelled.translate(_TO_PYTHON), 32) >> surplus_bits).to_bytes(size, "big"))


def find_value(text: str) -> bytes | None:
    """The bytes alone of what `parse` reads."""
    usual = _find_usual(text)
    if usual is not None:
        return usual
    known = parse(text)
    return known.value if known else None


def is_usual(text: str) -> bool:
    """Whether it is a SHA-1 in the spelling that nearly all have, which is also ours."""
    return _USUAL.fullmatch(text) is not None


def _find_usual(text: str) -> bytes | None:
    """Nearly all are spelled so, and every capture of an index comes this way: without looking at every other
    way to spell one.
    """
    if not _USUAL.fullmatch(text):
        return None
    # As bytes, since these are translated by a table; base64.b32decode is a loop in Python and takes ten
    # times as long.
    return int(text[5:].encode("ascii").translate(_TO_PYTHON_BYTES), 32).to_bytes(20, "big")


def is_same(one: str, other: str) -> bool:
    """Whether two labelled digests name the same bytes, however they are spelled; unknown or broken ones
    never do.
    """
    first = parse(one)
    return first is not None and first == parse(other)


def sha1(data: bytes) -> Digest:
    return Digest("sha1", hashlib.sha1(data, usedforsecurity=False).digest())


def sha256(data: bytes) -> Digest:
    return Digest("sha256", hashlib.sha256(data).digest())


def of_stream(stream: BinaryIO, algorithm: str = "sha256") -> tuple[Digest, int]:
    """The digest of what is left in the stream, and how many bytes that was. Memory: one chunk."""
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    size = 0
    while chunk := stream.read(CHUNK_BYTES):
        hasher.update(chunk)
        size += len(chunk)
    return Digest(algorithm, hasher.digest()), size


def of_file(path: Path, algorithm: str = "sha256") -> Digest:
    with path.open("rb") as stream:
        return of_stream(stream, algorithm)[0]
