"""Letters from templates: one text per kind and language, with `{fields}` that are filled in.

The default texts are in `letter_texts/*.toml`; an institution's own texts are stored in the database, every
version of them. A template is not a program: only the fields named here are filled in, and a text with an
unknown field cannot be saved.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from importlib.resources import files

from sqlalchemy import Connection, insert, select

from webdepot.errors import InputError
from webdepot.selection.tables import letter_templates

LANGUAGES = ("en", "nl", "de")
FULL_LINE = 90
"""A line of at least this length continues in the next one."""
LONGEST_SUBJECT = 200
LONGEST_BODY = 20_000
_FIELD = re.compile(r"\{([^{}\n]{0,40})\}")


class LetterKind(StrEnum):
    NOTICE = "notice"
    REMINDER = "reminder"
    RECEIVED = "case received"
    DECIDED = "case decided"


_EVERYWHERE = frozenset({"archive", "purpose", "contact", "date", "portal"})
_OF_NOTICE = _EVERYWHERE | {
    "recipient",
    "site",
    "address",
    "reference",
    "term_days",
    "term_ends",
    "first_harvest",
    "answer_address",
    "user_agent",
}
FIELDS: Mapping[LetterKind, frozenset[str]] = {
    LetterKind.NOTICE: _OF_NOTICE,
    LetterKind.REMINDER: _OF_NOTICE | {"sent_on"},
    # Nothing that was typed into the form: anybody may have typed this address into it.
    LetterKind.RECEIVED: _EVERYWHERE | {"reference"},
    LetterKind.DECIDED: _EVERYWHERE | {"recipient", "reference", "address", "decision", "decision_words"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    kind: LetterKind
    language: str
    subject: str
    body: str
    agent: str = ""
    at: datetime | None = None
    """None for a default text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A letter with its fields filled in."""

    subject: str
    body: str


def get(connection: Connection, kind: LetterKind, language: str) -> Template:
    """The text in use: the institution's latest, or the default; English if the language has none."""
    chosen = language if language in LANGUAGES else LANGUAGES[0]
    row = connection.execute(
        select(letter_templates)
        .where(letter_templates.c.kind == kind.value, letter_templates.c.language == chosen)
        .order_by(letter_templates.c.id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return default_of(kind, chosen)
    return Template(
        kind=kind, language=chosen, subject=row.subject, body=row.body, agent=row.agent, at=row.at
    )


def save(connection: Connection, template: Template, *, agent: str, now: datetime) -> None:
    """Save a new version of a text; InputError names an unknown field."""
    valid = checked(template)
    connection.execute(
        insert(letter_templates).values(
            kind=valid.kind.value,
            language=valid.language,
            subject=valid.subject,
            body=valid.body,
            agent=agent[:200],
            at=now,
        )
    )


def checked(template: Template) -> Template:
    """The template with tidied white space; InputError if it cannot be used."""
    subject, body = " ".join(template.subject.split()), template.body.replace("\r\n", "\n").strip() + "\n"
    if template.language not in LANGUAGES:
        raise InputError(f"Letters can be in {', '.join(LANGUAGES)}, not in {template.language[:20]!r}.")
    if not subject or len(subject) > LONGEST_SUBJECT or not body.strip() or len(body) > LONGEST_BODY:
        raise InputError(
            f"A letter needs a subject of up to {LONGEST_SUBJECT} characters "
            f"and a text of up to {LONGEST_BODY}."
        )
    known = FIELDS[template.kind]
    unknown = next((name for name in _FIELD.findall(subject + body) if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"There is no field {{{unknown}}} in a {template.kind.value}. Known: {', '.join(sorted(known))}."
        )
    if template.kind is LetterKind.NOTICE and "{term_ends}" not in body:
        raise InputError("A notice must contain {term_ends}, the last day on which the owner can refuse.")
    return Template(kind=template.kind, language=template.language, subject=subject, body=body)


def render(template: Template, values: Mapping[str, str]) -> Rendered:
    """The letter with its fields filled in. Values are inserted once: braces inside them are not fields."""

    def fill(match: re.Match[str]) -> str:
        return values.get(match[1], match[0])

    subject = " ".join(_FIELD.sub(fill, template.subject).split())
    return Rendered(subject=subject, body=_FIELD.sub(fill, _join_lines(template.body)))


def _join_lines(body: str) -> str:
    """Each paragraph in one line, so that pages and mail programs wrap it to their width. A short line was
    ended on purpose and stays.
    """
    lines = [line.rstrip() for line in body.rstrip().split("\n")]
    ends = [
        " " if len(line) >= FULL_LINE and following else "\n"
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
    ]
    return "".join(line + end for line, end in zip(lines, ends, strict=True))


@cache
def default_of(kind: LetterKind, language: str) -> Template:
    """The default text."""
    tree = tomllib.loads(
        (files("webdepot.selection") / "letter_texts" / f"{language}.toml").read_text(encoding="utf-8")
    )
    text = tree[kind.value.replace(" ", "_")]
    return Template(kind=kind, language=language, subject=text["subject"], body=text["body"])
