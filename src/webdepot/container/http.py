"""HTTP messages in records: the head, and the body with its codings removed.

Follows RFC 9112 (message syntax, chunked) and RFC 9110, 8.4 (content coding), leniently: an archive holds
what servers really sent and what older tools made of it, so nothing here raises. Order of use:

1. `parse_head` reads status line and headers;
2. `transfer_decoded` removes the chunks (and a transfer coding below them);
3. `content_decoded` unpacks gzip, deflate, br and zstd up to a limit, so that a decompression bomb costs no
   more than the limit.

Heads are often wrong: some tools decode a body and keep the header. A body that does not begin like its
coding is returned unchanged.
"""

import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import brotli
from isal import isal_zlib

from webdepot.container.fields import read_pairs
from webdepot.container.streams import PIECE_BYTES, iter_pieces, limited, stream_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Pieces = Iterator[bytes]

MOST_CODINGS = 5
"""Codings on top of each other that are removed; real servers use one, curl accepts five."""
MOST_HEADERS = 10_000
# Small input pieces: if a coding is damaged, the output of the piece with the damage is lost.
_INPUT_BYTES = 4096
_LONGEST_HEADER_BYTES = 1 << 16
_ZSTD_WINDOW_LOG = 23  # RFC 9659: 8 MB for content coding

# First lines, up to their line end.
_STATUS_LINE = re.compile(
    r"[^\S\n]*([Hh][Tt][Tt][Pp]/?[0-9.]*|ICY)[ \t]+([0-9]{3})(?:[ \t]+(.*))?[^\S\n]*(?=\n|\Z)"
)
_VERSION = re.compile(r"HTTP/[0-9.]+", re.IGNORECASE)
_EMPTY_LINE = re.compile(r"\n\r?\n")
_CHUNK_LINE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,16})[ \t]*(?:;[^\n]*)?\r?\n")
_LONGEST_CHUNK_LINE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpHead:
    """Status line and headers, as text in Latin-1, in their order."""

    version: str
    """As written: `HTTP/1.1`, of a request too; empty if there is no status or request line."""
    status: int
    """0 without a status line."""
    reason: str
    headers: tuple[tuple[str, str], ...]
    _first: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def first(self) -> Mapping[str, str]:
        """The first header of each name, by the name in lower case."""
        if not self._first:
            self._first.update([(name.lower(), value) for name, value in reversed(self.headers)])
        return self._first

    def get(self, name: str) -> str | None:
        """The first header of that name, in any case."""
        return self.first.get(name.lower())

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower()
        if wanted not in self.first:
            return []
        return [value for key, value in self.headers if key.lower() == wanted]


def parse_head(data: bytes) -> HttpHead:
    """Read a head, up to its empty line or the end of the data. Never raises."""
    text = data.decode("latin-1")
    status, reason = 0, ""
    if match := _STATUS_LINE.match(text):
        version, status, reason = match[1], int(match[2]), (match[3] or "").strip()
        rest = text[match.end() :]
    elif version := _version_of_request(text):
        rest = text[text.find("\n") :] if "\n" in text else ""
    else:
        rest = f"\n{text}"
    end = _EMPTY_LINE.search(rest)
    pairs = read_pairs(rest[: end.start()] if end else rest)[:MOST_HEADERS]
    headers = tuple([(name, value.strip()) for name, value in pairs])
    return HttpHead(version=version, status=status, reason=reason, headers=headers)


def _version_of_request(text: str) -> str:
    """The last word of a request line; empty if the first line is not one."""
    parts = text.partition("\n")[0].split()
    is_request = len(parts) >= 3 and not text[0].isspace() and _VERSION.fullmatch(parts[-1])
    return parts[-1] if is_request else ""


# --- transfer coding ---


def transfer_decoded(body: BinaryIO, head: HttpHead) -> BinaryIO:
    """The body without its transfer coding; `body` itself if it has none. A body that is not really chunked
    is returned unchanged.
    """
    codings = _codings(head, "transfer-encoding")
    if "chunked" not in codings:
        return body
    pieces = _dechunked(body)
    for coding in reversed([coding for coding in codings if coding != "chunked"][:MOST_CODINGS]):
        pieces = _DECODERS.get(coding, _unchanged)(pieces)
    return stream_of(pieces)


def _dechunked(body: BinaryIO) -> Pieces:
    """Chunk data piece by piece. If a chunk line is expected and something else follows, the rest is returned
    unchanged.
    """
    buffer = body.read(PIECE_BYTES)
    at = 0
    first = True
    while True:
        if len(buffer) - at < _LONGEST_CHUNK_LINE and (more := body.read(PIECE_BYTES)):
            buffer, at = buffer[at:] + more, 0
        line = _CHUNK_LINE.match(buffer, at, at + _LONGEST_CHUNK_LINE)
        if not line or (first and not _looks_chunked(buffer, line)):
            yield buffer[at:]
            yield from iter_pieces(body)
            return
        first, at, left = False, line.end(), int(line[1], 16)
        if left == 0:
            return
        while left > 0:
            part = buffer[at : at + left]
            if not part:
                buffer, at = body.read(PIECE_BYTES), 0
                if not buffer:
                    return
                continue
            yield part
            at += len(part)
            left -= len(part)
        if len(buffer) - at < 2:
            buffer, at = buffer[at:] + body.read(PIECE_BYTES), 0
        at += 2 if buffer[at : at + 2] == b"\r\n" else buffer[at : at + 1] == b"\n"


def _looks_chunked(buffer: bytes, line: re.Match[bytes]) -> bool:
    """Whether the first chunk ends in a line end, if its end is in the buffer: a text may begin with a line
    `cafe`.
    """
    end = line.end() + int(line[1], 16)
    return int(line[1], 16) == 0 or end >= len(buffer) or buffer[end : end + 1] in (b"\r", b"\n")


# --- content coding ---


def content_decoded(body: BinaryIO, head: HttpHead, *, limit_bytes: int) -> BinaryIO:
    """A transfer-decoded body without its content coding: at most `limit_bytes`, up to the first damage.

    Unknown codings are skipped. With several codings the output of each is limited, so that time is bounded
    too.
    """
    codings = [coding for coding in _codings(head, "content-encoding") if coding in _DECODERS]
    if not codings or len(codings) > MOST_CODINGS:
        return stream_of(limited(iter_pieces(body), limit_bytes))
    pieces = iter_pieces(body, _INPUT_BYTES)
    for coding in reversed(codings):
        pieces = limited(_DECODERS[coding](pieces), limit_bytes)
    return stream_of(pieces)


def _codings(head: HttpHead, name: str) -> list[str]:
    """The codings, in the order in which they were applied."""
    return [
        coding.strip().lower()
        for value in head.get_all(name)
        for coding in value.split(",")
        if coding.strip()
    ]


def _unchanged(pieces: Pieces) -> Pieces:
    return pieces


def _gunzipped(pieces: Pieces) -> Pieces:
    return _inflated(pieces, _after_gzip_header, trailer_bytes=8)


def _deflated(pieces: Pieces) -> Pieces:
    """Undo `deflate`: zlib's form by the standard; some servers send the raw form."""
    return _inflated(pieces, _after_zlib_header, trailer_bytes=None)


def _inflated(
    pieces: Pieces, after_header: Callable[[bytes], int | None], *, trailer_bytes: int | None
) -> Pieces:
    """Raw inflate: a page is not discarded for a wrong checksum at its end; browsers ignore it, too."""
    data, start = b"", None
    for piece in pieces:
        data += piece
        if (start := after_header(data)) is not None or len(data) > _LONGEST_HEADER_BYTES:
            break
    if start is None or start < 0:
        yield data
        yield from pieces
        return
    whole, data = data, data[start:]
    inflater, untouched = isal_zlib.decompressobj(wbits=-15), True
    while True:
        try:
            out = inflater.decompress(data, PIECE_BYTES)
        except isal_zlib.error:  # type: ignore[misc]  # its stub takes the class for an instance
            if untouched:
                yield from _until_damage(whole, start, pieces, is_sure=trailer_bytes is not None)
            return
        if out:
            yield out
        untouched = False
        if inflater.eof:
            following = (
                None if trailer_bytes is None else _next_member(inflater.unused_data, pieces, trailer_bytes)
            )
            if following is None:
                return
            data, inflater = following, isal_zlib.decompressobj(wbits=-15)
            continue
        data = inflater.unconsumed_tail
        if not data and len(out) < PIECE_BYTES and not (data := next(pieces, b"")):
            return


def _next_member(rest: bytes, pieces: Pieces, trailer_bytes: int) -> bytes | None:
    """The data after the header of the next gzip member; None if no member follows."""
    while (start := _after_gzip_header(rest[trailer_bytes:])) is None and len(rest) < _LONGEST_HEADER_BYTES:
        piece = next(pieces, b"")
        if not piece:
            return None
        rest += piece
    return None if start is None or start < 0 else rest[trailer_bytes + start :]


def _until_damage(whole: bytes, start: int, pieces: Pieces, *, is_sure: bool) -> Pieces:
    """The body if the first piece is damaged: the output up to the damaged byte, or, if the coding has no
    magic number, the body unchanged.
    """
    inflater = zlib.decompressobj(wbits=-15)
    out = bytearray()
    try:
        for at in range(start, len(whole)):
            out += inflater.decompress(whole[at : at + 1])
    except zlib.error:
        pass
    if out and is_sure:
        yield bytes(out)
    elif not is_sure:
        yield whole
        yield from pieces


def _after_gzip_header(data: bytes) -> int | None:
    """Where the deflate stream begins (RFC 1952, 2.3): None if more bytes are needed, -1 if this is not
    gzip.
    """
    if not b"\x1f\x8b\x08".startswith(data[:3]):
        return -1
    if len(data) < 10:
        return None
    flags, at = data[3], 10
    if flags & 4:
        if len(data) < 12:
            return None
        at += 2 + int.from_bytes(data[10:12], "little")
    for flag in (8, 16):
        if flags & flag:
            end = data.find(b"\0", at)
            if end < 0:
                return None
            at = end + 1
    at += 2 if flags & 2 else 0
    return at if len(data) >= at else None


def _after_zlib_header(data: bytes) -> int | None:
    """2 after a zlib header (RFC 1950, 2.2), 0 without one: then it is raw deflate, or not deflate at all."""
    if len(data) < 2:
        return None
    return 2 if data[0] & 0x0F == 8 and data[0] >> 4 <= 7 and int.from_bytes(data[:2], "big") % 31 == 0 else 0


def _unbrotlied(pieces: Pieces) -> Pieces:
    decoder, held, untouched = brotli.Decompressor(), b"", True
    for piece in pieces:
        data = piece
        held = held + piece if untouched and len(held) < _LONGEST_HEADER_BYTES else held
        while True:
            try:
                out = decoder.process(data, output_buffer_limit=PIECE_BYTES)
            except brotli.error:
                if untouched:  # brotli has no magic number: a body without any output is not brotli
                    yield held
                    yield from pieces
                return
            if out:
                yield out
                untouched, held = False, b""
            data = b""
            if decoder.is_finished():
                return
            if not out and decoder.can_accept_more_data():
                break


def _unzstded(pieces: Pieces) -> Pieces:
    data = b""
    for piece in pieces:
        data += piece
        if len(data) >= 4:
            break
    if not _is_zstd(data):
        yield data
        yield from pieces
        return
    while data:
        decoder = zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        )
        while not decoder.eof:
            try:
                out = decoder.decompress(data, PIECE_BYTES)
            except zstd.ZstdError:
                return
            if out:
                yield out
            data = b""
            if decoder.needs_input and not decoder.eof and not (data := next(pieces, b"")):
                return
        data = decoder.unused_data or next(pieces, b"")


def _is_zstd(data: bytes) -> bool:
    """Whether this begins a frame, or a skippable one (RFC 8878, 3.1)."""
    return data[:4] == b"\x28\xb5\x2f\xfd" or (data[1:4] == b"\x2a\x4d\x18" and 0x50 <= data[0] <= 0x5F)


_DECODERS: dict[str, Callable[[Pieces], Pieces]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _deflated,
    "br": _unbrotlied,
    "zstd": _unzstded,
}
