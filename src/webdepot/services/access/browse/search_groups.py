"""Results of a search grouped by site: site, then its best pages, then their versions by year.

Sites are in the order of their best page among the first `FIRST_HITS` results; sites that have none there
follow in the order of their number of results. For each site on the page the index is asked once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.ports.captures import Tally
from webdepot.ports.search import Facet, Hit, SearchSort, TextQuery
from webdepot.services.access import gate, search
from webdepot.url import host_of

FIRST_HITS = 60
SITES_A_PAGE = 8
PAGES_OF_SITE = 3
MOST_YEARS = 12
"""Newest years of a page that are linked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteGroup:
    """Results of one site."""

    site: str
    pages: int
    """How many pages of the site match."""
    hits: Sequence[Hit]
    """The best of them."""
    years: Mapping[str, Sequence[Tally]]
    """The versions of each hit by year, the newest first, by the key of the hit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteGroups:
    """One page of groups."""

    groups: Sequence[SiteGroup]
    has_more: bool


def find(
    archive: Archive,
    text: str,
    *,
    reader: Reader,
    collection: str,
    sort: SearchSort,
    number: int = 1,
    is_relaxed: bool = False,
) -> SiteGroups:
    """A page of sites with results; `is_relaxed` as in `SearchPage`. InputError for a wrong query."""
    whole = search.ask(archive, text, reader=reader, collection=collection)
    query = replace(
        search.relaxed(archive, whole) if is_relaxed else whole, sort=sort, histogram=False, fold=True
    )
    sites = _sites(archive, query)
    first = (number - 1) * SITES_A_PAGE
    return SiteGroups(
        groups=[
            _group(archive, query, site, reader, collection) for site in sites[first : first + SITES_A_PAGE]
        ],
        has_more=len(sites) > first + SITES_A_PAGE,
    )


def _sites(archive: Archive, query: TextQuery) -> list[str]:
    result = archive.texts.find(replace(query, limit=FIRST_HITS, facets=(Facet.SITE,)))
    of_hits = [_host(hit.url) for hit in result.hits]
    return list(dict.fromkeys([*of_hits, *(site for site, _ in result.facets.get(Facet.SITE, ()))]))


def _host(url: str) -> str:
    return host_of(url).partition(":")[0].lower()


def _group(archive: Archive, query: TextQuery, site: str, reader: Reader, collection: str) -> SiteGroup:
    # The index finds hosts below the site too; these are sites of their own.
    result = archive.texts.find(replace(query, sites=(site,), limit=4 * PAGES_OF_SITE))
    best = [hit for hit in result.hits if _host(hit.url) == site][:PAGES_OF_SITE]
    years = {
        hit.key: archive.captures.tally(
            hit.key, digits=4, collection=collection, spans=gate.of_key(archive, hit.key, reader).spans
        )[::-1][:MOST_YEARS]
        for hit in best
    }
    return SiteGroup(site=site, pages=result.pages, hits=best, years=years)
