"""What the review page of a harvest shows: its pages with screenshots and ratings, and its findings, one line
for each kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.model import Finding, Harvest, HarvestKind
from webdepot.quality import finding_rows, page_ratings
from webdepot.quality.page_ratings import PageRating, Rating
from webdepot.quality.screenshots import Screenshot
from webdepot.services.review import preview, ratings, replay_pictures, reviews
from webdepot.services.review.reviews import GROUPS, ReviewDossier

SHOWN_OF_A_KIND = 10
"""Findings of one kind that the page shows before somebody asks for all."""
MOST_SEEDS = 20
_MOST_EXAMINED = 5000
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
OTHER = "other"
_COMPARISON = "quality.since-before"
"""Not a line: its figures are those of `ReviewDossier.compared`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLine:
    """The findings of one kind."""

    code: str
    count: int
    ignored: int
    """How many more are ignored for this site."""
    findings: Sequence[Finding]
    """Some of them, the most severe first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedPage:
    """A page that the reviewer should look at."""

    url: str
    before: Screenshot | None
    """Of the harvest before."""
    now: Screenshot | None
    """Taken while harvesting."""
    replayed: str
    """Name of the screenshot of its replay; empty if there is none."""
    rating: PageRating | None
    captured_at: str = ""
    """Timestamp of its capture in an import; empty means that of the harvest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewView:
    dossier: ReviewDossier
    shown_as: str
    """The collection in which replay shows its pages."""
    groups: Sequence[tuple[str, Sequence[FindingLine]]]
    """Kinds of findings, by the reviewer's question; without groups in which nothing was found."""
    pages: Sequence[ReviewedPage]
    tally: Mapping[Rating, int]
    """How many pages have each rating."""
    verbs: Sequence[str]
    """Decisions that are possible now."""
    profile: str
    """The profile that the harvest used; empty if none."""


def view(archive: Archive, harvest: str, *, code: str = "", limit: int = 0, offset: int = 0) -> ReviewView:
    """The dossier of a harvest, with the first findings of each kind; if `code` is given, with `limit`
    findings of that kind alone. NotFound.
    """
    dossier = reviews.dossier(archive, harvest)
    rated = ratings.of_harvest(archive, dossier.harvest.id)
    return ReviewView(
        dossier=dossier,
        shown_as=(
            preview.collection_of(dossier.harvest)
            if preview.can_be_opened(dossier.harvest)
            else dossier.harvest.collection
        ),
        groups=_groups(archive, dossier.harvest, code, limit or SHOWN_OF_A_KIND, offset),
        pages=_pages(archive, dossier, rated),
        tally=page_ratings.tally(rated),
        verbs=reviews.possible_decisions(dossier.harvest),
        profile=str(dossier.harvest.settings.get("profile", "")),
    )


def _groups(
    archive: Archive, harvest: Harvest, code: str, limit: int, offset: int
) -> list[tuple[str, list[FindingLine]]]:
    with archive.database.reading() as connection:
        counts = finding_rows.counts(connection, harvest.id)
        ignored = finding_rows.ignored_counts(connection, harvest.id)
        lines = {
            each: FindingLine(
                code=each,
                count=counts.get(each, 0),
                ignored=ignored.get(each, 0),
                findings=[
                    finding
                    for _, finding in finding_rows.by_code(
                        connection, harvest.id, code=each, limit=limit, offset=offset
                    )
                ],
            )
            for each in sorted(counts.keys() | ignored.keys())
            if code in ("", each) and each != _COMPARISON
        }
    named = {f"quality.{each}": group for group, codes in GROUPS.items() for each in codes}
    groups: dict[str, list[FindingLine]] = {group: [] for group in (*GROUPS, OTHER)}
    for each, line in lines.items():
        groups[named.get(each, OTHER)].append(line)
    return [(group, findings) for group, findings in groups.items() if findings]


def _pages(archive: Archive, dossier: ReviewDossier, rated: Sequence[PageRating]) -> list[ReviewedPage]:
    """Start pages, then pages with a screenshot, then others that were rated."""
    shots = {now.url: (before, now) for before, now in reviews.screenshot_pairs(archive, dossier)}
    standing = {each.url: each for each in rated}
    replayed = replay_pictures.list_names(archive, dossier.harvest) if shots else frozenset()
    seeds = [url for url in dossier.harvest.seeds[:MOST_SEEDS] if url.startswith(("http://", "https://"))]
    imported = _imported_pages(archive, dossier.harvest)
    return [
        ReviewedPage(
            url=url,
            before=shots[url][0] if url in shots else None,
            now=shots[url][1] if url in shots else None,
            replayed=name if (name := replay_pictures.name_of(url)) in replayed else "",
            rating=standing.get(url),
            captured_at=imported.get(url, ""),
        )
        for url in dict.fromkeys((*seeds, *imported, *shots, *standing))
    ]


def _imported_pages(archive: Archive, harvest: Harvest) -> dict[str, str]:
    """Pages of an import, which has no seeds, each with the timestamp of a capture: those with the shortest
    addresses, which are start pages.
    """
    if harvest.kind is not HarvestKind.IMPORT:
        return {}
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
    captures = (capture for each in containers for _, capture in archive.captures.of_container(each.name))
    pages = {
        capture.url: capture.timestamp
        for capture in islice(captures, _MOST_EXAMINED)
        if capture.status == 200 and capture.mime in _PAGES
    }
    return {url: pages[url] for url in sorted(pages, key=lambda url: (len(url), url))[:MOST_SEEDS]}
