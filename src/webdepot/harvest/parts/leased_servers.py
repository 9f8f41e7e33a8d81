"""Turns at servers, shared by the harvesters of all machines (`ports.Servers`), so that together they are as
polite as one.

A row of `servers` says which part has the turn at a server. The part keeps it as long as it has its own lease
(`database_link.DatabaseLink.held_until_s`), so turns need no leases of their own. Order of steps:

1. `begin` for a server whose turn we do not have returns a time to try again. A thread asks for the turns at
   all such servers together, every tenth of a second.
2. The turn comes with the time from which the server may be asked, by the clock of the database. From then on
   pauses are kept here, and the database is not asked again.
3. A part that does not get a turn records that it waits. The holder sees that when it renews its lease, and
   gives the turn back after its request, with the time from which the server may be asked. A turn that was
   not used for some seconds is given back as well. Giving back is repeated until the database has answered.
4. The turns of a dead part are free when its lease has ended. It has sent no requests for the last sixth of
   the lease; the next holder also observes the longest pause that the dead part had at that server.
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from webdepot.database import Database
from webdepot.errors import WebdepotError
from webdepot.harvest.parts import server_rows
from webdepot.harvest.parts.database_link import DatabaseLink
from webdepot.harvest.parts.part_statements import Beat

ASK_EVERY_S = 0.1
LOOK_EVERY_S = 1.0
UNUSED_S = 3.0
"""A turn that was not used for this long is given back."""
_BACK_OFF_S = 0.3
"""How long the turn at a server is left to others after it was given back for them."""
_LOST_S = 1.0
_SHARED_S = 30.0
"""For this long after another part had or wanted one of our servers, requests of others are checked more
often.
"""
_LONGEST_NAME = 300


@dataclass(slots=True)
class _Turn:
    """A server whose turn this part has."""

    free_at_s: float
    """By `time.monotonic()`."""
    used_s: float
    pause_s: float = 0.0
    stored_pause_s: float = 0.0
    is_in_use: bool = False
    is_wanted: bool = False
    """Another part waits for it."""


class LeasedServers:
    """Turns at servers for one running part. `begin`, `end`, `hold` and `let_go` are called by one thread."""

    def __init__(self, database: Database, link: DatabaseLink) -> None:
        self._database = database
        self._link = link
        self._holder = link.lease.holder
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}
        self._wanted: dict[str, float] = {}
        """Server -> not before this time."""
        self._held_back: dict[str, float] = {}
        """Servers to pause until then, although the turn is not ours."""
        self._returns: dict[str, float] = {}
        """Turns that are to be given back: server -> not before this time."""
        self._beat: Beat | None = None
        """The last renewal whose list of wanted servers was processed."""
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="server-turns", daemon=True)
        self._thread.start()

    def begin(self, server: str) -> float:
        """0 if the server may be asked now, until `end`; otherwise the time to try again."""
        server, now_s = server[:_LONGEST_NAME], time.monotonic()
        if now_s >= self._link.held_until_s:
            return now_s + _LOST_S
        with self._lock:
            turn = self._turns.get(server)
            if turn is None or turn.is_wanted:
                self._wanted.setdefault(server, now_s)
                if turn is None:
                    self._wake.set()
                return now_s + ASK_EVERY_S
            if turn.is_in_use:
                return now_s + ASK_EVERY_S
            if turn.free_at_s > now_s:
                return turn.free_at_s
            turn.is_in_use, turn.used_s = True, now_s
            return 0.0

    def end(self, server: str, free_at_s: float) -> None:
        now_s = time.monotonic()
        with self._lock:
            turn = self._turns.get(server[:_LONGEST_NAME])
            if turn is not None:
                turn.is_in_use, turn.used_s = False, now_s
                turn.free_at_s = max(turn.free_at_s, free_at_s)
                turn.pause_s = max(turn.pause_s, free_at_s - now_s)
                if turn.is_wanted:
                    self._wake.set()

    def hold(self, server: str, until_s: float) -> None:
        """Leave a server alone at least until then."""
        with self._lock:
            turn = self._turns.get(server[:_LONGEST_NAME])
            if turn is not None:
                turn.free_at_s = max(turn.free_at_s, until_s)
            else:
                self._held_back[server[:_LONGEST_NAME]] = until_s

    def let_go(self) -> None:
        """Do nothing: turns that are not used are given back after some seconds."""

    def close(self) -> None:
        """Give all turns back."""
        self._end.set()
        self._wake.set()
        self._thread.join(2.0)
        with self._lock:
            self._returns |= {name: turn.free_at_s for name, turn in self._turns.items()}
            self._turns = {}
        # Without it, they are free when the lease of the part has ended.
        if time.monotonic() < self._link.held_until_s and not self._thread.is_alive():
            with suppress(WebdepotError, SQLAlchemyError):
                self._give_back()

    # --- the thread, which alone asks for turns and gives them back ---

    def _run(self) -> None:
        look_s = 0.0
        while not self._end.is_set():
            self._wake.wait(ASK_EVERY_S if self._wanted else LOOK_EVERY_S)
            self._wake.clear()
            try:
                if time.monotonic() >= look_s:
                    look_s = time.monotonic() + LOOK_EVERY_S
                    self._store_pauses()
                self._look()
                self._give_back()
                self._ask()
            except (WebdepotError, SQLAlchemyError):  # it does not answer; the lease of the part decides
                self._end.wait(0.5)
            self._end.wait(ASK_EVERY_S)

    def _ask(self) -> None:
        now_s = time.monotonic()
        with self._lock:
            due = [name for name, from_s in self._wanted.items() if from_s <= now_s]
            names = sorted(name for name in due if name not in self._turns)
            for name in due:
                del self._wanted[name]
        if not names or now_s >= self._link.held_until_s:
            return
        with self._database.leasing() as connection:
            taken = server_rows.take(connection, names, self._holder)
        if len(taken) < len(names):
            self._link.shared_until_s = now_s + _SHARED_S
        with self._lock:
            for name, wait_s in taken.items():
                # The clock is read after the answer: counted from before the query, the time would be too
                # early.
                free_at_s = max(time.monotonic() + wait_s, self._held_back.pop(name, 0.0))
                self._turns[name] = _Turn(free_at_s=free_at_s, used_s=time.monotonic())

    def _look(self) -> None:
        """Find turns that others wait for or that are not used, and mark them to be given back."""
        beat, now_s = self._link.beat, time.monotonic()
        is_new, self._beat = beat is not self._beat, beat
        if beat is not None and beat.wanted:
            self._link.shared_until_s = now_s + _SHARED_S
        with self._lock:
            for name in beat.wanted if beat is not None and is_new else ():
                if name in self._turns:
                    self._turns[name].is_wanted = True
                else:  # it was given to us, but the answer of the database was lost
                    self._returns.setdefault(name, now_s)
            unused = {
                name: turn
                for name, turn in self._turns.items()
                if not turn.is_in_use
                and (turn.is_wanted or now_s - max(turn.used_s, turn.free_at_s) > UNUSED_S)
            }
            for name, turn in unused.items():
                del self._turns[name]
                self._returns[name] = turn.free_at_s
                if turn.is_wanted and name in self._wanted:
                    self._wanted[name] = now_s + _BACK_OFF_S

    def _give_back(self) -> None:
        now_s = time.monotonic()
        if self._returns:
            waits = {name: max(free_at_s - now_s, 0.0) for name, free_at_s in self._returns.items()}
            server_rows.give_back(self._link.statements, waits, self._holder)
            self._returns = {}

    def _store_pauses(self) -> None:
        """Store pauses that have become longer."""
        with self._lock:
            longer = {
                name: turn.pause_s
                for name, turn in self._turns.items()
                if turn.pause_s > 1.1 * turn.stored_pause_s + 0.01
            }
        if longer:
            server_rows.store_pauses(self._link.statements, longer, self._holder)
        with self._lock:
            for name, pause_s in longer.items():
                if name in self._turns:
                    self._turns[name].stored_pause_s = pause_s
