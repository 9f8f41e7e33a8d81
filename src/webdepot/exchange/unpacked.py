"""A slice as an unpacked tree: one file for each address that was answered, below folders named like hosts,
as offline browsers do.

    www.example.org/index.html          http://www.example.org/
    www.example.org/news/3.html         http://www.example.org/news/3.html
    www.example.org/list@page=2.php     http://www.example.org/list.php?page=2

1. `chosen` takes the last good answer of each address; redirects, errors and answers to forms are no files.
2. `placed` gives each address its place. Names keep to what every file system takes; two that would meet get
   a piece of a checksum.

The bytes are what the server sent, without transfer and content coding, and are not changed: links lead where
they led. The address of each file is told beside it in the structural map, so that a receiver can put every
file back where it stood.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from webdepot.model import Capture, RecordKind

INDEX = "index.html"
LONGEST_NAME_BYTES = 120
_KINDS = frozenset({RecordKind.RESPONSE, RecordKind.RESOURCE, RecordKind.REVISIT})
_AWKWARD = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\/\ud800-\udfff]')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?\Z", re.IGNORECASE)


class TooMany(Exception):
    """More files than a tree may have."""


def chosen(captures: Iterable[Capture], *, most: int) -> list[Capture]:
    """The last good answer of each address, in the order of addresses. TooMany when there are more than
    `most`.
    """
    found: dict[str, Capture] = {}
    for capture in captures:
        if not _is_file(capture):
            continue
        before = found.get(capture.url)
        if before is None or before.timestamp <= capture.timestamp:
            found[capture.url] = capture
        if len(found) > most:
            raise TooMany
    return [found[url] for url in sorted(found)]


def _is_file(capture: Capture) -> bool:
    is_answer = (
        capture.kind in _KINDS and not capture.replaced and capture.url.startswith(("http://", "https://"))
    )
    return is_answer and capture.status in (0, 200, 203) and "__wb_method=" not in capture.key


def placed(urls: Iterable[str]) -> dict[str, str]:
    """Each address with its member in the ZIP; no two meet, also where case does not count, and no file
    stands where a folder is.
    """
    wanted = {url: _member(url) for url in urls}
    folders = {folder for member in wanted.values() for folder in _folders(member.lower())}
    places: dict[str, str] = {}
    taken: set[str] = set()
    for url, member in wanted.items():
        if member.lower() in taken or member.lower() in folders:
            member = _marked(member, url)
        taken.add(member.lower())
        places[url] = member
    return places


def start_of(seeds: Iterable[str], places: Mapping[str, str]) -> str:
    """The member where a reader begins: the first seed that is there, else the first page of a host, else the
    first file.
    """
    for seed in seeds:
        for url in (seed, f"{seed}/", seed.removesuffix("/")):
            if url in places:
                return places[url]
    members = list(places.values())
    return min(
        (member for member in members if member.endswith(f"/{INDEX}")),
        key=lambda member: member.count("/"),
        default=members[0],
    )


def _member(url: str) -> str:
    parts = urlsplit(url)
    host = _plain(parts.netloc.rpartition("@")[2].lower())
    steps = [_plain(unquote(step)) for step in parts.path.split("/")[1:]] or [""]
    name = steps.pop() or INDEX
    if parts.query:
        stem, dot, ending = name.rpartition(".")
        asked = _plain(unquote(parts.query))
        name = _plain(f"{stem}@{asked}.{ending}" if dot and stem and ending.isalnum() else f"{name}@{asked}")
    return "/".join([host, *(step or "_" for step in steps), name])


def _plain(text: str) -> str:
    """A name that every file system takes. What was changed or cut has a piece of its checksum, so that it
    stays one of its own.
    """
    made = _AWKWARD.sub("_", text).rstrip(". ")
    if made in (".", "..") or made.startswith(".part-") or _RESERVED.match(made):
        made = f"_{made}"
    if len(made.encode()) <= LONGEST_NAME_BYTES:
        return made
    stem, dot, ending = made.rpartition(".")
    ending = f".{ending}" if dot and len(ending) <= 10 else ""
    kept = (
        (stem if ending else made)
        .encode()[: LONGEST_NAME_BYTES - 10 - len(ending.encode())]
        .decode(errors="ignore")
    )
    return f"{kept}~{_mark(text)}{ending}"


def _marked(member: str, url: str) -> str:
    folder, _, name = member.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    return f"{folder}/{stem}~{_mark(url)}.{ending}" if dot and stem else f"{folder}/{name}~{_mark(url)}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]


def _folders(member: str) -> Iterable[str]:
    steps = member.split("/")[:-1]
    return ("/".join(steps[: number + 1]) for number in range(len(steps)))
