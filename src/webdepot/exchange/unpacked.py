"""A slice as an unpacked tree: one file for each address with a response, in folders named after hosts, as
offline browsers do.

    www.example.org/index.html          http://www.example.org/
    www.example.org/news/3.html         http://www.example.org/news/3.html
    www.example.org/list@page=2.php     http://www.example.org/list.php?page=2

1. `choose` selects the last good response of each address; redirects, errors and responses to forms are not
   files.
2. `place` gives each address its path. Names are valid on every file system; two equal paths are made
   different with a piece of a checksum.

The bytes are as the server sent them, without transfer and content coding; links are not changed. The
structural map gives the address of each file, so that a receiver can restore its original location.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from webdepot.model import Capture, RecordKind
from webdepot.text import file_names

INDEX = "index.html"
LONGEST_NAME_BYTES = 120
MOST_FOLDERS = 14
"""Below the host. Deeper addresses, which may have thousands of slashes, get one folder for the rest."""
_KINDS = frozenset({RecordKind.RESPONSE, RecordKind.RESOURCE, RecordKind.REVISIT})
_AWKWARD = re.compile(rf'[<>:"|?*\\/{file_names.CONTROLS}]')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?\Z", re.IGNORECASE)


class TooMany(Exception):
    """More files than a tree may have."""


def choose(captures: Iterable[Capture], *, most: int) -> list[Capture]:
    """The last good response of each address, in the order of addresses. TooMany if there are more than
    `most`.
    """
    latest: dict[str, Capture] = {}
    for capture in captures:
        if not _is_file(capture):
            continue
        before = latest.get(capture.url)
        if before is None or before.timestamp <= capture.timestamp:
            latest[capture.url] = capture
        if len(latest) > most:
            raise TooMany
    return [latest[url] for url in sorted(latest)]


def _is_file(capture: Capture) -> bool:
    is_response = (
        capture.kind in _KINDS and not capture.replaced and capture.url.startswith(("http://", "https://"))
    )
    return is_response and capture.status in (0, 200, 203) and "__wb_method=" not in capture.key


def place(urls: Iterable[str]) -> dict[str, str]:
    """Each address with its member name in the ZIP. No two names are equal, not even on file systems that
    ignore case, and no file has the name of a folder.
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
    """The member to open first: the first seed in the tree, else the start page of a host, else the first
    file.
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
    if len(steps) > MOST_FOLDERS:
        steps[MOST_FOLDERS - 1 :] = [f"~{_mark(parts.path.rpartition('/')[0])}"]
    if parts.query:
        stem, dot, ending = name.rpartition(".")
        query = _plain(unquote(parts.query))
        name = _plain(f"{stem}@{query}.{ending}" if dot and stem and ending.isalnum() else f"{name}@{query}")
    return "/".join([host, *(step or "_" for step in steps), name])


def _plain(text: str) -> str:
    """A name that is valid on every file system. A shortened name gets a piece of its checksum, so that it
    stays unique.
    """
    name = _AWKWARD.sub("_", text).rstrip(". ")
    if name in (".", "..") or name.startswith(".part-") or _RESERVED.match(name):
        name = f"_{name}"
    if len(name.encode()) <= LONGEST_NAME_BYTES:
        return name
    stem, dot, ending = name.rpartition(".")
    ending = f".{ending}" if dot and len(ending) <= 10 else ""
    kept = (
        (stem if ending else name)
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
