"""Files made from PRONOM's signatures: for each signature one file with its bytes as close together as allowed,
and one with them as far apart as is practical. They come from the release that opf-fido includes.

    byte signatures        hex, `??`, `{n}`, `{n-m}`, `{n-*}`, `*`, `[a:b]`, `[!a]`, `(a|b)`
    container signatures   the same with blanks and 'text', for the members of ZIP and OLE2 files
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

FAR = 70_000
"""Bytes in a gap of any length, in the second file: more than any excerpt or buffer."""
_P = "{http://pronom.nationalarchives.gov.uk}"
_TOKEN = re.compile(
    r"\s+|(?P<text>'[^']*')|(?P<hex>[0-9A-Fa-f]{2})|(?P<any>\?\?)|\{(?P<least>\d+)(?:-(?P<most>\d+|\*))?\}"
    r"|(?P<wild>\*)|\[(?P<set>[^\]]*)\]|(?P<open>\()|(?P<close>\))|(?P<or>\|)|(?P<other>.)"
)
_FILLING = b"".join(zlib.crc32(str(number).encode()).to_bytes(4) for number in range(FAR // 2))


class SignatureFile(NamedTuple):
    name: str
    puid: str
    """Empty if the format is not stated."""
    data: bytes


def byte_files() -> Iterator[SignatureFile]:
    """Two files for each byte signature."""
    with zipfile.ZipFile(_conf("pronom-xml-v*.zip")) as archive:
        for entry in archive.namelist():
            report = ElementTree.fromstring(archive.read(entry))
            puid = entry.removeprefix("puid.").removesuffix(".xml").replace(".", "/")
            extension = next((each.text for each in report.iter(f"{_P}Signature") if each.text), "bin")
            for number, signature in enumerate(report.iter(f"{_P}InternalSignature")):
                for is_far in (False, True):
                    name = f"{puid.replace('/', '-')}-{number}-{'far' if is_far else 'near'}.{extension}"
                    yield SignatureFile(name.replace("/", "-"), puid, _of_signature(signature, is_far))


def container_files() -> Iterator[SignatureFile]:
    """Two files for each container signature; in the second one, other members come first."""
    report = ElementTree.parse(_conf("container-signature-*.xml")).getroot()
    puids = {each.get("signatureId"): each.get("Puid") for each in report.iter("FileFormatMapping")}
    for signature in report.iter("ContainerSignature"):
        members = {_text(file, "Path"): _member(file) for file in signature.iter("File")}
        write, extension = (zipped, "zip") if signature.get("ContainerType") == "ZIP" else (compound, "doc")
        others = {f"Other{number}": _FILLING[: 5000 * number] for number in range(12)}
        for kind, content in (("alone", members), ("among", others | members)):
            identity = signature.get("Id")
            yield SignatureFile(
                f"container-{identity}-{kind}.{extension}", puids.get(identity) or "", write(content)
            )


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def compound(members: dict[str, bytes]) -> bytes:
    """An OLE2 file (MS-CFB, version 3). Streams have at least 4,096 bytes, so that there is no small stream."""
    tree: dict[str, dict | bytes] = {}
    for path, data in members.items():
        *folders, name = path.strip("/").split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = data + bytes(max(0, 4096 - len(data)))
    sectors: list[bytes] = []
    table: list[int] = []
    entries: list[bytes] = []

    def store(data: bytes) -> int:
        first = len(sectors)
        parts = [data[at : at + 512].ljust(512, b"\0") for at in range(0, len(data), 512)]
        sectors.extend(parts)
        table.extend([*range(first + 1, first + len(parts)), 0xFFFFFFFE])
        return first

    def add(name: str, kind: int, child: int, start: int, size: int) -> int:
        encoded = name.encode("utf-16-le")[:62] + b"\0\0"
        entries.append(
            struct.pack(
                "<64sHBBIII36sIQ", encoded, len(encoded), kind, 1, *[0xFFFFFFFF] * 2, child, b"", start, size
            )
        )
        return len(entries) - 1

    def add_all(place: dict[str, dict | bytes]) -> int:
        """The members of a folder as a chain of right siblings; the number of the first."""
        numbers = []
        for name, value in place.items():
            if isinstance(value, dict):
                number = add(name, 1, 0, 0, 0)
                entries[number] = _with(entries[number], 76, add_all(value))
            else:
                number = add(name, 2, 0xFFFFFFFF, store(value), len(value))
            numbers.append(number)
        for left, right in pairwise(numbers):
            entries[left] = _with(entries[left], 72, right)
        return numbers[0] if numbers else 0xFFFFFFFF

    root = add("Root Entry", 5, 0xFFFFFFFF, 0xFFFFFFFE, 0)
    entries[root] = _with(entries[root], 76, add_all(tree))
    directory = store(b"".join(entries).ljust(-(-len(entries) // 4) * 512, b"\0"))
    count = -(-(len(table) + 8) // 127)
    places = list(range(len(sectors), len(sectors) + count))
    table += [0xFFFFFFFD] * count
    table += [0xFFFFFFFF] * (count * 128 - len(table))
    header = struct.pack(
        "<8s16sHHHHH6sIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 62, 3, 0xFFFE, 9, 6, b"", 0, count,
        directory, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0,
    )  # fmt: skip
    header += struct.pack("<109I", *places, *[0xFFFFFFFF] * (109 - count))
    return header + b"".join(sectors) + struct.pack(f"<{len(table)}I", *table)


def _with(entry: bytes, at: int, number: int) -> bytes:
    return entry[:at] + struct.pack("<I", number) + entry[at + 4 :]


def _of_signature(signature: ElementTree.Element, is_far: bool) -> bytes:
    """Sequences from the beginning, then variable ones, then those from the end. Several from the beginning
    lie over each other if their offsets say so.
    """
    start, middle, end = bytearray(), b"", b""
    for sequence in signature.iter(f"{_P}ByteSequence"):
        value = sequence.findtext(f"{_P}ByteSequenceValue") or ""
        data = _bytes_of(value, is_far)
        least = _number(sequence.findtext(f"{_P}Offset"))
        gap = min(FAR, least + (_number(sequence.findtext(f"{_P}MaxOffset")) if is_far else 0))
        match sequence.findtext(f"{_P}PositionType"):
            case "Absolute from BOF":
                start.extend(_FILLING[len(start) : gap + len(data)])
                start[gap : gap + len(data)] = data
            case "Absolute from EOF":
                end = data + _FILLING[:gap]
            case _:
                middle += _FILLING[: FAR if is_far else 10] + data
    return bytes(start) + middle + (_FILLING[: FAR if is_far else 10] if end else b"") + end


def _member(file: ElementTree.Element) -> bytes:
    start, end = bytearray(), b""
    for sequence in file.iter("ByteSequence"):
        for part in sequence.iter("SubSequence"):
            data = _bytes_of(_text(part, "Sequence"), False)
            for fragment in part.iter("RightFragment"):
                data += _FILLING[: _number(fragment.get("MinOffset"))] + _bytes_of(fragment.text or "", False)
            gap = _number(part.get("SubSeqMinOffset"))
            if sequence.get("Reference") == "EOFoffset":
                end = data + _FILLING[:gap]
            else:
                start += _FILLING[:gap] + data
    return bytes(start) + (_FILLING[:5000] + end if end else b"")


def _bytes_of(value: str, is_far: bool) -> bytes:
    data = bytearray()
    starts: list[int] = []
    skipping = 0
    """Levels of alternatives after the first, which is the one that is written."""
    for token in _TOKEN.finditer(value):
        if skipping:
            skipping += 1 if token["open"] else -1 if token["close"] else 0
            if not skipping:
                starts.pop()
        elif token["or"]:
            skipping = 1
        elif token["open"]:
            starts.append(len(data))
        elif token["close"]:
            starts.pop()
        else:
            data += _of_token(token, is_far)
    return bytes(data)


def _of_token(token: re.Match[str], is_far: bool) -> bytes:
    if token["text"]:
        return token["text"][1:-1].encode("latin-1")
    if token["hex"]:
        return bytes.fromhex(token["hex"])
    if token["set"]:
        return _one_of(token["set"])
    if token["any"]:
        return b"\x5a"
    if token["wild"]:
        return _FILLING[: FAR if is_far else 3]
    if token["least"]:
        most = FAR if token["most"] == "*" else int(token["most"] or token["least"])
        return _FILLING[: min(FAR, most) if is_far else int(token["least"])]
    return b""


def _one_of(content: str) -> bytes:
    """A value that a set allows: the first of a range, or one that is not excluded."""
    is_negated = content.startswith(("!", "&", "~"))
    first = re.split(r"[:\-]", content.lstrip("!&~"))[0].strip()
    data = first.strip("'").encode() if first.startswith("'") else bytes.fromhex(first or "00")
    return bytes((value + 1) % 256 for value in data) if is_negated else data


def _number(text: str | None) -> int:
    return int(text) if text and text.strip().isdigit() else 0


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _conf(pattern: str) -> Path:
    return sorted(Path(str(files("fido"))).glob(f"conf/{pattern}"))[-1]
