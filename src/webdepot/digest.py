"""Digests: compute from streams, parse, compare.

The notation is WARC's labelled digest (ISO 28500, 5.8): `algorithm:value`. SHA-1 is written in base32 like
all existing indexes, SHA-256 in hexadecimal like OCFL and BagIt; both notations are read for both.
"""

import hashlib
import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_DIGITS = string.ascii_uppercase + "234567"
_DIGIT_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
# Label, value, padding.
_SPELLED = re.compile(r"\s*(?:([a-zA-Z0-9-]+):)?([a-zA-Z0-9]+)=*\s*")
_NORMAL_SHA1 = re.compile(r"sha1:[A-Z2-7]{32}")
# From RFC 4648's base32 digits (A-Z, 2-7) to those of Python's int (0-9, a-v); others become invalid.
_TO_PYTHON = bytes.maketrans(
    (string.ascii_uppercase + string.ascii_lowercase + "2345670189").encode(),
    ((string.digits + string.ascii_lowercase[:16]) * 2 + "qrstuv!!!!").encode(),
)


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest as bytes, so that two spellings of the same value are equal."""

    algorithm: str
    value: bytes

    def __str__(self) -> str:
        if self.algorithm == "sha1":
            return sha1_label(self.value)
        return f"{self.algorithm}:{self.value.hex()}"


def sha1_label(value: bytes) -> str:
    """`sha1:` and the 20 bytes in base32 (RFC 4648), two digits at a time: base64.b32encode is slower."""
    number = int.from_bytes(value, "big")
    return "sha1:" + "".join([_DIGIT_PAIRS[number >> shift & 1023] for shift in range(150, -1, -10)])


def parse(text: str) -> Digest | None:
    """Read `sha1:…`, `sha-256:…` or a bare SHA-1, in base32 or hexadecimal of either case; None for anything
    else.
    """
    decoded = _decode(text)
    return Digest(*decoded) if decoded else None


def find_value(text: str) -> bytes | None:
    """The bytes of a digest that `parse` reads."""
    decoded = _decode(text)
    return decoded[1] if decoded else None


def _decode(text: str) -> tuple[str, bytes] | None:
    """Algorithm and value."""
    match = _SPELLED.fullmatch(text)
    if match is None:
        return None
    label, spelled = match.groups("sha1")
    algorithm = label.lower().replace("-", "")
    size = _SIZES.get(algorithm, 0)
    surplus_bits = len(spelled) * 5 - size * 8
    try:
        if len(spelled) == size * 2:
            return algorithm, bytes.fromhex(spelled)
        if size and 0 <= surplus_bits < 5:
            # base64.b32decode is a loop in Python and ten times slower; each indexed capture needs this.
            number = int(spelled.encode("ascii").translate(_TO_PYTHON), 32)
            return algorithm, (number >> surplus_bits).to_bytes(size, "big")
    except ValueError:
        pass
    return None


def normal(text: str) -> str:
    """The digest in Webdepot's spelling; empty if it cannot be read."""
    if _NORMAL_SHA1.fullmatch(text):
        return text
    digest = parse(text)
    return str(digest) if digest else ""


def is_same(one: str, other: str) -> bool:
    """Whether two labelled digests are equal in any spelling; unknown or invalid ones never are."""
    first = parse(one)
    return first is not None and first == parse(other)


def sha1(data: bytes) -> Digest:
    return Digest("sha1", hashlib.sha1(data, usedforsecurity=False).digest())


def of_stream(stream: BinaryIO, algorithm: str = "sha256") -> tuple[Digest, int]:
    """The digest of the rest of the stream, and its size in bytes. Memory: one chunk."""
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    size = 0
    while chunk := stream.read(CHUNK_BYTES):
        hasher.update(chunk)
        size += len(chunk)
    return Digest(algorithm, hasher.digest()), size


def of_file(path: Path, algorithm: str = "sha256") -> Digest:
    with path.open("rb") as stream:
        return of_stream(stream, algorithm)[0]
