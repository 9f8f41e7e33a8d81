"""The directory at the end of a ZIP file, counted before it is read: opening a ZIP file takes memory for each
of its members.
"""

import struct
import zipfile
from typing import BinaryIO

_ENTRY = struct.Struct("<28x3H12x")
"""An entry of the directory of a ZIP file: the lengths of its name, extra field and comment follow it."""
_ZIP64_END_BYTES = 56 + 20
"""The ZIP64 end of the directory and its locator, between the directory and its end."""


def has_more_members(stream: BinaryIO, most: int) -> bool:
    """Whether a ZIP file has more members than this. Reads one entry of its directory after the other: the
    standard library needs half a kilobyte of memory for each, before it can be asked.
    """
    end = zipfile._EndRecData(stream)  # type: ignore[attr-defined]
    if end is None:
        return False  # an error when it is opened
    size_bytes, place = end[zipfile._ECD_SIZE], end[zipfile._ECD_LOCATION]  # type: ignore[attr-defined]
    if end[0] == zipfile.stringEndArchive64:  # type: ignore[attr-defined]
        place -= _ZIP64_END_BYTES
    stream.seek(max(place - size_bytes, 0))
    count = 0
    while count <= most and (header := stream.read(_ENTRY.size))[:4] == b"PK\x01\x02":
        if len(header) < _ENTRY.size:
            break
        stream.seek(sum(_ENTRY.unpack(header)), 1)
        count += 1
    return count > most
