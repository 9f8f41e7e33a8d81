"""The index of words in works, for searching a large catalogue: rows of field, word and key of the record.

Words are compared without case and accents, by their beginnings: `klok` finds `Klokkenmuseum`. Works
(sites, journals, monographs, theses) and articles have rows; other parts are found through their works.

If a query has several words, the rarest is looked up first, and those of its works that have the other words
are chosen.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, delete, exists, func, insert, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from webdepot.exchange.tables import catalogue, catalogue_words
from webdepot.text.search_words import LONGEST_WORD, split

ANY, CREATOR, GENRE, KEYWORD, SUBJECT = "any", "creator", "genre", "keyword", "subject"
"""Fields. A row of SUBJECT has a whole keyword as it was written, for lists of subjects."""
MOST_WORDS = 400
"""Words of one record."""
OTHER = "0"
FEW = 2000
"""A word is rare if at most this many works have it."""
Columns = ReadOnlyColumnCollection[str, Column[Any]]
_AFTER_ALL = "\U0010ffff"
"""Sorts after every other character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredWord:
    """A word, or the beginning of a word, that a work must have in a field."""

    field: str
    word: str
    is_whole: bool = False

    def matches(self, columns: Columns = catalogue_words.c) -> tuple[ColumnElement[bool], ...]:
        words = (
            (columns.word == self.word,)
            if self.is_whole
            else (columns.word >= self.word, columns.word < self.word + _AFTER_ALL)
        )
        return (columns.field == self.field, *words)


def required_words(
    *, words: Iterable[str], creator: str, genre: str, keyword: str, subject: str = ""
) -> list[RequiredWord]:
    """The words of a query, without repetitions."""
    required = [RequiredWord(field=ANY, word=word) for text in words for word in split(text)]
    required += [RequiredWord(field=CREATOR, word=word) for word in split(creator)]
    required += [RequiredWord(field=KEYWORD, word=word) for word in split(keyword)]
    required += [RequiredWord(field=GENRE, word=_whole(genre), is_whole=True)] if genre else []
    required += [RequiredWord(field=SUBJECT, word=_subject(subject), is_whole=True)] if subject else []
    return list(dict.fromkeys(required))


def subjects(connection: Connection, *, initial: str = "", limit: int) -> list[tuple[str, int]]:
    """Subjects that begin with a letter (see `begins_with`), with the number of works that have them."""
    column = catalogue_words.c.word
    chosen = (
        select(column, func.count())
        .where(catalogue_words.c.field == SUBJECT, *begins_with(column, initial))
        .group_by(column)
        .order_by(column)
        .limit(limit)
    )
    return [(word, count) for word, count in connection.execute(chosen)]


def begins_with(column: Column[Any], initial: str) -> list[ColumnElement[bool]]:
    """SQL conditions: whether a text begins with a letter, small or large. `0` stands for everything that
    does not begin with a letter from A to Z; without an initial there is no condition.
    """
    if not initial:
        return []
    if initial == OTHER:
        return [~func.upper(func.substr(column, 1, 1)).between("A", "Z")]
    large, small = initial.upper(), initial.lower()
    return [
        ((column >= large) & (column < large + _AFTER_ALL))
        | ((column >= small) & (column < small + _AFTER_ALL))
    ]


def put(connection: Connection, key: str, values: Mapping[str, object], *, is_work: bool = True) -> None:
    """Replace the words of a work or article by those in the fields of its record. Only works are in the
    lists of subjects.
    """
    connection.execute(delete(catalogue_words).where(catalogue_words.c.key == key))
    words = [each for each in dict.fromkeys(_words_of(values)) if is_work or each[0] != SUBJECT]
    rows = [{"key": key, "field": field, "word": word} for field, word in words]
    if rows:
        connection.execute(insert(catalogue_words), rows)


def put_subjects(connection: Connection, key: str, keywords: Sequence[str]) -> None:
    """Replace the subjects of a work, and nothing else."""
    of_work = (catalogue_words.c.key == key, catalogue_words.c.field == SUBJECT)
    connection.execute(delete(catalogue_words).where(*of_work))
    subjects_of_work = {subject for keyword in keywords if (subject := _subject(keyword))}
    if subjects_of_work:
        rows = [{"key": key, "field": SUBJECT, "word": subject} for subject in sorted(subjects_of_work)]
        connection.execute(insert(catalogue_words), rows)


def _words_of(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    def words(*names: str) -> list[str]:
        texts: list[str] = []
        for name in names:
            value = values.get(name) or ()
            texts += [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        return list(dict.fromkeys(word for text in texts for word in split(text)))[:MOST_WORDS]

    people = ("creators", "contributors", "responsibility", "publisher")
    yield from ((CREATOR, word) for word in words(*people))
    yield from ((KEYWORD, word) for word in words("keywords"))
    yield from ((SUBJECT, _subject(str(word))) for word in _list(values.get("keywords")) if str(word).strip())
    if genre := str(values.get("genre") or ""):
        yield GENRE, _whole(genre)
    yield from (
        (ANY, word)
        for word in words("title", "subtitle", *people, "genre", "keywords", "urn", "addresses", "abstract")
    )


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _subject(keyword: str) -> str:
    return " ".join(keyword.split())[:LONGEST_WORD]


def _whole(genre: str) -> str:
    return " ".join(split(genre))[:LONGEST_WORD]


def few(connection: Connection, required: Sequence[RequiredWord]) -> list[str] | None:
    """Keys of the works that have all the words, if one of the words is rare; None if none is."""
    counted = [(_count(connection, word, limit=FEW + 1), word) for word in required]
    count, rarest = min(counted, key=lambda each: each[0])
    return having_all(connection, required, rarest) if count <= FEW else None


def having_all(
    connection: Connection, required: Sequence[RequiredWord], rarest: RequiredWord | None = None
) -> list[str]:
    """Keys of all works that have all the words."""
    rarest = rarest or min(required, key=lambda word: _count(connection, word))
    other = catalogue_words.alias()
    has_others = [
        exists().where(other.c.key == catalogue_words.c.key, *word.matches(other.c))
        for word in required
        if word != rarest
    ]
    chosen = select(catalogue_words.c.key).where(*rarest.matches(), *has_others)
    return list(dict.fromkeys(connection.execute(chosen).scalars()))


def _count(connection: Connection, word: RequiredWord, *, limit: int | None = None) -> int:
    rows = select(catalogue_words.c.key).where(*word.matches()).limit(limit).subquery()
    return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def has(word: RequiredWord, key: ColumnElement[str] = catalogue.c.key) -> ColumnElement[bool]:
    """An SQL condition: whether a work has the word."""
    return exists().where(catalogue_words.c.key == key, *word.matches())
