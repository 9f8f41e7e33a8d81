"""Patches: what a harvest missed, harvested into containers of its own that are bound to it.

A patch is a harvest of kind `patch` whose settings name its parent as `patch_of`. It asks for the addresses
that findings say another try may bring, with the parts that they show, and for nothing they lead to. Check
and replay see parent and patches as one: where the parent has an error, the answer of the patch is shown in
its place, and the parent is judged again.
"""

from dataclasses import asdict, dataclass, replace

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, RemoteError
from webdepot.harvest import runs
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.provenance import Event, Outcome, append
from webdepot.quality import records
from webdepot.quality.texts import PATCHED
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.intake import ingest
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_check
from webdepot.services.quality.harvest_check import HarvestCheck
from webdepot.url import Url, find_canonical, host_of

MOST_ADDRESSES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    parent: Harvest
    patch: ArchiveReport | None
    """None when nothing could be brought."""
    asked: int
    checked: HarvestCheck
    """The parent, judged again together with its patches."""
    reason: str = ""


def missing(archive: Archive, harvest: Harvest) -> list[Url]:
    """What a patch would ask for."""
    with archive.database.reading() as connection:
        found = records.missing(connection, harvest.id, PATCHED, MOST_ADDRESSES)
    return [url for each in found if (url := find_canonical(each))]


def patch(
    archive: Archive, harvest: str, *, deposit: bool = True, index: bool = True, watch: Watch = unwatched
) -> Patched:
    """Harvest what is missing, then judge the parent again. InputError when nothing is missing.

    Without `index` nothing of it can be found or replayed yet: its parent waits for a reviewer.
    """
    parent = harvests.get(archive, harvest)
    if parent.state not in (HarvestState.FINISHED, HarvestState.KEPT):
        raise Conflict(
            f"Harvest {parent.id} is {parent.state.value}; finish it first: webdepot harvest resume {parent.id}"
        )
    if parent.kind is HarvestKind.PATCH:
        raise InputError(
            f"{parent.id} is a patch itself. Patch the harvest it belongs to: {parent.settings.get('patch_of')}"
        )
    wanted = missing(archive, parent)
    if not wanted:
        raise InputError(
            f"Nothing is missing from {parent.id} that another try could bring. See: webdepot quality check {parent.id}"
        )
    begun = _begin(archive, parent, wanted)
    reason = ""
    try:
        done = ingest.take_in(
            archive, runner.run(archive, begun, watch=watch), deposit=deposit, index=index, watch=watch
        )
    except RemoteError as error:
        done, reason = None, str(error)
    checked = harvest_check.check(archive, parent, again=True, watch=watch)
    _note(archive, parent, begun, done is not None, asked=len(wanted), left=len(missing(archive, parent)))
    return Patched(parent=parent, patch=done, asked=len(wanted), checked=checked, reason=reason)


def _begin(archive: Archive, parent: Harvest, wanted: list[Url]) -> Harvest:
    """The unfinished patch of this parent, or a new one."""
    defaults = HarvestOptions.from_config(archive.config)
    given = harvest_options.from_kept({**asdict(defaults), **parent.settings})
    options = replace(
        given,
        scope="list",
        patch_of=parent.id,
        collection=parent.collection,
        limit_pages=0,
        limit_bytes=0,
        limit_time_s=0.0,
        organisation="",
    )
    with archive.database.transaction() as connection:
        found = runs.unfinished(connection, parent.target, HarvestKind.PATCH)
        if found is not None and found.settings.get("patch_of") == parent.id:
            return found
        now = archive.clock()
        harvest = Harvest(
            id=runs.new_id(now, f"patch-{host_of(wanted[0])}"),
            target=parent.target,
            kind=HarvestKind.PATCH,
            state=HarvestState.RUNNING,
            seeds=tuple(wanted),
            collection=parent.collection,
            settings=asdict(options),
            started_at=now,
        )
        runs.begin(connection, harvest)
    return harvest


def _note(archive: Archive, parent: Harvest, begun: Harvest, brought: bool, *, asked: int, left: int) -> None:
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="patched",
        subject_kind="harvest",
        subject=parent.id,
        outcome=Outcome.SUCCESS if brought else Outcome.WARNING,
        message=f"{asked} addresses were asked for again by {begun.id}",
        detail={"before": {"missing": asked}, "after": {"missing": left, "patch": begun.id}},
    )
    with archive.database.transaction() as connection:
        append(connection, event)
