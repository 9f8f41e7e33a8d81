"""The start pages of sites, for lists of sites with pictures: the page that a reader sees after opening the
address of a site and following redirects.

    find          the start page of an address
    of_sites      harvests whose seeds are start pages of sites
    of_harvests   start pages of harvests, one for each site
    of_newest     the same for the newest pages of the index: imports have no seeds
    earlier       the start page in earlier years
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.cdxj import REVISIT_MIME
from webdepot.errors import Closed, InputError, NotFound
from webdepot.harvest import harvest_rows
from webdepot.model import EVERYTHING, Capture, Harvest, HarvestKind, HarvestState
from webdepot.services.access import gate, lookup
from webdepot.services.access.browse import page_pictures
from webdepot.services.access.replay import replay
from webdepot.times import to_timestamp
from webdepot.url import host_of

MOST_SEEDS = 5
"""Seeds of a harvest that are looked at."""
_MOST_REDIRECTS = 5
_PAGES = frozenset({"text/html", "application/xhtml+xml", REVISIT_MIME})


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCard:
    """A start page, as a list of sites shows it."""

    url: str
    timestamp: str
    title: str
    """Empty if the page has none."""
    has_picture: bool

    @property
    def site(self) -> str:
        return site_of(self.url)


def site_of(url: str) -> str:
    """The name of a site: its host without `www`."""
    return host_of(url).removeprefix("www.")


def card(archive: Archive, capture: Capture, reader: Reader) -> SiteCard:
    """What a list shows of a start page that this reader may see."""
    return SiteCard(
        url=capture.url,
        timestamp=capture.timestamp,
        title=replay.find_indexed_title(archive, capture),
        has_picture=page_pictures.find_shown(archive, capture, reader) is not None,
    )


def find(
    archive: Archive, url: str, timestamp: str, *, reader: Reader, collection: str = EVERYTHING
) -> Capture | None:
    """The page that is shown for an address, closest to a moment; None if this reader can see none, or if it
    is not a page but an error or a file.
    """
    for _ in range(_MOST_REDIRECTS):
        try:
            capture = lookup.find_closest(archive, url, timestamp, collection=collection, reader=reader)
        except (NotFound, Closed, InputError):
            return None
        if not 300 <= capture.status < 400 or not capture.redirect:
            is_page = capture.status == 200 and capture.mime in _PAGES
            return capture if is_page else None
        url, timestamp = capture.redirect, capture.timestamp
    return None


def of_sites(harvests: Iterable[Harvest]) -> Iterator[Harvest]:
    """The harvests of whole sites that readers can see: not those under review, and neither patches nor
    harvests of one page, whose seeds are other pages of the site.
    """
    return (
        harvest
        for harvest in harvests
        if harvest.state is HarvestState.KEPT
        and harvest.kind is not HarvestKind.PATCH
        and not harvest_rows.is_page(harvest)
    )


def of_harvests(
    archive: Archive, harvests: Iterable[Harvest], *, reader: Reader, collection: str = EVERYTHING
) -> Iterator[Capture]:
    """The start pages of harvests at the time of the harvest, in their order, the first of each site."""
    seen: set[str] = set()
    for harvest in harvests:
        for seed in harvest.seeds[:MOST_SEEDS]:
            if site_of(seed) in seen:
                continue
            capture = find(
                archive, seed, to_timestamp(harvest.started_at), reader=reader, collection=collection
            )
            if capture is not None:
                is_new = site_of(capture.url) not in seen
                seen |= {site_of(seed), site_of(capture.url)}
                if is_new:
                    yield capture


def of_newest(archive: Archive, *, reader: Reader, limit: int) -> Iterator[Capture]:
    """The start pages of the sites of the newest pages, the first of each site; of a site without one, the
    page itself. At most `limit` pages are looked at.
    """
    seen: set[str] = set()
    for capture in gate.filter_open(archive, archive.captures.newest(limit), reader):
        site = site_of(capture.url)
        if site in seen:
            continue
        seen.add(site)
        front = find(archive, _front(capture.url), capture.timestamp, reader=reader)
        yield front or capture


def earlier(
    archive: Archive, capture: Capture, *, reader: Reader, limit: int, collection: str = EVERYTHING
) -> list[Capture]:
    """The last version of each earlier year of a start page, the newest first."""
    spans = gate.of_key(archive, capture.key, reader).spans
    years = archive.captures.tally(capture.key, digits=4, collection=collection, spans=spans)
    before = [year.last for year in reversed(years) if year.label < capture.timestamp[:4]]
    pages = (
        find(archive, capture.url, timestamp, reader=reader, collection=collection)
        for timestamp in before[:limit]
    )
    return [page for page in pages if page is not None]


def _front(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"
