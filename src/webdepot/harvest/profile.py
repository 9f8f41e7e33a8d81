"""Profiles: how a kind of site is harvested, under a name. Written in TOML, by hand or in the portal.

    [profiles.museum]                      # in webdepot.toml; or the same keys in HOME/profiles/museum.toml
    description = "Museums: whole domains, no films"
    scope = "domain"
    limit_host_pages = 20000

    [[profiles.museum.rules]]              # the documented set: `rules.CONDITIONS`
    reject = "extension"
    of = ["avi", "mp4"]

    [profiles.museum.hosts."slow.example.org"]
    delay_s = 10

What a profile does not say is as in the configuration; what the command line says goes before both. `KEYS`
has every key once, with its type, its check and its documentation. A profile of a file wins over one of the
same name in webdepot.toml.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.harvest.fetch.mode import BEHAVIOURS, Fetching, Screenshots
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.scope import rules
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.rules import RuleSpec

FOLDER_NAME = "profiles"
MOST_BYTES = 256 << 10
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}\Z")

Check = Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a profile."""

    kind: type
    doc: str
    check: Check = lambda value: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile as read and checked. `values` has only what was said."""

    name: str
    description: str = ""
    seeds: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `KEYS` but for seeds, description, rules and hosts."""
    rules: tuple[RuleSpec, ...] = ()
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Host or domain (`.example.org`) -> what differs there, by `HOST_KEYS`."""
    origin: str = ""
    """File it was read from, for a person."""


def _positive(value: float) -> str:
    return "" if value >= 0 else "must be 0 or more"


def _one_of(*known: str) -> Check:
    return lambda value: "" if value in known else f"must be one of {', '.join(known)}"


def _each_of(*known: str) -> Check:
    return lambda values: (
        "" if set(values) <= set(known) else f"has words that are none of {', '.join(known)}"
    )


def _patterns(values: list[str]) -> str:
    for value in values:
        try:
            re.compile(value)
        except re.error as error:
            return f"has {value!r}, which is no regular expression: {error}"
    return ""


_ROBOTS = _one_of(*RobotsPolicy)
KEYS: Mapping[str, Key] = {
    "description": Key(kind=str, doc="What it is for, in a sentence."),
    "seeds": Key(kind=list, doc="Addresses to start from, where none are named."),
    "collection": Key(kind=str, doc="Collection the harvests go into."),
    "scope": Key(
        kind=str, doc="What belongs to a seed: host, domain, prefix or any.", check=_one_of(*ScopeKind)
    ),
    "reject": Key(
        kind=list, doc="Regular expressions; an address in which one is found is left out.", check=_patterns
    ),
    "hops_outside": Key(kind=int, doc="Links followed beyond the scope.", check=_positive),
    "embed_hops": Key(kind=int, doc="How deep a part of a part may be.", check=_positive),
    "hops": Key(
        kind=int,
        doc="Links from the seed at most; parts, redirects and guesses do not count.",
        check=_positive,
    ),
    "guess_hops": Key(kind=int, doc="Guesses on the way to an address at most.", check=_positive),
    "redirects": Key(kind=int, doc="Redirects in a row at most.", check=_positive),
    "path_segments": Key(kind=int, doc="Path segments at most.", check=_positive),
    "repeats": Key(kind=int, doc="How often one path segment may stand in an address.", check=_positive),
    "url_letters": Key(kind=int, doc="Letters of an address at most.", check=_positive),
    "query_letters": Key(kind=int, doc="Letters after the question mark at most.", check=_positive),
    "calendar_years": Key(
        kind=int, doc="Years that a date in an address may lie ahead; 0 means any.", check=_positive
    ),
    "robots": Key(
        kind=str,
        doc="robots.txt: obey, obey-but-embeds (parts of pages are fetched all the same), or ignore.",
        check=_ROBOTS,
    ),
    "robots_reason": Key(
        kind=str, doc="Why robots.txt is not obeyed; recorded with the harvest and in its containers."
    ),
    "nofollow": Key(
        kind=str,
        doc="Which words against following are obeyed: all, page (meta robots and X-Robots-Tag, not rel=nofollow), or none.",
        check=_one_of("all", "page", "none"),
    ),
    "fetch": Key(
        kind=str,
        doc="How pages are fetched: plain, browser (each is opened in a browser, too, with all that its scripts ask for), or when-empty "
        "(those that say nothing before their scripts have run).",
        check=_one_of(*Fetching),
    ),
    "screenshots": Key(
        kind=str,
        doc="Of which pages that are opened in the browser a picture is kept: none, seeds or pages.",
        check=_one_of(*Screenshots),
    ),
    "behaviours": Key(
        kind=list,
        doc="What is done in an opened page: scroll (to its end), play (its media), click (all that listens for clicks; nothing is sent).",
        check=_each_of(*BEHAVIOURS),
    ),
    "page_time_s": Key(
        kind=float,
        doc="Seconds that a page has in the browser; what we take to fetch its parts does not count.",
        check=lambda value: "" if value >= 1 else "must be 1 or more",
    ),
    "guess": Key(
        kind=bool,
        doc="Read addresses out of scripts; tried last, and no more at a host where most of them fail.",
    ),
    "ignore_parameters": Key(
        kind=list,
        doc="Query arguments that make no other page (`utm_*`); session ids of known kinds are always such.",
    ),
    "delay_s": Key(
        kind=float, doc="Shortest pause between two requests to one server, in seconds.", check=_positive
    ),
    "workers": Key(
        kind=int,
        doc="Requests in flight at once over all servers.",
        check=lambda value: "" if value >= 1 else "must be 1 or more",
    ),
    "limit_pages": Key(
        kind=int, doc="The harvest stops after so many documents; 0 means no limit.", check=_positive
    ),
    "limit_bytes": Key(
        kind=int, doc="The harvest stops after so many bytes; 0 means no limit.", check=_positive
    ),
    "limit_time_s": Key(
        kind=float, doc="The harvest stops after so many seconds; 0 means no limit.", check=_positive
    ),
    "limit_host_pages": Key(
        kind=int, doc="So many documents of one host at most; 0 means no limit.", check=_positive
    ),
    "limit_host_bytes": Key(
        kind=int, doc="So many bytes of one host at most; 0 means no limit.", check=_positive
    ),
    "allow_private": Key(kind=bool, doc="Allow private and loopback addresses."),
    "rules": Key(kind=list, doc="Decide rules in their order; the last that answers wins."),
    "hosts": Key(kind=dict, doc="What differs for a host, or, with a dot before it, for a domain."),
}
HOST_KEYS: Mapping[str, Key] = {
    "delay_s": Key(kind=float, doc="Shortest pause at this host, in seconds.", check=_positive),
    "robots": Key(kind=str, doc="robots.txt of this host: obey, obey-but-embeds or ignore.", check=_ROBOTS),
    "robots_reason": Key(kind=str, doc="Why robots.txt of this host is not obeyed."),
    "fetch": Key(
        kind=str,
        doc="How pages of this host are fetched: plain, browser or when-empty.",
        check=_one_of(*Fetching),
    ),
    "limit_pages": Key(kind=int, doc="So many documents of this host at most.", check=_positive),
    "limit_bytes": Key(kind=int, doc="So many bytes of this host at most.", check=_positive),
    "bytes_per_s": Key(
        kind=int, doc="Bandwidth taken from this host at most, in bytes a second.", check=_positive
    ),
    "credentials": Key(kind=str, doc="Name of the credentials to sign in with."),
}
_APART = frozenset({"description", "seeds", "rules", "hosts"})


def from_tree(name: str, tree: Mapping[str, Any], *, origin: str) -> Profile:
    """Read parsed TOML; ConfigError names file, key and what is wrong."""
    where = f"{origin}: profile {name}"
    if not _NAME.match(name):
        raise ConfigError(f"{where}: a name has small letters, digits, points and dashes, 60 at most.")
    values = {key: _checked(key, value, KEYS, where) for key, value in tree.items()}
    given = values.get("rules", [])
    if not all(isinstance(table, dict) for table in given):
        raise ConfigError(f"{where}: rules are tables: [[rules]] and then their keys.")
    hosts = {}
    for host, table in values.get("hosts", {}).items():
        if not isinstance(table, dict):
            raise ConfigError(f'{where}: hosts are tables: [hosts."{host}"] and then their keys.')
        hosts[host.lower()] = {
            key: _checked(key, value, HOST_KEYS, f"{where}: host {host}") for key, value in table.items()
        }
    _needs_reason(values, where)
    for host, table in hosts.items():
        _needs_reason(table, f"{where}: host {host}")
    return Profile(
        name=name,
        description=values.get("description", ""),
        seeds=tuple(values.get("seeds", ())),
        values={key: value for key, value in values.items() if key not in _APART},
        rules=tuple(
            rules.from_table(table, f"{where}: rule {number}") for number, table in enumerate(given, start=1)
        ),
        hosts=hosts,
        origin=origin,
    )


def from_text(name: str, text: str, *, origin: str) -> Profile:
    """Read the text of a file of its own: the keys stand at the top, or below [profiles.NAME] as in
    webdepot.toml.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin} is not valid TOML: {error}.") from error
    if list(tree) == ["profiles"] and isinstance(tree["profiles"], dict) and list(tree["profiles"]) == [name]:
        tree = tree["profiles"][name]
    return from_tree(name, tree, origin=origin)


def read_all(home: Path, sections: Mapping[str, Any]) -> dict[str, Profile]:
    """Every profile by its name: those of webdepot.toml, then those of files, which win."""
    found = {name: from_tree(name, tree, origin="webdepot.toml") for name, tree in sections.items()}
    folder = home / FOLDER_NAME
    for path in sorted(folder.glob("*.toml")) if folder.is_dir() else []:
        found[path.stem] = from_text(path.stem, _text_of(path), origin=f"{FOLDER_NAME}/{path.name}")
    return dict(sorted(found.items()))


def get(home: Path, sections: Mapping[str, Any], name: str) -> Profile:
    """One profile; NotFound names those that there are. Others may be broken without harm to this one."""
    path = path_of(home, name)
    if path.exists():
        return from_text(name, _text_of(path), origin=f"{FOLDER_NAME}/{path.name}")
    if name in sections:
        return from_tree(name, sections[name], origin="webdepot.toml")
    names = sorted({*sections, *(file.stem for file in (home / FOLDER_NAME).glob("*.toml"))})
    raise NotFound(f"There is no profile {name!r}. There are: {', '.join(names) or 'none yet'}.")


def path_of(home: Path, name: str) -> Path:
    """The file of a profile, whether or not it exists; InputError for a name that is none."""
    if not _NAME.match(name):
        raise InputError(
            f"{name!r} is no name of a profile: small letters, digits, points and dashes, 60 at most."
        )
    return home / FOLDER_NAME / f"{name}.toml"


def save(home: Path, name: str, text: str) -> Profile:
    """Check the text and put it into its file: whole or not at all."""
    if len(text.encode()) > MOST_BYTES:
        raise InputError(f"A profile has at most {MOST_BYTES} bytes.")
    path = path_of(home, name)
    profile = from_text(name, text, origin=f"{FOLDER_NAME}/{path.name}")
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return profile


def with_key(text: str, key: str, value: str) -> str:
    """The text with a key of its top level set to a text; everything else stays as it was written."""
    lines = text.splitlines(keepends=True)
    begin = next((at + 1 for at, line in enumerate(lines) if line.lstrip().startswith("[profiles.")), 0)
    end = next((at for at in range(begin, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
    new = f'{key} = "{value}"\n'
    for at in range(begin, end):
        if re.match(rf"\s*{re.escape(key)}\s*=", lines[at]):
            lines[at] = new
            return "".join(lines)
    return "".join([*lines[:begin], new, *lines[begin:]])


def _text_of(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is too large for a profile ({MOST_BYTES} bytes at most).")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not in UTF-8: {error}.") from error


def _checked(key: str, value: Any, known: Mapping[str, Key], where: str) -> Any:
    found = known.get(key)
    if found is None:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        raise ConfigError(f"{where}: unknown key `{key}`.{f' Did you mean `{near[0]}`?' if near else ''}")
    if found.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not found.kind:
        raise ConfigError(f"{where}: {key} = {value!r} must be {_WORDS[found.kind]}.")
    if isinstance(value, list) and key != "rules" and not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: {key} must be a list of texts.")
    wrong = found.check(value)
    if wrong:
        raise ConfigError(f"{where}: {key} {wrong}.")
    return value


def _needs_reason(values: Mapping[str, Any], where: str) -> None:
    """To go against the owner's robots.txt is a decision, and decisions have reasons."""
    if (
        values.get("robots", RobotsPolicy.OBEY) != RobotsPolicy.OBEY
        and not values.get("robots_reason", "").strip()
    ):
        raise ConfigError(
            f'{where}: robots = "{values["robots"]}" needs robots_reason: why is robots.txt not obeyed?'
        )


_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
