"""A harvest from the root of the closed network: it finds exactly the members that can be found, and the log
says why for each.
"""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from closed_network import ClosedNetwork
from musterstadt import MEMBERS, STRANGERS

from webdepot.archive import Archive
from webdepot.config.config import read
from webdepot.model import Harvest
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.selection import discovery, organisations
from webdepot.url import host_of

Lines = list[dict[str, str]]


@pytest.fixture
def harvested(closed: ClosedNetwork, archive: Archive) -> Callable[..., tuple[Harvest, Lines]]:
    def run(*rules: str, hops_outside: int = 1) -> tuple[Harvest, Lines]:
        options = replace(
            HarvestOptions.from_config(archive.config),
            delay_s=0.0,
            allow_private=True,
            organisation="uni-musterstadt.example",
            host_rules=rules,
            limits={"hops_outside": hops_outside},
        )
        harvest = runner.start_or_resume(archive, [closed.url("www.uni-musterstadt.example")], options)
        done = runner.run(archive, harvest)
        path = harvests.folder_of(archive, harvest) / "crawl.jsonl"
        return done, [json.loads(line) for line in path.read_text().splitlines()]

    return run


def profiled(archive: Archive) -> None:
    """Phase one alone: the profile is known, and no host yet."""
    discovery.discover(archive, "uni-musterstadt.example", allow_private=True)
    with archive.database.transaction() as connection:
        from sqlalchemy import delete

        from webdepot.selection.tables import organisation_hosts

        connection.execute(delete(organisation_hosts))


def bare(url: str) -> str:
    return host_of(url).partition(":")[0]


def test_a_harvest_from_the_root_finds_the_members_and_says_why(
    archive: Archive, harvested: Callable[..., tuple[Harvest, Lines]]
) -> None:
    profiled(archive)
    _, lines = harvested("BelongsTo")
    followed = {
        bare(line["url"])
        for line in lines
        if line["rule"] in ("BelongsTo", "host", "seed") and int(line["status"]) == 200
    }
    assert followed >= set(MEMBERS) - {"uni-musterstadt.example"}
    assert not followed & STRANGERS
    for host in set(MEMBERS) - {"uni-musterstadt.example", "www.uni-musterstadt.example"}:
        reasons = {
            line["reason"] for line in lines if bare(line["url"]) == host and line["rule"] == "BelongsTo"
        }
        assert reasons, host
        assert any("score" in reason and host in reason for reason in reasons)
    known = {host.host: host for host in organisations.hosts_of(archive, organisations.get(archive))}
    assert known["studie-muster.test"].own
    assert known["studie-muster.test"].linked_by == ("www.uni-musterstadt.example",)
    assert known["verein.example"].own is False


def test_strangers_are_refused_once_with_their_reason(
    archive: Archive, harvested: Callable[..., tuple[Harvest, Lines]]
) -> None:
    profiled(archive)
    _, lines = harvested("BelongsTo", hops_outside=0)
    refused = [line for line in lines if bare(line["url"]) == "laden.example"]
    assert [line["rule"] for line in refused] == ["BelongsTo"]
    assert "Laden GmbH" in refused[0]["reason"]


@pytest.mark.parametrize(
    ("rule", "found", "missed"),
    [
        (
            "InNetRange",
            {"institut-see.example", "verein.example"},
            {"kongress-muster.example", "tagung-muster.example"},
        ),
        (
            "SameNameServers",
            {"institut-see.example", "verein.example"},
            {"kongress-muster.example", "studie-muster.test"},
        ),
        (
            "SameRegistrant(0.9)",
            {"kongress-muster.example", "tagung-muster.example"},
            {"verein.example", "laden.example"},
        ),
    ],
)
def test_the_three_indicators_decide_alone(
    archive: Archive,
    harvested: Callable[..., tuple[Harvest, Lines]],
    rule: str,
    found: set[str],
    missed: set[str],
) -> None:
    profiled(archive)
    _, lines = harvested(rule, hops_outside=0)
    followed = {
        bare(line["url"]): line["reason"]
        for line in lines
        if line["rule"] == rule and int(line["status"]) == 200
    }
    assert set(followed) >= found
    assert not set(followed) & missed
    assert all(followed.values())


def test_by_setting_a_new_domain_waits_for_the_curator(
    archive: Archive, harvested: Callable[..., tuple[Harvest, Lines]], monkeypatch: pytest.MonkeyPatch
) -> None:
    profiled(archive)
    monkeypatch.setenv("WEBDEPOT_DISCOVERY_NEW_DOMAINS", "ask")
    archive.config = read(archive.home)
    _, lines = harvested("BelongsTo", hops_outside=0)
    waiting = [line for line in lines if bare(line["url"]) == "studie-muster.test"]
    assert [int(line["status"]) for line in waiting] == [-5000]
    assert "a curator is asked first" in waiting[0]["reason"]
    organisation = organisations.get(archive)
    candidate = next(
        host
        for host in organisations.hosts_of(archive, organisation, own="ask")
        if host.host == "studie-muster.test"
    )
    assert candidate.evidence
    organisations.decide(archive, organisation, ["studie-muster.test"], accepted=True)
    organisations.decide(archive, organisation, ["bib.uni-musterstadt.example"], accepted=False)
    _, lines = harvested("BelongsTo", hops_outside=0)
    assert {int(line["status"]) for line in lines if bare(line["url"]) == "studie-muster.test"} >= {200}
    assert not [
        line
        for line in lines
        if bare(line["url"]) == "bib.uni-musterstadt.example" and int(line["status"]) == 200
    ]


def test_accepted_sites_that_nobody_links_to_are_harvested_too(
    archive: Archive, harvested: Callable[..., tuple[Harvest, Lines]]
) -> None:
    profiled(archive)
    organisations.decide(archive, organisations.get(archive), ["verborgen.example"], accepted=True)
    _, lines = harvested("BelongsTo", hops_outside=0)
    assert [
        line["rule"]
        for line in lines
        if bare(line["url"]) == "verborgen.example" and line["url"].endswith("/")
    ]
