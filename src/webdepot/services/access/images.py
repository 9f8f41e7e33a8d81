"""Pictures by the words said about them: description, title, file name, and the title of their page; and
their thumbnails.

The index knows which pages have pictures with these words. For the pages that are shown the archived page is
read once more, its pictures are picked out, and those that the archive has and the reader may see are shown.
(Decision 42.)

Thumbnails are kept in `cache/thumbnails` by the digest of the picture; a picture of which none can be made
leaves an empty file there. Access is asked before the cache is. When captures leave the archive the cache is
emptied.
"""

import atexit
import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from webdepot.access.policy import Reader
from webdepot.access.replay.body import negotiated
from webdepot.archive import Archive
from webdepot.errors import NotFound, WebdepotError
from webdepot.formats.thumbnail import LARGEST_INPUT_BYTES, Thumbnailer
from webdepot.index.content.html import PagePicture, pictures_of_html
from webdepot.index.content.text import charset_of, decode
from webdepot.index.text.words import tokens
from webdepot.model import EVERYTHING, Capture
from webdepot.ports import Hit, Part, TextQuery
from webdepot.services.access import replay, search
from webdepot.url import find_canonical

PAGE_PICTURES = 24
_MOST_OF_A_PAGE, _MOST_PAGES = 6, 120
_LARGEST_PAGE_BYTES = 4 << 20
_CACHE_BYTES = 256 << 20
_SWEPT_EVERY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A picture, and the page it stands on."""

    url: str
    timestamp: str
    """Of the picture's own capture."""
    words: str
    mime: str
    page_url: str
    page_title: str
    page_timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    pages: int
    """Pages with such pictures."""
    shown: Sequence[Shown]
    next_offset: int
    """Where the next call goes on, counted in pages; 0 at the end."""


def find(
    archive: Archive, text: str, *, reader: Reader, collection: str = EVERYTHING, offset: int = 0
) -> Pictures:
    """Pictures that answer a query, by the rank of their pages. InputError for a wrong query."""
    asked = search.ask(archive, text, reader=reader, collection=collection)
    wanted = [*asked.words, *asked.phrases]
    said = _in_part(asked, Part.IMAGE)
    shown: dict[str, Shown] = {}
    at, pages = offset, 0
    # The same header stands on many pages: some more of them are looked through until there is enough to
    # show.
    while len(shown) < PAGE_PICTURES and at < offset + _MOST_PAGES:
        found = archive.texts.find(replace(said, offset=at, limit=PAGE_PICTURES))
        pages = found.pages
        for hit in found.hits:
            at += 1
            for one in _of_page(archive, hit, wanted, reader=reader, collection=collection):
                shown.setdefault(one.url, one)
            if len(shown) >= PAGE_PICTURES:
                break
        if len(found.hits) < PAGE_PICTURES:
            break
    more = at if at < pages else 0
    if not more and not offset and len(shown) < PAGE_PICTURES and wanted:
        for one in _by_title(archive, asked, reader=reader, collection=collection):
            shown.setdefault(one.url, one)
    return Pictures(pages=pages, shown=list(shown.values()), next_offset=more)


def _in_part(asked: TextQuery, part: Part) -> TextQuery:
    """The words must stand in one part of the page."""
    parts = tuple((part, text) for text in (*asked.words, *asked.phrases))
    return replace(asked, words=(), phrases=(), parts=(*asked.parts, *parts), histogram=False)


def _by_title(archive: Archive, asked: TextQuery, *, reader: Reader, collection: str) -> Iterator[Shown]:
    """Pictures of pages whose title has the words: some of each."""
    for hit in archive.texts.find(replace(_in_part(asked, Part.TITLE), limit=PAGE_PICTURES // 2)).hits:
        yield from _of_page(archive, hit, (), reader=reader, collection=collection)


def _of_page(
    archive: Archive, hit: Hit, wanted: Sequence[str], *, reader: Reader, collection: str
) -> Iterator[Shown]:
    """The pictures of one page that have one of the words; all of them where there are none."""
    words, count = {token for text in wanted for token in tokens(text)}, 0
    for picture in _pictures(archive, hit, reader=reader, collection=collection):
        url = find_canonical(picture.source, hit.url)
        if url is None or (words and not words & set(tokens(picture.words))):
            continue
        capture = _find(archive, url, hit.timestamp, reader=reader, collection=collection)
        if capture is None:
            continue
        yield Shown(
            url=capture.url,
            timestamp=capture.timestamp,
            words=picture.words,
            mime=capture.mime,
            page_url=hit.url,
            page_title=hit.title,
            page_timestamp=hit.timestamp,
        )
        count += 1
        if count >= _MOST_OF_A_PAGE:
            return


def _pictures(archive: Archive, hit: Hit, *, reader: Reader, collection: str) -> list[PagePicture]:
    try:
        opened = replay.open_capture(archive, hit.url, hit.timestamp, collection=collection, reader=reader)
    except WebdepotError:
        return []
    try:
        data = negotiated(opened.payload, opened.head, "identity").stream.read(_LARGEST_PAGE_BYTES)
    except (WebdepotError, OSError, ValueError):
        return []
    finally:
        opened.close()
    return pictures_of_html(decode(data, charset_of(opened.head), is_html=True))


def _find(archive: Archive, url: str, timestamp: str, *, reader: Reader, collection: str) -> Capture | None:
    try:
        capture = replay.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    except WebdepotError:
        return None
    return capture if capture.mime.startswith("image/") or capture.mime == "warc/revisit" else None


# --- thumbnails ---


def thumbnail(
    archive: Archive, url: str, timestamp: str, *, reader: Reader, collection: str = EVERYTHING
) -> bytes:
    """A small JPEG of an archived picture; NotFound where there is none, or none can be made of it, Closed
    where a rule closes it.
    """
    capture = replay.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    path = _cached(archive, capture)
    with suppress(FileNotFoundError):
        return _there(path.read_bytes(), url)
    opened = replay.open_capture(archive, url, timestamp, collection=collection, reader=reader)
    try:
        data = negotiated(opened.payload, opened.head, "identity").stream.read(LARGEST_INPUT_BYTES + 1)
    finally:
        opened.close()
    made = _maker().make(data) if len(data) <= LARGEST_INPUT_BYTES else None
    _keep(archive, path, made or b"")
    return _there(made or b"", url)


def forget_thumbnails(archive: Archive) -> None:
    """What was withdrawn must not stay as a small picture."""
    shutil.rmtree(_folder(archive), ignore_errors=True)


def _there(data: bytes, url: str) -> bytes:
    if not data:
        raise NotFound(f"No small picture can be made of {url}.")
    return data


def _folder(archive: Archive) -> Path:
    return archive.home / "cache" / "thumbnails"


def _cached(archive: Archive, capture: Capture) -> Path:
    name = hashlib.sha256((capture.digest or f"{capture.key} {capture.timestamp}").encode()).hexdigest()
    return _folder(archive) / name[:2] / f"{name[2:]}.jpg"


def _keep(archive: Archive, path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{threading.get_ident()}.new")
    fresh.write_bytes(data)
    fresh.replace(path)
    if path.name.startswith("00") or int(path.stem[:4], 16) % _SWEPT_EVERY == 0:
        _sweep(_folder(archive))


def _sweep(folder: Path) -> None:
    """Take the oldest away where there is too much."""
    held = sorted((found.stat().st_mtime, found.stat().st_size, found) for found in folder.rglob("*.jpg"))
    size = sum(size_bytes for _, size_bytes, _ in held)
    for _, size_bytes, path in held:
        if size <= _CACHE_BYTES:
            return
        path.unlink(missing_ok=True)
        size -= size_bytes


class _Maker:
    """The guarded child of this process, for one request at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thumbnailer = Thumbnailer()
        atexit.register(self._thumbnailer.close)

    def make(self, data: bytes) -> bytes | None:
        with self._lock:
            return self._thumbnailer.make(data)


@lru_cache(maxsize=1)
def _maker() -> _Maker:
    return _Maker()
