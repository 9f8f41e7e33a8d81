"""Folders of offline browsers, read as a web site: which file was which address, and when it was fetched.

| what the folder has | addresses | dates |
|---|---|---|
| HTTrack: `hts-cache/new.txt` | its list of addresses and local files | `hts-log.txt`, and the comments |
| comments `Mirrored from … by HTTrack …, DATE` in pages | the comment | the comment |
| folders named like hosts (wget, HTTrack without its cache) | the path | the time of the newest file |

A folder that tells none of this is not a mirror and stays an object of files. HTTrack rewrites links to local
files, so a page whose address is not its path is also found at its path (`DeliveredObject.is_rewritten`).

https://www.httrack.com/html/cache.html describes the cache.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

LARGEST_LOG_BYTES = 256 << 20
_HEAD_BYTES = 65_536
_TOOLS = re.compile(
    r"hts-cache/.*|hts-log\.txt|hts-nohup\.txt|hts-in_progress\.lock|index\.html|backblue\.gif|fade\.gif|cookies\.txt"
)
"""Files that HTTrack puts at the top of its folder."""
_HOST = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z]{2,}(?:_[0-9]+)?", re.IGNORECASE)
_SURE_HOST = re.compile(r"www\..*|.*\.(?:[a-z]{2}|com|org|net|edu|gov|info|int|museum)", re.IGNORECASE)
"""Without a sign of HTTrack, a folder `old.data` is not taken for a host."""
_PAGES = re.compile(r".*\.(?:x?html?|php|asp|aspx|jsp|cgi)", re.IGNORECASE)
_MIRRORED = re.compile(
    rb"<!--\s{0,9}Mirrored from (\S{1,2000}) by HTTrack [^,>]{0,200},\s{0,9}"
    rb"([A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8}) GMT"
)
_LAUNCHED = re.compile(
    r"HTTrack\S{0,40} launched on ([A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8})"
    r"(?: at (\S{1,2000}))?"
)
_INDEX = re.compile(r"(.*/)(?:index|default|home)\.(?:x?html?|php)", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Mirror:
    site: str
    """The start address."""
    at: datetime
    """When it was made, as far as the folder tells."""
    files: dict[str, Path]
    """The files of the site; what else is in the folder belongs to the program that made it."""
    urls: dict[str, str] = field(default_factory=dict)
    """Path of a file to its original address."""
    dates: dict[str, datetime] = field(default_factory=dict)
    is_rewritten: bool = False


def find(payload: Mapping[str, Path]) -> Mirror | None:
    """The mirror that these files are; None if they are not one."""
    tops = {name.partition("/")[0] for name in payload if "/" in name}
    hosts = {top for top in tops if _HOST.fullmatch(top)}
    files = {name: path for name, path in payload.items() if "/" in name and name.partition("/")[0] in hosts}
    others = payload.keys() - files.keys()
    if not any(_PAGES.fullmatch(name) for name in files) or not all(map(_TOOLS.fullmatch, others)):
        return None
    comments = dict(_iter_comments(files))
    is_of_httrack = bool(comments) or any(name.startswith("hts-") for name in others)
    if not is_of_httrack and (others or not all(map(_SURE_HOST.fullmatch, hosts))):
        return None
    launched, start = _read_log(payload.get("hts-log.txt"))
    newest = max(datetime.fromtimestamp(int(path.stat().st_mtime), UTC) for path in files.values())
    dates = [date for _, date in comments.values()]
    at = launched or max(dates, default=newest)
    addresses = dict(_iter_cached(payload.get("hts-cache/new.txt"), files))
    mirror = Mirror(site="", at=at, files=files, is_rewritten=is_of_httrack)
    for name in files:
        address, date = comments.get(name, ("", at))
        mirror.urls[name] = addresses.get(name) or address or _address_of(name)
        mirror.dates[name] = date
    mirror.site = _start(start, mirror)
    return mirror


def _read_log(path: Path | None) -> tuple[datetime | None, str]:
    """When HTTrack was started, and with which address. Its log has no time zone; UTC is assumed."""
    if path is None or path.stat().st_size > LARGEST_LOG_BYTES:
        return None, ""
    with path.open("rb") as stream:
        match = _LAUNCHED.search(stream.read(_HEAD_BYTES).decode(errors="replace"))
    if match is None:
        return None, ""
    address = match[2] or ""
    return _date(match[1]), address if _is_address(address) else ""


def _iter_comments(files: Mapping[str, Path]) -> Iterator[tuple[str, tuple[str, datetime]]]:
    """Path of a page to the address and date in HTTrack's comment."""
    for name, path in files.items():
        if not _PAGES.fullmatch(name):
            continue
        with path.open("rb") as stream:
            match = _MIRRORED.search(stream.read(_HEAD_BYTES))
        if match is None:
            continue
        address = match[1].decode(errors="replace")
        date = _date(match[2].decode())
        url = address if "://" in address else f"http://{address}"
        if date is not None and _is_address(url):
            yield name, (url, date)


def _iter_cached(path: Path | None, files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Path of a file to its address, from the list of HTTrack's cache: tab-separated, with address and local
    file in the eighth and ninth column. Local files may be absolute paths of another machine.
    """
    if path is None or path.stat().st_size > LARGEST_LOG_BYTES:
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            columns = line.rstrip("\r\n").split("\t")
            if len(columns) < 9:
                continue
            address = columns[7] if "://" in columns[7] else f"http://{columns[7]}"
            steps = columns[8].replace("\\", "/").split("/")
            local = next(
                (name for start in range(len(steps)) if (name := "/".join(steps[start:])) in files), ""
            )
            if local and _is_address(address):
                yield local, address


def _address_of(name: str) -> str:
    """The address that a path shows: `www.example.org/a/b.html`; HTTrack writes ports as `_8080`."""
    host, _, path = name.partition("/")
    host, _, port = host.partition("_") if re.search(r"_[0-9]+\Z", host) else (host, "", "")
    index = _INDEX.fullmatch(f"/{path}")
    inside = index[1] if index else f"/{path}"
    return f"http://{host}{f':{port}' if port else ''}{quote(inside, safe='/~@!$&()*+,;=:%')}"


def _start(stated: str, mirror: Mirror) -> str:
    if stated:
        return stated if urlsplit(stated).path else f"{stated}/"
    pages = [name for name in mirror.files if _PAGES.fullmatch(name)]
    first = min(pages, key=lambda name: (name.count("/"), _INDEX.fullmatch(f"/{name}") is None, name))
    return mirror.urls[first]


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, or a port that is not a number
        return False
    return is_web and not re.search(r"[\s\x00-\x1f]", text)


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text).replace(tzinfo=UTC)
    except (ValueError, TypeError):
        return None
