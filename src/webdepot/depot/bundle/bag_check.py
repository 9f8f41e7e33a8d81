"""Check bags from others: BagIt 1.0 (RFC 8493, https://www.rfc-editor.org/rfc/rfc8493) and 0.93 to 0.97
(https://datatracker.ietf.org/doc/html/draft-kunze-bagit-09).

1. `bagit.txt`: version, and the encoding of the tag files.
2. Read all manifests. 1.0: each one lists every file of the payload once. Before 1.0 one of them is enough,
   and a file may be listed twice with the same checksum.
3. Read each file once and compare it with the checksums of all manifests.
4. `fetch.txt`: nothing is fetched; a bag that has all its files is complete. `Payload-Oxum` is compared.

A bag with an error is refused. A warning is about what other systems may not handle: `./` and `*` before a
path, names that differ only in case or Unicode normalisation, files of the operating system.
"""

import codecs
import hashlib
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webdepot.depot.bundle.bag import DECLARATION
from webdepot.depot.store.keys import is_key
from webdepot.digest import CHUNK_BYTES
from webdepot.model import Finding, Severity

LONGEST_MANIFEST_BYTES = 256 << 20
LONGEST_TAG_FILE_BYTES = 16 << 20
LONGEST_LINE = 1 << 20
MOST_ABSENT = 1000
"""How many more files a manifest may list than there are, before the rest of it is not read."""
FETCH = "fetch.txt"
PAYLOAD = "data/"
_NEW = "1.0"
_VERSIONS = ("0.93", "0.94", "0.95", "0.96", "0.97", _NEW)
_DECLARED = re.compile(
    rb"BagIt-Version: ([0-9]+\.[0-9]+)(?:\r\n|\n|\r)"
    rb"Tag-File-Character-Encoding: ([!-~]+)[\r\n]*"
)
_DECLARED_BEFORE = re.compile(
    rb"BagIt-Version[ \t]*:[ \t]*([0-9]+\.[0-9]+)[ \t]*(?:\r\n|\n|\r)"
    rb"Tag-File-Character-Encoding[ \t]*:[ \t]*([!-~]+)\s*"
)
_ENCODINGS = re.compile(r"utf-?(?:8|16|32)(?:-?[lb]e)?|us-ascii|iso-8859-[0-9]{1,2}|windows-125[0-8]", re.I)
_MANIFEST = re.compile(r"(tag)?manifest-([A-Za-z0-9_-]{1,20})\.txt")
_ALGORITHMS = {
    name.replace("_", ""): name
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b")
}
_LINE = re.compile(r"([0-9A-Fa-f]+)[ \t]+(\*?)(\S.*)")
_FETCHED = re.compile(r"(\S+)[ \t]+([0-9]{1,18}|-)[ \t]+(\S.*)")
_OXUM = re.compile(r"0*([0-9]{1,18})\.0*([0-9]{1,18})")
_OF_SYSTEMS = re.compile(r"(?:\.DS_Store|Thumbs\.db|desktop\.ini|\._.*)\Z", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class _Bag:
    """What was read of a bag so far."""

    folder: Path
    version: str
    encoding: str
    payload: frozenset[str]
    """The paths of the files in `data/`."""
    expected: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Path to the checksum that each algorithm must give."""
    files: int = 0
    """How many files it has, tag files included."""
    listed: dict[str, set[str]] = field(default_factory=dict)
    """Name of a manifest of the payload to the files that it lists."""
    lost: set[str] = field(default_factory=set)
    """Files of operating systems that are listed but absent."""

    @property
    def is_new(self) -> bool:
        return self.version == _NEW


def check(folder: Path) -> Iterator[Finding]:
    """One finding for each fault of a bag; it is valid if none is an error. Reads every byte."""
    declared = yield from _check_declaration(folder)
    if not (folder / "data").is_dir():
        yield _error("no-payload", folder.name, "there is no folder data/")
        return
    version, encoding = declared or (_NEW, "utf-8")
    payload = frozenset(
        path.relative_to(folder).as_posix()
        for path in (folder / "data").rglob("*")
        if path.is_symlink() or path.is_file()
    )
    count = sum(1 for _ in folder.rglob("*"))
    bag = _Bag(folder=folder, version=version, encoding=encoding, payload=payload, files=count)
    yield from _check_names(bag)
    yield from _read_manifests(bag)
    yield from _check_completeness(bag)
    for name, values in sorted(bag.expected.items()):
        yield from _check_file(bag, name, values)
    yield from _check_fetch(bag)
    yield from _check_info(bag)


def _check_declaration(folder: Path) -> Generator[Finding, None, tuple[str, str] | None]:
    """Yield findings; return version and encoding, or None if the declaration cannot be used."""
    path = folder / DECLARATION
    if path.is_symlink() or not path.is_file():
        yield _error("no-declaration", DECLARATION, f"{DECLARATION} is missing")
        return None
    data = path.read_bytes()[:1000] if path.stat().st_size <= LONGEST_TAG_FILE_BYTES else b""
    match = _DECLARED.fullmatch(data)
    if match is None or match[1].decode() != _NEW:
        match = _DECLARED_BEFORE.fullmatch(data)
        if match is not None and match[1].decode() == _NEW:
            match = None  # 1.0 has exactly one space after the colon and none before it
    if match is None:
        reason = (
            "it begins with a byte order mark" if data.startswith(codecs.BOM_UTF8) else "see RFC 8493, 2.1.1"
        )
        yield _error(
            "declaration",
            DECLARATION,
            f"{DECLARATION} does not declare a bag in the two lines BagIt-Version: M.N and "
            f"Tag-File-Character-Encoding: UTF-8 ({reason})",
        )
        return None
    version, encoding = match[1].decode(), match[2].decode()
    if version not in _VERSIONS:
        known = f"{_VERSIONS[0]} to {_VERSIONS[-2]} and {_NEW}"
        yield _error("version", DECLARATION, f"{DECLARATION} names version {version}; {known} are supported")
    if not _ENCODINGS.fullmatch(encoding) or not _is_codec(encoding):
        yield _error("encoding", DECLARATION, f"{DECLARATION} names the unknown encoding {encoding[:50]!r}")
        return None
    return version, encoding


def _is_codec(name: str) -> bool:
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True


def _check_names(bag: _Bag) -> Iterator[Finding]:
    """Report names in the payload that other systems would change or could not tell apart."""
    alike: dict[str, str] = {}
    for name in sorted(bag.payload):
        if (bag.folder / name).is_symlink():
            yield _error("link", name, f"{name[:200]} is a symbolic link")
        if _is_of_system(name):
            yield _warning("system-file", name, f"{name[:200]} is a file of an operating system, not content")
        other = alike.setdefault(_folded(name), name)
        if other != name:
            yield _warning(
                "names-alike", name, f"{name[:200]} and {other[:200]} differ only in case or normalisation"
            )


def _read_manifests(bag: _Bag) -> Iterator[Finding]:
    actual = {_folded(name): name for name in bag.payload}
    tags: dict[str, frozenset[str]] = {}
    for path in sorted(bag.folder.iterdir()):
        match = _MANIFEST.fullmatch(path.name)
        if match is None or not path.is_file():
            continue
        algorithm = _ALGORITHMS.get(match[2].lower().replace("-", "").replace("_", ""))
        if algorithm is None:
            yield _warning(
                "algorithm",
                path.name,
                f"{path.name} uses the unknown checksum algorithm {match[2]}; not checked",
            )
            continue
        lines = yield from _read_tag_file(bag, path, LONGEST_MANIFEST_BYTES)
        listed: dict[str, str] = {}
        is_payload = match[1] is None
        for number, line in lines:
            yield from _read_line(bag, path.name, number, line, algorithm, listed, actual, is_payload)
            if len(listed) > bag.files + MOST_ABSENT:
                yield _error("line", path.name, f"{path.name} lists more files than the bag has")
                break
        if is_payload:
            bag.listed[path.name] = set(listed)
        else:
            tags[path.name] = frozenset(listed)
    if len(set(tags.values())) > 1:
        yield _warning("tag-manifests-differ", bag.folder.name, f"{', '.join(tags)} list different tag files")


def _read_tag_file(
    bag: _Bag, path: Path, longest_bytes: int
) -> Generator[Finding, None, Iterator[tuple[int, str]]]:
    """Yield a finding if a tag file cannot be read; return its lines that are not empty, with their numbers.
    They are read one at a time: a manifest of megabytes can have millions.
    """
    if path.stat().st_size > longest_bytes:
        yield _error("too-large", path.name, f"{path.name} is larger than {longest_bytes >> 20} MB")
        return iter(())
    try:
        with path.open(encoding=bag.encoding) as stream:
            while stream.read(CHUNK_BYTES):
                pass
    except (UnicodeDecodeError, ValueError):
        yield _error("not-encoded", path.name, f"{path.name} is not encoded in {bag.encoding}")
        return iter(())
    return _iter_lines(path, bag.encoding)


def _iter_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """The lines of a tag file, which end with LF, CR or both; one that is too long comes in pieces."""
    number, is_whole = 0, True
    with path.open("rb") as stream, io.TextIOWrapper(stream, encoding) as text:
        while line := text.readline(LONGEST_LINE):
            if is_whole:
                number += 1
            is_whole = line.endswith("\n")
            line = line.removesuffix("\n")
            plain = line.removeprefix("\ufeff") if number == 1 else line
            if plain.strip():
                yield number, plain


def _read_line(
    bag: _Bag,
    manifest: str,
    number: int,
    line: str,
    algorithm: str,
    listed: dict[str, str],
    actual: Mapping[str, str],
    is_payload: bool,
) -> Iterator[Finding]:
    """Read one line of a manifest into `listed` and `bag.expected`."""
    match = _LINE.fullmatch(line.rstrip())
    digits = hashlib.new(algorithm, usedforsecurity=False).digest_size * 2
    if match is None or len(match[1]) != digits:
        yield _error(
            "line", manifest, f"{manifest}, line {number} is not a checksum of {digits} digits and a path"
        )
        return
    value, written = match[1].lower(), match[3]
    if match[2]:
        yield _warning(
            "asterisk", manifest, f"{manifest}, line {number} has * before the path, as md5sum writes it"
        )
    if written.startswith("./"):
        yield _warning("dot-slash", manifest, f"{manifest}, line {number} has ./ before the path")
    name = _decoded(written.removeprefix("./"), bag)
    if not _is_inside(name) or name.startswith(PAYLOAD) != is_payload:
        where = "in data/" if is_payload else "outside data/"
        yield _error(
            "outside", manifest, f"{manifest}, line {number} does not name a file {where}: {written[:200]!r}"
        )
        return
    if name not in bag.payload and is_payload and (real_name := actual.get(_folded(name))) is not None:
        yield _warning(
            "name-differs",
            manifest,
            f"{manifest} lists {name[:200]}, but the file is called {real_name[:200]}",
        )
        name = real_name
        if listed.get(name) == value:
            return
    if name in listed and (bag.is_new or listed[name] != value):
        yield _error("twice", manifest, f"{manifest} lists {name[:200]} twice")
    elif name in listed:
        yield _warning("twice", manifest, f"{manifest} lists {name[:200]} twice, with the same checksum")
    listed[name] = value
    bag.expected[name][algorithm] = value


def _check_completeness(bag: _Bag) -> Iterator[Finding]:
    """Every file of the payload must be listed; in 1.0 by every manifest."""
    if not bag.listed:
        yield _error(
            "no-manifest", bag.folder.name, "there is no manifest of the payload that can be checked"
        )
        return
    every = {name for listed in bag.listed.values() for name in listed}
    if bag.is_new:
        for manifest, listed in bag.listed.items():
            yield from (
                _error("not-listed", name, f"{name[:200]} is not in {manifest}")
                for name in sorted((bag.payload | every) - listed)
            )
        return
    manifests = " or ".join(bag.listed)
    for name in sorted(bag.payload - every):
        yield _error("not-listed", name, f"{name[:200]} is not in {manifests}")


def _check_file(bag: _Bag, name: str, values: Mapping[str, str]) -> Iterator[Finding]:
    path = bag.folder / name
    if path.is_symlink() or not path.is_file():
        if _is_of_system(name):
            bag.lost.add(name)
            yield _warning("system-file", name, f"{name[:200]}, a file of an operating system, is missing")
        else:
            yield _error("missing", name, f"{name[:200]} is missing")
        return
    hashers = {algorithm: hashlib.new(algorithm, usedforsecurity=False) for algorithm in values}
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            for hasher in hashers.values():
                hasher.update(chunk)
    for algorithm, hasher in hashers.items():
        if hasher.hexdigest() != values[algorithm]:
            yield _error(
                "damaged",
                name,
                f"{name[:200]} is damaged: expected {algorithm} {values[algorithm]}, "
                f"found {hasher.hexdigest()}",
            )


def _check_fetch(bag: _Bag) -> Iterator[Finding]:
    """Each file of `fetch.txt` must be in the payload, and already present."""
    path = bag.folder / FETCH
    if not path.is_file():
        return
    lines = yield from _read_tag_file(bag, path, LONGEST_MANIFEST_BYTES)
    for number, line in lines:
        match = _FETCHED.fullmatch(line.rstrip())
        name = _decoded(match[3].removeprefix("./"), bag) if match else ""
        if match is None or not _is_inside(name) or not name.startswith(PAYLOAD):
            yield _error(
                "fetch", FETCH, f"{FETCH}, line {number} does not name an address and a file in data/"
            )
        elif name not in bag.payload:
            yield _error(
                "not-fetched",
                name,
                f"{FETCH}: {name[:200]} is not in the bag. Fetch it and submit the complete bag",
            )
        elif match[2] != "-" and int(match[2]) != (bag.folder / name).stat().st_size:
            yield _error(
                "fetch",
                FETCH,
                f"{FETCH} states {match[2]} bytes for {name[:200]}, which has another size",
            )
        elif name not in bag.expected:
            yield _error("fetch", FETCH, f"{FETCH}: {name[:200]} is not in a manifest")
    yield _warning("fetch", FETCH, f"{FETCH} is present; nothing was fetched, all files came with the bag")


def _check_info(bag: _Bag) -> Iterator[Finding]:
    """The lines of `bag-info.txt`, and `Payload-Oxum` in it (`package-info.txt` before 0.96)."""
    for name in ("bag-info.txt", "package-info.txt"):
        path = bag.folder / name
        if not path.is_file():
            continue
        lines = yield from _read_tag_file(bag, path, LONGEST_TAG_FILE_BYTES)
        oxums = []
        for number, line in lines:
            label, colon, value = line.partition(":")
            if line[0] in " \t":  # a value may continue on the next line
                continue
            if not colon or not label.strip():
                yield _error("info", name, f"{name}, line {number} is not a label, a colon and a value")
            elif label.strip().lower() == "payload-oxum":
                oxums.append(value.strip())
        if len(oxums) > 1 and bag.is_new:
            yield _error("oxum", name, f"{name} has Payload-Oxum {len(oxums)} times")
        for oxum in oxums[:1]:
            yield from _check_oxum(bag, name, oxum)


def _check_oxum(bag: _Bag, info: str, stated: str) -> Iterator[Finding]:
    size = sum((bag.folder / name).stat().st_size for name in bag.payload if (bag.folder / name).is_file())
    match = _OXUM.fullmatch(stated)
    if match is None:
        yield _error("oxum", info, f"{info}: Payload-Oxum {stated[:50]!r} does not have the form BYTES.FILES")
    elif (int(match[1]), int(match[2])) != (size, len(bag.payload)):
        finding_of = _warning if bag.lost else _error
        yield finding_of(
            "oxum",
            info,
            f"Payload-Oxum says {match[1]} bytes in {match[2]} files; "
            f"there are {size} bytes in {len(bag.payload)} files",
        )


def _decoded(name: str, bag: _Bag) -> str:
    """A path as manifests write it: line ends are percent-encoded, from 1.0 on also the percent sign (2.1.3).

    Before 1.0 tools differed, so the form that is there counts.
    """
    plain = re.sub("%0[Dd]", "\r", re.sub("%0[Aa]", "\n", name))
    if not bag.is_new and plain in bag.payload:
        return plain
    return plain.replace("%25", "%")


def _is_inside(name: str) -> bool:
    """Whether a path stays in the bag. Line ends are allowed; the depot may still refuse such a name."""
    return is_key(re.sub(r"[\r\n]", "_", name)) and not name.startswith("~")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _is_of_system(name: str) -> bool:
    return _OF_SYSTEMS.match(name.rpartition("/")[2]) is not None


def _error(code: str, subject: str, message: str) -> Finding:
    return Finding(code=f"bag.{code}", severity=Severity.ERROR, subject=subject, message=message)


def _warning(code: str, subject: str, message: str) -> Finding:
    return Finding(code=f"bag.{code}", severity=Severity.WARNING, subject=subject, message=message)
