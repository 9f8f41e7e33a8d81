"""Examine kept harvests again: check them, for example after a patch, or identify their files with newer
signatures. The results become part of a new version of the package; earlier versions keep theirs.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import copyfileobj

from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import locations
from webdepot.depot import package, package_content
from webdepot.formats import report, results
from webdepot.formats.report import HarvestTable
from webdepot.formats.survey import SurveyResult
from webdepot.harvest import harvest_rows
from webdepot.model import Container, Harvest, HarvestState
from webdepot.reasons import to_told
from webdepot.services.depot import versions
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_check, identification
from webdepot.services.quality.harvest_check import HarvestCheck


def check_again(
    archive: Archive, harvest: Harvest, *, watch: Watch = unwatched, by: str = ""
) -> HarvestCheck:
    """Check a harvest, whether it is kept or not."""
    if harvest.state is not HarvestState.KEPT:
        return harvest_check.check(archive, harvest, watch=watch, by=by)
    with archive.scratch_folder(ScratchPurpose.CHECK) as folder:
        file = folder / "findings.jsonl.gz"
        checked = harvest_check.run_checks(archive, harvest, file, watch, by=by)
        with versions.newest(archive, package_content.id_of(harvest.id)) as facts:
            versions.add(
                archive,
                facts,
                {package_content.FINDINGS: file},
                event=checked.event,
                message=f"Harvest {harvest.id} checked again",
                changes={
                    "verdict": {**asdict(checked.verdict), **to_told(checked.verdict.reason)},
                    "finding_counts": dict(checked.counts),
                },
            )
    return harvest_check.last_check(archive, harvest.id)


def identify_again(
    archive: Archive, names: Sequence[str], *, limit: int = 0, watch: Watch = unwatched
) -> Iterator[tuple[Harvest, HarvestTable]]:
    """Identify kept harvests that the current engine has not seen, one after the other; all if none is named.

    Each is complete when it is yielded, so the caller may stop at any time.
    """
    with archive.database.reading() as connection:
        kept = [harvest_rows.get(connection, name) for name in names] or harvest_rows.in_states(
            connection, [HarvestState.KEPT]
        )
    done = 0
    for harvest in kept:
        if limit and done >= limit:
            return
        if not _waiting(archive, harvest):
            continue
        # A version that a killed process wrote may already have the results.
        versions.catch_up(archive, package_content.id_of(harvest.id))
        if waiting := _waiting(archive, harvest):
            _identify(archive, harvest, waiting, watch)
        done += 1
        with archive.database.reading() as connection:
            table = report.of_harvest(connection, harvest.id)
        yield harvest, table


def _waiting(archive: Archive, harvest: Harvest) -> list[Container]:
    """The containers of a kept harvest that the current engine has not seen."""
    if harvest.state is not HarvestState.KEPT:
        return []
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
        surveyed = results.surveyed(connection, harvest.id, engine=archive.identifier.engine)
    return [container for container in containers if container.name not in surveyed]


def _identify(archive: Archive, harvest: Harvest, containers: Sequence[Container], watch: Watch) -> None:
    """Write a version with the earlier rows and the new ones; gzip members are concatenated."""
    with (
        archive.scratch_folder(ScratchPurpose.IDENTIFY) as folder,
        tempfile.NamedTemporaryFile(dir=folder, suffix=".joined") as joined,
    ):
        surveys = list(identification.iter_surveys(archive, containers, folder, watch))
        with versions.newest(archive, package_content.id_of(harvest.id)) as facts:
            new = [each for each in surveys if not _has(facts.surveys, each)]
            if not new:
                return
            with package.open_file(archive.store, facts, package_content.FORMATS) as old:
                copyfileobj(old, joined)
            for each in new:
                with each.rows.open("rb") as stream:
                    copyfileobj(stream, joined)
            joined.flush()
            now = archive.clock()
            names = {each.container for each in new}
            known = [each for each in facts.surveys if each["container"] not in names]
            versions.add(
                archive,
                facts,
                {package_content.FORMATS: Path(joined.name)},
                event=archive.event("identified", "harvest", harvest.id, message=new[0].engine),
                message=f"Harvest {harvest.id} identified again",
                changes={"surveys": [*known, *(results.facts_from(each, at=now) for each in new)]},
            )


def _has(surveys: Sequence[object], result: SurveyResult) -> bool:
    """Whether another process has identified the container with the same engine meanwhile."""
    return any(
        isinstance(each, dict) and (each["container"], each["engine"]) == (result.container, result.engine)
        for each in surveys
    )
