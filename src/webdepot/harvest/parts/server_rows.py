"""Turns at servers as rows: which part may ask a server, and from what time.

A turn belongs to the holder of a part, for as long as it holds the part. Rows are always locked in the order
of their names, so that parts cannot deadlock.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    Connection,
    TextClause,
    and_,
    case,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    update,
)

from webdepot.database import StatementLine
from webdepot.harvest.parts.part_rows import NOW
from webdepot.harvest.tables import parts, servers

_FORGET_AFTER_S = 3600.0
_ADD = text(
    "INSERT INTO servers (address, holder, free_at_s, pause_s, wanted) "
    "SELECT name, '', 0, 0, '' FROM unnest(CAST(:names AS text[])) AS asked (name) ON CONFLICT DO NOTHING"
)
_OWN = """
    WITH own AS (
        SELECT address FROM servers WHERE address = ANY (CAST(:names AS text[])) AND holder = :holder
        ORDER BY address FOR UPDATE
    )
    UPDATE servers SET {change}
    FROM own JOIN unnest(CAST(:names AS text[]), CAST(:seconds AS float8[])) AS given (name, seconds)
        ON own.address = given.name
    WHERE servers.address = own.address
    RETURNING servers.address
"""
_GIVE_BACK = text(
    _OWN.format(
        change="holder = '', wanted = '', pause_s = 0, free_at_s = greatest(servers.free_at_s, "
        "extract(epoch from clock_timestamp())::float8 + given.seconds)"
    )
)
_STORE_PAUSES = text(_OWN.format(change="pause_s = given.seconds"))


def take(connection: Connection, names: Sequence[str], holder: str) -> dict[str, float]:
    """Take those turns at these servers that are free; return server -> seconds from now until it may be
    asked. The holders of the others are notified that a part waits.
    """
    connection.execute(_ADD, {"names": sorted(names)})
    chosen = servers.c.address == func.any(sorted(names))
    # Locked first, so that the next statement sees everything that was committed before.
    connection.execute(select(servers.c.address).where(chosen).order_by(servers.c.address).with_for_update())
    is_held = exists().where(parts.c.holder == servers.c.holder, parts.c.holder != "", parts.c.until_s > NOW)
    is_dead = and_(servers.c.holder != "", ~is_held)
    is_free = or_(servers.c.holder.in_(["", holder]), is_dead)
    changed = (
        update(servers)
        .where(chosen)
        .values(
            holder=case((is_free, holder), else_=servers.c.holder),
            free_at_s=case(
                (is_dead, func.greatest(servers.c.free_at_s, NOW + servers.c.pause_s)),
                else_=servers.c.free_at_s,
            ),
            wanted=case((is_free, ""), else_=holder),
        )
        .returning(servers.c.address, servers.c.holder, (servers.c.free_at_s - NOW).label("wait_s"))
    )
    return {row.address: max(row.wait_s, 0.0) for row in connection.execute(changed) if row.holder == holder}


def give_back(line: StatementLine, waits: Mapping[str, float], holder: str) -> None:
    """Give turns back: server -> seconds from now until it may be asked. Turns that another part has are not
    changed.
    """
    _change(line, _GIVE_BACK, waits, holder)


def store_pauses(line: StatementLine, pauses: Mapping[str, float], holder: str) -> None:
    """Note how long to leave servers alone if their holder dies."""
    _change(line, _STORE_PAUSES, pauses, holder)


def _change(line: StatementLine, statement: TextClause, seconds: Mapping[str, float], holder: str) -> None:
    values = {"names": list(seconds), "seconds": [float(each) for each in seconds.values()], "holder": holder}
    line.run(statement, values)


def forget_old(connection: Connection) -> None:
    """Remove servers that nobody has asked for an hour."""
    is_old = and_(servers.c.holder == "", servers.c.free_at_s < NOW - _FORGET_AFTER_S)
    connection.execute(delete(servers).where(is_old))
