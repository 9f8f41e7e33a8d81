"""The harvest that the containers of an import belong to: begun or continued, locked, and ended.

An import that was interrupted is continued by the next one into the same collection; that of a submission by
the same submission.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot.package_json import LONGEST_COLLECTION
from webdepot.errors import Conflict, InputError
from webdepot.harvest import harvest_rows
from webdepot.model import (
    Harvest,
    HarvestKind,
    HarvestState,
    Target,
)
from webdepot.reasons import said
from webdepot.services.harvest import harvests
from webdepot.services.selection import targets
from webdepot.text import file_names
from webdepot.url import Url

NOTHING_NEW = said("nothing_new", "The files contained nothing new.")


def count_held(archive: Archive, harvest: Harvest) -> tuple[int, int]:
    """The number of containers that a harvest has, and their bytes."""
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
    return len(containers), sum(container.size_bytes for container in containers)


def end_intake(archive: Archive, harvest: Harvest) -> Harvest | None:
    """End an import while it is still locked; None if it contains nothing."""
    if count_held(archive, harvest)[0]:
        return finish(archive, harvest)
    end(archive, harvest, HarvestState.FAILED, NOTHING_NEW)
    harvests.end_direct(archive, harvests.get(archive, harvest.id))
    return None


def finish(archive: Archive, harvest: Harvest) -> Harvest:
    """End an import with the containers taken in so far."""
    count = count_held(archive, harvest)[0]
    reason = (
        said("imported_one", "One container was imported.")
        if count == 1
        else said("imported_more", "{count} containers were imported.", count=count)
    )
    end(archive, harvest, HarvestState.FINISHED, reason)
    return harvests.get(archive, harvest.id)


def begin(
    archive: Archive,
    collection: str,
    settings: Mapping[str, object],
    held: ExitStack,
    work: ExitStack | None = None,
) -> Harvest:
    """The import to continue if one with these settings was interrupted, otherwise a new one; locked in
    `held`, and with `work` also as in `harvests.direct`.
    """
    target = target_of(archive, collection)
    targets.admit(archive, target, [targets.operators_decision(archive)])
    while True:
        with archive.database.reading() as connection:
            unfinished = harvest_rows.all_unfinished(connection, target.id, HarvestKind.IMPORT)
        for harvest in unfinished:
            if harvest.settings == settings and _lock(archive, harvest, held, work):
                return harvest
        harvest = _new_import(archive, target, collection, settings)
        if _lock(archive, harvest, held, work):  # otherwise another process took it for interrupted
            return harvest


def _lock(archive: Archive, harvest: Harvest, held: ExitStack, work: ExitStack | None) -> bool:
    """Lock an import that is not ended; False if another process has it, or has just ended it."""
    was_direct = harvests.is_direct(archive, harvest)
    with ExitStack() as for_intake, ExitStack() as for_all:
        try:
            if work is not None:
                for_all.enter_context(harvests.direct(archive, harvest))
            for_intake.enter_context(harvests.locked(harvests.folder_of(archive, harvest)))
        except (Conflict, FileNotFoundError):  # another process may remove the folder
            return False
        current = harvests.get(archive, harvest.id)
        if current.state not in (HarvestState.RUNNING, HarvestState.STOPPED):
            if not was_direct:
                harvests.end_direct(archive, current)
            return False
        held.push(for_intake.pop_all())
        if work is not None:
            work.push(for_all.pop_all())
    return True


def _new_import(archive: Archive, target: Target, collection: str, settings: Mapping[str, object]) -> Harvest:
    now = archive.clock()
    harvest = Harvest(
        id=harvest_rows.new_id(now, "import"),
        target=target.id,
        kind=HarvestKind.IMPORT,
        state=HarvestState.RUNNING,
        seeds=(),
        collection=collection,
        settings=settings,
        started_at=now,
    )
    with archive.database.transaction() as connection:
        harvest_rows.begin(connection, harvest)
    return harvest


def target_of(archive: Archive, collection: str) -> Target:
    """The target that the imports into a collection belong to."""
    if not file_names.is_name(collection) or len(collection) > LONGEST_COLLECTION:
        raise InputError(
            f"{collection[:100]!r} cannot be the name of a collection. Use letters, digits, - and _."
        )
    return targets.nominate(
        archive, [Url(f"import:{collection}")], collection=collection, name=f"Imported into {collection}"
    )


def end(archive: Archive, harvest: Harvest, state: HarvestState, reason: str) -> None:
    with archive.database.transaction() as connection:
        held = locations.of_harvest(connection, harvest.id)
        counts = {
            "fetched": sum(container.records for container in held),
            "bytes": sum(container.size_bytes for container in held),
        }
        harvest_rows.move(
            connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock()
        )
