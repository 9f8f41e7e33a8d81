"""Kind and version of a container as format registries name them, from the bytes of its first record."""

import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

_BEGIN_BYTES = 1 << 12


class ContainerKind(NamedTuple):
    label: str
    """Short name and version: `WARC 1.1`."""
    puid: str
    mime: str


# The identifiers of PRONOM are not in the order of the versions.
_KINDS = {
    b"WARC/1.1": ContainerKind("WARC 1.1", "fmt/1281", "application/warc"),
    b"WARC/1.0": ContainerKind("WARC 1.0", "fmt/1355", "application/warc"),
    b"WARC/": ContainerKind("WARC", "fmt/289", "application/warc"),
    b"filedesc:": ContainerKind("ARC", "x-fmt/219", "application/x-arc"),
}


def of_file(path: Path) -> ContainerKind:
    with path.open("rb") as stream:
        return of_stream(stream, path.name)


def of_stream(stream: BinaryIO, name: str) -> ContainerKind:
    """The kind by the bytes; if they do not show it, by the name."""
    begin = stream.read(_BEGIN_BYTES)
    if begin[:2] == b"\x1f\x8b":
        try:
            begin = zlib.decompressobj(wbits=31).decompress(begin, _BEGIN_BYTES)
        except zlib.error:
            begin = b""
    for magic, kind in _KINDS.items():
        if begin.lstrip(b"\r\n").startswith(magic):
            return kind
    return _KINDS[b"filedesc:"] if name.lower().endswith((".arc", ".arc.gz")) else _KINDS[b"WARC/"]
