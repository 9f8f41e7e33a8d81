"""Profiles: named settings for harvesting a kind of site. Written in TOML, by hand or in the portal.

    [profiles.museum]                      # in webdepot.toml; or the same keys in HOME/profiles/museum.toml
    description = "Museums: whole domains, no films"
    scope = "domain"
    limit_host_pages = 20000

    [[profiles.museum.rules]]              # the documented set: `conditions.CONDITIONS`
    reject = "extension"
    of = ["avi", "mp4"]

    [profiles.museum.hosts."slow.example.org"]
    delay_s = 10

Keys that a profile does not set are taken from the configuration; the command line overrides both. `KEYS` has
every key with its type, its check and its documentation. A profile in a file overrides one of the same name
in webdepot.toml.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.harvest.fetch.fetch_mode import BEHAVIOURS, Fetching, Screenshots
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.scope import profile_rules
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.profile_rules import RuleSpec
from webdepot.reasons import said
from webdepot.text.patterns import LinearPattern

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
    """What is wrong with a value; empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestProfile:
    """A profile as read and checked. `values` has only the keys that it sets."""

    name: str
    description: str = ""
    seeds: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `KEYS` except seeds, description, rules and hosts."""
    rules: tuple[RuleSpec, ...] = ()
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Host or domain (`.example.org`) -> its own settings, by `HOST_KEYS`."""
    origin: str = ""
    """The file it was read from, for messages."""


def _positive(value: float) -> str:
    return "" if value >= 0 else "must be 0 or more"


def _one_of(*known: str) -> Check:
    return lambda value: "" if value in known else f"must be one of {', '.join(known)}"


def _each_of(*known: str) -> Check:
    return lambda values: "" if set(values) <= set(known) else f"may only contain {', '.join(known)}"


def _patterns(values: list[str]) -> str:
    for value in values:
        try:
            LinearPattern(value)
        except ValueError as error:
            return f"has {value!r}, which is not a usable regular expression: {error}"
    return ""


_ROBOTS = _one_of(*RobotsPolicy)
KEYS: Mapping[str, Key] = {
    "description": Key(kind=str, doc="Purpose of the profile, in one sentence."),
    "seeds": Key(kind=list, doc="URLs to start from if none are given."),
    "collection": Key(kind=str, doc="Collection that the harvests belong to."),
    "scope": Key(
        kind=str, doc="What belongs to a seed: host, domain, prefix or any.", check=_one_of(*ScopeKind)
    ),
    "reject": Key(
        kind=list, doc="Regular expressions; URLs in which one is found are not harvested.", check=_patterns
    ),
    "hops_outside": Key(kind=int, doc="How many links are followed beyond the scope.", check=_positive),
    "embed_hops": Key(kind=int, doc="How deeply parts from other hosts may be nested.", check=_positive),
    "hops": Key(
        kind=int,
        doc="Maximum number of links from the seed; parts, redirects and guesses do not count.",
        check=_positive,
    ),
    "guess_hops": Key(kind=int, doc="Maximum number of guesses on the path to a URL.", check=_positive),
    "redirects": Key(kind=int, doc="Maximum number of redirects in a row.", check=_positive),
    "path_segments": Key(kind=int, doc="Maximum number of path segments.", check=_positive),
    "repeats": Key(kind=int, doc="How often the same path segment may occur in a URL.", check=_positive),
    "url_letters": Key(
        kind=int, doc="Maximum length of a URL in characters; not for parts of pages.", check=_positive
    ),
    "query_letters": Key(
        kind=int, doc="Maximum length of the query in characters; not for parts of pages.", check=_positive
    ),
    "calendar_years": Key(
        kind=int, doc="How many years ahead a date in a URL may be; 0 means any number.", check=_positive
    ),
    "include": Key(
        kind=list,
        doc="Kinds of addresses to harvest although the software of a site only adds them to its content, "
        "such as histories or feeds; `all` for every kind (`webdepot scope software`).",
    ),
    "robots": Key(
        kind=str,
        doc="robots.txt: obey, obey-but-embeds (parts of pages are fetched anyway), or ignore.",
        check=_ROBOTS,
    ),
    "robots_reason": Key(
        kind=str, doc="Why robots.txt is not obeyed; recorded with the harvest and in its containers."
    ),
    "nofollow": Key(
        kind=str,
        doc="Which nofollow requests are obeyed: all, page (meta robots and X-Robots-Tag, not rel=nofollow), "
        "or none.",
        check=_one_of("all", "page", "none"),
    ),
    "fetch": Key(
        kind=str,
        doc="How pages are fetched: plain, browser (each page is also opened in a browser, and everything "
        "that its scripts request is fetched), when-empty (only pages without text before their scripts "
        "have run), or auto (when-empty where a browser is installed, otherwise plain).",
        check=_one_of(*Fetching),
    ),
    "screenshots": Key(
        kind=str,
        doc="Which pages opened in the browser get a screenshot: none, seeds or pages.",
        check=_one_of(*Screenshots),
    ),
    "behaviours": Key(
        kind=list,
        doc="What is done in an opened page: consent (close consent banners, rejecting where possible), "
        "scroll (to the end), play (media), click (load more, tabs, menus and in-page navigation; nothing is "
        "submitted).",
        check=_each_of(*BEHAVIOURS),
    ),
    "page_time_s": Key(
        kind=float,
        doc="Seconds that a page may take in the browser, without the time to fetch its parts.",
        check=lambda value: "" if value >= 1 else "must be 1 or more",
    ),
    "guess": Key(
        kind=bool,
        doc="Guess URLs in scripts; they are tried last, and no longer at hosts where most of them fail.",
    ),
    "ignore_parameters": Key(
        kind=list,
        doc="Query parameters that do not change the page (`utm_*`); known session ids are always ignored.",
    ),
    "delay_s": Key(
        kind=float, doc="Minimum pause between two requests to one server, in seconds.", check=_positive
    ),
    "workers": Key(
        kind=int,
        doc="Maximum number of simultaneous requests over all servers.",
        check=lambda value: "" if value >= 1 else "must be 1 or more",
    ),
    "limit_pages": Key(
        kind=int,
        doc="The harvest ends after this many pages and their parts; 0 means no limit.",
        check=_positive,
    ),
    "limit_documents": Key(
        kind=int,
        doc="The harvest ends after this many pages, parts and files; 0 means no limit.",
        check=_positive,
    ),
    "limit_bytes": Key(
        kind=int, doc="The harvest ends after this many bytes; 0 means no limit.", check=_positive
    ),
    "limit_time_s": Key(
        kind=float, doc="The harvest ends after this many seconds; 0 means no limit.", check=_positive
    ),
    "limit_host_pages": Key(
        kind=int, doc="Maximum number of pages from one host; 0 means no limit.", check=_positive
    ),
    "limit_host_documents": Key(
        kind=int,
        doc="Maximum number of pages, parts and files from one host; 0 means no limit.",
        check=_positive,
    ),
    "limit_host_bytes": Key(
        kind=int, doc="Maximum number of bytes from one host; 0 means no limit.", check=_positive
    ),
    "rules": Key(kind=list, doc="Decide rules, in order; the last one that answers wins."),
    "hosts": Key(kind=dict, doc="Settings of a host or, with a leading dot, of a domain."),
}
HOST_KEYS: Mapping[str, Key] = {
    "delay_s": Key(kind=float, doc="Minimum pause at this host, in seconds.", check=_positive),
    "robots": Key(kind=str, doc="robots.txt of this host: obey, obey-but-embeds or ignore.", check=_ROBOTS),
    "robots_reason": Key(kind=str, doc="Why robots.txt of this host is not obeyed."),
    "fetch": Key(
        kind=str,
        doc="How pages of this host are fetched: plain, browser, when-empty or auto.",
        check=_one_of(*Fetching),
    ),
    "limit_pages": Key(kind=int, doc="Maximum number of pages from this host.", check=_positive),
    "limit_documents": Key(
        kind=int, doc="Maximum number of pages, parts and files from this host.", check=_positive
    ),
    "limit_bytes": Key(kind=int, doc="Maximum number of bytes from this host.", check=_positive),
    "bytes_per_s": Key(
        kind=int, doc="Maximum bandwidth for this host, in bytes per second.", check=_positive
    ),
    "credentials": Key(
        kind=str, doc="Name of the login to use, which must be for this host. Only administrators set it."
    ),
}
_MOVED = {
    "allow_private": "It is no longer a key of profiles: administrators name the networks in "
    "harvest.private_networks of webdepot.toml. Remove it here",
}
"""Former keys, and what to do about them."""
_APART = frozenset({"description", "seeds", "rules", "hosts"})


def check_key(key: str, value: Any) -> str:
    """What is wrong with the value of a key; empty if nothing is."""
    return KEYS[key].check(value)


def from_tree(name: str, tree: Mapping[str, Any], *, origin: str) -> HarvestProfile:
    """Read parsed TOML; ConfigError names the file, the key and the problem."""
    where = f"{origin}: profile {name}"
    if not _NAME.match(name):
        raise ConfigError(f"{where}: a name has at most 60 lower-case letters, digits, dots and hyphens.")
    values = {key: _checked(key, value, KEYS, where) for key, value in tree.items()}
    tables = values.get("rules", [])
    if not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{where}: rules are tables: write [[rules]] and then the keys.")
    hosts = {}
    for host, table in values.get("hosts", {}).items():
        if not isinstance(table, dict):
            raise ConfigError(f'{where}: hosts are tables: write [hosts."{host}"] and then the keys.')
        hosts[host.lower()] = {
            key: _checked(key, value, HOST_KEYS, f"{where}: host {host}") for key, value in table.items()
        }
    _require_reason(values, where)
    for host, table in hosts.items():
        _require_reason(table, f"{where}: host {host}")
    return HarvestProfile(
        name=name,
        description=values.get("description", ""),
        seeds=tuple(values.get("seeds", ())),
        values={key: value for key, value in values.items() if key not in _APART},
        rules=tuple(
            profile_rules.from_table(table, f"{where}: rule {number}")
            for number, table in enumerate(tables, start=1)
        ),
        hosts=hosts,
        origin=origin,
    )


def from_text(name: str, text: str, *, origin: str) -> HarvestProfile:
    """Read the text of a profile file. The keys are at the top level, or below [profiles.NAME] as in
    webdepot.toml.
    """
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number with too many digits, or deep nesting
        raise ConfigError(f"{origin} is not valid TOML: {error}.") from error
    if list(tree) == ["profiles"] and isinstance(tree["profiles"], dict) and list(tree["profiles"]) == [name]:
        tree = tree["profiles"][name]
    return from_tree(name, tree, origin=origin)


def get(home: Path, sections: Mapping[str, Any], name: str) -> HarvestProfile:
    """One profile; NotFound names those that exist. Other profiles may be invalid."""
    path = path_of(home, name)
    if path.exists():
        return from_text(name, _text_of(path), origin=f"{FOLDER_NAME}/{path.name}")
    if name in sections:
        return from_tree(name, sections[name], origin="webdepot.toml")
    names = sorted({*sections, *(file.stem for file in (home / FOLDER_NAME).glob("*.toml"))})
    raise NotFound(
        said(
            "missing_profile",
            "There is no profile {name}. Known profiles: {names}.",
            name=name,
            names=", ".join(names) or "none",
        )
    )


def path_of(home: Path, name: str) -> Path:
    """The file of a profile, whether or not it exists; InputError if the name is invalid."""
    if not _NAME.match(name):
        raise InputError(
            f"{name!r} is not a name for a profile. "
            "Use at most 60 lower-case letters, digits, dots and hyphens."
        )
    return home / FOLDER_NAME / f"{name}.toml"


def save(home: Path, name: str, text: str) -> HarvestProfile:
    """Check the text and write it to its file, whole or not at all."""
    if len(text.encode()) > MOST_BYTES:
        raise InputError(f"A profile may have at most {MOST_BYTES} bytes.")
    path = path_of(home, name)
    profile = from_text(name, text, origin=f"{FOLDER_NAME}/{path.name}")
    path.parent.mkdir(exist_ok=True)
    durable.write_whole(path, text.encode())
    return profile


def credentials_of(profile: HarvestProfile) -> dict[str, str]:
    """Which login the profile names for which host."""
    return {
        host: str(values["credentials"])
        for host, values in profile.hosts.items()
        if values.get("credentials")
    }


def _text_of(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is too large for a profile: at most {MOST_BYTES} bytes are allowed.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not in UTF-8: {error}.") from error


def _checked(key: str, value: Any, known: Mapping[str, Key], where: str) -> Any:
    definition = known.get(key)
    if definition is None and key in _MOVED:
        raise ConfigError(f"{where}: unknown key `{key}`. {_MOVED[key]}.")
    if definition is None:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        raise ConfigError(f"{where}: unknown key `{key}`.{f' Did you mean `{near[0]}`?' if near else ''}")
    if definition.kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ConfigError(f"{where}: {key} is too large.") from None
    if type(value) is not definition.kind:
        raise ConfigError(f"{where}: {key} = {value!r} must be {_TYPE_NAMES[definition.kind]}.")
    if isinstance(value, list) and key != "rules" and not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: {key} must be a list of strings.")
    problem = definition.check(value)
    if problem:
        raise ConfigError(f"{where}: {key} {problem}.")
    return value


def _require_reason(values: Mapping[str, Any], where: str) -> None:
    """ConfigError if robots.txt is not obeyed and no reason is recorded."""
    if (
        values.get("robots", RobotsPolicy.OBEY) != RobotsPolicy.OBEY
        and not values.get("robots_reason", "").strip()
    ):
        raise ConfigError(
            f'{where}: robots = "{values["robots"]}" needs robots_reason. Say why robots.txt is not obeyed.'
        )


_TYPE_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
