"""What has been derived from containers and is still needed: files beside the archive's other data.

    derived/VERSION/HARVEST/CONTAINER/
      complete      names the files of a complete pass (`derive`); written when they are durable
      PASS/         one for each pass that was begun
        facts       for the check of the harvest
        *.cdxj …    captures, for its package and for the capture index; texts, for the text index

A worker writes them when the files of a harvest are identified, so that its containers are unpacked once.
They are removed when the container has been indexed, or the harvest rejected or withdrawn. Each step works
without them, by reading the container itself: they can be deleted at any time. VERSION changes with the
program and with the settings that the texts depend on; files of another version are not used.
"""

import hashlib
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from webdepot import durable
from webdepot.archive import Archive
from webdepot.formats.survey import SurveyTask
from webdepot.harvest import harvest_rows
from webdepot.index import capture_from_record, extract
from webdepot.index.extract import Extract, Job
from webdepot.model import Capture, Container, Harvest, HarvestId, HarvestKind
from webdepot.services.index import derive
from webdepot.services.index.derive import DeriveTask, Fact
from webdepot.version import VERSION

_FOLDER = "derived"
_FORM = 3
"""Increased when the files are written in another way: they must not be read by an earlier or later program
of the same version.
"""


def task(archive: Archive, harvest: Harvest, container: Container, surveying: SurveyTask) -> DeriveTask:
    """The task of deriving everything from a container, with this survey; its folder is ready."""
    folder = _folder_of(archive, container) / secrets.token_hex(8)
    durable.make_folders(folder)
    return DeriveTask(
        survey=surveying,
        extract=job(archive, container, surveying.path, harvest.collection, folder),
        has_links=_has_links(harvest),
    )


def job(archive: Archive, container: Container, path: Path, collection: str, folder: Path) -> Job:
    """The task of reading captures and texts, from the container or from what was derived from it."""
    return Job(
        path=path,
        name=container.name,
        collection=collection,
        languages=archive.config.archive.languages,
        limit_bytes=archive.config.index.limit_text_bytes,
        folder=folder,
    )


def find_extract(archive: Archive, container: Container) -> Extract | None:
    """The captures and texts of a container, if they are still there."""
    derived = derive.find(_folder_of(archive, container))
    if derived is None:
        return None
    extracted = derived.extract
    # Indexing removes them one after the other.
    is_whole = all(path.exists() for path in (extracted.captures, extracted.pages, extracted.links))
    return extracted if is_whole else None


def iter_captures(archive: Archive, container: Container) -> Iterator[Capture]:
    """The captures of a container; damage is skipped, since the check of the harvest has reported it."""
    extracted = find_extract(archive, container)
    if extracted is not None:
        return extract.captures_in(extracted.captures)
    path = archive.containers.path(container.name)
    return capture_from_record.of_container(path, container.name, on_finding=lambda _: None)


def iter_facts(archive: Archive, container: Container) -> Iterator[Fact]:
    """What the check needs to know about each record of a container."""
    derived = derive.find(_folder_of(archive, container))
    if derived is not None:
        return derive.facts_in(derived.facts)
    with archive.database.reading() as connection:
        harvest = harvest_rows.get(connection, container.harvest)
    path = archive.containers.path(container.name)
    return derive.facts_of(path, container.name, has_links=_has_links(harvest))


def forget(archive: Archive, containers: Iterable[Container]) -> None:
    """Remove what was derived from these containers, and everything of other versions."""
    root = archive.home / _FOLDER
    if not root.exists():
        return
    current = _version_folder(archive)
    for version in root.iterdir():
        if version != current:
            shutil.rmtree(version, ignore_errors=True)
    for container in containers:
        folder = _folder_of(archive, container)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            if not any(folder.parent.iterdir()):
                shutil.rmtree(folder.parent, ignore_errors=True)


def forget_harvest(archive: Archive, harvest: HarvestId) -> None:
    """Remove what was derived from the containers of a harvest that was rejected or withdrawn."""
    for folder in (archive.home / _FOLDER).glob(f"*/{harvest}"):
        shutil.rmtree(folder, ignore_errors=True)


def _has_links(harvest: Harvest) -> bool:
    """Whether the containers of a harvest have the links of its pages: our own crawler wrote them."""
    return harvest.kind is not HarvestKind.IMPORT


def _folder_of(archive: Archive, container: Container) -> Path:
    return _version_folder(archive) / container.harvest / container.name


def _version_folder(archive: Archive) -> Path:
    made_with = (VERSION, _FORM, archive.config.archive.languages, archive.config.index.limit_text_bytes)
    return archive.home / _FOLDER / hashlib.sha256(repr(made_with).encode()).hexdigest()[:12]
