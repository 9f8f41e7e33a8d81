"""The software of a site, recognised by its pages, and the rules about the addresses that it makes.

The rules are data: `software.toml`, whose first lines document the format, and a file of the same format in
the archive's folder, which is asked first. `recognise` looks at one page, `find_rule` at one address; what a
crawl knows about each site, and the scope rule made of it, is in `site_software`.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import re2  # type: ignore[import-untyped]

from webdepot.errors import ConfigError
from webdepot.text.patterns import LinearPattern
from webdepot.url import origin_of

FILE_NAME = "software.toml"
ALL = "all"
"""Means every kind, in a list of kinds to include."""
_LONGEST_REASON = 100
_SIGNS_IN = 1 << 17
"""Characters of a page in which its markup is looked for."""
_SOFTWARE_KEYS = frozenset({"name", "generator", "markup", "rules"})
_RULE_KEYS = frozenset({"kind", "parameters", "address", "take", "most", "parts"})


class Take(StrEnum):
    FIRST = "first"
    LAST = "last"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRule:
    """What is done with the matching addresses of a software."""

    kind: str
    take: Take = Take.NONE
    most: int = 0
    """How many are taken for each site, with `Take.LAST`; 0 means all."""
    parts: bool = False
    """Whether it also decides about parts of pages."""
    reason: str
    """Which rule it is and what it matches, for people: `MediaWiki rule 2 (edits): veaction`."""
    matches: Callable[[str], bool]
    """Whether an address matches; called with its decoded path and query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProduct:
    id: str
    name: str
    generator: tuple[str, ...] = ()
    markup: tuple[tuple[str, ...], ...] = ()
    rules: tuple[AddressRule, ...] = ()

    def shows_in(self, generator: str, text: str) -> bool:
        """Whether a page has one of its signs."""
        return generator.lower().startswith(self.generator) or any(
            all(sign in text for sign in signs) for signs in self.markup
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareCatalogue:
    """All known software, and the kinds of addresses in its rules with their descriptions."""

    software: Mapping[str, SiteProduct]
    kinds: Mapping[str, str]

    def recognise(self, generator: str, text: str) -> frozenset[str]:
        """The ids of the software that a page shows signs of."""
        if not generator and not text:
            return frozenset()
        start = text[:_SIGNS_IN]
        return frozenset(each.id for each in self.software.values() if each.shows_in(generator, start))

    def find_rule(self, ids: Iterable[str], url: str) -> AddressRule | None:
        """The rule that decides about an address of a site with this software; None if it is content."""
        address = unquote(url[len(origin_of(url)) :])
        for software in (self.software[id] for id in ids if id in self.software):
            rule = next((each for each in software.rules if each.matches(address)), None)
            if rule is not None and rule.take is not Take.FIRST:
                return rule
        return None


NO_SOFTWARE = SoftwareCatalogue(software={}, kinds={})


@lru_cache(maxsize=1)
def of_package() -> SoftwareCatalogue:
    """The catalogue that comes with the program."""
    text = resources.files("webdepot.harvest.scope").joinpath(FILE_NAME).read_text(encoding="utf-8")
    return from_text(text, FILE_NAME)


def of_archive(home: Path) -> SoftwareCatalogue:
    """The catalogue with the archive's own rules before those of the program. ConfigError if its file is
    invalid.
    """
    path = home / FILE_NAME
    if not path.exists():
        return of_package()
    try:
        return from_text(path.read_text(encoding="utf-8"), str(path), before=of_package())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not in UTF-8: {error}.") from error


def from_text(text: str, origin: str, *, before: SoftwareCatalogue = NO_SOFTWARE) -> SoftwareCatalogue:
    """Read a catalogue; software that is in `before` too gets the rules of both. ConfigError if invalid."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin} is not valid TOML: {error}.") from error
    _require(not set(tree) - {"kinds", "software"}, origin, "has tables other than [kinds] and [software.ID]")
    kinds = tree.get("kinds", {})
    _require(
        isinstance(kinds, dict) and all(isinstance(each, str) for each in kinds.values()),
        f"{origin}: [kinds]",
        'needs lines such as histories = "old versions"',
    )
    _require(ALL not in kinds, f"{origin}: [kinds]", f"has {ALL}, which stands for every kind")
    all_kinds = {**before.kinds, **kinds}
    known = dict(before.software)
    tables = tree.get("software", {})
    _require(isinstance(tables, dict), origin, "needs tables [software.ID]")
    for id, table in tables.items():
        known[id] = _software(id, table, f"{origin}: software.{id}", all_kinds, known.get(id))
    return SoftwareCatalogue(software=known, kinds=all_kinds)


def _software(
    id: str, table: Any, where: str, kinds: Mapping[str, str], before: SiteProduct | None
) -> SiteProduct:
    _require(isinstance(table, dict), where, "must be a table")
    unknown = set(table) - _SOFTWARE_KEYS
    _require(not unknown, where, f"has no key `{min(unknown, default='')}`")
    generator = _texts(table.get("generator", []), f"{where}: generator")
    markup = table.get("markup", [])
    _require(isinstance(markup, list), f"{where}: markup", "must be a list of lists of strings")
    signs = tuple(_texts(each, f"{where}: markup") for each in markup)
    _require(all(signs), f"{where}: markup", "has an empty list, which every page would match")
    tables = table.get("rules", [])
    _require(isinstance(tables, list), f"{where}: rules", "are tables: write [[software.ID.rules]]")
    name = table.get("name", before.name if before else id)
    _require(isinstance(name, str), f"{where}: name", "must be a string")
    rules = tuple(
        _rule(each, f"{where}: rule {number}", f"{name} rule {number}", kinds)
        for number, each in enumerate(tables, 1)
    )
    if before is not None:
        generator, signs = generator + before.generator, signs + before.markup
        rules += before.rules
    _require(bool(generator or signs), where, "needs a sign: generator or markup")
    generator = tuple(each.lower() for each in generator)
    return SiteProduct(id=id, name=name, generator=generator, markup=signs, rules=rules)


def _rule(table: Any, where: str, title: str, kinds: Mapping[str, str]) -> AddressRule:
    _require(isinstance(table, dict), where, "must be a table")
    unknown = set(table) - _RULE_KEYS
    _require(not unknown, where, f"has no key `{min(unknown, default='')}`")
    kind, take, most = table.get("kind"), table.get("take", Take.NONE.value), table.get("most", 0)
    parts = table.get("parts", False)
    _require(kind in kinds, where, f"needs a kind, one of: {', '.join(kinds)}")
    _require(take in set(Take), where, f"has take = {take!r}; it must be one of {', '.join(Take)}")
    _require(type(most) is int and most >= 0, where, "has a `most` that is not a number of 0 or more")
    _require(not most or take == Take.LAST, where, 'has `most`, which needs take = "last"')
    _require(isinstance(parts, bool), where, "has `parts` that is neither true nor false")
    condition, matches = _condition(table, where)
    return AddressRule(
        kind=kind,
        take=Take(take),
        most=most,
        parts=parts,
        reason=f"{title} ({kind}): {condition}",
        matches=matches,
    )


def _condition(table: Mapping[str, Any], where: str) -> tuple[str, Callable[[str], bool]]:
    """What an address must match: as a text, and as a callable."""
    parameters = _texts(table.get("parameters", []), f"{where}: parameters")
    address = table.get("address", "")
    _require(isinstance(address, str), f"{where}: address", "must be a string")
    _require(bool(parameters or address), where, "needs parameters or address")
    conditions, patterns = [], []
    try:
        if address:
            conditions.append(address)
            patterns.append(LinearPattern(address))
        if parameters:
            conditions.append(" or ".join(parameters))
            alternatives = "|".join(map(_parameter, parameters))
            patterns.append(LinearPattern(f"[?&;](?:{alternatives})(?:[&;]|$)"))
    except ValueError as error:
        raise ConfigError(f"{where}: it is not a usable regular expression: {error}.") from error
    condition = " with ".join(conditions)
    if len(condition) > _LONGEST_REASON:
        condition = f"{condition[:_LONGEST_REASON]}…"
    return condition, lambda text: all(pattern.search(text) for pattern in patterns)


def _parameter(text: str) -> str:
    """A regular expression for a parameter: `name`, `name=value`, with `*` for any characters."""
    name, equals, value = text.partition("=")
    return f"{_wildcards(name)}={_wildcards(value)}" if equals else f"{_wildcards(name)}(?:=[^&;]*)?"


def _wildcards(text: str) -> str:
    return "[^&;=]*".join(map(re2.escape, text.split("*")))


def _texts(values: Any, where: str) -> tuple[str, ...]:
    _require(
        isinstance(values, list) and all(isinstance(value, str) and value for value in values),
        where,
        "must be a list of strings",
    )
    return tuple(values)


def _require(is_right: bool, where: str, problem: str) -> None:
    if not is_right:
        raise ConfigError(f"{where} {problem}.")


def check_kinds(kinds: Sequence[str], catalogue: SoftwareCatalogue) -> str:
    """What is wrong with a list of kinds to include; empty if nothing is."""
    unknown = sorted(set(kinds) - set(catalogue.kinds) - {ALL})
    return f"has {unknown[0]!r}; it may contain {', '.join(catalogue.kinds)}, or {ALL}" if unknown else ""
