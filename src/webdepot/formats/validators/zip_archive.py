"""ZIP, office documents and e-books in ZIP, and gzip: every member is unpacked and compared with its
checksum, up to a limit of the unpacked size.

A ZIP bomb (https://www.bamsoftware.com/hacks/zipbomb/) states or unpacks to a far larger size than its own;
its check stops at the limit. Documents are checked by the rules of their packages: Open Packaging Conventions
(ECMA-376, part 2), OpenDocument 1.3 part 2, and EPUB OCF 3.3: all parts that they name exist, and XML parts
are well-formed.
"""

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import unquote

from lxml import etree

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity, judge
from webdepot.formats.validators.markup import check_xml_part
from webdepot.model import Finding
from webdepot.text import untrusted_xml

MOST_UNPACKED_BYTES = 256 << 20
MOST_MEMBERS = 100_000
MOST_PART_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 16
_XML_PARTS = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".svg")
_PARTS = "{http://schemas.openxmlformats.org/package/2006/"
Rules = Callable[[zipfile.ZipFile], Iterator[str]]


def check_zip(stream: BinaryIO) -> CheckResult:
    return _check_members(stream, None)


def check_document(stream: BinaryIO) -> CheckResult:
    """Check Office Open XML, OpenDocument or EPUB; the content decides which."""
    return _check_members(stream, _rules_of)


def _check_members(stream: BinaryIO, rules: Rules | None) -> CheckResult:
    properties: dict[str, Property] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            properties |= {
                "members": len(members),
                "unpacked_bytes": sum(member.file_size for member in members),
            }
            if given_up := _refused(members):
                return CheckResult(validity=Validity.NOT_CHECKED, findings=[given_up], properties=properties)
            problem = _unpacked(archive, members)
            if problem is not None:
                if problem.code == "formats.expands-without-end":
                    return CheckResult(
                        validity=Validity.NOT_CHECKED, findings=[problem], properties=properties
                    )
                return judge([problem], properties)
            findings = list(_parts(archive, members, rules)) if rules else []
            return judge([*findings, *_around(stream, archive)], properties)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        struct.error,
        ValueError,
        OSError,
        NotImplementedError,
    ) as error:
        return judge([finding("zip-damaged", detail=error)], properties)


def _refused(members: list[zipfile.ZipInfo]) -> Finding | None:
    if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_UNPACKED_BYTES:
        return finding("expands-without-end", limit=MOST_UNPACKED_BYTES)
    return finding("encrypted") if any(member.flag_bits & 1 for member in members) else None


def _unpacked(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> Finding | None:
    left = MOST_UNPACKED_BYTES
    seen: set[str] = set()
    for member in members:
        if member.filename in seen:
            return finding("zip-damaged", place=member.filename, detail="two members have the same name")
        seen.add(member.filename)
        try:
            size_bytes = _unpack(archive, member, left)
        except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError) as error:
            return finding("zip-damaged", place=member.filename, detail=error)
        if size_bytes != member.file_size and size_bytes < left:
            return finding(
                "zip-damaged",
                place=member.filename,
                detail=f"it is {size_bytes} bytes long instead of {member.file_size}",
            )
        left -= size_bytes
        if left <= 0:
            return finding("expands-without-end", limit=MOST_UNPACKED_BYTES)
    return None


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> int:
    total = 0
    with archive.open(member) as file:
        while total < limit and (chunk := file.read(_CHUNK_BYTES)):
            total += len(chunk)
    return total


def _around(stream: BinaryIO, archive: zipfile.ZipFile) -> list[Finding]:
    """Bytes after the end of the archive. Bytes before it are allowed: they make it self-extracting."""
    size_bytes = stream.seek(0, 2)
    stream.seek(max(0, size_bytes - 70_000))
    tail = stream.read()
    at = tail.rfind(b"PK\x05\x06")
    rest = len(tail) - at - 22 - len(archive.comment) if at >= 0 else 0
    return [finding("trailing-bytes", place=f"byte {size_bytes - rest}", detail=rest)] if rest > 0 else []


def _parts(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], rules: Rules) -> Iterator[Finding]:
    reported = 0
    for member in members:
        if member.filename.lower().endswith(_XML_PARTS) and member.file_size:
            with archive.open(member) as file:
                wrong = check_xml_part(file)  # type: ignore[arg-type]  # only read() is used
            if wrong and reported < 10:
                reported += 1
                yield finding(
                    "part-not-well-formed", place=member.filename, detail=f"{member.filename}, {wrong}"
                )
    if not reported:
        yield from (finding("document-damaged", detail=problem) for problem in rules(archive))


def _rules_of(archive: zipfile.ZipFile) -> Iterator[str]:
    names = set(archive.namelist())
    if "META-INF/container.xml" in names or _declared(archive) == b"application/epub+zip":
        return _book(archive, names)
    if "META-INF/manifest.xml" in names or "mimetype" in names:
        return _open_document(archive, names)
    return _office(archive, names)


def _declared(archive: zipfile.ZipFile) -> bytes:
    try:
        with archive.open("mimetype") as file:
            return file.read(200).strip()
    except KeyError:
        return b""


def _office(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    if "[Content_Types].xml" not in names:
        yield "it does not list the types of its parts"
        return
    lower = {name.lower() for name in names}
    for each in _elements(archive, "[Content_Types].xml", f"{_PARTS}content-types}}Override"):
        part = unquote(each.get("PartName", "")).lstrip("/")
        if part.lower() not in lower:
            yield f"its part {part} is missing"
    for name in sorted(names):
        if name.endswith(".rels"):
            yield from _relations(archive, name, lower)


def _relations(archive: zipfile.ZipFile, name: str, lower: set[str]) -> Iterator[str]:
    folder = posixpath.dirname(posixpath.dirname(name))
    for each in _elements(archive, name, f"{_PARTS}relationships}}Relationship"):
        target = unquote(each.get("Target", "")).partition("#")[0]
        if each.get("TargetMode") == "External" or not target or target == "NULL":
            continue
        path = (
            target.lstrip("/")
            if target.startswith("/")
            else posixpath.normpath(posixpath.join(folder, target))
        )
        if path.lower() not in lower:
            yield f"{name} names {path}, which is missing"


def _open_document(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    if "META-INF/manifest.xml" not in names:
        yield "it has no manifest"
        return
    if "content.xml" not in names and not any(name.endswith("/content.xml") for name in names):
        yield "it has no content"
    space = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}"
    for each in _elements(archive, "META-INF/manifest.xml", f"{space}file-entry"):
        path = each.get(f"{space}full-path", "")
        if path and not path.endswith("/") and path not in names:
            yield f"its manifest names {path}, which is missing"


def _book(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    first = archive.infolist()[0]
    if (
        first.filename != "mimetype"
        or first.compress_type != zipfile.ZIP_STORED
        or _declared(archive) != b"application/epub+zip"
    ):
        yield "its first member is not an uncompressed mimetype"
    if "META-INF/container.xml" not in names:
        yield "META-INF/container.xml is missing"
        return
    for root in _elements(
        archive, "META-INF/container.xml", "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
    ):
        path = root.get("full-path", "")
        if path not in names:
            yield f"its package {path} is missing"
            continue
        for item in _elements(archive, path, "{http://www.idpf.org/2007/opf}item"):
            href = unquote(item.get("href", "")).partition("#")[0]
            part = posixpath.normpath(posixpath.join(posixpath.dirname(path), href))
            if "://" not in href and part not in names:
                yield f"its part {part} is missing"


def _elements(archive: zipfile.ZipFile, name: str, tag: str) -> Iterator[etree._Element]:
    """Elements of a small part that was already found to be well-formed."""
    with archive.open(name) as file:
        data = file.read(MOST_PART_BYTES)
    root = untrusted_xml.parse(data, recover=True)
    if root is not None:
        yield from root.iter(tag)


def check_gzip(stream: BinaryIO) -> CheckResult:
    total, members = 0, 0
    data = stream.read(_CHUNK_BYTES)
    while data:
        if not data.startswith(b"\x1f\x8b"):
            if not members:
                return judge([finding("gzip-damaged", detail="it has no gzip header")])
            rest = len(data) + sum(len(chunk) for chunk in iter(lambda: stream.read(_CHUNK_BYTES), b""))
            zeros = not data.strip(b"\0")
            return judge(
                [] if zeros else [finding("trailing-bytes", detail=rest)],
                {"members": members, "unpacked_bytes": total},
            )
        unpacker = zlib.decompressobj(31)
        try:
            while not unpacker.eof:
                total += len(unpacker.decompress(data, _CHUNK_BYTES))
                if total > MOST_UNPACKED_BYTES:
                    return CheckResult(
                        validity=Validity.NOT_CHECKED,
                        findings=[finding("expands-without-end", limit=MOST_UNPACKED_BYTES)],
                    )
                data = unpacker.unconsumed_tail or (b"" if unpacker.eof else stream.read(_CHUNK_BYTES))
                if not data and not unpacker.eof and not unpacker.decompress(b"", _CHUNK_BYTES):
                    return judge([finding("gzip-damaged", detail="it ends in the middle")])
        except zlib.error as error:
            return judge([finding("gzip-damaged", detail=error)])
        members += 1
        data = unpacker.unused_data or stream.read(_CHUNK_BYTES)
        if len(data) == 1:
            data += stream.read(_CHUNK_BYTES)
    return judge([], {"members": members, "unpacked_bytes": total})
