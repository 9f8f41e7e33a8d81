"""ZIP, office documents in ZIP, and gzip: every member is unpacked against its checksum, with a limit on what comes out.

A ZIP bomb (https://www.bamsoftware.com/hacks/zipbomb/) promises or unpacks to far more than it is; its check stops at the limit.
"""

import struct
import zipfile
import zlib
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validators.markup import check_xml
from webdepot.formats.validity import Validity
from webdepot.model import Finding

MOST_UNPACKED_BYTES = 512 << 20
MOST_MEMBERS = 100_000
_CHUNK_BYTES = 1 << 16
_XML_PARTS = (".xml", ".rels", ".opf", ".ncx", ".xhtml")
_Result = tuple[Validity, list[Finding]]


def check_zip(stream: BinaryIO) -> _Result:
    return _check_members(stream, read_parts=False)


def check_document(stream: BinaryIO) -> _Result:
    """Office Open XML, OpenDocument, EPUB: a ZIP whose XML parts are well-formed."""
    return _check_members(stream, read_parts=True)


def _check_members(stream: BinaryIO, *, read_parts: bool) -> _Result:
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_UNPACKED_BYTES:
                return Validity.NOT_CHECKED, [finding("expands-without-end", limit=MOST_UNPACKED_BYTES)]
            if any(member.flag_bits & 1 for member in members):
                return Validity.NOT_CHECKED, [finding("encrypted")]
            left = MOST_UNPACKED_BYTES
            for member in members:
                left -= _unpack(archive, member, left)
                if left <= 0:
                    return Validity.NOT_CHECKED, [finding("expands-without-end", limit=MOST_UNPACKED_BYTES)]
            return _check_parts(archive, members) if read_parts else (Validity.VALID, [])
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, ValueError, OSError, NotImplementedError) as error:
        return Validity.NOT_VALID, [finding("zip-damaged", detail=error)]


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> int:
    total = 0
    with archive.open(member) as file:
        while total < limit and (chunk := file.read(_CHUNK_BYTES)):
            total += len(chunk)
    return total


def _check_parts(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> _Result:
    findings = []
    for member in members:
        if member.filename.lower().endswith(_XML_PARTS):
            with archive.open(member) as file:
                validity, found = check_xml(file)  # type: ignore[arg-type]  # only read() is used
            if validity is Validity.NOT_VALID:
                findings.append(finding("part-not-well-formed", place=member.filename, detail=f"{member.filename}: {found[0].message}"))
    return (Validity.NOT_VALID, findings[:10]) if findings else (Validity.VALID, [])


def check_gzip(stream: BinaryIO) -> _Result:
    total, members = 0, 0
    data = stream.read(_CHUNK_BYTES)
    while data:
        if not data.startswith(b"\x1f\x8b"):
            if not members:
                return Validity.NOT_VALID, [finding("gzip-damaged", detail="it has no gzip header")]
            rest = len(data) + sum(len(chunk) for chunk in iter(lambda: stream.read(_CHUNK_BYTES), b""))
            return Validity.VALID, [finding("trailing-bytes", detail=rest)]
        unpacker = zlib.decompressobj(31)
        try:
            while not unpacker.eof:
                total += len(unpacker.decompress(data, _CHUNK_BYTES))
                if total > MOST_UNPACKED_BYTES:
                    return Validity.NOT_CHECKED, [finding("expands-without-end", limit=MOST_UNPACKED_BYTES)]
                data = unpacker.unconsumed_tail or (b"" if unpacker.eof else stream.read(_CHUNK_BYTES))
                if not data and not unpacker.eof and not unpacker.decompress(b"", _CHUNK_BYTES):
                    return Validity.NOT_VALID, [finding("gzip-damaged", detail="it ends in the middle")]
        except zlib.error as error:
            return Validity.NOT_VALID, [finding("gzip-damaged", detail=error)]
        members += 1
        data = unpacker.unused_data or stream.read(_CHUNK_BYTES)
        if len(data) == 1:
            data += stream.read(_CHUNK_BYTES)
    return Validity.VALID, []
