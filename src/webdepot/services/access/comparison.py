"""Compare two versions of an address: words, links, images, and screenshots if the harvests took them."""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.access import compare, lookup
from webdepot.access.compare import ComparedLine, LineKind, LinkedAddress, PageContent
from webdepot.access.lookup import Neighbours
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import NotFound
from webdepot.model import Capture
from webdepot.quality.screenshots import Screenshot
from webdepot.reasons import said
from webdepot.services.access import lookup as lookup_service
from webdepot.services.access.browse import page_pictures
from webdepot.services.access.replay import replay

MOST_BYTES = 8 << 20
"""Of a page, at most this much is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    capture: Capture
    screenshot: Screenshot | None
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    url: str
    before: Side
    after: Side
    stamps: Sequence[str]
    """Moments that can be chosen."""
    is_same: bool
    """Whether both have the same bytes."""
    asked: Capture
    """The one that was asked for, before or after the other."""
    steps: Neighbours
    """The versions around it."""
    lines: Sequence[ComparedLine]
    """Empty if no word differs, apart from menus and footers."""
    menu_lines: Sequence[ComparedLine]
    """The same of menus and footers."""
    links_added: Sequence[LinkedAddress]
    links_removed: Sequence[LinkedAddress]
    pictures_added: Sequence[LinkedAddress]
    pictures_removed: Sequence[LinkedAddress]

    @property
    def others(self) -> dict[str, str]:
        """Versions to compare the one with that was asked for: timestamps, by the name of the step, each
        once.
        """
        steps = {name: getattr(self.steps, name) for name in ("first", "last", "previous", "next")}
        names = {step.timestamp: name for name, step in reversed(steps.items()) if step}
        names.pop(self.asked.timestamp, None)
        return {name: stamp for stamp, name in sorted(names.items())}

    @property
    def words_changed(self) -> int:
        return _count_changed(self.lines)

    @property
    def menu_lines_changed(self) -> int:
        return _count_changed(self.menu_lines)


def run(archive: Archive, url: str, at: str, other: str, *, collection: str, reader: Reader) -> Comparison:
    """The versions closest to two moments, the earlier first; without `other`, the latest version or, if that
    is the one at `at`, the one before it.

    NotFound if there are not two versions, Closed if a rule refuses one.
    """
    place = replay.find_place(archive, url, at, collection=collection, reader=reader)
    steps = place.steps
    wanted = other or next(
        (
            step.timestamp
            for step in (steps.last, steps.previous)
            if step and step.timestamp != place.capture.timestamp
        ),
        "",
    )
    if not wanted:
        raise NotFound(
            said(
                "only_one_version",
                "There is only one version of {url}, so there is nothing to compare it with.",
                url=url,
            )
        )
    second = lookup_service.find_closest(archive, url, wanted, collection=collection, reader=reader)
    before, after = sorted((place.capture, second), key=lambda capture: capture.timestamp)
    old, new = (_read(archive, capture, collection, reader) for capture in (before, after))
    links, pictures = (
        compare.added_and_removed(old.links, new.links),
        compare.added_and_removed(old.pictures, new.pictures),
    )
    return Comparison(
        url=after.url,
        before=Side(
            capture=before, screenshot=page_pictures.find_shown(archive, before, reader), is_cut=old.is_cut
        ),
        after=Side(
            capture=after, screenshot=page_pictures.find_shown(archive, after, reader), is_cut=new.is_cut
        ),
        stamps=place.stamps,
        is_same=bool(before.digest) and before.digest == after.digest,
        asked=place.capture,
        steps=steps,
        lines=_differences(old.lines, new.lines),
        menu_lines=_differences(old.menu_lines, new.menu_lines),
        links_added=links[0],
        links_removed=links[1],
        pictures_added=pictures[0],
        pictures_removed=pictures[1],
    )


def _differences(before: Sequence[str], after: Sequence[str]) -> Sequence[ComparedLine]:
    return compare.of_lines(before, after) if before != after else ()


def _count_changed(lines: Sequence[ComparedLine]) -> int:
    return sum(line.kind in (LineKind.ADDED, LineKind.REMOVED) for line in lines)


def _read(archive: Archive, capture: Capture, collection: str, reader: Reader) -> PageContent:
    opened = replay.open_capture(
        archive, capture.url, capture.timestamp, collection=collection, reader=reader
    )
    try:
        content_type = (opened.head.get("content-type") if opened.head else None) or capture.mime
        data = replay.content_of(opened).read(MOST_BYTES)
        return compare.read(data, content_type.lower(), _base_url(capture))
    finally:
        opened.close()


def _base_url(capture: Capture) -> str:
    """The address that links of a page are relative to; the target of a redirect is a separate capture."""
    return capture.redirect if lookup.redirects_to_itself(capture) else capture.url
