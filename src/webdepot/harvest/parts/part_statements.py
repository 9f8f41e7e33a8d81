"""The statements with which a harvester reports about its part while it works: one for each report, so that
many parts put little load on the database.

A statement is a transaction of its own. It changes nothing unless the part still has the generation and the
holder of the lease (`part_rows`), and sees all tables at one moment. Parameters are arrays and never lists of
parameters, so that the text is always the same and the server plans it once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import TextClause, text

from webdepot.database import StatementLine
from webdepot.harvest.parts.part_rows import PartLease, lost

_NOW = "extract(epoch from clock_timestamp())::float8"
_OWN = "harvest = :harvest AND part = :part AND generation = :generation AND holder = :holder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a harvester learns each time it renews its lease."""

    orders: Sequence[tuple[int, str]]
    handed: Sequence[tuple[int, str]]
    wanted: Sequence[str]
    """Servers whose turn this part has and for which another part waits."""
    fetched: int
    """Of the whole harvest, as the next two."""
    pages: int
    size_bytes: int
    is_over: bool
    is_stopping: bool


def _renewal(numbers: str) -> TextClause:
    # A lease that has ended is not renewed although nobody has taken the part: others may have taken turns at
    # servers since then.
    return text(
        f"""
        WITH held AS (
            UPDATE parts SET until_s = {_NOW} + :lease_s {numbers}
            WHERE {_OWN} AND until_s > {_NOW}
            RETURNING part, fetched, pages, size_bytes
        ), links AS MATERIALIZED (
            SELECT id, part, lines FROM handed_links WHERE harvest = :harvest
        ), sums AS (
            SELECT coalesce(sum(coalesce(held.fetched, parts.fetched)), 0)::bigint AS fetched,
                coalesce(sum(coalesce(held.pages, parts.pages)), 0)::bigint AS pages,
                coalesce(sum(coalesce(held.size_bytes, parts.size_bytes)), 0)::bigint AS size_bytes,
                bool_and(parts.idle) AND NOT EXISTS (SELECT FROM links) AS is_over,
                bool_or(parts.stopping) AS is_stopping
            FROM parts LEFT JOIN held USING (part) WHERE harvest = :harvest
        )
        SELECT sums.*, EXISTS (SELECT FROM held) AS is_held,
            (SELECT json_agg(json_build_array(id, lines) ORDER BY id) FROM links
                WHERE part = :part AND id <> ALL (CAST(:known AS bigint[]))) AS handed,
            (SELECT json_agg(json_build_array(number, line) ORDER BY number) FROM harvest_orders
                WHERE harvest = :harvest AND number > :after_order) AS orders,
            (SELECT json_agg(address) FROM servers WHERE holder = :holder AND wanted <> '') AS wanted
        FROM sums
        """  # noqa: S608 - only constants of this module
    )


_RENEW = _renewal("")
_RENEW_AND_SHOW = _renewal(
    ", fetched = :fetched, pages = :pages, size_bytes = :size_bytes, live = CAST(:live AS json)"
)
_SAVE = text(
    f"""
    WITH held AS (
        UPDATE parts SET checkpoint = :checkpoint, spans = CAST(:spans AS json), obeyed = :obeyed,
            idle = false, tries = 0, reason = ''
        WHERE {_OWN} AND checkpoint = :checkpoint - 1
        RETURNING part
    ), handed AS (
        INSERT INTO handed_links (harvest, part, lines)
        SELECT CAST(:harvest AS varchar), owner, lines
        FROM held, unnest(CAST(:owners AS integer[]), CAST(:lines AS text[])) AS given (owner, lines)
    ), consumed AS (
        DELETE FROM handed_links WHERE id = ANY (CAST(:consumed AS bigint[])) AND EXISTS (SELECT FROM held)
    )
    SELECT EXISTS (SELECT FROM held)
        OR EXISTS (SELECT FROM parts WHERE {_OWN} AND checkpoint = :checkpoint) AS is_saved
    """  # noqa: S608 - only constants of this module
)
_IDLE = text(f"UPDATE parts SET idle = true WHERE {_OWN} RETURNING part")  # noqa: S608


def renew(
    line: StatementLine,
    lease: PartLease,
    *,
    lease_s: float,
    after_order: int,
    known: Sequence[int],
    numbers: Mapping[str, object] | None = None,
) -> Beat:
    """Renew the lease, and store `numbers` (live, fetched, pages, size_bytes). Returns orders after that one,
    and links handed over except those with known ids. `PartLost` if the lease has ended.
    """
    values = {**_own(lease), "lease_s": lease_s, "after_order": after_order, "known": list(known)}
    if numbers:
        values |= {**numbers, "live": json.dumps(numbers["live"])}
    (row,) = line.run(_RENEW_AND_SHOW if numbers else _RENEW, values)
    if not row.is_held:
        raise lost(lease)
    return Beat(
        orders=[(number, order) for number, order in row.orders or ()],
        handed=[(number, lines) for number, lines in row.handed or ()],
        wanted=row.wanted or (),
        fetched=row.fetched,
        pages=row.pages,
        size_bytes=row.size_bytes,
        is_over=row.is_over,
        is_stopping=row.is_stopping,
    )


def save_checkpoint(
    line: StatementLine,
    lease: PartLease,
    *,
    checkpoint: int,
    obeyed: int,
    handed: Mapping[int, Sequence[str]],
    consumed: Sequence[int],
) -> None:
    """Make a checkpoint valid, together with the links that it hands over and those that it has queued. May
    be repeated if the answer of the server was lost: it takes effect once. `PartLost`, and nothing is
    changed, if the part is no longer held.
    """
    before = [list(span) for span in lease.spans if span[0] != lease.generation]
    given = {part: "\n".join(lines) for part, lines in handed.items() if lines}
    values = {
        **_own(lease),
        "checkpoint": checkpoint,
        "spans": json.dumps([*before, [lease.generation, checkpoint]]),
        "obeyed": obeyed,
        "owners": list(given),
        "lines": list(given.values()),
        "consumed": list(consumed),
    }
    (row,) = line.run(_SAVE, values)
    if not row.is_saved:
        raise lost(lease)


def report_idle(line: StatementLine, lease: PartLease) -> None:
    """Note that nothing waits here. The next checkpoint withdraws it."""
    if not line.run(_IDLE, _own(lease)):
        raise lost(lease)


def _own(lease: PartLease) -> dict[str, object]:
    return {
        "harvest": lease.harvest,
        "part": lease.part,
        "generation": lease.generation,
        "holder": lease.holder,
    }
