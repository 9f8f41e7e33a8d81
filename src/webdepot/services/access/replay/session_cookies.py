"""Session cookies of logins in old containers: which captures may have them, and how they are removed.

A harvest stores `[removed]` in place of the cookies of a login (`harvest.fetch.cookies`). Containers from
before that still have them, and the depot keeps its bytes. So everything that leaves the archive asks here:

    replay          sends no cookies; to the terminals of proxy mode, none of the origins of a login
    search export   WARC and WACZ get the record without the values
    OAI transfer    a container that still has such cookies is not handed over, since partners get it byte for
                    byte

The origins are those of the file of logins: an entry must stay in it for as long as its session may be
valid. If the file cannot be read, every origin counts.
"""

from functools import lru_cache
from pathlib import Path

from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.container.record import Record
from webdepot.errors import ConfigError
from webdepot.harvest.fetch.cookies import HIDDEN
from webdepot.model import RecordKind
from webdepot.url import origin_of

_SETTING = ("set-cookie", "set-cookie2")
_REMOVED = "Webdepot-Removed"


def concern(archive: Archive, url: str) -> bool:
    """Whether an address is at an origin of a login."""
    origins = _origins(archive)
    return bool(origins is None or (origins and origin_of(url) in origins))


def has_values(record: Record) -> bool:
    """Whether a response or request at an origin of a login has a cookie or a password that was not
    removed.
    """
    head = record.head
    if head is None:
        return False
    if record.kind is RecordKind.REQUEST:
        has_cookie = bool(head.get("cookie")) and "Cookie" not in (record.fields.get(_REMOVED) or "")
        return has_cookie or bool(head.get("authorization"))
    return any(HIDDEN not in value for name in _SETTING for value in head.get_all(name))


def are_in(archive: Archive, container: str) -> bool:
    """Whether a container still has session cookies. It is read only if it has captures of such an origin."""
    origins = _origins(archive)
    if origins is not None and not origins:
        return False
    if not any(concern(archive, capture.url) for _, capture in archive.captures.of_container(container)):
        return False
    return _are_in(archive.containers.path(container), container, origins)


@lru_cache(maxsize=10_000)
def _are_in(path: Path, name: str, origins: frozenset[str] | None) -> bool:
    """A sealed container never changes, so the answer is remembered."""
    with path.open("rb") as stream:
        return any(
            (origins is None or origin_of(record.url) in origins) and has_values(record)
            for record in iter_records(stream, name, on_finding=lambda _: None)
            if record.url.startswith(("http://", "https://"))
        )


def _origins(archive: Archive) -> frozenset[str] | None:
    """The origins of all logins; None if the file cannot be read."""
    path = archive.home / archive.config.harvest.logins_file
    try:
        facts = path.stat()
    except FileNotFoundError:
        return frozenset()
    return _origins_in(path, facts.st_mtime_ns, facts.st_size, facts.st_mode)


@lru_cache(maxsize=16)
def _origins_in(path: Path, mtime_ns: int, size_bytes: int, mode: int) -> frozenset[str] | None:
    # Imported here because replay starts without it, and its HTML parser (turbohtml) is slow to load.
    from webdepot.harvest.fetch import login

    try:
        return frozenset(origin for entry in login.read(path).values() for origin in entry.origins)
    except (ConfigError, OSError):
        return None
