"""Checksums: compute while streaming, parse, compare.

Notation is WARC's labelled digest (ISO 28500, 5.8): `algorithm:value`. SHA-1 is written in base32 as every existing
index has it, SHA-256 in hexadecimal as OCFL and BagIt have it; both spellings are read for both.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}


@dataclass(frozen=True, slots=True)
class Digest:
    """A checksum as bytes, so that two spellings of the same value are equal."""

    algorithm: str
    value: bytes

    def __str__(self) -> str:
        if self.algorithm == "sha1":
            return f"sha1:{base64.b32encode(self.value).decode('ascii')}"
        return f"{self.algorithm}:{self.value.hex()}"


def parse(text: str) -> Digest | None:
    """Read `sha1:…`, `sha-256:…` or a bare SHA-1, in base32 or hexadecimal of either case; None for anything else."""
    label, colon, spelled = text.strip().partition(":")
    if not colon:
        label, spelled = "sha1", label
    algorithm = label.lower().replace("-", "")
    spelled = spelled.rstrip("=")
    size = _SIZES.get(algorithm)
    if size is None or not spelled.isascii():
        return None
    try:
        if len(spelled) == size * 2:
            return Digest(algorithm, binascii.unhexlify(spelled))
        value = base64.b32decode(spelled.upper() + "=" * (-len(spelled) % 8))
    except (binascii.Error, ValueError):
        return None
    return Digest(algorithm, value) if len(value) == size else None


def is_same(one: str, other: str) -> bool:
    """Whether two labelled digests name the same bytes, however they are spelled; unknown or broken ones never do."""
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
