"""Identification by bytes: Siegfried with PRONOM's signatures through pygfried, then the own resolver for web text.

https://www.itforarchivists.com/siegfried and https://www.nationalarchives.gov.uk/PRONOM. pygfried takes paths only, so bytes go
through a file in memory (`memfd_create`) and symbolic links whose names keep the extension, which is evidence too. It holds the
interpreter's lock while it looks: use processes, not threads, for more speed.

Signatures ask for bytes at the beginning and at the end of a file, so that of a large one only these two pieces are shown; formats
whose signatures look further inside (ZIP and OLE2 containers, PDF, TIFF, markup) are shown whole up to a limit. It trusts files to end:
`examine` puts it behind a guard.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import pygfried

from webdepot.formats import media, sniff
from webdepot.formats.resolve import DYNAMIC, Evidence, Match, resolve
from webdepot.model import Basis, Format

RESOLVER_VERSION = 2
"""Raised when the own resolver answers otherwise than before; part of the engine's name."""
CUT_ABOVE_BYTES = 256 << 10
PIECE_BYTES = 128 << 10
WHOLE_UP_TO_BYTES = 64 << 20
MOST_LINKS = 1000
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in it is made safely
_LOOKED_INSIDE = (b"PK", b"\xd0\xcf\x11\xe0", b"%PDF", b"II*\0", b"MM\0*", b"<", b"\xef\xbb\xbf<")
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,10})\Z", re.ASCII)
_BASES = (
    ("container match", Basis.CONTAINER),
    ("byte match", Basis.SIGNATURE),
    ("riff match", Basis.SIGNATURE),
    ("xml match", Basis.SIGNATURE),
)


class SiegfriedIdentifier:
    """A `FormatIdentifier`. One thread at a time. Close it, or use it in a `with`, to remove its temporary folder."""

    def __init__(self, signatures: Path | None = None) -> None:
        self._scanner = pygfried.Scanner(signature=str(signatures)) if signatures else pygfried.Scanner()
        self._engine = ""
        self._folder: Path | None = None
        self._links: dict[str, str] = {}
        self._place = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        """The descriptor at which the engine finds the payload."""

    @property
    def engine(self) -> str:
        if not self._engine:
            self._engine = self._versions()
        return self._engine

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        said = media.essence(mime)
        evidence = evidence_of(payload, [], name=name, mime=said)
        matches = [match for match in map(_match, self._scan(payload, evidence)) if match] if evidence.size_bytes else []
        return resolve(replace(evidence, matches=matches))

    def close(self) -> None:
        self._forget()
        if self._place >= 0:
            os.close(self._place)
            self._place = -1

    def __enter__(self) -> "SiegfriedIdentifier":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _scan(self, payload: bytes | Path, evidence: Evidence) -> "list[pygfried.Match]":
        shown = _pieces(payload, evidence.size_bytes) if _is_cut(evidence) else payload
        if isinstance(shown, Path):
            descriptor = os.open(shown, os.O_RDONLY | os.O_CLOEXEC)
        else:
            descriptor = os.memfd_create("payload", os.MFD_CLOEXEC)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(shown)
        try:
            os.dup2(descriptor, self._place, inheritable=False)
        finally:
            os.close(descriptor)
        found = self._scanner.identify(self._link(evidence.extension), detailed=True)
        return list(found["files"][0]["matches"])

    def _link(self, extension: str) -> str:
        """A name with that extension that leads to the payload. It stays: every payload comes to the same descriptor."""
        if extension not in self._links or self._folder is None:
            if self._folder is None or len(self._links) > MOST_LINKS:
                self._forget()
                self._folder = Path(tempfile.mkdtemp(prefix="webdepot-identify-", dir=_MEMORY if _MEMORY.is_dir() else None))
            link = self._folder / (f"payload.{extension}" if extension else "payload")
            link.symlink_to(f"/proc/self/fd/{self._place}")
            self._links[extension] = str(link)
        return self._links[extension]

    def _forget(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._links.clear()

    def _versions(self) -> str:
        descriptor = os.memfd_create("probe", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, b"x")
            found = self._scanner.identify(f"/proc/self/fd/{descriptor}", detailed=True)
        finally:
            os.close(descriptor)
        signatures = ", ".join(each["details"] for each in found["identifiers"])
        return f"siegfried {found['siegfried']} (pygfried {version('pygfried')}; {signatures}) + resolver {RESOLVER_VERSION}"


def evidence_of(payload: bytes | Path, matches: Sequence[Match], *, name: str, mime: str, quick: bool = False) -> Evidence:
    """What can be said of a file: what signatures matched, and what its first bytes, its name and the server tell.

    `quick` looks at no more than the first bytes.
    """
    extension = extension_of(name)
    size_bytes, head = _look(payload)
    return Evidence(
        matches=matches,
        head=head[: sniff.HEAD_BYTES] if quick else head,
        size_bytes=size_bytes,
        # What a program on the server is called says nothing about what came out of it.
        extension="" if extension in DYNAMIC and mime else extension,
        mime=mime,
    )


def _is_cut(evidence: Evidence) -> bool:
    limit = WHOLE_UP_TO_BYTES if evidence.head.startswith(_LOOKED_INSIDE) else CUT_ABOVE_BYTES
    return evidence.size_bytes > limit


def _pieces(payload: bytes | Path, size_bytes: int) -> bytes:
    """The beginning and the end of a file."""
    if isinstance(payload, bytes):
        return payload[:PIECE_BYTES] + payload[-PIECE_BYTES:]
    with payload.open("rb") as file:
        head = file.read(PIECE_BYTES)
        file.seek(size_bytes - PIECE_BYTES)
        return head + file.read(PIECE_BYTES)


def extension_of(name: str) -> str:
    """The extension of a URL's path or a file name, lower case without the dot; empty where there is none."""
    try:
        path = urlsplit(name).path if "://" in name else name
    except ValueError:
        path = name
    found = _EXTENSION.search(path.rpartition("/")[2])
    return found.group(1).lower() if found else ""


def _look(payload: bytes | Path) -> tuple[int, bytes]:
    """The size and the first bytes; of what may be JSON, all of it if it is not too long."""
    if isinstance(payload, bytes):
        size_bytes = len(payload)
        return size_bytes, payload[: _look_bytes(payload[: sniff.HEAD_BYTES], size_bytes)]
    with payload.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        head = file.read(sniff.HEAD_BYTES)
        return size_bytes, head + file.read(_look_bytes(head, size_bytes) - len(head))


def _look_bytes(head: bytes, size_bytes: int) -> int:
    may_be_json = head[:64].lstrip()[:1] in (b"{", b"[") and size_bytes <= sniff.LONGEST_JSON_BYTES
    return size_bytes if may_be_json else min(size_bytes, sniff.HEAD_BYTES)


def _match(found: "pygfried.Match") -> Match | None:
    if found["id"] in ("", "UNKNOWN"):
        return None
    words = found["basis"].lower()
    basis = next((basis for mark, basis in _BASES if mark in words), Basis.TEXT if "text match" in words else Basis.EXTENSION)
    # PRONOM lists several media types for some formats; the first is the usual one.
    return Match(
        puid=found["id"], name=found["format"], version=found["version"], mime=found["mime"].partition(",")[0].strip(), basis=basis
    )
