"""The words of works, so that a large catalogue is searched along an index: rows of field, word and key of the record.

Words are compared without case and accents, by their beginnings: `klok` finds `Klokkenmuseum`. Only works as such have rows (sites,
journals, monographs, theses); their parts are found through them.

Of several words the one that few works have is looked up first. Where every word is in many works, works are gone through in their order
and the first of them that have all words are taken: that is as quick, since one does not have to go far.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select

from webdepot.exchange.tables import catalogue, catalogue_words

ANY, CREATOR, GENRE, KEYWORD = "any", "creator", "genre", "keyword"
LONGEST_WORD = 60
MOST_WORDS = 400
"""Of one record."""
FEW = 2000
"""So many works may have a word for it to be looked up first."""
_WORD = re.compile(r"[^\W_]+")
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i"})
_BEHIND = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A word that a work must have in a field, or one that begins so."""

    field: str
    word: str
    is_whole: bool = False

    def matches(self) -> tuple[ColumnElement[bool], ...]:
        column = catalogue_words.c.word
        words = (column == self.word,) if self.is_whole else (column >= self.word, column < self.word + _BEHIND)
        return (catalogue_words.c.field == self.field, *words)


def split(text: str) -> list[str]:
    """Words as they are compared."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return [word[:LONGEST_WORD] for word in _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))]


def wanted(*, words: Iterable[str], creator: str, genre: str, keyword: str) -> list[Wanted]:
    found = [Wanted(field=ANY, word=word) for text in words for word in split(text)]
    found += [Wanted(field=CREATOR, word=word) for word in split(creator)]
    found += [Wanted(field=KEYWORD, word=word) for word in split(keyword)]
    return found + ([Wanted(field=GENRE, word=_whole(genre), is_whole=True)] if genre else [])


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
    yield from ((ANY, word) for word in words("title", "subtitle", *people, "genre", "keywords", "urn", "addresses", "abstract"))


def _whole(genre: str) -> str:
    return " ".join(split(genre))[:LONGEST_WORD]


def rare(connection: Connection, asked: Sequence[Wanted]) -> list[str] | None:
    """Keys of the works that have the rarest of the words; None where every word is in many."""
    fewest: list[str] | None = None
    for one in asked:
        found = list(connection.execute(select(catalogue_words.c.key).where(*one.matches()).limit(FEW + 1)).scalars())
        if len(found) <= FEW and (fewest is None or len(found) < len(fewest)):
            fewest = found
    return fewest


def has(one: Wanted) -> ColumnElement[bool]:
    """Whether a row of the catalogue has the word."""
    return exists().where(catalogue_words.c.key == catalogue.c.key, *one.matches())
