"""Texts and titles of an import that are not in the containers of its pages (`index.content.listed_texts`).

    lists of pages     `pages/*.jsonl` of the WACZ files, which are kept in the package, and until then in the
                       working folder of the harvest
    text containers    `…text-DATE….warc.gz` of Browsertrix, with nothing but records `urn:text:ADDRESS`

They are gathered before the containers of the harvest are indexed, again in each rebuild. A file that cannot
be read is reported, and the pages are indexed without it.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.reader import iter_records
from webdepot.depot import holdings, package
from webdepot.depot.bundle import page_lists
from webdepot.depot.package_content import SUBMISSION
from webdepot.errors import WebdepotError
from webdepot.harvest import harvest_rows
from webdepot.index import page_files
from webdepot.index.content import shown_texts
from webdepot.index.content.listed_texts import ListedTexts
from webdepot.model import Finding, Harvest, HarvestKind, Severity
from webdepot.times import to_timestamp

_TEXT_CONTAINER = re.compile(r"(?:\A|-)text-\d{14}")
_KEPT = f"metadata/{SUBMISSION}/"


class HarvestTexts:
    """The texts of the harvests that are being indexed, each gathered when it is asked for. Use it in one
    thread.
    """

    def __init__(self, archive: Archive, folder: Path, files: ExitStack) -> None:
        self._archive = archive
        self._folder = folder
        self._files = files
        self._known: dict[str, ListedTexts | None] = {}
        self.findings: list[Finding] = []

    def completed(self, harvest: str, pages: Path) -> Path:
        """The pages of a container of this harvest with its texts: the same file, or another one instead."""
        texts = self._of(harvest)
        if texts is None:
            return pages
        fresh = self._folder / f"{pages.name}.completed"
        page_files.copy(pages, fresh, texts.complete)
        page_files.remove(pages)
        return fresh

    def _of(self, harvest: str) -> ListedTexts | None:
        """The texts of a harvest; None if it has none."""
        if harvest not in self._known:
            with self._archive.database.reading() as connection:
                row = harvest_rows.get(connection, harvest)
            self._known[harvest] = self._gather(row) if row.kind is HarvestKind.IMPORT else None
        return self._known[harvest]

    def _gather(self, harvest: Harvest) -> ListedTexts | None:
        config = self._archive.config
        texts = ListedTexts(
            self._folder / f"{harvest.id}.texts",
            languages=config.archive.languages,
            limit_chars=config.index.limit_text_bytes,
        )
        self._files.callback(texts.close)
        try:
            for stream in _open_lists(self._archive, harvest):
                with stream:
                    for page in page_lists.iter_pages(stream):
                        texts.add(page.url, page.timestamp, title=page.title, text=page.text)
            self._add_containers(harvest, texts, config.index.limit_text_bytes)
        except (WebdepotError, OSError) as error:
            self.findings.append(_unread(harvest, str(error)))
        return texts if texts else None

    def _add_containers(self, harvest: Harvest, texts: ListedTexts, limit_bytes: int) -> None:
        with self._archive.database.reading() as connection:
            held = locations.of_harvest(connection, harvest.id)
        for container in held:
            if not _TEXT_CONTAINER.search(container.name):
                continue
            with self._archive.containers.path(container.name).open("rb") as stream:
                for record in iter_records(stream, container.name, on_finding=lambda _: None):
                    if shown_texts.is_shown_text(record):
                        shown = shown_texts.read(record, limit_bytes)
                        texts.add(shown.url, to_timestamp(record.date), title=shown.title, text=shown.text)


def _open_lists(archive: Archive, harvest: Harvest) -> Iterator[BinaryIO]:
    """The lists of pages of a harvest: in its package, or else in its working folder."""
    with archive.database.reading() as connection:
        held = holdings.find_of_harvest(connection, harvest.id)
    if held is not None:
        facts = package.read(archive.store, held.id)
        for logical in facts.inventory.files():
            if logical.startswith(_KEPT) and page_lists.is_page_list(logical):
                yield package.open_file(archive.store, facts, logical)
        return
    folder = archive.harvests_folder / harvest.id / SUBMISSION
    for path in sorted(folder.rglob("*.jsonl")):
        if page_lists.is_page_list(path.relative_to(folder).as_posix()):
            yield path.open("rb")


def _unread(harvest: Harvest, reason: str) -> Finding:
    return Finding(
        code="text-unread",
        severity=Severity.NOTE,
        subject=harvest.id,
        message=f"Its list of pages or its texts could not be read: {reason}.",
    )
