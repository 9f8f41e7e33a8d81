"""Check an object that a partner delivered: whether the ZIP is what the record says, and the addresses of its
files.

Everything is checked before anything is ingested. Each problem is a separate sentence, for a person to pass
on to the partner.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from webdepot.digest import CHUNK_BYTES
from webdepot.exchange import urn
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata.lmer import LmerFile
from webdepot.exchange.metadata.regbib import DeliveredObject

_ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA1": "sha1",
    "SHA-256": "sha256",
    "SHA256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
OVERHEAD_BYTES = 1 << 20
_INDEX_PAGES = re.compile(r"(?:index|default|home)\.(?:html?|xhtml|php)\Z", re.IGNORECASE)
ZIP_HEADER_BYTES = 1200
"""More than the headers of one member need."""


class RefusedObject(Exception):
    """An object is refused, with all reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file of the object, unpacked and verified."""

    facts: LmerFile
    path: Path
    sha256: str
    size_bytes: int

    @property
    def member(self) -> str:
        return f"{self.facts.path}{self.facts.name}"[1:]


def member_of(file: LmerFile) -> str:
    """The name in the ZIP. Some senders omit the slash after a folder."""
    folder = file.path if file.path.endswith("/") else file.path + "/"
    return f"{folder}{file.name}".lstrip("/")


def wrong_digits(delivered: DeliveredObject) -> list[str]:
    """A message for each URN whose last digit is not its check digit."""
    named = [level.fields.get("urn", "").lower() for level in delivered.levels]
    return [
        f"the check digit of {each[:200]} is wrong"
        for each in dict.fromkeys((*named, delivered.urn))
        if each and not urn.is_valid(each)
    ]


def largest_bytes(delivered: DeliveredObject) -> int:
    """The largest size that a ZIP of these files can have."""
    sizes = sum(int(file.size) for file in delivered.files)
    return sizes + sizes // 100 + OVERHEAD_BYTES + ZIP_HEADER_BYTES * len(delivered.files)


def check_zip(path: Path, delivered: DeliveredObject) -> Iterator[str]:
    """Problems of the whole ZIP: its checksum."""
    facts = delivered.object
    if not facts.transfer_checksum:
        return
    algorithm = _ALGORITHMS.get((facts.transfer_checksum_type or "").upper())
    if algorithm is None:
        yield f"the transfer checksum is of the unknown type {facts.transfer_checksum_type[:20]!r}"
        return
    actual = _digest(path, algorithm)
    if actual != facts.transfer_checksum.lower():
        expected = f"{facts.transfer_checksum_type} {facts.transfer_checksum[:130]}"
        yield f"the ZIP is damaged: expected {expected}, found {actual}"


def check_members(actual: Mapping[str, int], delivered: DeliveredObject) -> Iterator[str]:
    """Problems of the member list (paths and sizes): missing and extra files, and wrong sizes."""
    expected = {member_of(file): int(file.size) for file in delivered.files}
    if not actual:
        yield "the ZIP contains no files"
        return
    if len(actual) != len(expected):
        yield f"the ZIP contains {len(actual)} files, but the record describes {len(expected)}"
    yield from (
        f"{name[:200]} is missing from the ZIP" for name in sorted(expected.keys() - actual.keys())[:20]
    )
    yield from (
        f"{name[:200]} is in the ZIP but not in the record"
        for name in sorted(actual.keys() - expected.keys())[:20]
    )
    for name in sorted(expected.keys() & actual.keys()):
        if expected[name] != actual[name]:
            yield f"{name[:200]} has {actual[name]} bytes in the ZIP, but {expected[name]} in the record"


def check_files(folder: Path, delivered: DeliveredObject, checked: list[CheckedFile]) -> Iterator[str]:
    """Problems of the unpacked files: wrong checksums. Files without a problem are added to `checked`."""
    for file in delivered.files:
        path = folder / member_of(file)
        reasons = list(check_checksum(path, file.name, file.file_checksum, file.file_checksum_type))
        yield from reasons
        if not reasons:
            sha256 = _digest(path, "sha256")
            checked.append(CheckedFile(facts=file, path=path, sha256=sha256, size_bytes=path.stat().st_size))


def check_checksum(path: Path, name: str, checksum: str, kind: str) -> Iterator[str]:
    """A message if a file does not have the checksum that was stated, if any."""
    algorithm = _ALGORITHMS.get(kind.upper())
    if checksum and algorithm is None:
        yield f"{name[:200]} has a checksum of the unknown type {kind[:20]!r}"
    elif checksum and algorithm and (actual := _digest(path, algorithm)) != checksum.lower():
        yield f"{name[:200]} is damaged: expected {kind} {checksum[:130]}, found {actual}"


def urls_of(file: CheckedFile, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> tuple[str, ...]:
    """The addresses of a loose file: its original web address, as the sender says or its path shows, or an
    address below the URN of its object.

    Offline browsers put the files of a site into a folder named after the host, or directly at the top. The
    index page of a folder also gets the folder's address.
    """
    if url := delivered.urls.get(file.facts.file_identifier):
        return _with_paths(url, file.member, delivered) if delivered.is_rewritten else (url,)
    addresses = [
        each
        for level in reversed(delivered.levels)
        for each in level.fields.get("addresses", ())
        if each.startswith("http")
    ]
    if not delivered.is_web or not addresses:
        return (address_without_site(delivered.urn, file.member, addresses, count=len(files)),)
    base = urlsplit(addresses[0])
    first, _, rest = file.member.partition("/")
    host, path = (
        (first, rest)
        if rest and "." in first and _is_host(first, base.netloc)
        else (base.netloc, file.member)
    )
    url = f"{base.scheme}://{host}/{quote(path, safe='/~@!$&()*+,;=:')}"
    if _INDEX_PAGES.match(file.facts.name):
        return (url, url[: len(url) - len(quote(file.facts.name))])
    return (url,)


def _with_paths(url: str, member: str, delivered: DeliveredObject) -> tuple[str, ...]:
    """An original address, and those that rewritten links lead to: the file's own path, also with the query
    that HTTrack leaves after it, and for a file of another host its folder next to the start page.
    """
    parts = urlsplit(url)
    path = member.partition("/")[2]
    own = f"{parts.scheme}://{parts.netloc}/{quote(path, safe='/~@!$&()*+,;=:%')}"
    resource = f"{own}?{parts.query}" if parts.query and not {"?", "@"} & set(path) else own
    start = urlsplit(next(iter(delivered.levels[0].fields.get("addresses", ())), url))
    beside = f"{start.scheme}://{start.netloc}/{quote(member, safe='/~@!$&()*+,;=:%')}"
    is_elsewhere = start.netloc != parts.netloc
    return tuple(dict.fromkeys((url, own, resource, *((beside,) if is_elsewhere else ()))))


def address_without_site(urn: str, member: str, addresses: Sequence[str], *, count: int) -> str:
    """The address of a file of an object that is not a web site: the original web address if it is the only
    file, else an address below the URN.
    """
    return addresses[0] if count == 1 and addresses else f"{urn}/{quote(member)}"


def seeds_of(delivered: DeliveredObject) -> tuple[str, ...]:
    """The original web addresses of the work, from the highest level that has any; else its URN."""
    for level in delivered.levels:
        urls = tuple(
            each for each in level.fields.get("addresses", ()) if each.startswith(("http://", "https://"))
        )
        if urls and level.level in (RecordLevel.SITE, RecordLevel.SLICE):
            return urls
    top = delivered.levels[0].fields.get("urn") or delivered.urn
    return (str(top).lower(),)


def _is_host(name: str, site: str) -> bool:
    """Whether a folder is named after a host of the site."""
    plain = site.partition(":")[0].removeprefix("www.")
    return (
        name.removeprefix("www.") == plain
        or name.endswith(f".{plain}")
        or re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", name) is not None
    )


def _digest(path: Path, algorithm: str) -> str:
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()
