"""The body of a replayed capture: exact bytes, with or without the content coding in which they were sent,
whole or in part.

1. `negotiated` keeps the archived content coding if the client accepts it and the bytes really have it
   (headers can be wrong), and decodes it otherwise;
2. `part_of` cuts the stream.
"""

from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

import brotli

from webdepot.container.http import HttpHead, content_decoded
from webdepot.container.streams import iter_pieces, limited, stream_of
from webdepot.http_headers import accepts

LIMIT_BYTES = 1 << 34
"""Maximum number of decoded bytes sent for one body."""
_PEEK_BYTES = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBody:
    stream: BinaryIO
    coding: str
    """Content coding of the stream; empty for none."""


def negotiated(payload: BinaryIO, head: HttpHead | None, accept_encoding: str | None) -> ReplayBody:
    """The payload as this client can read it. `accept_encoding` is the header of the request; None means that
    there was none, so every coding is accepted.
    """
    codings = _codings(head)
    if head is None or not codings:
        return ReplayBody(stream=payload, coding="")
    first = payload.read(_PEEK_BYTES)
    again = stream_of(chain((first,), iter_pieces(payload)))
    if len(codings) == 1 and accepts(codings[0], accept_encoding) and _begins_like(codings[0], first):
        return ReplayBody(stream=again, coding=codings[0])
    return ReplayBody(stream=content_decoded(again, head, limit_bytes=LIMIT_BYTES), coding="")


def part_of(stream: BinaryIO, first: int, last: int) -> BinaryIO:
    """The bytes from `first` to `last`, both included; those before `first` are read and dropped."""
    left = first
    while left > 0 and (skipped := stream.read(min(left, 1 << 20))):
        left -= len(skipped)
    return stream_of(limited(iter_pieces(stream), last - first + 1))


def _codings(head: HttpHead | None) -> list[str]:
    values = head.get_all("content-encoding") if head else []
    return [
        coding.strip().lower()
        for value in values
        for coding in value.split(",")
        if coding.strip().lower() not in ("", "identity")
    ]


def _begins_like(coding: str, first: bytes) -> bool:
    match coding:
        case "gzip" | "x-gzip":
            return first[:3] == b"\x1f\x8b\x08"
        case "zstd":
            return first[:4] == b"\x28\xb5\x2f\xfd"
        case "br":
            try:
                brotli.Decompressor().process(first, output_buffer_limit=1 << 16)
            except brotli.error:
                return False
            return bool(first)
        case _:
            # `deflate` has two forms that browsers and tools read differently: decoded here.
            return False
