"""Write tables as Apache Parquet, in one pass, row group by row group.
https://parquet.apache.org/docs/file-format/

    PAR1 | row group | row group | … | metadata (Thrift, compact protocol) | its length, 4 bytes | PAR1
    row group:  for each column one page: header (Thrift), values (PLAIN encoding, Zstandard)

Only what a flat table needs: every column is required, texts are UTF-8, numbers have 64 bits, moments are
milliseconds in UTC. So only the current row group is in memory, and no library of a hundred megabytes is
needed. Arrow, DuckDB, Spark and pandas can read the result.
"""

import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"PAR1"
ROW_GROUP_BYTES = 8 << 20
_ZSTD, _PLAIN, _RLE, _DATA_PAGE = 6, 0, 3, 0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class ColumnKind(IntEnum):
    """Types of columns, with the number of the Parquet type that stores them."""

    NUMBER = 2
    MOMENT = -2
    TEXT = 6

    @property
    def physical(self) -> int:
        return abs(self)


Column = tuple[str, ColumnKind]
Value = str | int | datetime


def write(columns: Sequence[Column], rows: Iterable[Sequence[Value]], *, software: str) -> Iterator[bytes]:
    """The bytes of a file, piece by piece."""
    yield MAGIC
    at, count = len(MAGIC), 0
    groups: list[bytes] = []
    for group in _groups(columns, rows):
        chunks = []
        for (name, kind), values in zip(columns, group, strict=True):
            page, size = _page(kind, values)
            yield page
            chunks.append(_chunk(name, kind, len(values), at, size, len(page)))
            at += len(page)
        count += len(group[0])
        groups.append(
            _struct((1, _list(12, chunks)), (2, _i64(sum(_sizes(columns, group)))), (3, _i64(len(group[0]))))
        )
    schema = [_struct((4, _binary("schema")), (5, _i32(len(columns))))]
    schema += [_element(name, kind) for name, kind in columns]
    metadata = _struct(
        (1, _i32(2)), (2, _list(12, schema)), (3, _i64(count)), (4, _list(12, groups)), (6, _binary(software))
    )
    yield metadata + struct.pack("<I", len(metadata)) + MAGIC


def _groups(columns: Sequence[Column], rows: Iterable[Sequence[Value]]) -> Iterator[list[list[bytes]]]:
    """Rows as encoded columns, some megabytes at a time."""
    group: list[list[bytes]] = [[] for _ in columns]
    size = 0
    for row in rows:
        for held, (_, kind), value in zip(group, columns, row, strict=True):
            encoded = _encoded(kind, value)
            held.append(encoded)
            size += len(encoded)
        if size > ROW_GROUP_BYTES:
            yield group
            group, size = [[] for _ in columns], 0
    if group[0]:
        yield group


def _encoded(kind: ColumnKind, value: Value) -> bytes:
    if isinstance(value, str):
        text = value.encode("utf-8", "replace")
        return struct.pack("<I", len(text)) + text
    return struct.pack("<q", (value - _EPOCH) // _MILLISECOND if isinstance(value, datetime) else value)


def _sizes(columns: Sequence[Column], group: Sequence[Sequence[bytes]]) -> Iterator[int]:
    return (sum(map(len, values)) for values in group)


def _page(kind: ColumnKind, values: Sequence[bytes]) -> tuple[bytes, int]:
    """A page with its header, and the length of both without compression."""
    plain = b"".join(values)
    packed = zstd.compress(plain)
    described = _struct((1, _i32(len(values))), (2, _i32(_PLAIN)), (3, _i32(_RLE)), (4, _i32(_RLE)))
    header = _struct(
        (1, _i32(_DATA_PAGE)), (2, _i32(len(plain))), (3, _i32(len(packed))), (5, (12, described))
    )
    return header + packed, len(header) + len(plain)


def _chunk(name: str, kind: ColumnKind, count: int, at: int, plain_bytes: int, packed_bytes: int) -> bytes:
    described = _struct(
        (1, _i32(kind.physical)),
        (2, _list(5, [_varint(_PLAIN << 1), _varint(_RLE << 1)])),
        (3, _list(8, [_counted(name)])),
        (4, _i32(_ZSTD)),
        (5, _i64(count)),
        (6, _i64(plain_bytes)),
        (7, _i64(packed_bytes)),
        (9, _i64(at)),
    )
    return _struct((2, _i64(at)), (3, (12, described)))


def _element(name: str, kind: ColumnKind) -> bytes:
    """A column of the schema: required, with its meaning in the old form (ConvertedType) and the new
    (LogicalType).
    """
    fields = [(1, _i32(kind.physical)), (3, _i32(0)), (4, _binary(name))]
    empty = _struct()
    if kind is ColumnKind.TEXT:
        fields += [(6, _i32(0)), (10, (12, _struct((1, (12, empty)))))]
    if kind is ColumnKind.MOMENT:
        millis = _struct((1, (12, empty)))
        stamp = _struct((1, (1, b"")), (2, (12, millis)))
        fields += [(6, _i32(9)), (10, (12, _struct((8, (12, stamp)))))]
    return _struct(*fields)


# --- Thrift, compact protocol:
# https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md ---

Field = tuple[int, bytes]
"""Type and bytes of a field."""


def _struct(*fields: tuple[int, Field]) -> bytes:
    encoded, last = [], 0
    for number, (kind, data) in fields:
        encoded.append(bytes([(number - last) << 4 | kind]) + data)
        last = number
    return b"".join(encoded) + b"\0"


def _i32(value: int) -> Field:
    return 5, _varint(value << 1)


def _i64(value: int) -> Field:
    return 6, _varint(value << 1)


def _binary(text: str) -> Field:
    return 8, _counted(text)


def _list(kind: int, items: Sequence[bytes]) -> Field:
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + _varint(len(items))
    return 9, head + b"".join(items)


def _counted(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
