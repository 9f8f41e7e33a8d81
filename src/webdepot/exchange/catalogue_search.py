"""List works of the catalogue by title, filtered by words, genre, keyword and collection.

The rows of `catalogue_words` decide how to search. If one of the words is rare, its works are read. If every
word is in many works, the first works by title are examined, which are usually enough. If they are not, the
rarest word is used after all.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, func, select

from webdepot.exchange import catalogue_words
from webdepot.exchange.catalogue import WORKS, CatalogueRecord, RecordLevel, find, from_row, many
from webdepot.exchange.catalogue_words import RequiredWord
from webdepot.exchange.tables import catalogue

EXAMINED = (200, 3000)
"""How many works are examined by title if every word is in many works; the second number if the first did not
give enough.
"""


def find_works(
    connection: Connection,
    *,
    words: Sequence[str] = (),
    levels: Sequence[RecordLevel] = WORKS,
    creator: str = "",
    genre: str = "",
    keyword: str = "",
    subject: str = "",
    initial: str = "",
    collection: str = "",
    limit: int = 100,
    after: str = "",
) -> list[CatalogueRecord]:
    """Works that are not withdrawn, by title. A page continues after the key of the last record of the page
    before. Words match by their beginnings, `subject` is a whole keyword, `initial` the first letter of the
    title (`catalogue_words.begins_with`).
    """
    required = catalogue_words.required_words(
        words=words, creator=creator, genre=genre, keyword=keyword, subject=subject
    )
    start = find(connection, after) if after else None
    where: list[ColumnElement[bool]] = [
        catalogue.c.withdrawn_at.is_(None),
        *catalogue_words.begins_with(catalogue.c.title, initial),
    ]
    if collection:
        where.append(catalogue.c.collection == collection)
    if start is not None:
        where += [
            catalogue.c.title >= start.title,
            (catalogue.c.title > start.title) | (catalogue.c.key > start.key),
        ]
    if not required:
        return _along_titles(connection, levels, where, limit)
    keys = catalogue_words.few(connection, required)
    if keys is None:
        for count in EXAMINED:
            works = _examine(connection, required, levels, where, limit, count)
            if works is not None:
                return works
        keys = catalogue_words.having_all(connection, required)
    return _first_of(connection, keys, levels, where, limit)


def _along_titles(
    connection: Connection, levels: Sequence[RecordLevel], where: Sequence[ColumnElement[bool]], limit: int
) -> list[CatalogueRecord]:
    works: list[CatalogueRecord] = []
    for level in levels:
        # One level after the other, so that each uses the index of its titles.
        chosen = (
            select(catalogue)
            .where(catalogue.c.level == level.value, *where)
            .order_by(catalogue.c.title, catalogue.c.key)
            .limit(limit)
        )
        works += [from_row(row) for row in connection.execute(chosen).mappings()]
    return sorted(works, key=lambda record: (record.title, record.key))[:limit]


def _examine(
    connection: Connection,
    required: Sequence[RequiredWord],
    levels: Sequence[RecordLevel],
    where: Sequence[ColumnElement[bool]],
    limit: int,
    count: int,
) -> list[CatalogueRecord] | None:
    """The works with all words among the first `count` by title; None if there are too few."""
    keys: list[tuple[str, str]] = []
    for level in levels:
        by_title = select(catalogue.c.title, catalogue.c.key).where(catalogue.c.level == level.value, *where)
        first = by_title.order_by(catalogue.c.title, catalogue.c.key).limit(count).subquery()
        chosen = select(first.c.title, first.c.key).where(
            *(catalogue_words.has(word, first.c.key) for word in required)
        )
        matches = [
            (row.title, row.key)
            for row in connection.execute(chosen.order_by(first.c.title, first.c.key).limit(limit))
        ]
        if (
            len(matches) < limit
            and connection.execute(select(func.count()).select_from(first)).scalar_one() == count
        ):
            return None
        keys += matches
    return _read(connection, sorted(keys)[:limit])


def _first_of(
    connection: Connection,
    keys: Sequence[str],
    levels: Sequence[RecordLevel],
    where: Sequence[ColumnElement[bool]],
    limit: int,
) -> list[CatalogueRecord]:
    """The first by title among these keys; only those in the result are read completely."""
    wanted, matches = {level.value for level in levels}, list[tuple[str, str]]()
    for start in range(0, len(keys), 500):
        # Only the key is compared in SQL, no other indexed column: otherwise the database would read along
        # the index of titles of a level, which are many.
        chosen = select(catalogue.c.title, catalogue.c.key, catalogue.c.level).where(
            catalogue.c.key.in_(keys[start : start + 500]), *where
        )
        matches += [(row.title, row.key) for row in connection.execute(chosen) if row.level in wanted]
    return _read(connection, sorted(matches)[:limit])


def _read(connection: Connection, chosen: Sequence[tuple[str, str]]) -> list[CatalogueRecord]:
    records = many(connection, [key for _, key in chosen])
    return [records[key] for _, key in chosen]
