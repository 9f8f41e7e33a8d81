"""A profile as the fields of a form, and a form as a change of the profile's text.

Only the text is stored: a form changes only the keys whose fields were changed, in place
(`harvest.profile_text`). Comments, layout and everything that the form does not show stay as they were, and
a form that is sent without a change leaves every byte as it was.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webdepot.archive import Archive
from webdepot.errors import ConfigError, InputError
from webdepot.harvest import profile as profile_keys
from webdepot.harvest import profile_text
from webdepot.harvest.fetch.fetch_mode import BEHAVIOURS, Fetching, Screenshots
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.profile import KEYS, HarvestProfile
from webdepot.harvest.scope import profile_rules
from webdepot.harvest.scope.conditions import CONDITIONS
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.profile_rules import RuleSpec
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.options import HarvestOptions

GROUPS: Mapping[str, tuple[str, ...]] = {
    "about": ("description", "seeds", "collection"),
    "scope": ("scope", "hops_outside", "reject", "include", "ignore_parameters"),
    "limits": (
        "limit_pages",
        "limit_documents",
        "limit_bytes",
        "limit_time_s",
        "limit_host_pages",
        "limit_host_documents",
        "limit_host_bytes",
    ),
    "politeness": ("delay_s", "workers", "robots", "robots_reason", "nofollow"),
    "browser": ("fetch", "screenshots", "page_time_s", "behaviours"),
    "traps": (
        "hops",
        "embed_hops",
        "redirects",
        "guess",
        "guess_hops",
        "path_segments",
        "repeats",
        "url_letters",
        "query_letters",
        "calendar_years",
    ),
}
"""The keys that the form shows, by heading."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "scope": tuple(ScopeKind),
    "robots": tuple(RobotsPolicy),
    "nofollow": ("all", "page", "none"),
    "fetch": tuple(Fetching),
    "screenshots": tuple(Screenshots),
    "guess": ("true", "false"),
}
MORE_RULES = 3
"""Empty rows for new rules."""
_SHOWN = tuple(key for keys in GROUPS.values() for key in keys)
_DEFAULT = "default"
"""The choice that means the behaviours of the configuration."""
_WHOLE, _DECIMAL = re.compile(r"[0-9]{1,15}\Z"), re.compile(r"[0-9]{1,9}([.,][0-9]{1,9})?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule as the form shows it."""

    answer: str = ""
    condition: str = ""
    value: str = ""
    """One value in a line, or the number of a condition that takes one."""
    unless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileForm:
    """The fields of a form, and what is wrong with each."""

    fields: Mapping[str, str]
    """By key; empty if the profile does not set it. Lists have one value in a line."""
    rules: Sequence[RuleRow]
    usual: Mapping[str, str]
    """What the configuration sets, which holds for empty fields."""
    can_have_rules: bool = True
    """Otherwise the rules are only shown, because they have comments."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong, by key or `rule-N`: the key of a text, or an English sentence."""


def of_text(archive: Archive, name: str, text: str) -> ProfileForm:
    """The form of a profile. ConfigError if the text is invalid: then only the text can be edited."""
    profile = profile_keys.from_text(name, text, origin=f"{name}.toml")
    return ProfileForm(
        fields=_fields(profile),
        rules=[*map(_row, profile.rules), *[RuleRow()] * MORE_RULES],
        usual=_usual(archive),
        can_have_rules=profile_text.can_have_rules(text),
    )


def read(archive: Archive, name: str, text: str, sent: Mapping[str, str]) -> tuple[str, ProfileForm]:
    """The text after the changes of a form, and the form as it was sent, with its errors. If there are
    errors, the text is unchanged.
    """
    shown = of_text(archive, name, text)
    fields = {key: _sent(key, sent) for key in _SHOWN}
    errors: dict[str, str] = {}
    changed = text
    for key in _SHOWN:
        if fields[key] == shown.fields[key].strip():
            continue
        value, problem = _read(archive, key, fields[key])
        if problem:
            errors[key] = problem
            continue
        try:
            changed = profile_text.with_key(changed, key, value)
        except InputError as error:
            errors[key] = str(error)
    if fields["robots"] not in ("", RobotsPolicy.OBEY) and not fields["robots_reason"]:
        errors["robots_reason"] = "reason"
    rows = _sent_rules(sent) if shown.can_have_rules else shown.rules
    if shown.can_have_rules:
        changed = _with_rules(name, changed, rows, errors)
    form = ProfileForm(
        fields=fields,
        rules=[*rows, *[RuleRow()] * (MORE_RULES if not errors else 1)],
        usual=shown.usual,
        can_have_rules=shown.can_have_rules,
        errors=errors,
    )
    return (text if errors else changed), form


# --- fields ---


def _fields(profile: HarvestProfile) -> dict[str, str]:
    values = {"description": profile.description, "seeds": list(profile.seeds), **profile.values}
    fields = {key: _shown(values.get(key)) for key in _SHOWN}
    fields["behaviours"] = "\n".join(profile.values.get("behaviours", [_DEFAULT]))
    return fields


def _usual(archive: Archive) -> dict[str, str]:
    options = HarvestOptions.from_config(archive.config)
    limits = ScopeLimits(**options.limits)
    usual = {key: getattr(options, key, getattr(limits, key, None)) for key in _SHOWN}
    return {key: _shown(value) for key, value in usual.items()}


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "\n".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sent(key: str, sent: Mapping[str, str]) -> str:
    if key != "behaviours":
        return "\n".join(line.strip() for line in sent.get(key, "").splitlines()).strip()
    chosen = [name for name in BEHAVIOURS if sent.get(f"behaviours-{name}")]
    return _DEFAULT if not chosen and sent.get(f"behaviours-{_DEFAULT}") else "\n".join(chosen)


def _read(archive: Archive, key: str, text: str) -> tuple[profile_text.Value | None, str]:
    """The value of a field, None for an empty one, and what is wrong with it."""
    kind = KEYS[key].kind
    if key == "behaviours":
        return (None if text == _DEFAULT else text.split()), ""
    if not text:
        return None, ""
    value: Any = text
    if kind in (int, float):
        if not (_WHOLE if kind is int else _DECIMAL).match(text):
            return None, "number" if kind is int else "decimal"
        value = int(text) if kind is int else float(text.replace(",", "."))
    elif kind is bool:
        value = text == "true"
    elif kind is list:
        value = [line for line in text.splitlines() if line]
    problem = profile_keys.check_key(key, value)
    if problem and kind in (int, float):
        return value, "least_one"
    if key == "include" and not problem:
        try:
            harvest_options.check_include(archive, value)
        except InputError as error:
            problem = str(error)
    return value, problem


# --- rules ---


def _row(spec: RuleSpec) -> RuleRow:
    takes_number = CONDITIONS[spec.condition].takes == "over"
    return RuleRow(
        answer=spec.answer.value,
        condition=spec.condition,
        value=f"{spec.over:g}" if takes_number else "\n".join(spec.of),
        unless=spec.unless,
    )


def _sent_rules(sent: Mapping[str, str]) -> list[RuleRow]:
    """The rules that were sent; rows without an answer are left out."""
    rows = []
    number = 0
    while f"rule-{number}-answer" in sent:
        row = RuleRow(
            answer=sent[f"rule-{number}-answer"],
            condition=sent.get(f"rule-{number}-condition", ""),
            value="\n".join(sent.get(f"rule-{number}-value", "").split("\n")).strip(),
            unless=bool(sent.get(f"rule-{number}-unless")),
        )
        rows += [row] if row.answer else []
        number += 1
    return rows


def _with_rules(name: str, text: str, rows: Sequence[RuleRow], errors: dict[str, str]) -> str:
    """The text with these rules. What is wrong with them is added to the errors."""
    tables, specs = [], []
    for number, row in enumerate(rows):
        try:
            table = _table(row)
            specs.append(profile_rules.from_table(table, ""))
            tables.append(table)
        except ConfigError as error:
            errors[f"rule-{number}"] = str(error).removeprefix(": ")
    if errors or tuple(specs) == profile_keys.from_text(name, text, origin="").rules:
        return text
    try:
        return profile_text.with_rules(text, tables)
    except InputError as error:
        errors["rules"] = str(error)
        return text


def _table(row: RuleRow) -> dict[str, object]:
    takes = CONDITIONS[row.condition].takes if row.condition in CONDITIONS else ""
    table: dict[str, object] = {row.answer: row.condition}
    if takes == "over":
        if not _DECIMAL.match(row.value):
            raise ConfigError(f"The condition {row.condition} is compared with a number.")
        number = float(row.value.replace(",", "."))
        table["over"] = int(number) if number.is_integer() else number
    elif row.value:
        table["of"] = [line.strip() for line in row.value.splitlines() if line.strip()]
    return table | ({"unless": True} if row.unless else {})
