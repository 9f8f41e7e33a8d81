"""Patches: what a harvest missed, harvested into separate containers that belong to it.

A patch is a harvest of kind `patch` whose settings name its parent as `patch_of`. It fetches the addresses
that, according to the findings, another attempt may bring, with the parts that these pages show; it does not
follow their links. Check and replay treat parent and patches as one: where the parent has an error, the
response of the patch is shown instead, and the parent is judged again.
"""

from dataclasses import asdict, dataclass, replace
from datetime import datetime

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, RemoteError
from webdepot.harvest import harvest_rows
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.provenance import Outcome, append
from webdepot.quality import finding_rows
from webdepot.quality.texts import PATCHED
from webdepot.services.depot import examination
from webdepot.services.harvest import harvests
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.index import visible_harvests
from webdepot.services.intake import ingest
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_run
from webdepot.services.quality.harvest_check import HarvestCheck
from webdepot.url import Url, find_canonical, host_of

MOST_ADDRESSES = 100_000
_UNFINISHED = (HarvestState.RUNNING, HarvestState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchResult:
    """A harvest and the patch that was made of it."""

    parent: Harvest
    patch: ArchiveReport | None
    """None if nothing could be fetched."""
    asked: int
    """How many addresses were fetched again."""
    checked: HarvestCheck
    """The parent, judged again together with its patches."""
    reason: str = ""


def missing(archive: Archive, harvest: Harvest) -> list[Url]:
    """The addresses that a patch would fetch."""
    with archive.database.reading() as connection:
        addresses = finding_rows.missing(connection, harvest.id, PATCHED, MOST_ADDRESSES)
    return [url for each in addresses if (url := find_canonical(each))]


def patch(
    archive: Archive, harvest: str, *, watch: Watch = unwatched, since: datetime | None = None
) -> PatchResult:
    """Harvest what is missing, then check the parent again. InputError if nothing is missing.

    If a patch was begun `since` then, that was interrupted: it is completed, and no other is begun.

    The patch is deposited if its parent is, and shown to readers if its parent is; otherwise it waits for the
    decision about its parent.
    """
    parent = harvests.get(archive, harvest)
    if parent.state not in (HarvestState.FINISHED, HarvestState.KEPT):
        raise Conflict(
            f"Harvest {parent.id} is {parent.state.value}. "
            f"Finish it first: webdepot harvest resume {parent.id}"
        )
    if parent.kind is HarvestKind.PATCH:
        raise InputError(
            f"{parent.id} is a patch itself. "
            f"Patch the harvest it belongs to: {parent.settings.get('patch_of')}"
        )
    wanted = missing(archive, parent)
    begun = _begun_since(archive, parent, since) if since else None
    if not wanted and begun is None:
        raise InputError(
            f"Nothing is missing from {parent.id} that another attempt could bring. "
            f"See: webdepot quality check {parent.id}"
        )
    begun = begun or _begin(archive, parent, wanted)
    reason = ""
    try:
        done = ingest.take_in(
            archive,
            harvest_run.run(archive, begun, watch=watch) if begun.state in _UNFINISHED else begun,
            deposit=parent.state is HarvestState.KEPT,
            index=visible_harvests.is_shown(archive, parent),
            watch=watch,
        )
    except RemoteError as error:
        done, reason = None, str(error)
    checked = examination.check_again(archive, parent, watch=watch)
    _note(archive, parent, begun, done is not None, asked=len(wanted), left=len(missing(archive, parent)))
    return PatchResult(parent=parent, patch=done, asked=len(wanted), checked=checked, reason=reason)


def _begun_since(archive: Archive, parent: Harvest, since: datetime) -> Harvest | None:
    begun = [each for each in harvests.patches_of(archive, parent) if each.started_at >= since]
    return max(begun, key=lambda each: each.started_at, default=None)


def _begin(archive: Archive, parent: Harvest, wanted: list[Url]) -> Harvest:
    """The unfinished patch of this parent, or a new one."""
    defaults = HarvestOptions.from_config(archive.config)
    # Another archive's settings, such as robots rules or private addresses, do not decide what we fetch.
    settings = {} if harvest_rows.is_received(parent) else parent.settings
    options = replace(
        harvest_options.from_kept({**asdict(defaults), **settings}),
        scope="list",
        patch_of=parent.id,
        collection=parent.collection,
        limit_pages=0,
        limit_documents=0,
        limit_bytes=0,
        limit_time_s=0.0,
        organisation="",
    )
    with archive.database.transaction() as connection:
        unfinished = harvest_rows.unfinished(connection, parent.target, HarvestKind.PATCH)
        if unfinished is not None and unfinished.settings.get("patch_of") == parent.id:
            return unfinished
        now = archive.clock()
        harvest = Harvest(
            id=harvest_rows.new_id(now, f"patch-{host_of(wanted[0])}"),
            target=parent.target,
            kind=HarvestKind.PATCH,
            state=HarvestState.RUNNING,
            seeds=tuple(wanted),
            collection=parent.collection,
            settings=asdict(options),
            started_at=now,
        )
        harvest_rows.begin(connection, harvest)
    return harvest


def _note(archive: Archive, parent: Harvest, begun: Harvest, brought: bool, *, asked: int, left: int) -> None:
    event = archive.event(
        "patched",
        "harvest",
        parent.id,
        outcome=Outcome.SUCCESS if brought else Outcome.WARNING,
        message=f"{asked} addresses were fetched again by {begun.id}",
        detail={"before": {"missing": asked}, "after": {"missing": left, "patch": begun.id}},
    )
    with archive.database.transaction() as connection:
        append(connection, event)
