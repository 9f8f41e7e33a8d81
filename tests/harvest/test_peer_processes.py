"""Links that lead to hosts of another process of the same harvest: which process judges them, which fetches them, and when the harvest is over."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from webdepot.harvest import link_intake, peer_processes
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.judge import CrawlJudge
from webdepot.harvest.link_intake import LinkIntake
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.peer_processes import FileHandover, PeerReport, Peers
from webdepot.harvest.report.log import JSON_NAME, CrawlLog
from webdepot.harvest.report.result import CrawlSettings
from webdepot.harvest.seed_book import SeedBook
from webdepot.model import Candidate, Hop
from webdepot.url import Url

MINE, THEIRS, OUTSIDE = "http://a.example/", "http://b.example/", "http://elsewhere.example/"
SETTINGS = CrawlSettings(seeds=(Url(MINE), Url(THEIRS)), user_agent="Webdepot/1 (test)", rejects=("private",))


class Wire:
    """Keeps what was reported (`peer_processes.PeerLine`)."""

    def __init__(self) -> None:
        self.reports: list[PeerReport] = []

    def report(self, report: PeerReport) -> None:
        self.reports.append(report)

    def is_over(self) -> bool:
        return False


class Process:
    """The part of a process that handles links."""

    def __init__(
        self, folder: Path, number: int, opened: ExitStack, settings: CrawlSettings = SETTINGS
    ) -> None:
        self.folder = folder / str(number)
        self.frontier = opened.enter_context(closing(LmdbFrontier(self.folder / "frontier")))
        self.log = opened.enter_context(closing(CrawlLog(self.folder)))
        self.wire = Wire()
        self.peers = Peers(
            number,
            peer_processes.owners(folder, 2),
            opened.enter_context(closing(FileHandover(folder, number, 2, self.frontier, self.wire))),
        )
        self.judge = CrawlJudge(settings, None, lambda: (0, 0))
        seeds = SeedBook(settings.seeds, None)
        clock = lambda: datetime(2026, 1, 1, tzinfo=UTC)  # noqa: E731
        self.intake = LinkIntake(
            settings,
            frontier=self.frontier,
            judge=self.judge,
            seeds=seeds,
            log=self.log,
            clock=clock,
            peers=self.peers,
        )

    def reads(self, *links: str, path: str = "L", **found: object) -> None:
        """A page with these links."""
        page = Candidate(url=Url(f"{MINE}page"), via=Url(MINE), path=path)
        self.intake.take_in(page, Extracted(links=[(Url(link), Hop.LINK) for link in links], **found))  # type: ignore[arg-type]
        self.peers.sync()

    def waiting(self) -> set[str]:
        return {candidate.url for candidate in self.frontier.iter_waiting()}

    def logged(self) -> list[tuple[str, str]]:
        self.log.sync()
        lines = map(json.loads, (self.folder / JSON_NAME).read_text().splitlines())
        return [(line["url"], line["rule"]) for line in lines]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    peer_processes.deal_out(tmp_path, SETTINGS.seeds, 2)
    with ExitStack() as opened:
        yield Process(tmp_path, 0, opened), Process(tmp_path, 1, opened)


def handed_over(folder: Path) -> list[str]:
    return [json.loads(line)[0] for line in (folder.parent / "0-to-1.jsonl").read_text().splitlines()]


def test_a_link_to_anothers_host_is_judged_there_and_logged_there(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.reads(f"{MINE}x", f"{THEIRS}y", f"{THEIRS}private/z", f"{MINE}private/q", f"{OUTSIDE}w")
    assert one.waiting() == {f"{MINE}x"} and [url for url, _ in one.logged()] == [f"{MINE}private/q"]
    assert handed_over(one.folder) == [f"{THEIRS}y", f"{THEIRS}private/z"]
    assert two.intake.hear_peers() and two.waiting() == {f"{THEIRS}y"}
    assert two.logged() == [(f"{THEIRS}private/z", one.logged()[0][1])]
    taken = two.frontier.take(1.0)
    assert taken is not None and (taken.via, taken.path) == (f"{MINE}page", "LL")
    assert not two.intake.hear_peers()


def test_what_was_handed_over_recently_is_not_handed_over_again(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.reads(f"{THEIRS}y")
    one.reads(f"{THEIRS}y", f"{THEIRS}z")
    assert handed_over(one.folder) == [f"{THEIRS}y", f"{THEIRS}z"]
    one.intake.recently_added.clear()  # as after many other links
    one.reads(f"{THEIRS}y")
    assert (
        two.intake.hear_peers()
        and two.waiting() == {f"{THEIRS}y", f"{THEIRS}z"}
        and two.frontier.counts().seen == 2
    )


def test_what_only_its_page_knows_is_decided_at_its_page(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.reads(f"{THEIRS}asks-not", nofollow=frozenset({Url(f"{THEIRS}asks-not")}))
    one.reads(f"{THEIRS}page-asks-not", directives=frozenset({"nofollow"}))
    assert handed_over(one.folder) == [] and not two.intake.hear_peers()
    assert one.logged() == [(f"{THEIRS}asks-not", "nofollow"), (f"{THEIRS}page-asks-not", "nofollow")]


def test_links_beyond_the_seeds_hosts_are_judged_where_they_are_found(tmp_path: Path) -> None:
    wide = CrawlSettings(
        seeds=SETTINGS.seeds, user_agent="Webdepot/1 (test)", scope=SETTINGS.scope.ANY, rejects=("private",)
    )
    peer_processes.deal_out(tmp_path, wide.seeds, 2)
    known = peer_processes.owners(tmp_path, 2)
    other = next(url for number in range(99) if known.of(url := f"http://h{number}.example/") == 1)
    with ExitStack() as opened:
        one, two = Process(tmp_path, 0, opened, wide), Process(tmp_path, 1, opened, wide)
        one.reads(f"{other}x", f"{other}private/y")
        assert handed_over(one.folder) == [f"{other}x"] and [url for url, _ in one.logged()] == [
            f"{other}private/y"
        ]
        assert two.intake.hear_peers() and two.waiting() == {f"{other}x"}


def test_where_a_rule_looks_hosts_up_the_finder_judges(tmp_path: Path) -> None:
    async def look_up(hosts: object) -> None:
        """Not called."""

    settings = replace(SETTINGS, look_up=look_up)
    peer_processes.deal_out(tmp_path, settings.seeds, 2)
    with ExitStack() as opened:
        one, two = Process(tmp_path, 0, opened, settings), Process(tmp_path, 1, opened, settings)
        one.reads(f"{THEIRS}y", f"{THEIRS}private/z")
        assert handed_over(one.folder) == [f"{THEIRS}y"] and [url for url, _ in one.logged()] == [
            f"{THEIRS}private/z"
        ]
        two.judge.rules = ()  # would reject everything, if it were asked
        assert two.intake.hear_peers() and two.waiting() == {f"{THEIRS}y"}


def test_what_is_remembered_of_links_is_bounded(
    pair: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    monkeypatch.setattr(link_intake, "MOST_REMEMBERED", 10)
    for number in range(100):
        one.reads(f"{THEIRS}{number}")
        two.intake.hear_peers()
        assert len(one.intake.recently_added) <= 11 and len(two.intake.recently_added) <= 11
    assert two.frontier.counts().seen == 100


def test_a_process_that_reads_more_withdraws_its_report_of_being_idle(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.reads(f"{THEIRS}y")
    two.intake.hear_peers()
    assert two.wire.reports == []
    two.peers.report_idle()
    one.reads(f"{THEIRS}z")
    two.intake.hear_peers()
    assert [report.idle for report in two.wire.reports] == [True, False]
    one.peers.report_idle()
    two.peers.report_idle()
    assert peer_processes.is_over([one.wire.reports[-1], two.wire.reports[-1]])
