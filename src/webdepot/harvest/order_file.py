"""Orders to a running crawl, given through a file in its folder: by a command, the portal or another process.

    harvests/ID/orders.jsonl    one order per line, append-only

1. `give` appends an order: under a lock, and durable before it returns.
2. The crawl checks several times a second whether the file has grown (`Orders.poll`) and obeys what is new.
   It remembers the number of the last order in its frontier, in the same checkpoint as the effect of the
   order: after a crash no order is lost or obeyed twice.
3. Orders that last, a pause and changed settings, are read from all orders when a harvest is run again
   (`summarize`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from webdepot import durable
from webdepot.errors import CorruptData
from webdepot.times import from_iso, to_iso

FILE_NAME = "orders.jsonl"


class OrderVerb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    """Stop at a checkpoint; the harvest can be resumed."""
    ABORT = "abort"
    """End the harvest permanently: its queue is discarded."""
    CHANGE = "change"
    """Change settings by name; the service knows what they mean."""
    ADD = "add"
    """Fetch addresses even if they are outside the scope."""
    REMOVE = "remove"
    """Discard the queued addresses that match one of the regular expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One line of the file."""

    number: int
    """From 1, in the order given."""
    verb: OrderVerb
    at: datetime
    by: str = ""
    reason: str = ""
    urls: tuple[str, ...] = ()
    """ADD: canonical addresses. REMOVE: regular expressions, searched in the address."""
    changes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSummary:
    """The state after a sequence of orders."""

    paused: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)


def give(
    folder: Path,
    verb: OrderVerb,
    *,
    at: datetime,
    by: str = "",
    reason: str = "",
    urls: Sequence[str] = (),
    changes: Mapping[str, object] | None = None,
) -> Order:
    """Give an order to the crawl of a folder; it need not be running."""
    durable.make_folders(folder)
    path = folder / FILE_NAME
    with durable.acquire(path) as file:
        written = path.read_bytes()
        kept = written[: written.rfind(b"\n") + 1]
        file.truncate(len(kept))  # half a line: its writer died before the order was given
        order = Order(
            number=kept.count(b"\n") + 1,
            verb=verb,
            at=at,
            by=by,
            reason=reason,
            urls=tuple(urls),
            changes=dict(changes or {}),
        )
        file.write(encode(order))
        durable.sync_file(file)
        if order.number == 1:
            durable.sync_folder(folder)
    return order


def read(folder: Path) -> list[Order]:
    """All orders of a harvest."""
    return Orders(folder).poll()


def summarize(orders: Sequence[Order]) -> OrderSummary:
    """The state after these orders: a pause lasts until it is resumed, and the last change of a setting
    counts.
    """
    paused, changes = False, dict[str, object]()
    for order in orders:
        if order.verb in (OrderVerb.PAUSE, OrderVerb.RESUME):
            paused = order.verb is OrderVerb.PAUSE
        changes.update(order.changes)
    return OrderSummary(paused=paused, changes=changes)


class OrderSource(Protocol):
    """Where the orders of a crawl come from."""

    def poll(self) -> Sequence[Order]:
        """The orders given since the last call; all of them at the first call."""


class Orders:
    """Reads the orders of a folder as they come. Polling costs one `stat`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._read_bytes = 0
        self._count = 0

    def poll(self) -> list[Order]:
        """The orders given since the last call; all of them at the first call."""
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
            orders.append(decode(line, self._count, str(self._path)))
        return orders


def encode(order: Order) -> bytes:
    values = {"verb": order.verb, "at": to_iso(order.at), "by": order.by, "reason": order.reason}
    return (
        json.dumps(values | {"urls": list(order.urls), "changes": dict(order.changes)}, ensure_ascii=False)
        + "\n"
    ).encode()


def decode(line: bytes | str, number: int, where: str) -> Order:
    try:
        values = json.loads(line)
        return Order(
            number=number,
            verb=OrderVerb(values["verb"]),
            at=from_iso(values["at"]),
            by=values["by"],
            reason=values["reason"],
            urls=tuple(values["urls"]),
            changes=values["changes"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(
            f"Line {number} of {where} is not an order: {error}. Correct or remove that line.",
            where=f"line {number}",
        ) from error
