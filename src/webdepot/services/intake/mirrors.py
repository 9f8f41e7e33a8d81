"""Folders of offline browsers, read as a web site: which file was which address, and when it was fetched.

| what the folder has | addresses | dates |
|---|---|---|
| HTTrack: `hts-cache/new.txt` | its list of addresses and local files | the list, and `hts-log.txt` |
| comments `Mirrored from … by HTTrack …, DATE` in pages | the comment | the comment |
| folders named like hosts (wget, HTTrack without its cache) | the path | the time of the newest file |

A folder that has none of this is not a mirror and stays an object of files.

- HTTrack and `wget -k` rewrite links to local files, so a page whose address is not its path is also found at
  its path (`DeliveredObject.is_rewritten`), and a file of another host also below the start host.
- `wget -K` keeps what it rewrote as `NAME.orig`: then that is the capture, and the rewritten page is not.
- `wget -E` adds `.html`, and wget for Windows writes `@` for `?`.
- Pages that HTTrack got with an error are not captures.

https://www.httrack.com/html/cache.html describes the cache.
"""

import mimetypes
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from webdepot.formats import sniff
from webdepot.times import written_at

LARGEST_LOG_BYTES = 256 << 20
_HEAD_BYTES = 65_536
_LONGEST_LINE = 65_536
_MOST_STEPS = 200
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
_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,80}", re.IGNORECASE)
_WINDOWS_QUERY = re.compile(
    r"(.*\.(?:php[0-9]?|aspx?|jsp|cgi|pl|cfm|do|x?html?))@([^/@]*=[^/@]*)", re.IGNORECASE
)
_SCRIPT = re.compile(r"\.(?:php[0-9]?|aspx?|jsp|cgi|pl|cfm|do)\Z", re.IGNORECASE)
_SAFE = "/~@!$&()*+,;=:%"
_INDEX = re.compile(r"(.*/)(?:index|default|home)\.(?:x?html?|php)", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Mirror:
    site: str
    """The start address."""
    at: datetime
    """When it was made, as far as the folder shows."""
    files: dict[str, Path]
    """The files of the site; what else is in the folder belongs to the program that made it."""
    urls: dict[str, str] = field(default_factory=dict)
    """Path of a file to its original address."""
    dates: dict[str, datetime] = field(default_factory=dict)
    mimes: dict[Path, str] = field(default_factory=dict)
    """Media types that the server stated."""
    is_rewritten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedLine:
    """A line of HTTrack's list."""

    address: str
    status: str
    mime: str
    at: time | None
    """In the time zone of the machine that made the mirror."""


def find(payload: Mapping[str, Path]) -> Mirror | None:
    """The mirror that these files form; None if they are not one."""
    payload = _without_schemes(payload)
    tops = {name.partition("/")[0] for name in payload if "/" in name}
    hosts = {top for top in tops if _HOST.fullmatch(top)}
    files = {name: path for name, path in payload.items() if "/" in name and name.partition("/")[0] in hosts}
    others = payload.keys() - files.keys()
    if not any(_is_page(name) for name in files) or not all(map(_TOOLS.fullmatch, others)):
        return None
    comments = dict(_iter_comments(files))
    is_of_httrack = bool(comments) or any(name.startswith("hts-") for name in others)
    if not is_of_httrack and (others or not _are_hosts(hosts)):
        return None
    launched, start = _read_log(payload.get("hts-log.txt"))
    dates = [date for _, date in comments.values()]
    at = launched or max(dates, default=max(written_at(path) for path in files.values()))
    cached, failed = _read_cache(payload.get("hts-cache/new.txt"), files)
    originals = _originals(files)
    mirror = Mirror(site="", at=at, files=files, is_rewritten=not originals)
    zone = _zone_of(comments, cached)
    for name, path in list(files.items()):
        address, date = comments.get(name, ("", None))
        line = cached.get(name)
        url = (line.address if line else "") or address or _address_of(originals.get(name, name))
        if url in failed:
            del files[name]
            continue
        mirror.urls[name] = url
        mirror.dates[name] = date or (_moment(at, line.at, zone) if line and line.at else at)
        if mime := line.mime if line and line.mime else _type_of(url, path):
            mirror.mimes[path] = mime
    if not mirror.urls:
        return None
    mirror.site = _start(start, mirror)
    return mirror


def _without_schemes(payload: Mapping[str, Path]) -> Mapping[str, Path]:
    """The files without the folders `http` and `https` of `wget --protocol-directories`."""
    if payload and all(name.startswith(("http/", "https/")) for name in payload):
        plain = {name.partition("/")[2]: path for name, path in payload.items()}
        return plain if len(plain) == len(payload) else payload
    return payload


def _originals(files: dict[str, Path]) -> dict[str, str]:
    """Path of an original (`NAME.orig`) to the path of the page that was rewritten, which is taken out."""
    originals = {}
    for name in [each for each in files if each.endswith(".orig")]:
        plain = name.removesuffix(".orig")
        rewritten = next((each for each in (plain, f"{plain}.html") if each in files), "")
        if rewritten:
            originals[name] = plain
            del files[rewritten]
    return originals


def _are_hosts(names: set[str]) -> bool:
    """Whether all folders are named after hosts: surely, or below the domain of one that is."""
    sure = {name.lower() for name in names if _SURE_HOST.fullmatch(name)}
    domains = tuple(f".{name.removeprefix('www.')}" for name in sure)
    return bool(sure) and all(name.lower() in sure or f".{name.lower()}".endswith(domains) for name in names)


def _type_of(url: str, path: Path) -> str:
    """The media type of a file, also if its name does not show it, as that of a script (`clock.php?id=7`)."""
    name = urlsplit(url).path.rpartition("/")[2]
    if "." in name and not _SCRIPT.search(name):
        return mimetypes.MimeTypes(filenames=()).guess_type(name, strict=False)[0] or ""
    with path.open("rb") as stream:
        head = stream.read(sniff.HEAD_BYTES)
    text = sniff.text_of(head)
    guess = sniff.binary(head) if text is None else sniff.markup(text)
    return guess.mime if guess is not None else "" if text is None else "text/plain"


def _is_page(name: str) -> bool:
    return _PAGES.fullmatch(name.partition("?")[0]) is not None


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
        if not _is_page(name):
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


def _read_cache(path: Path | None, files: Mapping[str, Path]) -> tuple[dict[str, CachedLine], set[str]]:
    """Path of a file to what HTTrack's list says about it, and the addresses that got an error.

    The list is tab-separated: time, sizes, flags, status, message, media type, tag, address and local file.
    Local files may be absolute paths of another machine, and percent-encoded.
    """
    cached: dict[str, CachedLine] = {}
    failed: set[str] = set()
    if path is None or path.stat().st_size > LARGEST_LOG_BYTES:
        return cached, failed
    with path.open(encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(_LONGEST_LINE):
            columns = line.rstrip("\r\n").split("\t")
            if len(columns) < 9:
                continue
            address = columns[7] if "://" in columns[7] else f"http://{columns[7]}"
            if not _is_address(address):
                continue
            if columns[3][:1] in ("4", "5"):
                failed.add(address)
            elif local := _local_of(columns[8], files):
                is_type = _MEDIA_TYPE.fullmatch(columns[5]) is not None
                cached[local] = CachedLine(
                    address=address,
                    status=columns[3],
                    mime=columns[5].lower() if is_type else "",
                    at=_clock_time(columns[0]),
                )
    return cached, failed - {line.address for line in cached.values()}


def _local_of(stated: str, files: Mapping[str, Path]) -> str:
    """The file that a path of the list means; empty if it is not there."""
    for text in (stated, unquote(stated)):
        steps = text.replace("\\", "/").split("/")[-_MOST_STEPS:]
        for start in range(len(steps)):
            if (name := "/".join(steps[start:])) in files:
                return name
    return ""


def _clock_time(text: str) -> time | None:
    try:
        return time.fromisoformat(text) if re.fullmatch(r"[0-9]{2}:[0-9]{2}:[0-9]{2}", text) else None
    except ValueError:
        return None


def _zone_of(comments: Mapping[str, tuple[str, datetime]], cached: Mapping[str, CachedLine]) -> timedelta:
    """How far the clock of the machine was from UTC, from a page whose comment (UTC) and line (local) both
    have a time; zones differ by quarters of an hour.
    """
    for name, (_, date) in comments.items():
        line = cached.get(name)
        if line is not None and line.at is not None:
            local = datetime.combine(date.date(), line.at, UTC)
            quarters = round((local - date) / timedelta(minutes=15)) % 96
            return timedelta(minutes=15) * (quarters if quarters <= 56 else quarters - 96)
    return timedelta(0)


def _moment(near: datetime, at: time, zone: timedelta) -> datetime:
    """The moment with this local time that is nearest to a day of the mirror."""
    base = datetime.combine(near.date(), at, UTC) - zone
    day = timedelta(days=1)
    try:
        return min((base - day, base, base + day), key=lambda each: abs(each - near))
    except OverflowError:
        return near


def _address_of(name: str) -> str:
    """The address that a path shows: `www.example.org/a/b.html`; HTTrack writes ports as `_8080`, wget the
    query after `?` (for Windows `@`).
    """
    host, _, path = name.partition("/")
    host, _, port = host.partition("_") if re.search(r"_[0-9]+\Z", host) else (host, "", "")
    path, mark, query = path.partition("?")
    if not mark and (windows := _WINDOWS_QUERY.fullmatch(path)):
        path, mark, query = windows[1], "?", windows[2]
    index = _INDEX.fullmatch(f"/{path}") if not mark else None
    inside = quote(index[1] if index else f"/{path}", safe=_SAFE)
    query = f"?{quote(query.removesuffix('.html'), safe=_SAFE + '?')}" if mark else ""
    is_port = port.isdigit() and 0 < int(port[:9]) < 65_536
    return f"http://{host}{f':{port}' if is_port else ''}{inside}{query}"


def _start(stated: str, mirror: Mirror) -> str:
    if stated:
        return stated if urlsplit(stated).path else f"{stated}/"
    pages = [name for name in mirror.files if _is_page(name.removesuffix(".orig"))] or mirror.files

    def order(name: str) -> tuple[int, bool, str]:
        parts = urlsplit(mirror.urls[name])
        return parts.path.count("/"), bool(parts.query), parts.path

    return mirror.urls[min(pages, key=order)]


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
