"""Do portals, schedulers and mailers that share one PostgreSQL database notice what the others did?

- rules: one portal closes a page, which is requested from another one; how long is it still open there? Also
  while the connection for notifications is cut repeatedly.
- letters: two mailers send 500 letters at once; how many does the mail server receive?
- turns: three schedulers take 200 turns, two at a time; a fourth process counts those that run.

Each opens the archive separately; letters and turns are handled in separate processes. The turns harvest
nothing: each is held for a moment and ended, so that many of them can be tested.

    python -m bench.several_portals [--quick] [--rules 1000] [--letters 500] [--turns 200] [--json FILE]
"""

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiosmtpd.controller import UnthreadedController
from bench import postgres_server
from bench.server_programs import free_port
from sqlalchemy import Connection, create_engine, make_url, text

from webdepot import event_loop
from webdepot.access.policy import Reader, RuleAnswer
from webdepot.archive import Archive
from webdepot.selection import letter_rows, scheduled_harvests
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import LetterKind
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.services.access import gate, rules
from webdepot.services.admin import setup
from webdepot.services.permission import delivery
from webdepot.services.schedule import scheduler
from webdepot.services.selection import targets

_LEASE = timedelta(minutes=5)


def measure_rules(home: Path, address: str, tries: int) -> dict[str, object]:
    """The longest time for which a page stayed open at portal B after portal A had closed it."""
    with Archive.open(home) as a, Archive.open(home) as b:
        usual = [_closed_after_s(a, b, number) for number in range(tries)]
        with create_engine(address, isolation_level="AUTOCOMMIT").connect() as connection:
            cuts = list[int]()
            cut = [
                _closed_after_s(a, b, number, before=lambda: cuts.append(_cut_connections(connection)))
                for number in range(tries, tries + tries // 10)
            ]
    if not all(cuts):
        raise AssertionError("There was no connection for notifications to cut.")
    return {
        "rules": len(usual),
        "rules_late": sum(each > 0.1 for each in usual),
        "rules_longest_ms": round(max(usual) * 1000, 1),
        "rules_without_notify": len(cut),
        "rules_late_without_notify": sum(each > 0.1 for each in cut),
        "rules_longest_ms_without_notify": round(max(cut) * 1000, 1),
    }


def _cut_connections(connection: Connection) -> int:
    """End all connections that wait for notifications; how many there were."""
    query = text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE query LIKE 'LISTEN%' OR query = 'SELECT 1'"
    )
    return int(connection.execute(query).scalar_one())


def _closed_after_s(
    a: Archive, b: Archive, number: int, *, before: Callable[[], object] = lambda: None
) -> float:
    """How long a page stays open at B after A has closed it, by the clock of this process. A request that
    began before does not count. `before` is called when B has cached the earlier state.
    """
    gate.closed_areas(b, Reader())
    before()
    rules.add(a, f"http://site{number}.example/", answer=RuleAnswer.HIDE, reason="bench")
    committed_s = time.monotonic()
    while True:
        began_s = time.monotonic()
        if len(gate.closed_areas(b, Reader())) == number + 1:
            return began_s - committed_s


class _Box:
    """A mail handler that counts the letters it receives."""

    def __init__(self, received: Any) -> None:
        self._received = received

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        self._received.append(envelope.rcpt_tos[0])
        return "250 OK"


def _receive(port: int, received: Any) -> None:
    async def serve() -> None:
        import asyncio

        controller = UnthreadedController(
            _Box(received), hostname="127.0.0.1", port=port, loop=asyncio.get_running_loop()
        )
        await controller._create_server()
        await asyncio.Event().wait()

    event_loop.run(serve())


def _deliver(home: Path) -> None:
    with Archive.open(home, agent="mailer") as archive:
        delivery.deliver(archive)


def measure_letters(home: Path, port: int, count: int) -> dict[str, object]:
    now = datetime.now(UTC)
    with Archive.open(home) as archive:
        target = targets.enter(archive, targets.draft(["http://owner.example/"]))[0].id
        with archive.database.transaction() as connection:
            for number in range(count):
                letter_rows.add(
                    connection,
                    Letter(
                        kind=LetterKind.DECIDED,
                        target=target,
                        language="en",
                        recipient=f"owner{number}@museum.example",
                        subject="A letter",
                        body="Dear owner",
                        agent="bench",
                        queued_at=now,
                    ),
                )
    with multiprocessing.Manager() as manager:
        received = manager.list()
        with _processes((_receive, (port, received)), end=True):
            _wait_for_port(port)
            with _processes((_deliver, (home,)), (_deliver, (home,))):
                pass
        counted = Counter(received)
    return {
        "letters": count,
        "letters_received": sum(counted.values()),
        "letters_twice": sum(each > 1 for each in counted.values()),
        "letters_missing": count - len(counted),
    }


def _wait_for_port(port: int) -> None:
    from webdepot.cluster import readiness

    while not readiness.accepts(port):
        time.sleep(0.1)


def _schedule(home: Path, name: str, taken: Any) -> None:
    with Archive.open(home, agent=name) as archive:
        while True:
            turns = scheduler._take(archive, holder=name, lease=_LEASE)
            for turn in turns:
                taken.append(turn.id)
                time.sleep(0.01)
                scheduler._end(archive, turn, "finish", "bench")
            with archive.database.reading() as connection:
                if not scheduled_harvests.counts(connection)[TurnState.WAITING]:
                    return


def measure_turns(home: Path, count: int) -> dict[str, object]:
    now = datetime.now(UTC)
    most = 0
    with Archive.open(home) as archive, multiprocessing.Manager() as manager:
        for number in range(count):
            target = targets.enter(archive, targets.draft([f"http://turn{number}.example/"]))[0].id
            with archive.database.transaction() as connection:
                scheduled_harvests.add(connection, target, now, not_before=now)
        taken = manager.list()
        context = multiprocessing.get_context("spawn")
        running = [
            context.Process(target=_schedule, args=(home, f"scheduler-{number}", taken))
            for number in range(3)
        ]
        for process in running:
            process.start()
        while any(process.is_alive() for process in running):
            with archive.database.reading() as connection:
                most = max(most, scheduled_harvests.counts(connection)[TurnState.RUNNING])
        counted = Counter(taken)
    return {
        "turns": count,
        "turns_most_at_once": most,
        "turns_taken": sum(counted.values()),
        "turns_twice": sum(each > 1 for each in counted.values()),
    }


@contextmanager
def _processes(*calls: tuple[Any, tuple[Any, ...]], end: bool = False) -> Iterator[None]:
    """Run these calls in processes; at the end of the block, wait for them or, with `end`, terminate them."""
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=function, args=arguments) for function, arguments in calls]
    for process in running:
        process.start()
    try:
        yield
    finally:
        for process in running:
            if end:
                process.terminate()
            process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--rules", type=int, default=1000)
    parser.add_argument("--letters", type=int, default=500)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.quick:
        given.rules, given.letters, given.turns = 20, 10, 5
    folder, port = Path(tempfile.mkdtemp(prefix="webdepot-portals-")), free_port()
    try:
        with postgres_server.running() as address:
            url = make_url(address).set(drivername="postgresql").render_as_string(hide_password=False)
            setup.create(
                folder / "home",
                settings=f'[database]\nurl = "{url}"\n[schedule]\nat_once = 2\n[mail]\nhost = "127.0.0.1"\n'
                f'port = {port}\nsecurity = "none"\nsender = "archive@library.example"\n',
            )
            figures: dict[str, object] = {}
            figures |= measure_turns(folder / "home", given.turns)
            figures |= measure_letters(folder / "home", port, given.letters)
            figures |= measure_rules(folder / "home", address, given.rules)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures))
    is_right = (
        figures["turns_most_at_once"] in (1, 2)
        and figures["turns_taken"] == given.turns
        and figures["letters_received"] == given.letters
        and not figures["letters_missing"]
        and not figures["rules_late"]
        and not figures["rules_late_without_notify"]
    )
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
