"""Link texts: which pages get them, and when they may be searched.

The text of a link is on one page and finds another. Links on pages that are closed to the public must not
count, so link texts are collected under the access rules of that day, and the areas that were closed then are
stored beside the index (`anchors.json`). A search uses link texts only if everything that is closed to the
reader was also closed then. So closing a page closes its links with the next request; the price is that link
texts are not searched until the next update has collected them again for the pages concerned.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import lru_cache

from webdepot import durable
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.index import sqlite_file
from webdepot.index.text.link_book import LinkBook
from webdepot.ports.search import ClosedArea
from webdepot.services.access import gate

_AREAS = "anchors.json"
_MOST_AT_ONCE = 50_000
"""Pages whose link texts are updated in one commit: as many as are kept in memory."""


@contextmanager
def book(archive: Archive) -> Iterator[LinkBook]:
    """The archive's link book, open for the length of the block."""
    links = LinkBook(archive.index_folder / "links.db")
    try:
        yield links
    finally:
        links.close()


def forget_everything(archive: Archive) -> None:
    """Delete the link book, for a rebuild: links come back with their containers."""
    sqlite_file.discard(archive.index_folder / "links.db")
    (archive.index_folder / _AREAS).unlink(missing_ok=True)


def settle(archive: Archive, links: LinkBook) -> int:
    """Update the link texts of pages whose links or access rules have changed; return how many changed."""
    areas, known = gate.closed_areas(archive, ANYONE), _parse(_read(archive))
    kept = _keep_moving_embargoes(areas, known)
    for area in set(known) ^ set(kept):
        links.reconsider(area.prefix)
    written = 0
    while changed := links.changed(limit=_MOST_AT_ONCE):
        anchors = (
            links.anchors(target, lambda key, stamp: not any((key, stamp) in area for area in areas))
            for target in changed
        )
        written += archive.texts.anchor(anchors, archive.engine)
        links.settle(changed)
    _write(archive, kept)
    return written


def are_due(archive: Archive) -> bool:
    """Whether access rules have changed since link texts were collected."""
    known = _parse(_read(archive))
    return set(known) != set(_keep_moving_embargoes(gate.closed_areas(archive, ANYONE), known))


def may_be_searched(archive: Archive, closed: tuple[ClosedArea, ...]) -> bool:
    """Whether link texts reveal nothing that is closed to this reader."""
    return not closed or _were_closed(_read(archive), closed)


@lru_cache(maxsize=64)
def _were_closed(stored: bytes, closed: tuple[ClosedArea, ...]) -> bool:
    """Whether all these areas were already closed when link texts were collected."""
    known = _parse(stored)
    whole, by_place = set(known), _by_place(known)
    return all(area in whole or _inside(area, by_place.get((area.prefix, area.exact))) for area in closed)


def _keep_moving_embargoes(
    areas: Sequence[ClosedArea], known: Sequence[ClosedArea]
) -> tuple[ClosedArea, ...]:
    """The areas of today, but an area that a rolling embargo moved within a month stays as it was: otherwise
    all links would be collected again every day.
    """
    by_place = _by_place(known)

    def kept(area: ClosedArea) -> ClosedArea:
        old = by_place.get((area.prefix, area.exact))
        same_month = old is not None and (old.first[:6], old.last[:6]) == (area.first[:6], area.last[:6])
        return old if old is not None and same_month and _inside(area, old) else area

    return tuple(map(kept, areas))


def _by_place(areas: Sequence[ClosedArea]) -> dict[tuple[str, bool], ClosedArea]:
    return {(area.prefix, area.exact): area for area in areas}


def _inside(area: ClosedArea, known: ClosedArea | None) -> bool:
    """Whether an area is part of a known one: a rolling embargo closes less each day, at its old end."""
    return (
        known is not None
        and set(known.but) <= set(area.but)
        and known.but_keys <= area.but_keys
        and known.first <= area.first
        and area.last <= known.last
    )


def _read(archive: Archive) -> bytes:
    try:
        return (archive.index_folder / _AREAS).read_bytes()
    except FileNotFoundError:
        return b"[]"


def _parse(stored: bytes) -> tuple[ClosedArea, ...]:
    """The stored areas. Files of version 0.1 have no `exact` and `but_keys`."""
    return tuple(
        ClosedArea(
            prefix=prefix,
            but=tuple(but),
            first=first,
            last=last,
            exact=bool(rest and rest[0]),
            but_keys=frozenset(rest[1] if rest else ()),
        )
        for prefix, but, first, last, *rest in json.loads(stored)
    )


def _write(archive: Archive, areas: Sequence[ClosedArea]) -> None:
    stored = json.dumps([[*astuple(area)[:-1], sorted(area.but_keys)] for area in areas])
    durable.write_whole(archive.index_folder / _AREAS, stored.encode())
