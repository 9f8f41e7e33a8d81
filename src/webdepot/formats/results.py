"""Results of surveys in the database: one row for each distinct payload and engine, and counts for each
container for reports.

`record` stores the rows of one container; storing the same container again replaces its counts and duplicates
nothing. Rows are never overwritten: another engine or signature release adds its own.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, tuple_

from webdepot.database import Database
from webdepot.formats import survey
from webdepot.formats.survey import SurveyResult
from webdepot.formats.survey_queue import FindKnownRows
from webdepot.formats.survey_rows import Row
from webdepot.formats.tables import format_counts, identifications, surveys
from webdepot.model import HarvestId
from webdepot.times import from_iso, to_iso

_BATCH = 500
_FACTS = (
    "digest",
    "engine",
    "url",
    "size_bytes",
    "server_mime",
    "puid",
    "name",
    "version",
    "mime",
    "basis",
    "verdict",
    "warning",
    "validity",
    "findings",
    "properties",
)


_KNOWN = select(*(identifications.c[name] for name in _FACTS)).where(
    identifications.c.digest.in_(bindparam("known_digests", expanding=True)),
    identifications.c.engine == bindparam("known_engine"),
)


class KnownResults:
    """`survey.KnownRows` from the database: the rows of earlier surveys with the same engine. It can be
    pickled; the lookups of one `with` share a connection, since opening one takes longer than all else. The
    password of a server, if none is given, is that of the machine that looks up.
    """

    def __init__(self, url: str, *, password: str = "") -> None:
        self.url = url
        self._password = password
        self._opened = ExitStack()

    def __enter__(self) -> FindKnownRows:
        password = self._password or os.environ.get("WEBDEPOT_DATABASE_PASSWORD", "")
        database = self._opened.enter_context(closing(Database(self.url, password=password)))
        connection = self._opened.enter_context(database.reading())

        def find(digests: Sequence[str], engine: str) -> dict[str, Row]:
            values = {"known_digests": digests, "known_engine": engine}
            rows = {row["digest"]: dict(row) for row in connection.execute(_KNOWN, values).mappings()}
            connection.rollback()  # the next one sees what others have added, and the log of SQLite can end
            return rows

        return find

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "password": self._password}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["url"], password=state["password"])  # type: ignore[misc]


def record(connection: Connection, harvest: HarvestId, result: SurveyResult, *, at: datetime) -> None:
    """Store the survey of a container in the database; can be repeated."""
    facts = _survey(harvest, result, at)
    _replace(connection, _keep(connection, survey.read_rows(result.rows), [facts], at), [facts])


def restore(
    connection: Connection,
    harvest: HarvestId,
    rows: Iterable[Row],
    facts: Iterable[Mapping[str, Any]],
    *,
    at: datetime,
) -> None:
    """Restore the surveys in a package: its rows, and the result of `facts_of`."""
    known = [{**each, "harvest": harvest, "surveyed_at": from_iso(each["surveyed_at"])} for each in facts]
    _replace(connection, _keep(connection, rows, known, at), known)


def forget(connection: Connection, harvest: HarvestId) -> None:
    """Remove a harvest that has left the archive from all reports. What is known about payloads stays: others
    may have the same.
    """
    gone = select(surveys.c.container).where(surveys.c.harvest == harvest)
    connection.execute(delete(format_counts).where(format_counts.c.container.in_(gone)))
    connection.execute(delete(surveys).where(surveys.c.harvest == harvest))


def facts_of(connection: Connection, harvest: HarvestId) -> tuple[dict[str, Any], ...]:
    """The surveys of a harvest's containers as plain JSON values, for its package."""
    rows = connection.execute(
        select(surveys).where(surveys.c.harvest == harvest).order_by(surveys.c.container)
    ).mappings()
    return tuple(_to_facts(dict(row)) for row in rows)


def facts_from(result: SurveyResult, *, at: datetime) -> dict[str, Any]:
    """As `facts_of`, for a survey that is not in the database."""
    return _to_facts(_survey(HarvestId(""), result, at))


def _to_facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "harvest"} | {
        "surveyed_at": to_iso(row["surveyed_at"])
    }


def surveyed(connection: Connection, harvest: HarvestId, *, engine: str = "") -> frozenset[str]:
    """The containers of a harvest that were surveyed, optionally only by that engine."""
    wanted = [surveys.c.harvest == harvest, *([surveys.c.engine == engine] if engine else [])]
    return frozenset(connection.execute(select(surveys.c.container).where(*wanted)).scalars())


def is_surveyed(connection: Connection, container: str) -> bool:
    """Whether a container was surveyed, by any engine."""
    chosen = select(surveys.c.container).where(surveys.c.container == container)
    return connection.execute(chosen).first() is not None


def names(connection: Connection, puids: Iterable[str]) -> dict[str, str]:
    """Names of formats, with their version, by PRONOM identifier; one indexed query for each."""
    names: dict[str, str] = {}
    for puid in puids:
        chosen = (
            select(identifications.c.name, identifications.c.version)
            .where(identifications.c.puid == puid)
            .limit(1)
        )
        row = connection.execute(chosen).one_or_none()
        if row is not None and row.name:
            names[puid] = row.name if row.version in row.name.split() else f"{row.name} {row.version}".strip()
    return names


def puids(connection: Connection, digests: Iterable[str]) -> dict[str, str]:
    """PRONOM identifiers of payloads by digest; payloads that were not identified are left out. Pass at most
    a few hundred at a time.
    """
    chosen = select(identifications.c.digest, identifications.c.puid).where(
        identifications.c.digest.in_(set(digests))
    )
    return {
        digest: puid
        for digest, puid in connection.execute(chosen.order_by(identifications.c.identified_at))
        if puid
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFacts:
    """What is known about the bytes of a payload."""

    puid: str
    size_bytes: int
    properties: Mapping[str, Any]


def payload_facts(connection: Connection, digests: Iterable[str]) -> dict[str, PayloadFacts]:
    """Format, size and properties of payloads by digest, of the last identification; those that were not
    identified are left out. Pass at most a few hundred at a time.
    """
    column = identifications.c
    chosen = select(column.digest, column.puid, column.size_bytes, column.properties).where(
        column.digest.in_(set(digests))
    )
    return {
        row.digest: PayloadFacts(puid=row.puid, size_bytes=row.size_bytes, properties=row.properties or {})
        for row in connection.execute(chosen.order_by(column.identified_at))
    }


def _keep(
    connection: Connection, rows: Iterable[Row], facts: Iterable[Mapping[str, Any]], at: datetime
) -> list[dict[str, Any]]:
    """Insert new identifications; return the counts by container and format, from the rows of each
    container's last survey.

    A package that was surveyed again has the rows of both engines.
    """
    engines = {each["container"]: each["engine"] for each in facts}
    tallies: dict[tuple[str, ...], dict[str, Any]] = {}
    for batch in _batches(rows):
        _add_new(connection, batch, at)
        for row in batch:
            if engines.get(row["container"], row["engine"]) == row["engine"]:
                _tally(tallies, row)
    return list(tallies.values())


def _replace(connection: Connection, tallies: list[dict[str, Any]], facts: list[dict[str, Any]]) -> None:
    names = sorted({each["container"] for each in (*tallies, *facts)})
    for table in (format_counts, surveys):
        for at in range(0, len(names), _BATCH):
            connection.execute(delete(table).where(table.c.container.in_(names[at : at + _BATCH])))
    if tallies:
        connection.execute(insert(format_counts), tallies)
    if facts:
        connection.execute(insert(surveys), facts)


def _add_new(connection: Connection, batch: list[Row], at: datetime) -> None:
    pairs = [(row["digest"], row["engine"]) for row in batch]
    chosen = select(identifications.c.digest, identifications.c.engine).where(
        tuple_(identifications.c.digest, identifications.c.engine).in_(pairs)
    )
    known = {(row.digest, row.engine) for row in connection.execute(chosen)}
    new = {
        (row["digest"], row["engine"]): row for row in batch if (row["digest"], row["engine"]) not in known
    }
    if new:
        values = [
            {name: _fitting(name, row.get(name, {})) for name in _FACTS} | {"identified_at": at}
            for row in new.values()
        ]
        connection.execute(insert(identifications), values)


def _fitting(name: str, value: Any) -> Any:
    """The value, cut to the length of its column: servers send media types of any length, and some databases
    refuse a value that is too long.
    """
    column = identifications.c[name].type
    length = getattr(column, "length", None)
    return value[:length] if length and isinstance(value, str) else value


def _tally(tallies: dict[tuple[str, ...], dict[str, Any]], row: Row) -> None:
    key = {name: row[name] for name in ("container", "puid", "verdict", "validity")} | {
        "mime": _fitting("mime", row["mime"])
    }
    new = {**key, "name": row["name"], "version": row["version"], "uris": 0, "size_bytes": 0, "warnings": 0}
    tally = tallies.setdefault(tuple(key.values()), new)
    tally["uris"] += row["uris"]
    tally["size_bytes"] += row["size_bytes"] * row["uris"]
    tally["warnings"] += row["uris"] if row["warning"] else 0


def _survey(harvest: HarvestId, result: SurveyResult, at: datetime) -> dict[str, Any]:
    counts = result.counts
    return {
        "container": result.container,
        "harvest": harvest,
        "engine": result.engine,
        "files": counts.files,
        "checked": counts.checked,
        "distinct_files": counts.distinct,
        "size_bytes": counts.size_bytes,
        "duration_s": counts.duration_s,
        "surveyed_at": at,
    }


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
