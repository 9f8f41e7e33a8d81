"""Profiles of harvests, and why an address is or is not harvested.

Profiles are in webdepot.toml and in HOME/profiles/*.toml; the portal writes the latter. `explain` applies the
same rules as a crawl, in the same order, and shows the answer of each.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from webdepot import event_loop
from webdepot.archive import Archive
from webdepot.errors import ConfigError, InputError, NotFound, NotPermitted, WebdepotError
from webdepot.harvest import harvest_rows, order_file
from webdepot.harvest import profile as profiles
from webdepot.harvest.fetch import login
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.judge import CrawlJudge
from webdepot.harvest.profile import HarvestProfile
from webdepot.harvest.report.reports import ReportKind
from webdepot.harvest.scope import software_rules
from webdepot.harvest.scope.scope import ScopeStep
from webdepot.harvest.scope.software_rules import SiteProduct, SoftwareCatalogue
from webdepot.model import Candidate, Hop, Target, Verdict
from webdepot.provenance import append, difference
from webdepot.selection import targets
from webdepot.services.harvest import control as harvest_control
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest import orders
from webdepot.services.harvest.options import HarvestOptions
from webdepot.url import Url, from_typed, host_of

_log = logging.getLogger(__name__)
_HOPS = frozenset(Hop)
MOST_BYTES = profiles.MOST_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an address is harvested or not."""

    url: Url
    verdict: Verdict
    steps: Sequence[ScopeStep]
    """Every rule, in order, with its answer."""
    seeds: Sequence[Url]
    basis: str
    """Where the rules come from: a profile, a harvest or the configuration."""
    host_words: str
    """The settings of its host, as text; empty if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenProfile:
    """A profile that cannot be read."""

    name: str
    problem: str


def every(archive: Archive) -> tuple[list[HarvestProfile], list[BrokenProfile]]:
    """All profiles by name, and those that cannot be read, with the problem."""
    names = {
        *archive.config.profiles,
        *(path.stem for path in (archive.home / profiles.FOLDER_NAME).glob("*.toml")),
    }
    good, broken = [], []
    for name in sorted(names):
        try:
            good.append(get(archive, name))
        except WebdepotError as error:
            broken.append(BrokenProfile(name=name, problem=str(error)))
    return good, broken


def get(archive: Archive, name: str) -> HarvestProfile:
    """One profile; NotFound if there is none with this name, ConfigError if it is invalid."""
    return profiles.get(archive.home, archive.config.profiles, name)


def text_of(archive: Archive, name: str) -> str:
    """The text of a profile's file, for an editor; empty if it has no file (new, or in webdepot.toml)."""
    path = profiles.path_of(archive.home, name)
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def save(
    archive: Archive, name: str, text: str, *, agent: str = "", by_administrator: bool = True
) -> HarvestProfile:
    """Check a profile and write it to its file, with an event; ConfigError if the text is invalid.

    NotPermitted if it chooses logins otherwise than before and the person is not an administrator.
    """
    new = profiles.from_text(name, text, origin=profiles.path_of(archive.home, name).name)
    if not by_administrator and profiles.credentials_of(new) != _credentials_before(archive, name):
        raise NotPermitted(
            "Only an administrator may change which login is used for a host (credentials). "
            "Leave these lines as they were, or ask an administrator."
        )
    logins = login.read(archive.home / archive.config.harvest.logins_file)
    harvest_options.check_credentials(logins, new.hosts)
    before = text_of(archive, name)
    saved = profiles.save(archive.home, name, text)
    detail = difference({"text": before}, {"text": text})
    event = archive.event("saved", "profile", name, detail=detail, by=agent)
    with archive.database.transaction() as connection:
        append(connection, event)
    return saved


def _credentials_before(archive: Archive, name: str) -> dict[str, str]:
    try:
        return profiles.credentials_of(get(archive, name))
    except (NotFound, ConfigError):
        return {}


def options_of(archive: Archive, name: str) -> HarvestOptions:
    """The options that the configuration and, if named, a profile set."""
    options = HarvestOptions.from_config(archive.config)
    return harvest_options.with_profile(options, get(archive, name)) if name else options


def software_of(archive: Archive) -> SoftwareCatalogue:
    """The software that harvests recognise, with its rules; ConfigError if the archive's file is invalid."""
    return software_rules.of_archive(archive.home)


def get_software(catalogue: SoftwareCatalogue, name: str) -> SiteProduct:
    """One software; NotFound names those that are known."""
    known = catalogue.software.get(name.lower())
    if known is None:
        raise NotFound(f"No software {name!r} is known. Known: {', '.join(catalogue.software)}.")
    return known


def get_target(archive: Archive, text: str) -> Target:
    """The target with this number, name or address; NotFound if there is none."""
    with archive.database.reading() as connection:
        target = targets.find_named(connection, text)
    if target is None:
        raise NotFound(f"There is no target {text!r}. Give its number, its name or its address.")
    return target


def explain(
    archive: Archive,
    typed: str,
    *,
    target: str = "",
    profile: str = "",
    seeds: Sequence[str] = (),
    path: str = "L",
    via: str = "",
    software_ids: Sequence[str] = (),
) -> Explanation:
    """Which rule decides about an address, and why. Nothing is fetched, but host names are looked up if a
    rule needs that.

    The rules are those of the named profile, else of the target's last harvest, else of the configuration.
    `path` has the hops by which the address would be found (L link, E part of a page, R redirect, X guess,
    M sitemap); empty for a seed. `software_ids` name the software that the site is taken to run, besides
    what the target's last harvest recognised.
    """
    if set(path) - _HOPS:
        raise InputError(
            f"{path!r} is not a path of hops. Use the letters L (link), E (part of a page), R (redirect), "
            "X (guess) and M (sitemap)."
        )
    url = from_typed(typed)
    options, known_seeds, basis = _rules_of(archive, target, profile)
    catalogue = software_of(archive)
    given = [get_software(catalogue, name).id for name in software_ids]
    recognised = [*given, *_recognised(archive, target, host_of(url))]
    used_seeds = tuple(map(from_typed, seeds)) or known_seeds
    if not used_seeds:
        raise InputError("Name a seed, a target or a profile with seeds: the scope is built from the seeds.")
    candidate = Candidate(url=url, via=from_typed(via) if via else None, path=path)
    verdict, steps = event_loop.run(_judge(archive, candidate, used_seeds, options, recognised))
    _log.info(
        "scope explained url=%s rule=%s answer=%s reason=%s",
        url,
        verdict.rule,
        verdict.answer,
        verdict.reason,
    )
    host_settings = harvest_options.settings_of_host(host_of(url), options.hosts)
    host_words = ", ".join(
        f"{name} {value}" for name, value in host_settings.items() if name != "credentials"
    )
    return Explanation(
        url=url, verdict=verdict, steps=steps, seeds=used_seeds, basis=basis, host_words=host_words
    )


def _rules_of(archive: Archive, target: str, profile: str) -> tuple[HarvestOptions, tuple[Url, ...], str]:
    """The options, the seeds, and where both come from."""
    known_target = get_target(archive, target) if target else None
    seeds = known_target.seeds if known_target else ()
    if profile:
        chosen = get(archive, profile)
        options = harvest_options.with_profile(HarvestOptions.from_config(archive.config), chosen)
        return options, seeds or tuple(map(from_typed, chosen.seeds)), f"profile {profile}"
    if known_target is not None:
        with archive.database.reading() as connection:
            last = harvest_rows.newest_of(connection, known_target.id)
        if last is not None:
            # Orders given while it runs; after its end their changes are in its settings.
            changes = order_file.summarize(orders.orders_of(archive, last)).changes
            options = harvest_options.with_changes(harvest_options.from_kept(last.settings), changes)
            return options, last.seeds, f"harvest {last.id}"
    return HarvestOptions.from_config(archive.config), seeds, "configuration"


def _recognised(archive: Archive, target: str, host: str) -> list[str]:
    """The software that the last harvest of a target recognised at a host."""
    if not target:
        return []
    with archive.database.reading() as connection:
        last = harvest_rows.newest_of(connection, get_target(archive, target).id)
    if last is None:
        return []
    try:
        report = harvest_control.report(archive, last.id, ReportKind.SOFTWARE)
    except NotFound:  # it has no log
        return []
    return [str(row["name"]) for row in report.rows if row["host"] == host]


async def _judge(
    archive: Archive,
    candidate: Candidate,
    seeds: tuple[Url, ...],
    options: HarvestOptions,
    recognised: Sequence[str],
) -> tuple[Verdict, Sequence[ScopeStep]]:
    config = archive.config.harvest
    router = Router(allow_private=True, connect_to=config.connect_to, timeout_s=config.connect_timeout_s)
    try:
        settings = harvest_options.settings_of(
            archive, seeds, options, agent=archive.user_agent, router=router
        )
        if settings.look_up is not None:
            await settings.look_up([host_of(candidate.url)])
        judge = CrawlJudge(settings, None, lambda: (0, 0))
        judge.follow(settings, seeds)
        judge.learn_software(host_of(candidate.url), frozenset(recognised))
        if (
            settings.scope_limits.hops_outside
            and not judge.is_inside(candidate)
            and candidate.path.endswith(Hop.LINK)
        ):
            candidate = Candidate(url=candidate.url, via=candidate.via, path=candidate.path, outside=1)
        return judge.of_link(candidate), judge.explain(candidate)
    finally:
        router.close()
