"""The configuration: one frozen tree, read from one TOML file and from `WEBDEPOT_*` environment variables.

The keys, with default, check and description, are in `sections`. An unknown key is an error that suggests the
nearest known one.

    [section]
    key = value          # or in the environment: WEBDEPOT_SECTION_KEY=value
"""

import dataclasses
import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from webdepot.config.settings import Config
from webdepot.errors import ConfigError

FILE_NAME = "webdepot.toml"
_NO_SECTIONS = frozenset({"home", "profiles", "sources"})
"""Fields of `Config` that are not sections of keys."""
_RETIRED = frozenset({"web.secure_cookies"})
"""Keys of earlier versions that no longer have any effect, so that an old file can still be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key as `webdepot config show` and the reference page list it."""

    name: str
    kind: str
    default: object
    value: object
    source: str
    doc: str


def read(home: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration of an archive; the defaults if it has no file. ConfigError if it is not valid."""
    path = home / FILE_NAME
    tree: dict[str, Any] = {}
    if path.exists():
        try:
            tree = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{path} is not valid TOML: {error}. Correct the file, or delete it and run: webdepot init"
            ) from error
    return from_tree(home, tree, environment=environment, origin=str(path))


def from_tree(home: Path, tree: Mapping[str, Any], *, environment: Mapping[str, str], origin: str) -> Config:
    """The configuration from parsed TOML and the environment, with every key checked."""
    sections = {item.name: item for item in dataclasses.fields(Config) if item.name not in _NO_SECTIONS}
    profiles = tree.get("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
        raise ConfigError(f"{origin}: profiles must be tables with a name: [profiles.NAME].")
    unknown = next((name for name in tree if name not in sections and name != "profiles"), None)
    if unknown:
        raise ConfigError(f"{origin}: unknown section [{unknown}].{_nearest(unknown, sections)}")
    sources: dict[str, str] = {}
    parts: dict[str, Any] = {}
    for name, item in sections.items():
        kind = _section_type(item)
        if not isinstance(tree.get(name, {}), dict):
            raise ConfigError(f"{origin}: [{name}] must be a section with keys.")
        values = dict(tree.get(name, {}))
        sources.update({f"{name}.{key}": origin for key in values})
        for key in dataclasses.fields(kind):
            variable = f"WEBDEPOT_{name}_{key.name}".upper()
            if variable in environment:
                values[key.name] = environment[variable]
                sources[f"{name}.{key.name}"] = variable
        parts[name] = _section(kind, name, values, origin)
    config = Config(home=home, profiles=profiles, sources=sources, **parts)
    if config.index.captures == "postgresql" and not config.database.url:
        raise ConfigError(f"{origin}: [index] captures = 'postgresql' needs a server. Set [database] url.")
    if config.index.engine == "opensearch" and not config.index.opensearch_url:
        raise ConfigError(
            f"{origin}: [index] engine = 'opensearch' needs a server. Set [index] opensearch_url."
        )
    if config.engine.kind == "dask" and not config.engine.scheduler:
        raise ConfigError(f"{origin}: [engine] kind = 'dask' needs a cluster. Set [engine] scheduler.")
    if config.cluster.harvesters and not (config.database.url and config.work.place):
        raise ConfigError(
            f"{origin}: [cluster] harvesters = true needs a database and a place for files that all machines "
            "reach. Set [database] url and [work] place."
        )
    return config


def iter_settings(config: Config) -> Iterator[Setting]:
    """Every key in the order of `Config`, with its value and the source of the value."""
    for item in dataclasses.fields(Config):
        if item.name in _NO_SECTIONS:
            continue
        section = getattr(config, item.name)
        hints = get_type_hints(type(section))
        for key in dataclasses.fields(section):
            name = f"{item.name}.{key.name}"
            yield Setting(
                name=name,
                kind=_type_name(hints[key.name]),
                default=_default(key),
                value=_shown(key.name, getattr(section, key.name)),
                source=config.sources.get(name, "default"),
                doc=key.metadata["doc"],
            )


def _shown(name: str, value: object) -> object:
    """The value to show; secrets are masked."""
    return "***" if value and name.endswith(("password", "secret")) else value


def sections() -> Iterator[tuple[str, str]]:
    """Section names and descriptions, for the reference page and the file written by `init`."""
    for item in dataclasses.fields(Config):
        if item.name not in _NO_SECTIONS:
            yield item.name, " ".join((_section_type(item).__doc__ or "").split())


def _section_type(item: "dataclasses.Field[Any]") -> Any:
    return get_type_hints(Config)[item.name]


def _section(kind: Any, name: str, raw_values: Mapping[str, Any], origin: str) -> Any:
    hints = get_type_hints(kind)
    keys = {key.name: key for key in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for key, raw in raw_values.items():
        if f"{name}.{key}" in _RETIRED:
            continue
        if key not in keys:
            raise ConfigError(f"{origin}: unknown key `{key}` in [{name}].{_nearest(key, keys)}")
        value = _converted(key, raw, hints[key], f"{origin}: [{name}] {key}")
        check = keys[key].metadata["check"]
        wrong = check(value) if check else None
        if wrong:
            raise ConfigError(f"{origin}: [{name}] {key} = {_shown(key, raw)!r} {wrong}.")
        values[key] = value
    return kind(**values)


def _converted(key: str, raw: Any, kind: Any, where: str) -> Any:
    """A value as the type of its key. TOML values are typed already, environment values are text."""
    origin = get_origin(kind)
    if kind is bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, str) and raw.lower() in ("true", "false", "1", "0", "yes", "no"):
            return raw.lower() in ("true", "1", "yes")
    elif kind is str and isinstance(raw, str):
        return raw
    elif kind in (int, float) and not isinstance(raw, bool):
        try:
            if kind is int and isinstance(raw, float):
                raise ValueError
            return kind(raw)
        except (TypeError, ValueError):
            pass
    elif origin is tuple:
        items = raw.split(",") if isinstance(raw, str) else raw
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            return tuple(item.strip() for item in items)
    elif get_args(kind) == (str, str):
        table = _table(raw) if isinstance(raw, str) else raw
        if isinstance(table, dict) and all(isinstance(item, str) for item in table.values()):
            return dict(table)
    raise ConfigError(f"{where} = {_shown(key, raw)!r} must be {_type_name(kind)}.")


def _table(text: str) -> dict[str, str] | None:
    """A table from the environment: name=value, name=value."""
    pairs = [item.partition("=") for item in text.split(",") if item.strip()]
    if not all(separator for _, separator, _ in pairs):
        return None
    return {name.strip(): value.strip() for name, _, value in pairs}


def _type_name(kind: Any) -> str:
    names = {bool: "true or false", str: "text", int: "a whole number", float: "a number"}
    if kind in names:
        return names[kind]
    return "a list of strings" if get_origin(kind) is tuple else "a table of strings"


def _default(key: "dataclasses.Field[Any]") -> object:
    return key.default if key.default is not dataclasses.MISSING else key.default_factory()  # type: ignore[operator]


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f" Did you mean `{near[0]}`?" if near else f" Known: {', '.join(known)}."
