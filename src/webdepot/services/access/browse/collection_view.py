"""Collections as readers browse them: a list with pictures, and a page for each with its sites.

list_tiles      some collections, each with a picture
view            the page of one: text, sites, captures by year
list_pictures   pictures that staff choose from
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from webdepot.access.collection_pages import CollectionPage
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import RemoteError
from webdepot.harvest import harvest_rows
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import Capture, Harvest
from webdepot.ports.search import Facet, TextQuery
from webdepot.services.access import collections, gate
from webdepot.services.access.browse import page_pictures, start_pages
from webdepot.services.access.browse.start_pages import SiteCard
from webdepot.times import to_timestamp

SITES_A_PAGE, FEW_SITES = 24, 4
MOST_PICTURES = 12
"""Pictures that staff can choose from."""
_MOST_PAGES_OF_HARVESTS = 20
"""Pages of the list of harvests that are looked through for sites."""
_TILE_HARVESTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionTile:
    """A collection in a list."""

    page: CollectionPage
    captures: int
    picture: tuple[str, str] | None
    """Address and timestamp of the page whose picture is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionView:
    """The page of a collection."""

    page: CollectionPage
    picture: tuple[str, str] | None
    sites: Sequence[SiteCard]
    earlier: Sequence[SiteCard]
    """If there are few sites: how their start pages looked in earlier years."""
    number: int
    """Number of this page of sites."""
    has_more: bool
    years: Mapping[int, int]
    """Captures by year."""


def list_tiles(
    archive: Archive, *, reader: Reader, after: str = "", limit: int, hidden: bool = False
) -> list[CollectionTile]:
    """Collections by name, starting after the name `after`."""
    listed = [name for name in collections.names(archive, hidden=hidden) if name > after]
    return [_tile(archive, name, reader) for name in listed[:limit]]


def view(
    archive: Archive, name: str, *, reader: Reader, number: int = 1, hidden: bool = False
) -> CollectionView:
    """The page of a collection with one page of its sites; NotFound if there is none or, unless `hidden` is
    set, it is not public.
    """
    page = collections.get(archive, name, hidden=hidden)
    first = (number - 1) * SITES_A_PAGE
    captures = list(islice(_sites(archive, name, reader), first, first + SITES_A_PAGE + 1))
    sites = [start_pages.card(archive, capture, reader) for capture in captures[:SITES_A_PAGE]]
    room = SITES_A_PAGE - len(captures) if len(captures) < FEW_SITES else 0
    return CollectionView(
        page=page,
        picture=_picture(archive, page, reader),
        sites=sites,
        earlier=_earlier(archive, captures, reader, name, room),
        number=number,
        has_more=len(captures) > SITES_A_PAGE,
        years=archive.captures.years(name),
    )


def _earlier(
    archive: Archive, captures: Sequence[Capture], reader: Reader, name: str, room: int
) -> list[SiteCard]:
    earlier = (
        each
        for capture in captures
        for each in start_pages.earlier(archive, capture, reader=reader, limit=room, collection=name)
    )
    return [start_pages.card(archive, each, reader) for each in islice(earlier, room)]


def list_pictures(archive: Archive, name: str, *, reader: Reader) -> list[SiteCard]:
    """Start pages with a picture that can represent a collection: of its newest sites, then of earlier
    years.
    """
    newest = list(islice(_sites(archive, name, reader), MOST_PICTURES))
    cards = chain(
        (start_pages.card(archive, capture, reader) for capture in newest),
        _earlier(archive, newest, reader, name, MOST_PICTURES),
    )
    return list(islice((card for card in cards if card.has_picture), MOST_PICTURES))


def _tile(archive: Archive, name: str, reader: Reader) -> CollectionTile:
    page = collections.get(archive, name, hidden=True)
    captures = sum(archive.captures.years(name).values())
    return CollectionTile(
        page=page, captures=captures, picture=_picture(archive, page, reader) if captures else None
    )


def _picture(archive: Archive, page: CollectionPage, reader: Reader) -> tuple[str, str] | None:
    """The page whose picture represents the collection: the chosen one, else the newest site with one."""
    chosen = (
        start_pages.find(
            archive, page.picture_url, page.picture_timestamp, reader=reader, collection=page.name
        )
        if page.picture_url
        else None
    )
    candidates = [chosen] if chosen else islice(_sites(archive, page.name, reader, pages=1), _TILE_HARVESTS)
    for capture in candidates:
        if page_pictures.find_shown(archive, capture, reader) is not None:
            return capture.url, capture.timestamp
    return None


def _sites(
    archive: Archive, name: str, reader: Reader, *, pages: int = _MOST_PAGES_OF_HARVESTS
) -> Iterator[Capture]:
    """The start page of each site, those harvested last first; for imports, which have no seeds, of the sites
    with most pages. `pages` of the list of harvests are looked through.
    """
    seen: set[str] = set()
    harvests = start_pages.of_sites(_harvests(archive, name, pages))
    for capture in start_pages.of_harvests(archive, harvests, reader=reader, collection=name):
        seen.add(start_pages.site_of(capture.url))
        yield capture
    query = TextQuery(
        collection=name,
        closed=gate.closed_areas(archive, reader),
        facets=(Facet.SITE,),
        limit=1,
        histogram=False,
    )
    now = to_timestamp(archive.clock())
    try:
        sites = archive.texts.find(query).facets.get(Facet.SITE, ())
    except RemoteError:  # the search server does not answer: those of the harvests are enough
        return
    for site, _ in sites:
        if site.removeprefix("www.") in seen:
            continue
        front = start_pages.find(archive, f"http://{site}/", now, reader=reader, collection=name)
        if front is not None and start_pages.site_of(front.url) not in seen:
            seen.add(start_pages.site_of(front.url))
            yield front


def _harvests(archive: Archive, name: str, pages: int) -> Iterator[Harvest]:
    """The newest harvests of a collection."""
    for number in range(1, pages + 1):
        with archive.database.reading() as connection:
            listed = harvest_rows.list_page(connection, HarvestFilter(collection=name, page=number))
        yield from listed.rows
        if not listed.has_more:
            return
