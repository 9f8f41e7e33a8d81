"""Identification by bytes: Siegfried with PRONOM's signatures through pygfried, then our own resolver for web
text.

https://www.itforarchivists.com/siegfried and https://www.nationalarchives.gov.uk/PRONOM. The engine always
gets the complete file: signatures may ask for bytes anywhere in it. pygfried accepts only paths, so bytes are
passed in files in memory (`memfd_create`) and symbolic links whose names end like the file's name, which is
evidence too. One call for several files is faster than a call for each. It holds the interpreter's lock: use
processes, not threads, for more speed.

It has no limits of time and memory: `examine` runs it in a guarded process.
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
from webdepot.formats.format_verdict import DYNAMIC, Evidence, SignatureMatch, resolve
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.model import Basis, Format

if TYPE_CHECKING:
    import pygfried

RESOLVER_VERSION = 5
"""Increased when our resolver gives other results than before, or the engine gets other input; part of the
engine's name.
"""
MOST_LINKS = 200
MOST_TOGETHER = 24
"""Files in one call. They share one time limit, and if one of them exceeds it, all are examined again."""
MOST_COPIED_BYTES = 32 << 20
"""The largest payload that is copied into memory. A larger one must be a file that this process may open."""
_COPY_BYTES = 1 << 20
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.:-]+/([A-Za-z0-9/._~%+-]*)", re.ASCII)
"""Fast path for most URLs: without a query, so that the URL need not be parsed."""
_ENDING = re.compile(r"(?:\.[A-Za-z]{1,8})?\.[A-Za-z0-9$_%+~ -]{1,20}\Z", re.ASCII)
_LONGEST_ENDING = 30
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,10})\Z", re.ASCII)
_BASES = (
    ("container ", Basis.CONTAINER),
    ("byte match", Basis.SIGNATURE),
    ("riff match", Basis.SIGNATURE),
    ("xml match", Basis.SIGNATURE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A payload in a batch, with the ending of its name and the media type from the server."""

    piece: PayloadSlice
    ending: str
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
                [Question(piece=piece, ending=ending_of(name), mime=media.essence(mime))]
            )[0]

    def identify_pieces(self, questions: Sequence[Question]) -> list[Format]:
        """The formats of these payloads, at most `MOST_TOGETHER`."""
        evidence = [
            _evidence(each.piece.size_bytes, _head(each.piece), ending=each.ending, mime=each.mime)
            for each in questions
        ]
        shown = [number for number, each in enumerate(evidence) if each.size_bytes]
        paths = [
            self._slot(place).show(
                questions[number].piece, _without_program(questions[number].ending, questions[number].mime)
            )
            for place, number in enumerate(shown)
        ]
        files = self._scanner.identify_many(paths)["files"] if paths else []
        for number, file in zip(shown, files, strict=True):
            evidence[number] = replace(
                evidence[number], matches=[match for match in map(match_of, file["matches"]) if match]
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
    """A file in memory that holds one payload after another for the engine, and symbolic links that point to
    it, or to a payload that needs no copy.
    """

    def __init__(self) -> None:
        self._memory = os.memfd_create("payload", os.MFD_CLOEXEC)
        self._folder: Path | None = None
        self._links: dict[tuple[int, str], str] = {}

    def show(self, piece: PayloadSlice, ending: str) -> str:
        """A path of the payload with that ending, until the next call."""
        if piece.is_all and _may_open(piece.descriptor):
            return self._link(piece.descriptor, ending)
        for at in range(0, piece.size_bytes, _COPY_BYTES):
            os.pwrite(self._memory, piece.read(_COPY_BYTES, at), at)
        os.ftruncate(self._memory, piece.size_bytes)
        return self._link(self._memory, ending)

    def close(self) -> None:
        self._forget()
        os.close(self._memory)

    def _link(self, descriptor: int, ending: str) -> str:
        """A link with that ending to a descriptor. It is kept, since most payloads use the same descriptor
        and few endings.
        """
        if (descriptor, ending) not in self._links or self._folder is None:
            if self._folder is None or len(self._links) > MOST_LINKS:
                self._forget()
                self._folder = Path(tempfile.mkdtemp(prefix="webdepot-identify-"))
            link = self._folder / f"{descriptor}{ending}"
            link.symlink_to(f"/proc/self/fd/{descriptor}")
            self._links[descriptor, ending] = str(link)
        return self._links[descriptor, ending]

    def _forget(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._links.clear()


def _may_open(descriptor: int) -> bool:
    """Whether the engine can open this file by itself: the walls hide most files on disk."""
    try:
        os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def quick_look(payload: bytes | Path, *, name: str, mime: str) -> Format:
    """The format by first bytes, name and server only, without signatures."""
    if isinstance(payload, bytes):
        size_bytes, head = len(payload), payload[: sniff.HEAD_BYTES]
    else:
        with payload.open("rb") as file:
            size_bytes, head = os.fstat(file.fileno()).st_size, file.read(sniff.HEAD_BYTES)
    return resolve(_evidence(size_bytes, head, ending=ending_of(name), mime=media.essence(mime)))


def _evidence(size_bytes: int, head: bytes, *, ending: str, mime: str) -> Evidence:
    extension = _EXTENSION.search(_without_program(ending, mime))
    return Evidence(
        matches=[], head=head, size_bytes=size_bytes, extension=extension[1] if extension else "", mime=mime
    )


def _without_program(ending: str, mime: str) -> str:
    """The ending, unless it is that of a program on a server, which says nothing about its output."""
    return "" if mime and ending.rpartition(".")[2] in DYNAMIC else ending


def _head(piece: PayloadSlice) -> bytes:
    """The first bytes; the complete payload if it may be JSON and is not too long."""
    head = piece.read(sniff.HEAD_BYTES)
    may_be_json = (
        head[:64].lstrip()[:1] in (b"{", b"[") and len(head) < piece.size_bytes <= sniff.LONGEST_JSON_BYTES
    )
    return piece.read(piece.size_bytes) if may_be_json else head


def ending_of(name: str) -> str:
    """The end of a URL's path or a file name from the dot, in lower case; empty if there is none. It can have
    two extensions, or one with other characters, as some formats do: `.src.rpm`, `.ds_store`, `.qxp report`.
    """
    if match := _PLAIN_URL.fullmatch(name):
        path = match[1]
    else:
        try:
            path = urlsplit(name).path if "://" in name else name
        except ValueError:
            path = name
    ending = _ENDING.search(path.rpartition("/")[2][-_LONGEST_ENDING:])
    return ending[0].lower() if ending else ""


def match_of(match: "pygfried.Match") -> SignatureMatch | None:
    """A match as the engine reports it; None if it says that nothing matched."""
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
