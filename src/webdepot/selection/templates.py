"""Letters from templates: one text per kind and language, with `{fields}` that are filled in.

The texts that come with the program stand in `letter_texts/*.toml`; an institution's own are kept in the
database, every version of them. A template is no program: nothing but the fields named here is filled in, and
an unknown field is refused when it is saved.
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
"""A line of a template that is at least so long goes on in the next one."""
LONGEST_SUBJECT = 200
LONGEST_BODY = 20_000
_FIELD = re.compile(r"\{([^{}\n]{0,40})\}")


class LetterKind(StrEnum):
    NOTICE = "notice"
    REMINDER = "reminder"
    RECEIVED = "case received"
    DECIDED = "case decided"


_EVERYWHERE = frozenset({"archive", "purpose", "contact", "date", "portal"})
FIELDS: Mapping[LetterKind, frozenset[str]] = {
    LetterKind.NOTICE: _EVERYWHERE
    | {
        "recipient",
        "site",
        "address",
        "reference",
        "term_days",
        "term_ends",
        "first_harvest",
        "answer_address",
        "user_agent",
    },
    LetterKind.REMINDER: _EVERYWHERE
    | {
        "recipient",
        "site",
        "address",
        "reference",
        "term_days",
        "term_ends",
        "first_harvest",
        "answer_address",
        "user_agent",
        "sent_on",
    },
    LetterKind.RECEIVED: _EVERYWHERE | {"recipient", "reference", "address", "words"},
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
    """None for a text that came with the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    subject: str
    body: str


def get(connection: Connection, kind: LetterKind, language: str) -> Template:
    """The text in use: the institution's latest, or the program's own; English where the language has none."""
    chosen = language if language in LANGUAGES else LANGUAGES[0]
    row = connection.execute(
        select(letter_templates)
        .where(letter_templates.c.kind == kind.value, letter_templates.c.language == chosen)
        .order_by(letter_templates.c.id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return shipped(kind, chosen)
    return Template(
        kind=kind, language=chosen, subject=row.subject, body=row.body, agent=row.agent, at=row.at
    )


def save(connection: Connection, template: Template, *, agent: str, now: datetime) -> None:
    """A new version of a text; InputError names a field that it cannot have."""
    made = checked(template)
    connection.execute(
        insert(letter_templates).values(
            kind=made.kind.value,
            language=made.language,
            subject=made.subject,
            body=made.body,
            agent=agent[:200],
            at=now,
        )
    )


def checked(template: Template) -> Template:
    subject, body = " ".join(template.subject.split()), template.body.replace("\r\n", "\n").strip() + "\n"
    if template.language not in LANGUAGES:
        raise InputError(f"There are letters in {', '.join(LANGUAGES)}.")
    if not subject or len(subject) > LONGEST_SUBJECT or not body.strip() or len(body) > LONGEST_BODY:
        raise InputError(
            f"A letter needs a subject of up to {LONGEST_SUBJECT} and a text of up to {LONGEST_BODY} characters."
        )
    known = FIELDS[template.kind]
    unknown = next((name for name in _FIELD.findall(subject + body) if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"There is no field {{{unknown}}} in a {template.kind.value}. Known: {', '.join(sorted(known))}."
        )
    if template.kind is LetterKind.NOTICE and "{term_ends}" not in body:
        raise InputError("A notice must say until when the owner can refuse: {term_ends}.")
    return Template(kind=template.kind, language=template.language, subject=subject, body=body)


def render(template: Template, values: Mapping[str, str]) -> Rendered:
    """The letter. Values are put in once: braces inside them stay what they are."""

    def filled(found: re.Match[str]) -> str:
        return values.get(found[1], found[0])

    subject = " ".join(_FIELD.sub(filled, template.subject).split())
    return Rendered(subject=subject, body=_FIELD.sub(filled, _flowing(template.body)))


def _flowing(body: str) -> str:
    """Each paragraph in one line, so that pages and mail break it to their own width. A short line was ended
    on purpose and stays.
    """
    lines = [line.rstrip() for line in body.rstrip().split("\n")]
    ends = [
        " " if len(line) >= FULL_LINE and following else "\n"
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
    ]
    return "".join(line + end for line, end in zip(lines, ends, strict=True))


@cache
def shipped(kind: LetterKind, language: str) -> Template:
    """The text that came with the program."""
    tree = tomllib.loads(
        (files("webdepot.selection") / "letter_texts" / f"{language}.toml").read_text(encoding="utf-8")
    )
    text = tree[kind.value.replace(" ", "_")]
    return Template(kind=kind, language=language, subject=text["subject"], body=text["body"])
