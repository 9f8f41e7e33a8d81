"""The connection of a running part to the database: it renews the lease, and brings orders, links of other
parts and the numbers of the whole harvest.

A thread does this every two seconds, so that the crawl never waits for it, and at once when the harvester has
seen a new order (`wake`). The lease counts as valid for five sixths of its time, counted from before it was
renewed, by the clock of this machine: after `held_until_s` no server may be asked, even if the database does
not answer. A lease that has ended is never renewed: another part may have taken turns at servers meanwhile.
"""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from webdepot.database import Database
from webdepot.errors import WebdepotError
from webdepot.harvest import order_file
from webdepot.harvest.order_file import Order, OrderVerb
from webdepot.harvest.parts import part_statements
from webdepot.harvest.parts.part_rows import CHECKPOINT_AGE, PartLease, PartLost
from webdepot.harvest.parts.part_statements import Beat

BEAT_S, SHARED_BEAT_S, IDLE_BEAT_S = 2.0, 1.0, 0.25
"""How often the lease is renewed: usually, while servers are shared with other parts, and while idle."""
IDLE_S = 5.0
"""A part that had nothing to do for this long is given back, so that its place is free for another one."""
_AGAIN_S = 0.5
_SHOW_AHEAD_S = 0.3
"""Numbers are collected this long before they are stored: older ones would show a past state."""


class DatabaseLink:
    """The connection of one running part. The crawl uses it from one thread."""

    def __init__(self, database: Database, lease: PartLease, *, lease_s: float) -> None:
        self.lease = lease
        self.held_until_s = 0.0
        """Until this time, by `time.monotonic()`, the part is certainly ours."""
        self.beat: Beat | None = None
        """The result of the last renewal."""
        self.statements = database.line()
        """The connection for all statements about this part."""
        self._lease_s = lease_s
        self._numbers: Mapping[str, Any] = {}
        self._saved_s = time.monotonic()
        self._next_s = self._show_at_s = 0.0
        self.shared_until_s = 0.0
        """Until this time other parts are expected to want the turns of this one."""
        self._lock = threading.Lock()
        self._orders: list[Order] = []
        self._last_order = 0
        self._handed: list[tuple[int, str]] = []
        self._known: set[int] = set()
        """Ids of links that were brought and not deleted yet."""
        self._idle_since_s = 0.0
        self._is_lost = False
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="part-lease", daemon=True)

    def start(self) -> None:
        """Renew for the first time; `PartLost` if another harvester has the part already."""
        self._renew()
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
        self.statements.close()

    def wake(self) -> None:
        """Renew now: there is an order."""
        self._wake.set()

    def check(self) -> None:
        """Raise `PartLost` if no server may be asked now."""
        if self._is_lost or time.monotonic() >= self.held_until_s:
            raise PartLost(
                f"The lease of part {self.lease.part} of harvest {self.lease.harvest} could not be renewed "
                "in time."
            )

    def note_checkpoint(self) -> None:
        """Note that everything up to now is in a checkpoint."""
        self._saved_s = time.monotonic()

    def wants_numbers(self) -> bool:
        """Whether numbers are stored so soon that they should be collected now."""
        return time.monotonic() >= max(self._next_s, self._show_at_s) - _SHOW_AHEAD_S

    def show(self, numbers: Mapping[str, Any]) -> None:
        """Have these columns of the part stored with one of the next renewals."""
        self._numbers = numbers

    # --- what others have for us ---

    def poll(self) -> list[Order]:
        """The orders given since the last call; all of them at the first call. An order to stop has no effect
        in a part: it was meant for the parts that were running then (`part_rows.stop`).
        """
        with self._lock:
            orders, self._orders = self._orders, []
        return [
            replace(order, verb=OrderVerb.CHANGE) if order.verb is OrderVerb.STOP else order
            for order in orders
        ]

    def take_handed(self) -> list[tuple[int, list[Any]]]:
        """Links handed over since the last call: id of the row, and its values."""
        if not self._handed:
            return []
        with self._lock:
            handed, self._handed = self._handed, []
        return [(number, _values(lines)) for number, lines in handed]

    def forget_handed(self, numbers: list[int]) -> None:
        """Note that these rows are deleted."""
        with self._lock:
            self._known.difference_update(numbers)

    # --- whether anything is left to do ---

    def report_idle(self) -> None:
        """Report that nothing waits here and everything is in a checkpoint."""
        if self._idle_since_s:
            return
        with suppress(WebdepotError, SQLAlchemyError):
            part_statements.report_idle(self.statements, self.lease)
            self._idle_since_s = time.monotonic()
            self._wake.set()

    def report_busy(self) -> None:
        self._idle_since_s = 0.0

    def is_over(self) -> bool:
        """Whether this part need not wait for links any longer: no other part has anything to do, or it has
        waited long enough. In that case it is taken again when links arrive.
        """
        if not self._idle_since_s or self._handed:
            return False
        is_over = self.beat is not None and self.beat.is_over
        return is_over or time.monotonic() - self._idle_since_s > IDLE_S

    # --- the thread ---

    def _run(self) -> None:
        is_early = False
        while not self._end.is_set():
            now_s = time.monotonic()
            usual_s = now_s + self._pause_s()
            self._next_s = min(self._next_s, usual_s) if is_early else usual_s
            is_early = self._wake.wait(max(self._next_s - now_s, 0.0))
            self._wake.clear()
            if self._end.is_set():
                return
            try:
                # Early, there are no new numbers: they are collected just before the time when they are due.
                self._renew(with_numbers=not is_early)
            except PartLost:
                self._is_lost = True
                return
            except (WebdepotError, SQLAlchemyError):  # it does not answer: the lease ends, or it comes back
                self._end.wait(_AGAIN_S)

    def _pause_s(self) -> float:
        if self._idle_since_s:
            return IDLE_BEAT_S
        is_shared = time.monotonic() < self.shared_until_s
        return min(SHARED_BEAT_S if is_shared else BEAT_S, self._lease_s / 6)

    def _renew(self, *, with_numbers: bool = True) -> None:
        began_s = time.monotonic()
        numbers = self._shown(began_s) if with_numbers and began_s >= self._show_at_s else {}
        beat = part_statements.renew(
            self.statements,
            self.lease,
            lease_s=self._lease_s,
            after_order=self._last_order,
            known=sorted(self._known),
            numbers=numbers,
        )
        if self.held_until_s and time.monotonic() >= self.held_until_s:
            # Too late: a transaction that saw the old end of the lease may have given our turns to others.
            raise PartLost(f"The lease of part {self.lease.part} of harvest {self.lease.harvest} had ended.")
        if numbers:
            # With the next renewal, unless the one after it is early enough, too.
            self._show_at_s = began_s + BEAT_S - 0.9 * self._pause_s()
        with self._lock:
            for number, line in beat.orders:
                self._orders.append(order_file.decode(line, number, f"the orders of {self.lease.harvest}"))
                self._last_order = number
            self._handed += beat.handed
            self._known.update(number for number, _ in beat.handed)
        self.beat = beat
        self.held_until_s = began_s + self._lease_s * 5 / 6

    def _shown(self, now_s: float) -> Mapping[str, Any]:
        """The columns to store, with the age of the last checkpoint."""
        numbers = self._numbers
        if not numbers or self._idle_since_s:
            return numbers
        age_s = round(now_s - self._saved_s, 1)
        return {**numbers, "live": {**numbers["live"], CHECKPOINT_AGE: age_s}}


def _values(lines: str) -> list[Any]:
    """The values of lines with one JSON array each."""
    joined = lines.replace("\n", ",")
    values: list[Any] = json.loads(f"[{joined}]")
    return values
