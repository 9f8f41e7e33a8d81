"""Collections: their names, and what staff wrote about them. `collection_view` has the pages.

A collection is what harvests were assigned to; nobody creates or deletes one here. One that is not public has
no page and is in no list, but its archived pages are shown as all others: access rules close pages.
"""

from dataclasses import replace

from webdepot.access import collection_pages
from webdepot.access.collection_pages import CollectionPage
from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound
from webdepot.harvest import harvest_rows
from webdepot.model import EVERYTHING
from webdepot.provenance import append, difference
from webdepot.reasons import said

LONGEST_TITLE, LONGEST_TEXT = 200, 20_000


def names(archive: Archive, *, hidden: bool = False) -> list[str]:
    """Names of the public collections, for forms; with `hidden`, of all. Cached, since every page has one."""
    every = archive.database.remembered("collections", harvest_rows.collections)
    pages = _pages(archive)
    return [
        name
        for name in every
        if name != EVERYTHING and (hidden or name not in pages or pages[name].is_public)
    ]


def get(archive: Archive, name: str, *, hidden: bool = False) -> CollectionPage:
    """What staff wrote about a collection; NotFound if there is none or, unless `hidden` is set, it is not
    public.
    """
    if name not in names(archive, hidden=hidden):
        raise NotFound(said("no_collection", "There is no collection {name}.", name=name[:60]))
    return _pages(archive).get(name) or CollectionPage(name=name)


def save(archive: Archive, page: CollectionPage, *, by: str) -> None:
    """Write the page of a collection; InputError if something is too long, NotFound if there is no such
    collection.
    """
    before = get(archive, page.name, hidden=True)
    if len(page.title) > LONGEST_TITLE:
        raise InputError(
            said("long_title", "The title is longer than {most} characters. Shorten it.", most=LONGEST_TITLE)
        )
    if len(page.text) > LONGEST_TEXT:
        raise InputError(
            said("long_text", "The text is longer than {most} characters. Shorten it.", most=LONGEST_TEXT)
        )
    new = replace(page, title=page.title.strip(), text=page.text.strip())
    with archive.database.transaction() as connection:
        collection_pages.put(connection, new)
        detail = difference(_detail(before), _detail(new))
        append(
            connection,
            archive.event("changed", "collection", new.name, message=new.shown_title, detail=detail, by=by),
        )


def _detail(page: CollectionPage) -> dict[str, object]:
    return {
        "title": page.title,
        "text": page.text[:200],
        "public": page.is_public,
        "picture": f"{page.picture_timestamp} {page.picture_url}".strip(),
    }


def _pages(archive: Archive) -> dict[str, CollectionPage]:
    return archive.database.remembered("collection pages", collection_pages.by_name)
