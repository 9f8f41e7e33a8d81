"""The words of works, so that a large catalogue is searched along an index: rows of field, word and key of
the record.

Words are compared without case and accents, by their beginnings: `klok` finds `Klokkenmuseum`. Only works as
such have rows (sites, journals, monographs, theses); their parts are found through them.

Of several words the rarest is looked up first, and of its works those are taken that have the others. Where
every word is in many works, the first works of the list are looked at: mostly enough of them have all words.
Else it is the way of the rarest again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, delete, exists, func, insert, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from webdepot.exchange.tables import catalogue, catalogue_words
from webdepot.words import LONGEST_WORD, split

ANY, CREATOR, GENRE, KEYWORD = "any", "creator", "genre", "keyword"
MOST_WORDS = 400
"""Of one record."""
FEW = 2000
"""So many works may have a word for it to be rare."""
Columns = ReadOnlyColumnCollection[str, Column[Any]]
_BEHIND = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A word that a work must have in a field, or one that begins so."""

    field: str
    word: str
    is_whole: bool = False

    def matches(self, columns: Columns = catalogue_words.c) -> tuple[ColumnElement[bool], ...]:
        words = (
            (columns.word == self.word,)
            if self.is_whole
            else (columns.word >= self.word, columns.word < self.word + _BEHIND)
        )
        return (columns.field == self.field, *words)


def wanted(*, words: Iterable[str], creator: str, genre: str, keyword: str) -> list[Wanted]:
    found = [Wanted(field=ANY, word=word) for text in words for word in split(text)]
    found += [Wanted(field=CREATOR, word=word) for word in split(creator)]
    found += [Wanted(field=KEYWORD, word=word) for word in split(keyword)]
    found += [Wanted(field=GENRE, word=_whole(genre), is_whole=True)] if genre else []
    return list(dict.fromkeys(found))


def put(connection: Connection, key: str, values: Mapping[str, object]) -> None:
    """The words of a work, from the fields of its record; those it had before are gone."""
    connection.execute(delete(catalogue_words).where(catalogue_words.c.key == key))
    rows = [{"key": key, "field": field, "word": word} for field, word in dict.fromkeys(_words_of(values))]
    if rows:
        connection.execute(insert(catalogue_words), rows)


def _words_of(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    def words(*names: str) -> list[str]:
        texts: list[str] = []
        for name in names:
            given = values.get(name) or ()
            texts += [given] if isinstance(given, str) else list(given)  # type: ignore[call-overload]
        return list(dict.fromkeys(word for text in texts for word in split(text)))[:MOST_WORDS]

    people = ("creators", "contributors", "responsibility", "publisher")
    yield from ((CREATOR, word) for word in words(*people))
    yield from ((KEYWORD, word) for word in words("keywords"))
    if genre := str(values.get("genre") or ""):
        yield GENRE, _whole(genre)
    yield from (
        (ANY, word)
        for word in words("title", "subtitle", *people, "genre", "keywords", "urn", "addresses", "abstract")
    )


def _whole(genre: str) -> str:
    return " ".join(split(genre))[:LONGEST_WORD]


def few(connection: Connection, asked: Sequence[Wanted]) -> list[str] | None:
    """Keys of the works that have all the words, where one of the words is rare; None where every word is in
    many.
    """
    counted = [(_count(connection, one, limit=FEW + 1), one) for one in asked]
    count, rarest = min(counted, key=lambda each: each[0])
    return having_all(connection, asked, rarest) if count <= FEW else None


def having_all(connection: Connection, asked: Sequence[Wanted], rarest: Wanted | None = None) -> list[str]:
    """Keys of all works that have all the words: of those of the rarest, those that have the others, too."""
    rarest = rarest or min(asked, key=lambda one: _count(connection, one))
    other = catalogue_words.alias()
    has_others = [
        exists().where(other.c.key == catalogue_words.c.key, *one.matches(other.c))
        for one in asked
        if one != rarest
    ]
    chosen = select(catalogue_words.c.key).where(*rarest.matches(), *has_others)
    return list(dict.fromkeys(connection.execute(chosen).scalars()))


def _count(connection: Connection, one: Wanted, *, limit: int | None = None) -> int:
    rows = select(catalogue_words.c.key).where(*one.matches()).limit(limit).subquery()
    return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def has(one: Wanted, key: ColumnElement[str] = catalogue.c.key) -> ColumnElement[bool]:
    """Whether a work has the word."""
    return exists().where(catalogue_words.c.key == key, *one.matches())
