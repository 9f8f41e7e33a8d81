"""Words of links: which pages get them, and when they may be searched.

The words of a link stand on one page and are found under another. Links on pages that are closed to the
public say nothing, so the words are worked out with the rules of a day, and which areas were closed then is
kept beside the index (`anchors.json`). A search uses them only for a reader to whom nothing is closed that
was open then: whoever closes a page closes its links with the next request, at the price that words of links
are not searched until the next update has worked them out anew for the pages that it concerns.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import lru_cache

from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.index import sqlite_file
from webdepot.index.text.link_book import LinkBook
from webdepot.ports import ClosedArea
from webdepot.services.access import gate

_AREAS = "anchors.json"


@contextmanager
def book(archive: Archive) -> Iterator[LinkBook]:
    links = LinkBook(archive.index_folder / "links.db")
    try:
        yield links
    finally:
        links.close()


def forget_everything(archive: Archive) -> None:
    """For a rebuild: links come back with their containers."""
    sqlite_file.discard(archive.index_folder / "links.db")
    (archive.index_folder / _AREAS).unlink(missing_ok=True)


def settle(archive: Archive, links: LinkBook) -> int:
    """Give pages the words of links to them where links or rules have changed; how many pages got others."""
    areas, known = gate.closed_areas(archive, ANYONE), _areas(_told(archive))
    kept = _moved_on(areas, known)
    for area in set(known) ^ set(kept):
        links.reconsider(area.prefix)
    changed = list(links.changed())
    anchors = (
        links.anchors(target, lambda key, stamp: not any((key, stamp) in area for area in areas))
        for target in changed
    )
    written = archive.texts.anchor(anchors) if changed else 0
    links.settle(changed)
    _keep(archive, kept)
    return written


def are_due(archive: Archive) -> bool:
    """Whether rules have changed since the words of links were worked out."""
    known = _areas(_told(archive))
    return set(known) != set(_moved_on(gate.closed_areas(archive, ANYONE), known))


def may_be_searched(archive: Archive, closed: tuple[ClosedArea, ...]) -> bool:
    """Whether words of links tell nothing of what is closed to this reader."""
    return not closed or _cover(_told(archive), closed)


@lru_cache(maxsize=64)
def _cover(told: bytes, closed: tuple[ClosedArea, ...]) -> bool:
    """Whether all of this was closed already when the words of links were worked out."""
    known = _areas(told)
    whole, by_prefix = set(known), {area.prefix: area for area in known}
    return all(area in whole or _inside(area, by_prefix.get(area.prefix)) for area in closed)


def _moved_on(areas: Sequence[ClosedArea], known: Sequence[ClosedArea]) -> tuple[ClosedArea, ...]:
    """The areas of today; one that a rolling embargo moved on within a month stays as it was: else each day
    would bring all links anew.
    """
    by_prefix = {area.prefix: area for area in known}

    def kept(area: ClosedArea) -> ClosedArea:
        old = by_prefix.get(area.prefix)
        same_month = old is not None and (old.first[:6], old.last[:6]) == (area.first[:6], area.last[:6])
        return old if old is not None and same_month and _inside(area, old) else area

    return tuple(map(kept, areas))


def _inside(area: ClosedArea, known: ClosedArea | None) -> bool:
    """A rolling embargo moves on day by day: what it closes today it closed yesterday."""
    return (
        known is not None
        and set(known.but) <= set(area.but)
        and known.first <= area.first
        and area.last <= known.last
    )


def _told(archive: Archive) -> bytes:
    try:
        return (archive.index_folder / _AREAS).read_bytes()
    except FileNotFoundError:
        return b"[]"


def _areas(told: bytes) -> tuple[ClosedArea, ...]:
    return tuple(
        ClosedArea(prefix=prefix, but=tuple(but), first=first, last=last)
        for prefix, but, first, last in json.loads(told)
    )


def _keep(archive: Archive, areas: Sequence[ClosedArea]) -> None:
    path = archive.index_folder / _AREAS
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps([astuple(area) for area in areas]))
    fresh.replace(path)
