"""Events of the audit trail in the reader's language: their messages, and their values before and after.

Events are stored in English, since the depot, the command line and other programs read them too. A member of
an enumeration is stored by its value; which enumeration it is follows from the kind of thing that the event
is about and the name of the field (`_CHOICES`). What people typed stays as it is.
"""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.accounts.roles import Role
from webdepot.depot.places import PlaceState
from webdepot.exchange.partners import OnWithdrawal, UrnCheck
from webdepot.model import Answer, HarvestState, Purpose
from webdepot.provenance import Event
from webdepot.quality.page_ratings import Rating
from webdepot.selection.cases import CaseState, Decision, Objection, Who
from webdepot.selection.permission_basis import Ground
from webdepot.selection.plan_dates import Frequency
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.targets import Origin, Strategy
from webdepot.services.permission.complaints import Area, Audience
from webdepot.url import address_of_key
from webdepot.web.language import wording
from webdepot.web.language.language import Language, name_of

_CHOICES: Mapping[tuple[str, str], tuple[type[StrEnum], str]] = {
    ("access rule", "answer"): (RuleAnswer, "rules.answer_"),
    ("access rule", "access_point"): (AccessPoint, "rules.at_"),
    ("case", "state"): (CaseState, "cases.state_"),
    ("case", "ground"): (Objection, "cases.ground_"),
    ("case", "who"): (Who, "cases.who_"),
    ("case", "decision"): (Decision, "cases.decision_"),
    ("case", "area"): (Area, "cases.area_"),
    ("case", "audience"): (Audience, "cases.audience_"),
    ("harvest", "state"): (HarvestState, "status.state_"),
    ("harvest", "verdict"): (Answer, "quality.verdict_"),
    ("harvest", "rating"): (Rating, "rating."),
    ("partner", "urn_check"): (UrnCheck, "event_values.urn_check_"),
    ("partner", "on_withdrawal"): (OnWithdrawal, "event_values.on_withdrawal_"),
    ("person", "roles"): (Role, "users.role_"),
    ("place", "state"): (PlaceState, "event_values.place_"),
    ("target", "frequency"): (Frequency, "schedule.every_"),
    ("target", "ground"): (Ground, "targets.ground_"),
    ("target", "letter state"): (LetterState, "letters.state_"),
    ("target", "origin"): (Origin, "targets.origin_"),
    ("target", "purpose"): (Purpose, "targets.purpose_"),
    ("target", "state"): (TargetState, "targets.state_"),
    ("target", "strategy"): (Strategy, "targets.strategy_"),
    ("target", "turn state"): (TurnState, "schedule.turn_"),
    ("case", "letter state"): (LetterState, "letters.state_"),
}
"""The enumeration of a field and the beginning of the keys of its texts, by kind of thing and field."""
_TEXTS: Mapping[tuple[str, str], str] = {
    ("target", "act"): "event_values.act_",
    ("case", "act"): "event_values.act_",
    ("access rule", "reason"): "rules.reason_",
    ("harvest", "rule"): "event_values.rule_",
    ("archive", "risk"): "formats.risk_",
}
"""The same for values that are names without an enumeration."""
_CODES = frozenset({"findings", "ignored", "finding"})
_LANGUAGES = frozenset({"language", "languages"})
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)\Z", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_FIELD_LIST = re.compile(r"[a-z_ ]{1,40}(?:, [a-z_ ]{1,40})*\Z", re.ASCII)
_NAMES_FIELDS = frozenset({"changed", "described"})
"""Actions whose message is the list of fields that changed."""

Change = tuple[str, str | None, str | None]


def message_of(language: Language, event: Event) -> str:
    """The message of an event."""
    text = wording.of_reason(language, event.message)
    if event.action in _NAMES_FIELDS and _FIELD_LIST.match(text):
        return ", ".join(wording.of_field(language, name) for name in text.split(", "))
    return wording.of_said(language, "rule_event" if event.subject_kind == "access rule" else "event", text)


def changes_of(language: Language, event: Event) -> list[Change]:
    """Each field with its value before and after; other facts of the event have only the second value."""
    before, after = (
        {**part} if isinstance(part := event.detail.get(name), Mapping) else {}
        for name in ("before", "after")
    )
    others = {name: value for name, value in event.detail.items() if name not in ("before", "after")}

    def shown(name: str, values: Mapping[str, object]) -> str | None:
        return value_of(language, event.subject_kind, name, values[name]) if name in values else None

    changes: list[Change] = [
        (wording.of_field(language, name), shown(name, before), shown(name, after))
        for name in dict.fromkeys((*before, *after))
    ]
    return changes + [(wording.of_field(language, name), None, shown(name, others)) for name in others]


def value_of(language: Language, kind: str, field: str, value: object) -> str:
    """A value as people read it: a dash for an empty one, lists with commas, states and dates in words."""
    if value is None or value in ("", [], {}):
        return "–"
    match value:
        case bool():
            return language.texts["formats.yes" if value else "formats.no"]
        case int():
            return language.number(value)
        case float():
            return language.decimal(value)
        case list():
            return ", ".join(value_of(language, kind, field, each) for each in value)
        case dict():
            pairs = ((name, value_of(language, kind, name, each)) for name, each in value.items())
            return "; ".join(f"{wording.of_field(language, name)}: {each}" for name, each in pairs)
        case str():
            return _text(language, kind, field, value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _text(language: Language, kind: str, field: str, value: str) -> str:
    if _MOMENT.match(value):
        return language.moment(datetime.fromisoformat(value))
    if _DAY.match(value):
        return language.day(date.fromisoformat(value))
    if field in _LANGUAGES:
        return name_of(value, language)
    if (kind, field) == ("access rule", "prefix") and not value.startswith("urn:"):
        return address_of_key(value) if ")" in value else f"*.{address_of_key(f'{value})')}"
    if field in _CODES:
        code = language.texts.get(f"finding_codes.{value.removeprefix('depot.')}")
        return code or wording.of_field(language, value)
    if (kind, field) in _CHOICES:
        members, prefix = _CHOICES[kind, field]
        value = next((member.name.lower() for member in members if member.value == value), value)
        return language.texts.get(prefix + value, value)
    if (kind, field) in _TEXTS:
        return language.texts.get(_TEXTS[kind, field] + re.sub("[ -]", "_", value), value)
    return wording.of_said(language, "public", value)
