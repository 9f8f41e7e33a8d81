"""Identification by bytes: Siegfried with PRONOM's signatures through pygfried, then our own resolver for web
text.

https://www.itforarchivists.com/siegfried and https://www.nationalarchives.gov.uk/PRONOM. pygfried accepts
only paths, so bytes are passed in files in memory (`memfd_create`) and symbolic links whose names keep the
extension, which is evidence too. One call for several files is faster than a call for each. It holds the
interpreter's lock: use processes, not threads, for more speed.

Of a large file it gets only an excerpt (`excerpt`): on 6,000 real files of 50 formats this changed no result
and took half the time. It has no limits of time and memory: `examine` runs it in a guarded process.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webdepot.formats import media, sniff
from webdepot.formats.excerpt import excerpt_of
from webdepot.formats.format_verdict import DYNAMIC, Evidence, SignatureMatch, resolve
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.model import Basis, Format

if TYPE_CHECKING:
    import pygfried

RESOLVER_VERSION = 4
"""Increased when our resolver or the excerpts give other results than before; part of the engine's name."""
MOST_LINKS = 200
MOST_TOGETHER = 24
_COPY_BYTES = 1 << 20
"""Files in one call. They share one time limit, and if one of them exceeds it, all are examined again."""
_PLAIN_NAME = re.compile(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9/._~%+-]*\.([A-Za-z0-9]{1,10})", re.ASCII)
"""Fast path for most URLs: without a query, so that the URL need not be parsed."""
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,10})\Z", re.ASCII)
_BASES = (
    ("container match", Basis.CONTAINER),
    ("byte match", Basis.SIGNATURE),
    ("riff match", Basis.SIGNATURE),
    ("xml match", Basis.SIGNATURE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A payload in a batch, with the extension of its name and the media type from the server."""

    piece: PayloadSlice
    extension: str
    mime: str


class SiegfriedIdentifier:
    """A `FormatIdentifier`. One thread at a time. Close it, or use it in a `with`, to remove its temporary
    folders.
    """

    def __init__(self, signatures: Path | None = None) -> None:
        import pygfried  # starts a Go runtime with its own threads: only in the process that needs it

        self._scanner = pygfried.Scanner(signature=str(signatures)) if signatures else pygfried.Scanner()
        self._engine = ""
        self._slots: list[_Slot] = []

    @property
    def engine(self) -> str:
        if not self._engine:
            self._engine = self._versions()
        return self._engine

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        with Batch([payload]) as batch:
            offset, size_bytes = batch.places[0]
            piece = PayloadSlice(descriptor=batch.descriptor, offset=offset, size_bytes=size_bytes)
            return self.identify_pieces(
                [Question(piece=piece, extension=extension_of(name), mime=media.essence(mime))]
            )[0]

    def identify_pieces(self, questions: Sequence[Question]) -> list[Format]:
        """The formats of these payloads, at most `MOST_TOGETHER`."""
        evidence = [
            _evidence(each.piece.size_bytes, _head(each.piece), extension=each.extension, mime=each.mime)
            for each in questions
        ]
        shown = [number for number, each in enumerate(evidence) if each.size_bytes]
        paths = [
            self._slot(place).show(questions[number].piece, evidence[number].head, evidence[number].extension)
            for place, number in enumerate(shown)
        ]
        files = self._scanner.identify_many(paths)["files"] if paths else []
        for number, file in zip(shown, files, strict=True):
            evidence[number] = replace(
                evidence[number], matches=[match for match in map(_match, file["matches"]) if match]
            )
        return [resolve(each) for each in evidence]

    def close(self) -> None:
        for slot in self._slots:
            slot.close()
        self._slots.clear()

    def __enter__(self) -> "SiegfriedIdentifier":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _slot(self, place: int) -> "_Slot":
        while len(self._slots) <= place:
            self._slots.append(_Slot())
        return self._slots[place]

    def _versions(self) -> str:
        with Batch([b"x"]) as batch:
            result = self._scanner.identify(f"/proc/self/fd/{batch.descriptor}", detailed=True)
        signatures = ", ".join(each["details"] for each in result["identifiers"])
        return (
            f"siegfried {result['siegfried']} (pygfried {version('pygfried')}; {signatures})"
            f" + resolver {RESOLVER_VERSION}"
        )


class _Slot:
    """A file in memory that holds one payload after another for the engine, and symbolic links with
    extensions that point to it.
    """

    def __init__(self) -> None:
        self._memory = os.memfd_create("payload", os.MFD_CLOEXEC)
        self._folder: Path | None = None
        self._links: dict[str, str] = {}

    def show(self, piece: PayloadSlice, head: bytes, extension: str) -> str:
        """The path of the payload, or of its excerpt, until the next call."""
        shown = excerpt_of(piece, head)
        if shown is not None:
            os.pwrite(self._memory, shown, 0)
            os.ftruncate(self._memory, len(shown))
        else:
            self._copy(piece)
        return self._link(extension)

    def _copy(self, piece: PayloadSlice) -> None:
        """Copy a large payload. The engine opens a path, and the walls hide the path of the payload."""
        for at in range(0, piece.size_bytes, _COPY_BYTES):
            os.pwrite(self._memory, piece.read(_COPY_BYTES, at), at)
        os.ftruncate(self._memory, piece.size_bytes)

    def close(self) -> None:
        self._forget()
        os.close(self._memory)

    def _link(self, extension: str) -> str:
        """A link with that extension to the descriptor. It is kept, since every payload uses the same
        descriptor.
        """
        if extension not in self._links or self._folder is None:
            if self._folder is None or len(self._links) > MOST_LINKS:
                self._forget()
                self._folder = Path(tempfile.mkdtemp(prefix="webdepot-identify-"))
            link = self._folder / (f"payload.{extension}" if extension else "payload")
            link.symlink_to(f"/proc/self/fd/{self._memory}")
            self._links[extension] = str(link)
        return self._links[extension]

    def _forget(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._links.clear()


def quick_look(payload: bytes | Path, *, name: str, mime: str) -> Format:
    """The format by first bytes, name and server only, without signatures."""
    if isinstance(payload, bytes):
        size_bytes, head = len(payload), payload[: sniff.HEAD_BYTES]
    else:
        with payload.open("rb") as file:
            size_bytes, head = os.fstat(file.fileno()).st_size, file.read(sniff.HEAD_BYTES)
    return resolve(_evidence(size_bytes, head, extension=extension_of(name), mime=media.essence(mime)))


def _evidence(size_bytes: int, head: bytes, *, extension: str, mime: str) -> Evidence:
    return Evidence(
        matches=[],
        head=head,
        size_bytes=size_bytes,
        # The name of a program on the server says nothing about the format of its output.
        extension="" if extension in DYNAMIC and mime else extension,
        mime=mime,
    )


def _head(piece: PayloadSlice) -> bytes:
    """The first bytes; the complete payload if it may be JSON and is not too long."""
    head = piece.read(sniff.HEAD_BYTES)
    may_be_json = (
        head[:64].lstrip()[:1] in (b"{", b"[") and len(head) < piece.size_bytes <= sniff.LONGEST_JSON_BYTES
    )
    return piece.read(piece.size_bytes) if may_be_json else head


def extension_of(name: str) -> str:
    """The extension of a URL's path or a file name, in lower case without the dot; empty if there is none."""
    if match := _PLAIN_NAME.fullmatch(name):
        return match[1].lower()
    try:
        path = urlsplit(name).path if "://" in name else name
    except ValueError:
        path = name
    match = _EXTENSION.search(path.rpartition("/")[2])
    return match[1].lower() if match else ""


def _match(match: "pygfried.Match") -> SignatureMatch | None:
    if match["id"] in ("", "UNKNOWN"):
        return None
    description = match["basis"].lower()
    basis = next(
        (basis for mark, basis in _BASES if mark in description),
        Basis.TEXT if "text match" in description else Basis.EXTENSION,
    )
    # PRONOM lists several media types for some formats; the first is the usual one.
    return SignatureMatch(
        puid=match["id"],
        name=match["format"],
        version=match["version"],
        mime=match["mime"].partition(",")[0].strip(),
        basis=basis,
        is_named_otherwise="extension mismatch" in match["warning"],
    )
