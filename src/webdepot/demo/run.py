"""The demonstration run: found the archive of the sample institution, harvest its sample site edition by
edition.

1. Make the home if there is none, marked as a demonstration.
2. Serve one edition on loopback and archive it under a clock that starts on the edition's day.
3. Skip what is there already, go on with what a killed run left, say at the end what to look at.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from webdepot import config as configuration
from webdepot.archive import Archive
from webdepot.demo import site
from webdepot.demo.resource import Edition
from webdepot.demo.server import DemoSite
from webdepot.errors import Conflict
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.index import indexer
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.times import utc_now

COLLECTION = "museum"
_SETTINGS = f"""\
[archive]
name = "{site.INSTITUTION}"
contact = "http://www.streekarchief-veldwijk.example/webarchief"
purpose = "A demonstration: an invented regional archive keeps the web site of an invented museum. The dates are invented too."
languages = ["nl", "de", "en"]
demo = true

[harvest]
scope = "domain"
delay_s = 0

[exchange]
urn_namespace = "urn:nbn:de:example"
repository = "webarchief.streekarchief-veldwijk.example"
"""


def run(home: Path, report: Callable[[str], None], *, editions: Sequence[Edition] = site.EDITIONS) -> None:
    """Bring the demonstration up to date; `report` is told what happens, in lines for a person.

    A second run finds everything there and changes nothing. Conflict when the home is an archive that is no
    demonstration, KeyboardInterrupt when a harvest was stopped.
    """
    if setup.found(home, settings=_SETTINGS):
        report(f"Made the archive of the {site.INSTITUTION} (an invented institution) at {home}.")
    config = configuration.read(home)
    if not config.archive.demo:
        raise Conflict(
            f"{home} is an archive of your own, not the demonstration. Name another folder: webdepot --home DIR demo"
        )
    clock = DemoClock()
    with DemoSite() as demo:
        config = replace(config, harvest=replace(config.harvest, connect_to=demo.connect_to))
        with Archive(config, clock=clock) as archive:
            for edition in editions:
                found = _find(archive, edition)
                if found is not None and found.state is HarvestState.KEPT:
                    report(f"  {edition.name}  is there already")
                    continue
                report(f"  {edition.name}  {edition.label} …")
                demo.show(edition)
                clock.set(edition.date)
                report(_summary(_take(archive, found)))
            # A run that was killed between keeping and indexing left containers that no index knows.
            indexer.update(archive)
    report(_farewell())


class DemoClock:
    """A clock that can be set, and runs on from there; until then it is right."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def set(self, moment: datetime) -> None:
        self._ahead = moment - utc_now()

    def __call__(self) -> datetime:
        return utc_now() + self._ahead


def _take(archive: Archive, found: Harvest | None) -> ArchiveReport:
    """Archive what is served now, or go on with what a killed run left of it."""
    if found is None:
        options = replace(HarvestOptions.from_config(archive.config), collection=COLLECTION)
        done = pipeline.archive_site(archive, [site.SEED], options)
    else:
        done = pipeline.resume(archive, found.id)
    if done.harvest.state is HarvestState.STOPPED:
        raise KeyboardInterrupt
    return done


def _find(archive: Archive, edition: Edition) -> Harvest | None:
    """The harvest that was begun on the edition's day and did not fail."""
    for harvest in harvests.latest(archive, limit=1000):
        on_its_day = timedelta(0) <= harvest.started_at - edition.date < timedelta(days=1)
        if on_its_day and harvest.kind is HarvestKind.HARVEST and harvest.state is not HarvestState.FAILED:
            return harvest
    return None


def _summary(done: ArchiveReport) -> str:
    findings = sum(done.finding_counts.values())
    return f"        {done.captures} captures, {done.pages} pages with words, {findings} findings; {done.verdict.reason}"


def _farewell() -> str:
    return "\n".join(
        (
            "The demonstration is ready. All its dates are invented. In the portal, try:",
            "  search for  damast          one page that changed its story: a gift in 2003, looted art in 2024",
            "  search for  Schmuggler      German pages;  smokkelen  finds the Dutch ones",
            f"  look up     {site.SEED}     five versions; step through them with the time bar",
            f"  look up     {site.SEED}nieuws/vlasweek.html     a news item that changes from edition to edition",
            "  open        /oai?verb=ListRecords&metadataPrefix=oai_dc     the records that partners harvest, each with its URN",
        )
    )
