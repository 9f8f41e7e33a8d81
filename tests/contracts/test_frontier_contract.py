"""What every `Frontier` must do. An implementation joins by adding its opener to `OPENERS`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdepot.harvest.frontier import LmdbFrontier
from webdepot.model import Candidate
from webdepot.ports.harvest import Frontier
from webdepot.url import Url

Opener = Callable[[Path], Frontier]
OPENERS: dict[str, Opener] = {"lmdb": lambda folder: LmdbFrontier(folder / "frontier", per_host=3)}


@pytest.fixture(params=OPENERS.values(), ids=OPENERS.keys())
def opener(request: pytest.FixtureRequest) -> Opener:
    return request.param


@pytest.fixture
def frontier(opener: Opener, tmp_path: Path) -> Iterator[Frontier]:
    opened = opener(tmp_path)
    yield opened
    opened.close()


def candidate(place: str, path: str = "L", host: str = "http://a.example", **more: object) -> Candidate:
    return Candidate(url=Url(f"{host}/{place}"), path=path, **more)  # type: ignore[arg-type]


def drain(frontier: Frontier, now_s: float = 0.0) -> list[str]:
    """Take and finish everything that is due, in the order in which it comes."""
    taken = []
    while (found := frontier.take(now_s)) is not None:
        taken.append(found.url)
        frontier.finish(found, host_free_at_s=now_s)
    return taken


def test_a_url_is_queued_once_for_ever(frontier: Frontier) -> None:
    assert frontier.add([candidate("1"), candidate("2"), candidate("1")]) == 2
    assert frontier.add([candidate("2", path="E")]) == 0
    assert len(drain(frontier)) == 2
    assert frontier.add([candidate("1")]) == 0
    assert frontier.take(9.0) is None
    assert frontier.next_due_s() is None


def test_spellings_that_a_server_may_tell_apart_are_different(frontier: Frontier) -> None:
    urls = [
        "http://a.example/x",
        "http://a.example/X",
        "http://a.example/x/",
        "https://a.example/x",
        "http://www.a.example/x",
    ]
    urls += [
        "http://a.example:81/x",
        "http://a.example/x?",
        "http://a.example/x?b&a",
        "http://a.example/x?a&b",
    ]
    assert frontier.add(Candidate(url=Url(url)) for url in urls) == len(urls)


def test_session_ids_make_no_new_url(frontier: Frontier) -> None:
    session = "0123456789abcdef0123456789abcdef"
    assert frontier.add([candidate("x.php?a=1")]) == 1
    assert (
        frontier.add(
            [candidate(f"x.php?a=1&PHPSESSID={session}"), candidate(f"x.php?PHPSESSID={session}&a=1")]
        )
        == 0
    )
    assert (
        frontier.add(
            [candidate(f"y.jsp;jsessionid={session}"), candidate(f"y.jsp;jsessionid={session[::-1]}")]
        )
        == 1
    )


def test_what_a_candidate_says_comes_back(frontier: Frontier) -> None:
    given_in = candidate(
        "ä?q=%20".replace("ä", "%C3%A4"), path="LLRE", via=Url("http://b.example/from"), outside=2
    )
    frontier.add([given_in])
    assert frontier.take(0.0) == given_in


def test_seeds_and_prerequisites_then_embeds_then_links_then_guesses(frontier: Frontier) -> None:
    paths = {
        "x": "LX",
        "l1": "L",
        "l2": "LL",
        "e": "LE",
        "er": "LERR",
        "seed": "",
        "robots": "P",
        "moved": "R",
        "x2": "LXR",
    }
    frontier.add(candidate(name, path=path) for name, path in paths.items())
    taken = [url.rsplit("/", 1)[1] for url in drain(frontier)]
    assert taken == ["seed", "robots", "moved", "e", "er", "l1", "l2", "x", "x2"]


def test_a_better_candidate_passes_those_already_read_ahead(frontier: Frontier) -> None:
    frontier.add(candidate(f"l{number}") for number in range(20))
    first = frontier.take(0.0)
    assert first is not None
    frontier.add(candidate(f"e{number}", path="LE") for number in range(20))
    frontier.finish(first, host_free_at_s=0.0)
    taken = [url.rsplit("/", 1)[1] for url in drain(frontier)]
    assert taken == [f"e{number}" for number in range(20)] + [f"l{number}" for number in range(1, 20)]


def test_one_candidate_of_a_host_is_out_at_a_time(frontier: Frontier) -> None:
    frontier.add([candidate("1"), candidate("2"), candidate("1", host="http://b.example")])
    out = [frontier.take(0.0), frontier.take(0.0)]
    assert {found.url for found in out if found} == {"http://a.example/1", "http://b.example/1"}
    assert frontier.take(1e9) is None
    assert frontier.next_due_s() is None
    assert frontier.counts().in_flight == 2


def test_a_host_rests_until_it_is_free(frontier: Frontier) -> None:
    frontier.add([candidate("1"), candidate("2")])
    first = frontier.take(10.0)
    assert first is not None
    frontier.finish(first, host_free_at_s=15.0)
    assert frontier.next_due_s() == 15.0
    assert frontier.take(14.9) is None
    assert frontier.take(15.0) is not None


def test_a_rest_also_holds_for_what_is_added_during_it(frontier: Frontier) -> None:
    frontier.add([candidate("1")])
    first = frontier.take(10.0)
    assert first is not None
    frontier.finish(first, host_free_at_s=15.0)
    frontier.add([candidate("2")])
    assert frontier.next_due_s() == 15.0
    assert frontier.take(14.9) is None
    assert frontier.take(15.1) is not None


def test_a_retry_counts_and_comes_first(frontier: Frontier) -> None:
    frontier.add([candidate("1"), candidate("2")])
    first = frontier.take(0.0)
    assert first is not None
    frontier.retry(first, host_free_at_s=5.0)
    assert frontier.take(4.0) is None
    again = frontier.take(5.0)
    assert again is not None
    assert (again.url, again.tries) == (first.url, 1)


def test_a_retry_that_must_wait_lets_others_go_first(frontier: Frontier) -> None:
    frontier.add([candidate("1"), candidate("2"), candidate("3")])
    first = frontier.take(0.0)
    assert first is not None
    frontier.retry(first, host_free_at_s=1.0, not_before_s=60.0)
    assert [url[-1] for url in drain(frontier, 1.0)] == ["2", "3"]
    assert frontier.next_due_s() == 60.0
    frontier.add([candidate("4")])
    assert [url[-1] for url in drain(frontier, 2.0)] == ["4"]
    assert frontier.take(59.9) is None
    last = frontier.take(60.0)
    assert last is not None
    assert last.tries == 1
    frontier.finish(last, host_free_at_s=60.0)
    assert frontier.counts().done == 4


def test_what_is_put_back_uncounted_is_as_before(frontier: Frontier) -> None:
    frontier.add([candidate("1"), candidate("2")])
    first = frontier.take(0.0)
    assert first is not None
    frontier.retry(first, host_free_at_s=3.0, counted=False)
    assert frontier.take(2.0) is None
    assert frontier.take(3.0) == first


def test_a_host_parked_for_ever_stays_waiting(frontier: Frontier) -> None:
    frontier.add([candidate("1"), candidate("2")])
    first = frontier.take(0.0)
    assert first is not None
    frontier.finish(first, host_free_at_s=float("inf"))
    assert frontier.take(1e12) is None
    assert frontier.next_due_s() == float("inf")
    assert frontier.counts().waiting == 1


def test_hosts_take_turns(frontier: Frontier) -> None:
    hosts = [f"http://h{number}.example" for number in range(4)]
    frontier.add(candidate(str(number), host=host) for host in hosts for number in range(5))
    now_s, order = 0.0, []
    while (found := frontier.take(now_s)) is not None:
        order.append(found.url.split("/")[2])
        frontier.finish(found, host_free_at_s=now_s + 0.5)
        now_s += 1.0
    assert all(len(set(order[at : at + 4])) == 4 for at in range(0, 20, 4))


def test_counts_add_up(frontier: Frontier) -> None:
    frontier.add(candidate(str(number)) for number in range(7))
    first = frontier.take(0.0)
    assert first is not None
    counts = frontier.counts()
    assert (counts.seen, counts.waiting, counts.in_flight, counts.done) == (7, 6, 1, 0)
    frontier.finish(first, host_free_at_s=0.0)
    counts = frontier.counts()
    assert (counts.seen, counts.waiting, counts.in_flight, counts.done) == (7, 6, 0, 1)
    assert len(list(frontier.iter_waiting())) == 6


def test_waiting_ones_can_be_listed_by_host(frontier: Frontier) -> None:
    frontier.add(candidate(str(number), host=f"http://h{number % 3}.example") for number in range(9))
    frontier.take(0.0)
    hosts = [found.url.split("/")[2] for found in frontier.iter_waiting()]
    assert len(hosts) == 8
    assert sum(1 for one, other in pairwise(hosts) if one != other) == 2


def test_a_refusal_is_new_once_and_does_not_hinder_adding(frontier: Frontier) -> None:
    assert frontier.refuse(candidate("1"))
    assert not frontier.refuse(candidate("1"))
    assert frontier.add([candidate("1")]) == 1


def test_commit_keeps_everything_and_marks(opener: Opener, tmp_path: Path) -> None:
    frontier = opener(tmp_path)
    frontier.add(candidate(str(number)) for number in range(5))
    for _ in range(2):
        found = frontier.take(0.0)
        assert found is not None
        frontier.finish(found, host_free_at_s=0.0)
    retried = frontier.take(0.0)
    assert retried is not None
    frontier.retry(retried, host_free_at_s=100.0, not_before_s=100.0)
    frontier.refuse(candidate("no"))
    frontier.remember("robots", b"text")
    long_keys = [f"part:http://a.example/?{'x' * length}" for length in (480, 490, 500, 600, 60_000)]
    for key in long_keys:
        frontier.remember(key, key[-600:].encode())
    frontier.commit({"a.warc.gz.open": 77, "crawl.log": 5})
    frontier.close()

    frontier = opener(tmp_path)
    assert frontier.marks() == {"a.warc.gz.open": 77, "crawl.log": 5}
    assert frontier.recall("robots") == b"text"
    assert [frontier.recall(key) for key in long_keys] == [key[-600:].encode() for key in long_keys]
    assert frontier.recall(f"{long_keys[-1]}x") is None
    assert not frontier.refuse(candidate("no"))
    assert frontier.add([candidate("0"), candidate("4")]) == 0
    assert frontier.counts().done == 2
    first = frontier.take(0.0)
    assert first is not None
    assert (first.url, first.tries) == (retried.url, 1)
    frontier.finish(first, host_free_at_s=0.0)
    assert [url[-1] for url in drain(frontier)] == ["3", "4"]
    frontier.close()


def test_what_was_not_committed_is_undone_and_what_was_out_waits_again(
    opener: Opener, tmp_path: Path
) -> None:
    frontier = opener(tmp_path)
    frontier.add([candidate("1"), candidate("2")])
    frontier.remember("totals", b"1")
    frontier.take(0.0)
    frontier.commit({"log": 1})
    frontier.remember("totals", b"2")
    frontier.add([candidate("3")])
    frontier.close()

    frontier = opener(tmp_path)
    assert frontier.counts().waiting == 2
    assert frontier.recall("totals") == b"1"
    assert [url[-1] for url in drain(frontier)] == ["1", "2"]
    frontier.close()


def test_unknown_facts_are_none(frontier: Frontier) -> None:
    assert frontier.recall("nothing") is None
    assert frontier.marks() == {}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_course_of_events_hands_out_each_url_until_it_is_finished(
    opener: Opener, tmp_path_factory, data: st.DataObject
) -> None:
    """A model of sets against the real thing, through retries, crashes and commits."""
    folder = tmp_path_factory.mktemp("frontier")
    with ExitStack() as opened:
        frontier = opened.enter_context(closing(opener(folder)))
        _check_course_of_events(opener, folder, frontier, opened, data)


def _check_course_of_events(
    opener: Opener, folder: Path, frontier: Frontier, opened: ExitStack, data: st.DataObject
) -> None:
    added: set[str] = set()
    finished: set[str] = set()
    safe = (set(added), set(finished))
    now_s = 0.0
    for step in data.draw(
        st.lists(st.sampled_from(["add", "take", "take", "retry", "commit", "crash"]), max_size=30)
    ):
        now_s += 1.0
        if step == "add":
            new = [
                candidate(
                    str(data.draw(st.integers(0, 40))),
                    path=data.draw(st.sampled_from(["", "L", "E", "X"])),
                    host=f"http://{h}.example",
                )
                for h in data.draw(st.lists(st.sampled_from("abc"), max_size=8))
            ]
            count = len({one.url for one in new} - added)
            assert frontier.add(new) == count
            added |= {one.url for one in new}
        elif step in ("take", "retry"):
            found = frontier.take(now_s)
            assert (found is None) == (added == finished)
            if found is not None:
                assert found.url in added - finished
                if step == "retry":
                    frontier.retry(found, host_free_at_s=now_s)
                else:
                    frontier.finish(found, host_free_at_s=now_s)
                    finished.add(found.url)
        elif step == "commit":
            frontier.commit({"at": int(now_s)})
            safe = (set(added), set(finished))
        else:
            opened.close()
            frontier = opened.enter_context(closing(opener(folder)))
            added, finished = set(safe[0]), set(safe[1])
            now_s += 1.0
    assert set(drain(frontier, now_s + 1.0)) == added - finished


def test_what_waits_at_a_host_is_counted_over_its_whole_life(tmp_path: Path, opener: Opener) -> None:
    frontier = opener(tmp_path)
    frontier.add([Candidate(url=Url(f"http://a.example/{number}")) for number in range(30)])
    frontier.add([Candidate(url=Url("https://a.example/0")), Candidate(url=Url("http://b.example:81/0"))])
    origins = ["http://a.example", "https://a.example", "http://b.example:81", "http://c.example"]
    assert [frontier.waiting_at(origin) for origin in origins] == [30, 1, 1, 0]
    for _ in range(6):
        taken = frontier.take(1.0)
        assert taken is not None
        frontier.finish(taken, host_free_at_s=0.0)
    assert frontier.remove(lambda url: url.endswith("/29")) == 1
    before = [frontier.waiting_at(origin) for origin in origins]
    assert sum(before) == 32 - 6 - 1
    frontier.commit({})
    frontier.close()
    again = opener(tmp_path)
    assert [again.waiting_at(origin) for origin in origins] == before
    assert len(list(again.iter_waiting())) == sum(before)
    again.close()
