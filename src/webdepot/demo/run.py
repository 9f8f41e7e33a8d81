"""The demonstration run: create the archive of the sample institution, and harvest each edition of its sample
site.

1. Create the archive if there is none, marked as a demonstration.
2. Serve one edition on loopback, and archive it with a clock that is set to the date of the edition.
3. Skip editions that are already archived, resume those of a killed run.
4. Describe the collection, and make pictures of some pages if there is a browser.
5. Furnish the staff side (`office`); finally suggest what to look at.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from webdepot.access.collection_pages import CollectionPage
from webdepot.archive import Archive
from webdepot.config import config as configuration
from webdepot.demo import office, site
from webdepot.demo.resource import Edition
from webdepot.demo.server import DemoSite
from webdepot.errors import ConfigError, Conflict
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.services import pipeline
from webdepot.services.access import collections
from webdepot.services.admin import demo_accounts, setup
from webdepot.services.depot import picture_maker, pictures
from webdepot.services.harvest import harvests
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.index import indexer
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.times import utc_now

COLLECTION = "museum"
_PICTURED_PAGES = 3
"""Pages of each edition that get a picture."""
_TITLE = "Museum Veldwijk, 2003–2024"
_TEXT = """\
Five editions of the site of one museum, from a page made of tables to one made by scripts.

Look at how the story of the damask changes: a gift in 2003, returned as looted art in 2024.
"""
_SETTINGS = f"""\
[archive]
name = "{site.INSTITUTION}"
contact = "http://www.streekarchief-veldwijk.example/webarchief"
purpose = "A demonstration with invented dates: an invented archive preserves the site of an invented museum."
languages = ["nl", "de", "en"]
demo = true

[archive.purposes]
nl = "Een demonstratie met verzonnen data: een verzonnen archief bewaart de site van een verzonnen museum."
de = "Eine Demo mit erfundenen Daten: Ein erfundenes Archiv bewahrt die Website eines erfundenen Museums."

[harvest]
scope = "domain"
delay_s = 0

[exchange]
urn_namespace = "urn:nbn:de:example"
repository = "webarchief.streekarchief-veldwijk.example"
"""


def run(
    home: Path,
    report: Callable[[str], None],
    *,
    editions: Sequence[Edition] = site.EDITIONS,
    staff: bool = True,
    pictured: bool = True,
) -> None:
    """Create or complete the demonstration, with its staff side if `staff` is set and pictures of pages if
    `pictured` is; `report` is called with messages about the progress.

    A second run changes nothing. Conflict if the home has an archive that is not a demonstration,
    KeyboardInterrupt if a harvest was stopped.
    """
    if setup.create(home, settings=_SETTINGS):
        report(f"Created the archive of the {site.INSTITUTION} (an invented institution) at {home}.")
    config = configuration.read(home)
    if not config.archive.demo:
        raise Conflict(
            f"{home} contains an archive that is not a demonstration. Choose another folder: "
            "webdepot --home DIR demo"
        )
    clock = DemoClock()
    with DemoSite() as demo:
        config = replace(config, harvest=replace(config.harvest, connect_to=demo.connect_to))
        with Archive(config, clock=clock) as archive:
            has_new = False
            for edition in editions:
                harvest = _find(archive, edition)
                if harvest is not None and harvest.state is HarvestState.KEPT:
                    report(f"  {edition.name}  already archived")
                    continue
                report(f"  {edition.name}  {edition.label} …")
                has_new = True
                demo.show(edition)
                clock.set(edition.date)
                report(_summary(_archive_edition(archive, harvest)))
            # A run that was killed between deposit and indexing left containers that are not indexed.
            indexer.update(archive)
            clock.set_days_ago(0)
            _describe_collection(archive)
            if pictured:
                _make_pictures(archive, report if has_new else _report_nothing)
            if staff:
                office.furnish(archive, clock, report)
    report(_farewell())


class DemoClock:
    """A clock that can be set, and continues from there; until it is set, it shows the real time."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def set(self, moment: datetime) -> None:
        self._ahead = moment - utc_now()

    def set_days_ago(self, days: float) -> None:
        self._ahead = timedelta(days=-days)

    def __call__(self) -> datetime:
        return utc_now() + self._ahead


def _archive_edition(archive: Archive, unfinished: Harvest | None) -> ArchiveReport:
    """Archive the edition that is served now, or resume its unfinished harvest."""
    if unfinished is None:
        options = replace(HarvestOptions.from_config(archive.config), collection=COLLECTION)
        done = pipeline.archive_site(archive, [site.SEED], options)
    else:
        done = pipeline.resume(archive, unfinished.id)
    if done.harvest.state is HarvestState.STOPPED:
        raise KeyboardInterrupt
    return done


def _describe_collection(archive: Archive) -> None:
    """Write the description of the collection, unless it has one."""
    if collections.get(archive, COLLECTION, hidden=True) == CollectionPage(name=COLLECTION):
        page = CollectionPage(name=COLLECTION, title=_TITLE, text=_TEXT)
        collections.save(archive, page, by="curator")


def _make_pictures(archive: Archive, report: Callable[[str], None]) -> None:
    """Make pictures of the start page and some other pages of each edition, if Chromium is installed."""
    plain = archive.config
    if os.geteuid() == 0:  # Chromium's sandbox does not work for root, and these pages are our own
        archive.config = replace(plain, harvest=replace(plain.harvest, browser_sandbox=False))
    try:
        if picture_maker.find_browser(archive):
            report("  Making pictures of pages …")
            pictures.build(archive, collection=COLLECTION, pages=_PICTURED_PAGES)
    except ConfigError as error:  # a browser is installed but does not start: the rest works without it
        report(f"  No pictures were made: {error}")
    finally:
        archive.config = plain


def _report_nothing(message: str) -> None:
    """Report nothing: for a run that finds everything done."""


def _find(archive: Archive, edition: Edition) -> Harvest | None:
    """The harvest that was started on the date of the edition and did not fail."""
    for harvest in harvests.latest(archive, limit=1000):
        on_its_day = timedelta(0) <= harvest.started_at - edition.date < timedelta(days=1)
        if on_its_day and harvest.kind is HarvestKind.HARVEST and harvest.state is not HarvestState.FAILED:
            return harvest
    return None


def _summary(done: ArchiveReport) -> str:
    findings = sum(done.finding_counts.values())
    return (
        f"        {done.captures} captures, {done.pages} of them with text, {findings} findings; "
        f"{done.verdict.reason}"
    )


def _farewell() -> str:
    return "\n".join(
        (
            "The demonstration is ready. All its dates are invented. In the portal, try:",
            "  search for  damast          a page whose story changed: a gift in 2003, returned in 2024",
            "  search for  Schmuggler      German pages;  smokkelen  finds the Dutch ones",
            f"  look up     {site.SEED}     five versions; step through them with the time bar",
            f"  look up     {site.SEED}nieuws/vlasweek.html     a news item that changes between editions",
            f"  open        /collections/{COLLECTION}     its collection, with text and pictures",
            "  open        /oai?verb=ListRecords&metadataPrefix=oai_dc     "
            "the records that partners harvest, each with its URN",
            f"Staff:      open /sign-in and {demo_accounts.sign_in_words()}",
        )
    )
