"""Parts of harvests that machines take from each other: leases, checkpoints, turns at servers, and the journal
from which a frontier is built again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from sqlalchemy import select, update

from databases import Databases, address_of
from webdepot.database import Database
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import CorruptData
from webdepot.harvest import frontier, order_file
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.order_file import Order, OrderVerb
from webdepot.harvest.parts import database_link, part_rows, part_statements, server_rows
from webdepot.harvest.parts.database_link import DatabaseLink
from webdepot.harvest.parts.journal import Journal
from webdepot.harvest.parts.leased_servers import LeasedServers
from webdepot.harvest.parts.objects import PartObjects
from webdepot.harvest.parts.part_rows import Look, PartLease, PartLost, PartState
from webdepot.harvest.parts.part_statements import Beat
from webdepot.harvest.tables import handed_links, parts, servers
from webdepot.model import Candidate
from webdepot.url import Url

MARKS = {"crawl.log": 0}


@pytest.fixture
def database(databases: Databases, empty_postgresql_home: Path) -> Iterator[Database]:
    copy = databases.create(copy_of=address_of(empty_postgresql_home))
    with closing(Database(copy.replace("postgresql:", "postgresql+psycopg:"))) as opened:
        yield opened


def take(database: Database, holder: str, *, lease_s: float = 60.0) -> PartLease | None:
    with database.leasing() as connection:
        return part_rows.take(connection, holder=holder, machine=holder, lease_s=lease_s, has_browser=False)


def taken(database: Database, holder: str, *, lease_s: float = 60.0) -> PartLease:
    lease = take(database, holder, lease_s=lease_s)
    assert lease is not None
    return lease


def save(database: Database, lease: PartLease, number: int, **links: object) -> None:
    with closing(database.line()) as line:
        part_statements.save_checkpoint(
            line,
            lease,
            checkpoint=number,
            obeyed=0,
            handed=links.get("handed", {}),  # type: ignore[arg-type]
            consumed=links.get("consumed", ()),  # type: ignore[arg-type]
        )


def renew(database: Database, lease: PartLease) -> Beat:
    with closing(database.line()) as line:
        return part_statements.renew(line, lease, lease_s=60, after_order=0, known=())


def order(database: Database, verb: OrderVerb) -> None:
    given = Order(number=0, verb=verb, at=datetime.now(UTC), by="Ada", reason="", urls=(), changes={})
    with database.transaction() as connection:
        part_rows.add_order(connection, "H", order_file.encode(given).decode().rstrip("\n"))


def offered(database: Database, count: int) -> None:
    with database.transaction() as connection:
        part_rows.offer(connection, "H", count, needs_browser=False)


def test_a_frontier_built_from_its_journals_is_the_same(tmp_path: Path) -> None:
    journal, journals = Journal(), []
    with closing(LmdbFrontier(tmp_path / "one", journal=journal)) as one:
        for turn in range(3):
            one.add(
                Candidate(url=Url(f"http://{host}.example/{turn}/{page}"))
                for host in "ab"
                for page in range(5)
            )
            first, second = one.take(turn + 1.0), one.take(turn + 1.0)
            assert first is not None and second is not None
            one.finish(first, host_free_at_s=0.0)
            one.retry(second, host_free_at_s=0.0)
            one.remember("turn", str(turn).encode())
            one.remove(lambda url: url.endswith("/4"))
            one.commit({**MARKS, "crawl.log": turn})
            journals.append(journal.take())
        one.remember("turn", b"not committed")
        expected = sorted((each.url, each.tries) for each in one.iter_waiting()), one.counts(), one.marks()
    frontier.restore(tmp_path / "two", journals)
    with closing(LmdbFrontier(tmp_path / "two")) as two:
        assert (sorted((each.url, each.tries) for each in two.iter_waiting()), two.counts(), two.marks()) == (
            expected
        )
        assert two.recall("turn") == b"2"
        assert two.add([Candidate(url=Url("http://a.example/0/0"))]) == 0
    with pytest.raises(CorruptData):
        frontier.restore(tmp_path / "three", [journals[0][:-9]])


def test_only_valid_checkpoints_are_read_back(tmp_path: Path) -> None:
    folder, store = tmp_path / "part", FolderStore(tmp_path / "work")
    part, journal = PartObjects(store, "H", 0), Journal()
    (folder / "warc").mkdir(parents=True)
    log, container = folder / "crawl.log", folder / "warc" / "X.warc.gz.open"
    before: dict[str, int] = {}
    with closing(LmdbFrontier(folder / "frontier", journal=journal)) as opened:
        for number, (generation, text) in enumerate([(1, b"one "), (1, b"two "), (4, b"three ")], start=1):
            for path in (log, container):
                with path.open("ab") as file:
                    file.write(text)
            marks = {"crawl.log": log.stat().st_size, container.name: container.stat().st_size}
            opened.stage({**marks, "checkpoint": number})
            part.put_checkpoint(number, generation, journal.take(), folder, before, marks)
            opened.commit_staged()
            before = marks
    # A harvester that had lost the part put a third checkpoint there, which never became valid.
    for name in ("000003-1.journal", "000003-1.crawl.log", "segments/X.warc.gz.open/000003-1"):
        store.put(f"harvests/H/parts/0/{name}", BytesIO(b"wrong"))
    part.restore(tmp_path / "other", [(1, 2), (4, 3)])
    assert (tmp_path / "other" / "crawl.log").read_bytes() == b"one two three "
    assert (tmp_path / "other" / "warc" / container.name).read_bytes() == b"one two three "
    store.delete("harvests/H/parts/0/segments/X.warc.gz.open/000002-1")
    with pytest.raises(CorruptData, match="working place"):
        part.restore(tmp_path / "other", [(1, 2), (4, 3)])


def test_a_harvester_that_lost_its_part_changes_nothing(database: Database) -> None:
    offered(database, 2)
    first = taken(database, "first", lease_s=-1.0)
    second = taken(database, "second")
    assert (second.part, second.generation) == (first.part, first.generation + 1)
    save(database, second, 1)
    with pytest.raises(PartLost):
        save(database, first, 1, handed={1: ['["http://b.example/", "", "L", 0]']})
    with pytest.raises(PartLost), database.leasing() as connection:
        part_rows.release(connection, first, PartState.IDLE)
    save(database, second, 2, handed={1: ["[1]"]})
    save(database, second, 2, handed={1: ["[1]"]})  # the answer of the server was lost
    with database.reading() as connection:
        assert len(connection.execute(select(handed_links)).all()) == 1
        row = connection.execute(select(parts).where(parts.c.part == first.part)).one()
    assert (row.checkpoint, row.spans, row.holder) == (2, [[second.generation, 2]], "second")


def test_a_harvest_is_over_when_nothing_waits_and_no_link_is_on_its_way(database: Database) -> None:
    offered(database, 2)
    one, two = taken(database, "one"), taken(database, "two")
    assert take(database, "three") is None
    save(database, one, 1, handed={two.part: ["[1]"]})
    for lease in (one, two):
        with database.leasing() as connection:
            part_rows.release(connection, lease, PartState.IDLE)
    with database.reading() as connection:
        assert not part_rows.is_over(connection, "H")
    again = taken(database, "three")
    assert again.part == two.part
    beat = renew(database, again)
    save(database, again, 1, consumed=[number for number, _ in beat.handed])
    with database.leasing() as connection:
        part_rows.release(connection, again, PartState.IDLE)
    with database.reading() as connection:
        assert part_rows.is_over(connection, "H") and part_rows.find_unwatched(connection) == ["H"]
    with database.transaction() as connection:
        part_rows.add_order(connection, "H", "{}")
        assert not part_rows.is_over(connection, "H")


def test_a_stop_is_obeyed_although_the_process_that_watched_has_died(database: Database) -> None:
    offered(database, 2)
    lease = taken(database, "one")
    with database.leasing() as connection:
        part_rows.stop(connection, "H")
    assert renew(database, lease).is_stopping
    with database.leasing() as connection:
        part_rows.release(connection, lease, PartState.ENDED)
    with database.transaction() as connection:
        part_rows.offer(connection, "H", 2, needs_browser=False, again=False)
        assert part_rows.is_over(connection, "H")
    assert take(database, "two") is None
    offered(database, 2)  # a person resumes it
    assert taken(database, "two") and taken(database, "three")


def test_a_part_that_kills_its_harvesters_ends(database: Database) -> None:
    offered(database, 1)
    for _ in range(5):
        lease = taken(database, "unlucky", lease_s=-1.0)
        with database.leasing() as connection:
            part_rows.release(connection, lease, PartState.WAITING, reason="Its process ended with -9.")
    assert take(database, "careful") is None
    with database.reading() as connection:
        part = part_rows.of_harvest(connection, "H")[0]
    assert part.state is PartState.ENDED and "ended with -9" in part.reason


def test_one_part_at_a_time_has_the_turn_at_a_server(database: Database) -> None:
    offered(database, 2)
    one, two = taken(database, "one"), taken(database, "two")

    def ask(lease: PartLease) -> dict[str, float]:
        with database.leasing() as connection:
            return server_rows.take(connection, ["192.0.2.1"], lease.holder)

    assert ask(one) == {"192.0.2.1": 0.0} and ask(two) == {} and ask(one)
    assert ask(two) == {} and renew(database, one).wanted == ["192.0.2.1"]
    with closing(database.line()) as line:
        server_rows.give_back(line, {"192.0.2.1": 30.0}, "two")  # which does not have it
        assert not ask(two)
        server_rows.give_back(line, {"192.0.2.1": 30.0}, "one")
        wait_s = ask(two)["192.0.2.1"]
        assert 25 < wait_s <= 30
        server_rows.store_pauses(line, {"192.0.2.1": 60.0}, "two")
    with database.leasing() as connection:  # its machine dies, after pauses of a minute
        connection.execute(update(parts).where(parts.c.holder == "two").values(until_s=part_rows.NOW - 1))
    assert 55 < ask(one)["192.0.2.1"] <= 60
    with pytest.raises(PartLost):  # although nobody has taken the part: its turns are gone
        renew(database, two)
    with database.leasing() as connection:
        connection.execute(update(servers).values(free_at_s=part_rows.NOW - 7200, holder=""))
        server_rows.forget_old(connection)
        assert not connection.execute(select(servers)).all()


def test_a_turn_whose_answer_was_lost_is_given_back_when_another_part_waits(database: Database) -> None:
    offered(database, 2)
    link = DatabaseLink(database, taken(database, "one"), lease_s=60.0)
    other = taken(database, "two")

    def ask(holder: str) -> dict[str, float]:
        with database.leasing() as connection:
            return server_rows.take(connection, ["192.0.2.1"], holder)

    assert ask("one")  # and "one" never learns it
    link.start()
    with closing(link), closing(LeasedServers(database, link)):
        end_s = time.monotonic() + 60
        while not ask(other.holder):
            assert time.monotonic() < end_s
            time.sleep(0.05)


def test_nobody_is_asked_after_the_lease(database: Database) -> None:
    offered(database, 1)
    link = DatabaseLink(database, taken(database, "one"), lease_s=60.0)
    link.start()
    with closing(link), closing(LeasedServers(database, link)) as turns:
        while turns.begin("192.0.2.1"):
            pass
        turns.end("192.0.2.1", 0.0)
        assert turns.begin("192.0.2.1") == 0.0
        turns.end("192.0.2.1", 0.0)
        link.held_until_s = 0.0
        assert turns.begin("192.0.2.1") > 0
        with pytest.raises(PartLost):
            link.check()


def test_a_harvester_sees_new_orders_of_its_harvests(database: Database) -> None:
    offered(database, 1)
    with closing(database.line()) as line:
        assert part_rows.look(line, ["H"]) == Look(can_take=True, orders=0)
        taken(database, "one")
        assert part_rows.look(line, ["H"]) == Look(can_take=False, orders=0)
        order(database, OrderVerb.PAUSE)
        assert part_rows.look(line, ["H"]).orders == 1
        assert part_rows.look(line, ["another"]).orders == part_rows.look(line, []).orders == 0


def test_an_order_is_brought_at_once_and_numbers_when_they_are_due(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_link, "BEAT_S", 3600.0)
    offered(database, 1)
    with closing(DatabaseLink(database, taken(database, "one"), lease_s=36_000.0)) as link:
        link.start()
        link.show({"live": {}, "fetched": 7, "pages": 0, "size_bytes": 0})
        order(database, OrderVerb.PAUSE)
        link.wake()
        end_s = time.monotonic() + 60
        while not (orders := link.poll()):
            assert time.monotonic() < end_s
            time.sleep(0.01)
        assert [each.verb for each in orders] == [OrderVerb.PAUSE]
        # They would be old, and new ones would be stored later.
        assert not link.wants_numbers()
        with database.reading() as connection:
            assert connection.execute(select(parts.c.fetched)).scalar_one() == 0


def test_numbers_are_collected_just_before_they_are_stored(database: Database) -> None:
    offered(database, 1)
    link = DatabaseLink(database, taken(database, "one"), lease_s=60.0)

    def stored(fetched: int) -> bool:
        with database.reading() as connection:
            return connection.execute(select(parts.c.fetched)).scalar_one() == fetched

    def until(is_true: Callable[[], bool]) -> None:
        end_s = time.monotonic() + 60
        while not is_true():
            assert time.monotonic() < end_s
            time.sleep(0.01)

    for fetched in (1, 2):
        until(link.wants_numbers)
        assert not stored(fetched)
        link.show({"live": {}, "fetched": fetched, "pages": 0, "size_bytes": 0})
        if fetched == 1:
            link.start()
        until(lambda fetched=fetched: stored(fetched))
        until(lambda: not link.wants_numbers())
    link.close()
