"""Image search: by description, title, file name, and the title of the page; and thumbnails.

The text index knows which pages have images with these words. For the pages that are shown, the archived page
is read again, its images are extracted, and only those that are archived and open to the reader are shown.
(Decision 42.)

Thumbnails are cached (`browse/thumbnail_cache.py`); the access gate is asked before the cache. When captures
leave the archive, the cache is emptied.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import NotFound, WebdepotError
from webdepot.formats.thumbnail import LARGEST_INPUT_BYTES
from webdepot.index.content.html import PagePicture, pictures_of_html
from webdepot.index.content.text import charset_of, decode
from webdepot.index.text.words import tokens
from webdepot.model import EVERYTHING, Capture
from webdepot.ports.search import Hit, PagePart, TextQuery
from webdepot.services.access import lookup, search
from webdepot.services.access.browse import thumbnail_cache, thumbnail_maker
from webdepot.services.access.replay import replay
from webdepot.url import find_canonical

IMAGES_A_PAGE = 24
_MOST_OF_A_PAGE, _MOST_PAGES = 6, 120
_LARGEST_PAGE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageHit:
    """An image, and the page that contains it."""

    url: str
    timestamp: str
    """Of the image's own capture."""
    words: str
    mime: str
    page_url: str
    page_title: str
    page_timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageHits:
    """One page of results."""

    pages: int
    """Pages with such images."""
    shown: Sequence[ImageHit]
    next_offset: int
    """Where the next call continues, counted in pages; 0 at the end."""


def find(
    archive: Archive, text: str, *, reader: Reader, collection: str = EVERYTHING, offset: int = 0
) -> ImageHits:
    """Images that answer a query, in the order of their pages. InputError for a wrong query."""
    query = search.ask(archive, text, reader=reader, collection=collection)
    wanted = [*query.words, *query.phrases]
    in_images = _in_part(query, PagePart.IMAGE)
    shown: dict[str, ImageHit] = {}
    at, pages = offset, 0
    # Many pages share the same header image: more of them are read until there are enough images to show.
    while len(shown) < IMAGES_A_PAGE and at < offset + _MOST_PAGES:
        result = archive.texts.find(replace(in_images, offset=at, limit=IMAGES_A_PAGE))
        pages = result.pages
        for hit in result.hits:
            at += 1
            for image in _of_page(archive, hit, wanted, reader=reader, collection=collection):
                shown.setdefault(image.url, image)
            if len(shown) >= IMAGES_A_PAGE:
                break
        if len(result.hits) < IMAGES_A_PAGE:
            break
    more = at if at < pages else 0
    if not more and not offset and len(shown) < IMAGES_A_PAGE and wanted:
        for image in _by_title(archive, query, reader=reader, collection=collection):
            shown.setdefault(image.url, image)
    return ImageHits(pages=pages, shown=list(shown.values()), next_offset=more)


def _in_part(query: TextQuery, part: PagePart) -> TextQuery:
    """The query with its words required in one part of the page."""
    parts = tuple((part, text) for text in (*query.words, *query.phrases))
    return replace(query, words=(), phrases=(), parts=(*query.parts, *parts), histogram=False)


def _by_title(archive: Archive, query: TextQuery, *, reader: Reader, collection: str) -> Iterator[ImageHit]:
    """Some images of each page whose title has the words."""
    in_title = replace(_in_part(query, PagePart.TITLE), limit=IMAGES_A_PAGE // 2)
    for hit in archive.texts.find(in_title).hits:
        yield from _of_page(archive, hit, (), reader=reader, collection=collection)


def _of_page(
    archive: Archive, hit: Hit, wanted: Sequence[str], *, reader: Reader, collection: str
) -> Iterator[ImageHit]:
    """Images of one page that have one of the wanted words; without words, all of them."""
    words, count = {token for text in wanted for token in tokens(text)}, 0
    for picture in _read_pictures(archive, hit, reader=reader, collection=collection):
        url = find_canonical(picture.source, hit.url)
        if url is None or (words and not words & set(tokens(picture.words))):
            continue
        capture = _find_image(archive, url, hit.timestamp, reader=reader, collection=collection)
        if capture is None:
            continue
        yield ImageHit(
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


def _read_pictures(archive: Archive, hit: Hit, *, reader: Reader, collection: str) -> list[PagePicture]:
    try:
        opened = replay.open_capture(archive, hit.url, hit.timestamp, collection=collection, reader=reader)
    except WebdepotError:
        return []
    try:
        data = replay.content_of(opened).read(_LARGEST_PAGE_BYTES)
    except (WebdepotError, OSError, ValueError):
        return []
    finally:
        opened.close()
    return pictures_of_html(decode(data, charset_of(opened.head), is_html=True))


def _find_image(
    archive: Archive, url: str, timestamp: str, *, reader: Reader, collection: str
) -> Capture | None:
    try:
        capture = lookup.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    except WebdepotError:
        return None
    return capture if capture.mime.startswith("image/") or capture.mime == "warc/revisit" else None


# --- thumbnails ---


def thumbnail(
    archive: Archive, url: str, timestamp: str, *, reader: Reader, collection: str = EVERYTHING
) -> bytes:
    """A small JPEG of an archived image.

    NotFound if it is not archived or no thumbnail can be made of it, Closed if a rule closes it.
    """
    capture = lookup.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    name = thumbnail_cache.name_of(capture)
    data = thumbnail_cache.find(archive, name)
    if data is None:
        data = _make_thumbnail(archive, url, timestamp, reader=reader, collection=collection)
        thumbnail_cache.keep(archive, name, data)
    if not data:
        raise NotFound(f"No thumbnail can be made of {url}.")
    return data


def _make_thumbnail(archive: Archive, url: str, timestamp: str, *, reader: Reader, collection: str) -> bytes:
    """The JPEG; empty if none can be made."""
    opened = replay.open_capture(archive, url, timestamp, collection=collection, reader=reader)
    try:
        image = replay.content_of(opened).read(LARGEST_INPUT_BYTES + 1)
    finally:
        opened.close()
    return thumbnail_of(image)


def thumbnail_of(image: bytes) -> bytes:
    """A small JPEG of an image; empty if none can be made."""
    return thumbnail_maker.make(image) if len(image) <= LARGEST_INPUT_BYTES else b""
