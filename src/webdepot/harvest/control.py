"""What a running crawl can be told, by anybody who can write into its folder: a command, a page of the
portal, another process.

    harvests/ID/orders.jsonl    one order a line, never changed, only added to

1. `give` adds an order: under a lock, and durable before it returns.
2. The crawl looks every moment whether the file has grown (`Orders.poll`) and obeys what is new. It keeps the
   number of the last order it obeyed with its frontier, in the same checkpoint as what the order did: after a
   crash nothing is forgotten or done twice.
3. What holds on, a pause and changed settings, is read from all orders when a harvest is run again
   (`standing`).
"""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from webdepot.errors import CorruptData
from webdepot.times import from_iso, to_iso

FILE_NAME = "orders.jsonl"


class Verb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    """Tidily; it can be run again."""
    ABORT = "abort"
    """For good: what waits is given up."""
    CHANGE = "change"
    """Settings by name; what each means is the service's matter."""
    ADD = "add"
    """Addresses to be fetched whatever the scope says."""
    REMOVE = "remove"
    """Waiting addresses that match one of the regular expressions are given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    number: int
    """From 1, in the order given."""
    verb: Verb
    at: datetime
    by: str = ""
    reason: str = ""
    urls: tuple[str, ...] = ()
    """ADD: canonical addresses. REMOVE: regular expressions, searched in the address."""
    changes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds after all orders up to a number."""

    paused: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)


def give(
    folder: Path,
    verb: Verb,
    *,
    at: datetime,
    by: str = "",
    reason: str = "",
    urls: Sequence[str] = (),
    changes: Mapping[str, object] | None = None,
) -> Order:
    """Tell the crawl of that folder; it need not be running."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE_NAME).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        written = file.read()
        kept = written[: written.rfind(b"\n") + 1]
        file.truncate(len(kept))  # half a line: whoever wrote it died before it was given
        order = Order(
            number=kept.count(b"\n") + 1,
            verb=verb,
            at=at,
            by=by,
            reason=reason,
            urls=tuple(urls),
            changes=dict(changes or {}),
        )
        file.write(_encoded(order))
        file.flush()
        os.fsync(file.fileno())
    return order


def read(folder: Path) -> list[Order]:
    """All orders ever given."""
    return Orders(folder).poll()


def standing(orders: Sequence[Order]) -> Standing:
    """A pause lasts until it is resumed; of each setting the last change counts."""
    paused, changes = False, dict[str, object]()
    for order in orders:
        if order.verb in (Verb.PAUSE, Verb.RESUME):
            paused = order.verb is Verb.PAUSE
        changes.update(order.changes)
    return Standing(paused=paused, changes=changes)


class Orders:
    """Reads the orders of a folder as they come. Looking costs one `stat`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._read_bytes = 0
        self._count = 0

    def poll(self) -> list[Order]:
        """Those that came since the last call; all of them the first time."""
        try:
            if self._path.stat().st_size <= self._read_bytes:
                return []
        except FileNotFoundError:
            return []
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(new)
        orders = []
        for line in new.splitlines():
            self._count += 1
            orders.append(_decoded(line, self._count, self._path))
        return orders


def _encoded(order: Order) -> bytes:
    values = {"verb": order.verb, "at": to_iso(order.at), "by": order.by, "reason": order.reason}
    return (
        json.dumps(values | {"urls": list(order.urls), "changes": dict(order.changes)}, ensure_ascii=False)
        + "\n"
    ).encode()


def _decoded(line: bytes, number: int, path: Path) -> Order:
    try:
        values = json.loads(line)
        return Order(
            number=number,
            verb=Verb(values["verb"]),
            at=from_iso(values["at"]),
            by=values["by"],
            reason=values["reason"],
            urls=tuple(values["urls"]),
            changes=values["changes"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(
            f"Line {number} of {path} is no order: {error}. Mend or remove that line.", where=f"line {number}"
        ) from error
