"""Which harvests readers may see. Only these are in the indexes, whether a command indexes one of them, or an
update or a rebuild all of them.

    kept                   in the depot: accepted by a reviewer or by rules, or deposited by the operator
    an import, finished    no reviewer decides about imports; those in place are never deposited
    marked                 the operator asked for it before the deposit (`webdepot archive --no-deposit`)

All others wait: a harvest is still running, a reviewer has not decided yet, or has rejected it. The mark is
the file `shown` in the working folder of the harvest.
"""

from pathlib import Path

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.harvest import harvest_rows
from webdepot.model import Container, Harvest, HarvestKind, HarvestState

_MARK = "shown"


def is_shown(archive: Archive, harvest: Harvest) -> bool:
    """Whether readers may see a harvest, if access rules do not forbid it."""
    if harvest.state is HarvestState.KEPT:
        return True
    if harvest.kind is HarvestKind.IMPORT:
        return harvest.state is HarvestState.FINISHED
    return harvest.state is not HarvestState.REJECTED and _mark_of(archive, harvest).exists()


def show(archive: Archive, harvest: Harvest) -> None:
    """Let readers see a harvest before it is in the depot."""
    if not is_shown(archive, harvest):
        mark = _mark_of(archive, harvest)
        durable.make_folders(mark.parent)
        durable.write_whole(mark, b"")


def hide(archive: Archive, harvest: Harvest) -> None:
    """Reverse `show`."""
    _mark_of(archive, harvest).unlink(missing_ok=True)


def containers(archive: Archive) -> list[Container]:
    """The containers of all harvests that readers may see, by name."""
    with archive.database.reading() as connection:
        every = harvest_rows.in_states(connection, HarvestState)
        visible = {harvest.id for harvest in every if is_shown(archive, harvest)}
        return [each for each in locations.iter_all(connection) if each.harvest in visible]


def count_containers(archive: Archive) -> int:
    """The number of containers that belong in the indexes, without those that wait for a reviewer."""
    with archive.database.reading() as connection:
        others = harvest_rows.in_states(
            connection, [each for each in HarvestState if each is not HarvestState.KEPT]
        )
        hidden = [harvest.id for harvest in others if not is_shown(archive, harvest)]
        return locations.totals(connection)[0] - locations.count_of(connection, hidden)


def _mark_of(archive: Archive, harvest: Harvest) -> Path:
    return archive.harvests_folder / harvest.id / _MARK
