"""Profiles of harvests, and why an address is or is not harvested.

Profiles stand in webdepot.toml and in HOME/profiles/*.toml; the portal writes the latter. `explain` asks the
same rules as a crawl would, in the same order, and says what each of them answered.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound, WebdepotError
from webdepot.harvest import control, runs
from webdepot.harvest import profile as profiles
from webdepot.harvest.fetch.addresses import Router
from webdepot.harvest.fetch.mode import Fetching
from webdepot.harvest.judge import Judge
from webdepot.harvest.profile import Profile
from webdepot.harvest.scope.scope import ScopeStep
from webdepot.model import Candidate, Hop, Target, Verdict
from webdepot.provenance import Event, append, difference
from webdepot.selection import targets
from webdepot.services.harvest import harvests
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.options import HarvestOptions
from webdepot.url import Url, from_typed, host_of

_log = logging.getLogger(__name__)
_LETTERS = frozenset(Hop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an address is harvested or not."""

    url: Url
    verdict: Verdict
    steps: Sequence[ScopeStep]
    """Every rule in its order with its answer."""
    seeds: Sequence[Url]
    basis: str
    """Whose rules these are, in words."""
    host_words: str
    """What differs for its host, in words; empty where nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenProfile:
    name: str
    problem: str


def every(archive: Archive) -> tuple[list[Profile], list[BrokenProfile]]:
    """All profiles by name, and those that cannot be read, with what is wrong: one broken file hides no
    other.
    """
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


def get(archive: Archive, name: str) -> Profile:
    return profiles.get(archive.home, archive.config.profiles, name)


def text_of(archive: Archive, name: str) -> str:
    """The text of a profile's file, for an editor; empty while it has none (a new one, or one of
    webdepot.toml).
    """
    path = profiles.path_of(archive.home, name)
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def save(archive: Archive, name: str, text: str, *, agent: str = "") -> Profile:
    """Check and keep a profile in its file, with an event; ConfigError says what is wrong with the text."""
    before = text_of(archive, name)
    saved = profiles.save(archive.home, name, text)
    detail = difference({"text": before}, {"text": text})
    with archive.database.transaction() as connection:
        event = Event(
            at=archive.clock(),
            agent=agent or archive.agent,
            action="saved",
            subject_kind="profile",
            subject=name,
            detail=detail,
        )
        append(connection, event)
    return saved


def with_fetch(text: str, way: str) -> str:
    """The text of a profile with how pages are fetched, as a form has it chosen; unchanged for an empty
    choice.
    """
    if not way:
        return text
    if way not in set(Fetching):
        raise InputError(f"{way!r} is no way to fetch pages: {', '.join(Fetching)}.")
    return profiles.with_key(text, "fetch", way)


def options_of(archive: Archive, name: str) -> HarvestOptions:
    """The options of a harvest by the configuration and, with a name, a profile."""
    options = HarvestOptions.from_config(archive.config)
    return harvest_options.with_profile(options, get(archive, name)) if name else options


def get_target(archive: Archive, text: str) -> Target:
    """The target a person means: number, name or address."""
    with archive.database.reading() as connection:
        found = targets.find_named(connection, text)
    if found is None:
        raise NotFound(f"There is no target {text!r}. Name it by its number, its name or its address.")
    return found


def explain(
    archive: Archive,
    typed: str,
    *,
    target: str = "",
    profile: str = "",
    seeds: Sequence[str] = (),
    path: str = "L",
    via: str = "",
) -> Explanation:
    """Which rule decides about an address, and why; nothing is fetched, but names are looked up where a rule
    needs it.

    The rules are those of the named profile, else of the target's last harvest, else of the configuration.
    `path` has the hops by which it would be found (L link, E part of a page, R redirect, X guess, M sitemap),
    empty for a seed.
    """
    if set(path) - _LETTERS:
        raise InputError(
            f"{path!r} is no path of hops: L link, E part of a page, R redirect, X guess, M sitemap."
        )
    url = from_typed(typed)
    options, known_seeds, basis = _rules_of(archive, target, profile)
    asked_seeds = tuple(map(from_typed, seeds)) or known_seeds
    if not asked_seeds:
        raise InputError("Name a target or a profile with seeds: without a seed nothing belongs to anything.")
    verdict, steps = asyncio.run(
        _judged(
            archive, Candidate(url=url, via=from_typed(via) if via else None, path=path), asked_seeds, options
        )
    )
    _log.info(
        "scope explained url=%s rule=%s answer=%s reason=%s",
        url,
        verdict.rule,
        verdict.answer,
        verdict.reason,
    )
    told = harvest_options.told_of(host_of(url), options.hosts)
    host_words = ", ".join(f"{name} {value}" for name, value in told.items() if name != "credentials")
    return Explanation(
        url=url, verdict=verdict, steps=steps, seeds=asked_seeds, basis=basis, host_words=host_words
    )


def _rules_of(archive: Archive, target: str, profile: str) -> tuple[HarvestOptions, tuple[Url, ...], str]:
    found = get_target(archive, target) if target else None
    seeds = found.seeds if found else ()
    if profile:
        chosen = get(archive, profile)
        options = harvest_options.with_profile(HarvestOptions.from_config(archive.config), chosen)
        return options, seeds or tuple(map(from_typed, chosen.seeds)), f"profile {profile}"
    if found is not None:
        with archive.database.reading() as connection:
            last = runs.newest_of(connection, found.id)
        if last is not None:
            # What it was told while it ran; when it has ended that is among its settings.
            ordered = control.standing(control.read(harvests.folder_of(archive, last))).changes
            return (
                harvest_options.changed(harvest_options.from_kept(last.settings), ordered),
                last.seeds,
                f"harvest {last.id}",
            )
    return HarvestOptions.from_config(archive.config), seeds, "configuration"


async def _judged(
    archive: Archive, candidate: Candidate, seeds: tuple[Url, ...], options: HarvestOptions
) -> tuple[Verdict, Sequence[ScopeStep]]:
    given = archive.config.harvest
    router = Router(allow_private=True, connect_to=given.connect_to, timeout_s=given.connect_timeout_s)
    try:
        settings = harvest_options.settings_of(
            archive, seeds, options, agent=archive.user_agent, router=router
        )
        if settings.look_up is not None:
            await settings.look_up([host_of(candidate.url)])
        judge = Judge(settings, None, lambda: (0, 0))
        judge.follow(settings, seeds)
        if (
            settings.scope_limits.hops_outside
            and not judge.inside(candidate)
            and candidate.path.endswith(Hop.LINK)
        ):
            candidate = Candidate(url=candidate.url, via=candidate.via, path=candidate.path, outside=1)
        return judge.of_link(candidate), judge.explain(candidate)
    finally:
        router.close()
