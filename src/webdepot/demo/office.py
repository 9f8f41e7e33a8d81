"""The staff side of the demonstration: accounts, sites in every state of selection, letters, plans, a harvest
that waits for its review, one that failed and one with screenshots, a complaint, an organisation, a partner,
formats at risk, a second copy of the depot.

Everything is done by the services, in the order in which people would do it, with a clock that is moved
through the last two months. `furnish` adds only what is missing, so that a killed run can be repeated.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from webdepot.accounts.accounts import Person
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.config.sections.selection import MailConfig
from webdepot.demo import domains, site
from webdepot.demo.mailbox import Mailbox
from webdepot.errors import ConfigError, Conflict
from webdepot.formats.registry import RegistryEntry, Risk
from webdepot.model import TargetId
from webdepot.selection.cases import Objection, Who
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission_basis import Ground
from webdepot.selection.states import TargetState
from webdepot.selection.targets import Origin
from webdepot.services.admin import demo_accounts
from webdepot.services.depot import audit, storage_places
from webdepot.services.exchange import partner_admin
from webdepot.services.harvest import options, profiles
from webdepot.services.permission import complaints, delivery, letters, owner_answers, periodic_run
from webdepot.services.permission.owner_answers import OwnerReply
from webdepot.services.quality import format_watch
from webdepot.services.schedule import plans, scheduler
from webdepot.services.selection import contacts, targets
from webdepot.services.selection import criteria as criteria_service

_PORTAL = "http://127.0.0.1:8080"
_BY = "curator"
_CURATOR = Person(name=_BY, roles=frozenset({Role.CURATOR}))
_CLOSED_PORT = "127.0.0.1:9"
"""The port of the discard service, which nobody runs: a site there cannot be harvested."""
_UNREACHABLE = "http://www.veerdienst-veldwijk.example/"
_CLOSED_SITE = "http://www.stoomtram-veldwijk.example/"
_COPY = "cellar"
_WITH_PICTURES = """\
# Pages in a browser, with a screenshot of each.
scope = "list"
fetch = "browser"
screenshots = "pages"
behaviours = ["scroll"]
"""
_RISKS = (
    ("fmt/3", "image/gif", "GIF 87a", Risk.WATCH, "Visitor counters of 2003; few programs still write it."),
    (
        "fmt/102",
        "application/xhtml+xml",
        "XHTML 1.0",
        Risk.AT_RISK,
        "Browsers stop at the first error, and the standard is no longer maintained.",
    ),
)
"""PRONOM identifier, media type, name, risk, reason."""


class _SettableClock(Protocol):
    def set_days_ago(self, days: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    address: str
    name: str
    note: str
    judged: Sequence[tuple[str, float, str]] = ()
    """Criterion, value, reason."""
    decision: str = ""
    reason: str = ""
    owner: str = ""
    origin: Origin = Origin.STAFF
    by: str = _BY


_YES = (("national", 1.0, "about the region"), ("cultural", 1.0, "its own archive of pictures and stories"))
SITES = (
    _Site(
        address="http://www.orgelkring-veldwijk.example/",
        name="Orgelkring Veldwijk",
        note="Suggested by a reader: recordings of organs that have since been sold.",
        origin=Origin.PUBLIC,
    ),
    _Site(
        address="http://www.imkers-veldwijk.example/",
        name="Imkersvereniging Veldwijk",
        note="Yearbooks as PDF since 2006.",
        origin=Origin.PARTNER,
        by="partner",
    ),
    _Site(
        address="http://www.kaatsclub-oosterlo.example/",
        name="Kaatsclub Oosterlo",
        note="",
        judged=_YES,
        decision="select",
        reason="The only club of its kind in the region.",
    ),
    _Site(
        address="http://www.dorpskrant-oosterlo.example/",
        name="Dorpskrant Oosterlo",
        note="The only paper of the village; ends this year.",
        judged=_YES,
    ),
    _Site(
        address="http://www.kortingen-veldwijk.example/",
        name="Kortingen Veldwijk",
        note="",
        judged=(("national", 1.0, "local shops"), ("cultural", 0.0, "advertising only")),
        decision="reject",
        reason="Advertising without content of its own.",
    ),
    _Site(
        address="http://www.nieuwbouw-de-weide.example/",
        name="Nieuwbouw De Weide",
        note="Plans for a new housing estate.",
        judged=_YES,
        decision="put off",
        reason="Nothing is built yet.",
    ),
    _Site(
        address="http://www.heemkunde-veldwijk.example/",
        name="Heemkundige kring Veldwijk",
        note="",
        judged=_YES,
        decision="select",
        reason="Sources on local history.",
        owner="Annelies Vos <bestuur@heemkunde-veldwijk.example>",
    ),
    _Site(
        address="http://www.harmonie-sint-joris.example/",
        name="Harmonie Sint-Joris",
        note="",
        judged=_YES,
        decision="select",
        reason="Programmes since 1911.",
        owner="Piet Damen <info@harmonie-sint-joris.example>",
    ),
    _Site(
        address="http://www.tuindersvereniging.example/",
        name="Tuindersvereniging Veldwijk",
        note="",
        judged=_YES,
        decision="select",
        reason="Minutes and seed lists.",
        owner="Secretariaat <secretaris@tuindersvereniging.example>",
    ),
    _Site(
        address="http://www.fietsroutes-veldwijk.example/",
        name="Fietsroutes Veldwijk",
        note="",
        judged=_YES,
        decision="select",
        reason="Maps that change every year.",
        owner="Redactie <redactie@fietsroutes-veldwijk.example>",
    ),
)
_ASKED_EARLY = ("harmonie-sint-joris", "tuindersvereniging", "heemkunde-veldwijk")


def furnish(archive: Archive, clock: _SettableClock, report: Callable[[str], None]) -> None:
    """Add everything that staff would find in an archive in use; change nothing if it is already there."""
    if demo_accounts.exist(archive):
        return
    report("  Adding examples for staff: sites, letters, a schedule, a harvest to review, a complaint …")
    plain = archive.config
    with Mailbox() as mailbox:
        mail = MailConfig(
            host="127.0.0.1",
            port=mailbox.port,
            security="none",
            sender="webarchief@streekarchief-veldwijk.example",
        )
        archive.config = replace(plain, mail=mail)
        _select(archive, clock)
    archive.config = plain
    _harvest(archive, clock)
    clock.set_days_ago(2)
    _take_pictures(archive)
    clock.set_days_ago(1)
    _complain(archive)
    domains.survey(archive, by=_BY)
    _watch_formats(archive)
    _exchange_and_copy(archive, clock)
    clock.set_days_ago(0)
    demo_accounts.add(archive)


def _select(archive: Archive, clock: _SettableClock) -> None:
    """Add two months of selection: nominations, judgements, letters, answers and a deadline that passed."""
    clock.set_days_ago(60)
    for each in SITES:
        _nominate(archive, each)
    clock.set_days_ago(55)
    _ask(archive, [each for each in SITES if any(name in each.address for name in _ASKED_EARLY)])
    clock.set_days_ago(48)
    _answer(
        archive, "harmonie-sint-joris", OwnerReply.CONSENT, "With pleasure. Please start with the programmes."
    )
    _answer(
        archive, "tuindersvereniging", OwnerReply.REFUSAL, "The minutes name members who are still alive."
    )
    clock.set_days_ago(20)
    periodic_run.process_deadlines(archive, portal_url=_PORTAL)
    clock.set_days_ago(6)
    _ask(archive, [each for each in SITES if "fietsroutes" in each.address])


def _nominate(archive: Archive, each: _Site) -> None:
    nomination = targets.draft([each.address], name=each.name, note=each.note, origin=each.origin, by=each.by)
    dossier = targets.enter(archive, nomination, by=each.by)[0]
    if dossier.state is not TargetState.NOMINATED:
        return  # an earlier run, which was killed, did the rest
    if each.judged:
        answers = [
            Judgement(criterion=code, value=value, reason=reason) for code, value, reason in each.judged
        ]
        criteria_service.answer(archive, dossier.id, answers, person=_CURATOR)
    if each.owner:
        name, _, mail = each.owner.rstrip(">").partition(" <")
        contacts.add_contact(archive, Contact(target=dossier.id, name=name, mail=mail, language="nl"), by=_BY)
    if each.decision:
        later = archive.clock().date() + timedelta(days=180) if each.decision == "put off" else None
        targets.decide(archive, dossier.id, each.decision, by=_BY, reason=each.reason, look_again_on=later)


def _ask(archive: Archive, sites: Sequence[_Site]) -> None:
    numbers = [targets.find(archive, each.address).id for each in sites]
    waiting = [number for number in numbers if targets.get(archive, number).state is TargetState.SELECTED]
    if waiting:
        letters.ask(archive, waiting, by=_BY, portal_url=_PORTAL)
        delivery.deliver(archive)


def _answer(archive: Archive, name: str, answer: OwnerReply, words: str) -> None:
    (address,) = (each.address for each in SITES if name in each.address)
    dossier = targets.find(archive, address)
    if dossier.state is TargetState.ASKED:
        owner_answers.reply(archive, dossier.id, answer, by=_BY, words=words)


def _harvest(archive: Archive, clock: _SettableClock) -> None:
    """Add a plan for the museum, a harvest of it that waits for review, and a failed harvest of another
    site.
    """
    clock.set_days_ago(3)
    profiles.save(archive, "careful", "# One request at a time.\nworkers = 1\n", agent=_BY)
    museum = _clear(archive, site.SEED, "Museum Veldwijk")
    plans.set_typed_plan(
        archive, museum, frequency="monthly", first_on=_next_date(archive), at_time="22:00", by=_BY
    )
    ferry = _clear(archive, _UNREACHABLE, "Veerdienst Veldwijk")
    tram = _clear(archive, _CLOSED_SITE, "Stoomtram Veldwijk")
    with suppress(Conflict):  # a run that was killed had ended it
        targets.decide(archive, tram, "end", by=_BY, reason="The society was dissolved; the site is offline.")
    for number in (museum, ferry):
        with suppress(Conflict):  # a run that was killed had added it
            plans.run_now(archive, number, by=_BY)
    known = archive.config
    once = replace(
        known.harvest, tries=1, connect_to={**known.harvest.connect_to, _host(_UNREACHABLE): _CLOSED_PORT}
    )
    archive.config = replace(known, harvest=once, schedule=replace(known.schedule, tries=1))
    try:
        scheduler.run_due(archive)
    finally:
        archive.config = known


def _next_date(archive: Archive) -> str:
    """A day in the future: the sample site is no longer served when the portal runs."""
    return (archive.clock() + timedelta(days=20)).date().isoformat()


def _take_pictures(archive: Archive) -> None:
    """Harvest a few pages with a browser, which takes screenshots; do nothing if there is no browser."""
    known = archive.config
    # The pages are our own, so the browser may run without its sandbox, which does not work for root.
    archive.config = replace(known, harvest=replace(known.harvest, browser_sandbox=False))
    try:
        profiles.save(archive, "pictures", _WITH_PICTURES, agent=_BY)
        options.browser_of(archive.config, profiles.options_of(archive, "pictures"))
        agenda = _clear(archive, f"{site.SEED}bezoek.html", "Museum Veldwijk: bezoek")
        plans.set_typed_plan(
            archive,
            agenda,
            frequency="weekly",
            first_on=_next_date(archive),
            at_time="23:00",
            profile="pictures",
            by=_BY,
        )
        with suppress(Conflict):  # a run that was killed had added it
            plans.run_now(archive, agenda, by=_BY)
        scheduler.run_due(archive)
    except ConfigError:
        return
    finally:
        archive.config = known


def _watch_formats(archive: Archive) -> None:
    """Put two formats of the oldest editions on the watch list."""
    known = format_watch.load_registry(archive)
    for puid, mime, name, risk, reason in _RISKS:
        now = known.find(puid, mime)
        software = now.software if now is not None else ()
        entry = RegistryEntry(puid=puid, name=name, risk=risk, reason=reason, note="", software=software)
        if now != entry:
            format_watch.change_entry(archive, entry, by=_BY)


def _clear(archive: Archive, address: str, name: str) -> TargetId:
    """Add a site that may be harvested, because its licence allows it."""
    dossier = targets.enter(archive, targets.draft([address], name=name, by=_BY), by=_BY)[0]
    if dossier.state is TargetState.NOMINATED:
        targets.describe(
            archive,
            dossier.id,
            name=name,
            collection=dossier.target.collection,
            purpose=dossier.target.purpose,
            strategy=dossier.strategy,
            note=dossier.note,
            by=_BY,
        )
        answers = [Judgement(criterion=code, value=value, reason=reason) for code, value, reason in _YES]
        criteria_service.answer(archive, dossier.id, answers, person=_CURATOR)
        targets.decide(archive, dossier.id, "select", by=_BY, reason="The memory of the town.")
        owner_answers.record_ground(
            archive, dossier.id, Ground.OPEN_LICENCE, by=_BY, reason="CC BY 4.0, in the footer"
        )
    return dossier.id


def _host(address: str) -> str:
    return address.removeprefix("http://").rstrip("/")


def _complain(archive: Archive) -> None:
    if any(complaints.counts(archive).values()):
        return
    complaints.complain(
        archive,
        url=f"{site.SEED}nieuws/vlasweek.html",
        words="The photograph shows my daughter as a child. Please remove it.",
        who=Who.PERSON,
        ground=Objection.PORTRAIT,
        name="M. Jansen",
    )


def _exchange_and_copy(archive: Archive, clock: _SettableClock) -> None:
    """Add a partner, and a copy of the depot in which damage was found and repaired."""
    with suppress(Conflict):
        partner_admin.add(archive, "landesarchiv", "https://oai.landesarchiv.example/oai", by=_BY)
    folder = archive.home / "copy"
    storage_places.add_place(archive, _COPY, str(folder))
    storage_places.fill(archive)
    damaged = max((path for path in folder.rglob("*.warc.gz")), key=lambda path: path.stat().st_size)
    _damage(damaged)
    clock.set_days_ago(0.5)
    audit.audit(archive, older_than_days=0)


def _damage(path: Path) -> None:
    """Change one byte, as a failing disk would."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
