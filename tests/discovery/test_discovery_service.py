"""Discovery beyond the walk: corrections, curators' decisions, transparency, configurations, scan, bad
networks, commands and pages.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
from closed_network import ClosedNetwork, wait_for
from musterstadt import MEMBERS

from webdepot import event_loop
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.config.config import read
from webdepot.errors import ConfigError, InputError, NotFound, NotPermitted
from webdepot.selection.domains.facts import LookupStatus
from webdepot.selection.domains.lookup.resolver import Resolver
from webdepot.services.selection import discovery, lookup_network, organisations

ROOT = "uni-musterstadt.example"


def discover(archive: Archive) -> discovery.Discovery:
    return discovery.discover(archive, ROOT, allow_private=True)


def own(found: discovery.Discovery) -> set[str]:
    return {host.host for host in found.hosts if host.own}


def test_a_curators_word_stands_above_all_evidence_in_later_runs(archive: Archive) -> None:
    found = discover(archive)
    organisations.decide(archive, found.organisation, ["studie-muster.test"], accepted=False)
    organisations.decide(archive, found.organisation, ["hotel.example", "fern.example"], accepted=True)
    again = discover(archive)
    assert own(again) == set(MEMBERS) - {"studie-muster.test"} | {"hotel.example", "fern.example"}
    hotel = next(host for host in again.hosts if host.host == "hotel.example")
    assert (hotel.decision, hotel.decided_by) == ("accepted", "test")
    assert hotel.evidence[0].startswith("a curator accepted it")


def test_answers_are_kept_and_nobody_is_asked_twice(closed: ClosedNetwork, archive: Archive) -> None:
    first = discover(archive)
    pages = closed.requests_of("www.uni-musterstadt.example")
    again = discover(archive)
    assert first.asked["registry"] > 5
    assert again.asked.get("registry", 0) == 0
    assert again.asked.get("page", 0) == 0
    assert closed.requests_of("www.uni-musterstadt.example") == pages
    assert own(again) == own(first)


def test_manners_at_most_four_pages_a_host_and_one_question_a_domain(
    closed: ClosedNetwork, archive: Archive
) -> None:
    before = {host: closed.requests_of(host) for host in MEMBERS}
    closed.asked.clear()
    discover(archive)
    assert all(closed.requests_of(host) - before[host] <= 4 for host in MEMBERS)
    questions = [path for path in closed.asked if "/domain/" in path or path.startswith("whois")]
    assert all(closed.asked[path] == 1 for path in questions)


def test_a_busy_registry_is_asked_again_when_it_says(closed: ClosedNetwork, archive: Archive) -> None:
    closed.asked.clear()
    closed.busy = True
    try:
        found = discover(archive)
    finally:
        closed.busy = False
    assert found.organisation.profile.registrant[0].value == "Universität Musterstadt"
    assert own(found) == set(MEMBERS)


def test_transparency_finds_what_nobody_links(
    closed: ClosedNetwork, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBDEPOT_DISCOVERY_CT_SEARCH", closed.ct_search)
    with Archive.open(home, agent="test") as archive:
        found = discover(archive)
    assert {host.host: host.case for host in found.hosts if host.own} == {**MEMBERS, "fern.example": 5}


def test_corrections_count_from_the_next_survey_on(archive: Archive) -> None:
    found = discover(archive)
    changed = organisations.correct(
        archive,
        found.organisation,
        ranges=["127.30.0.3/32"],
        names=["Hotel am See GmbH"],
        strangers=["studie-muster.test"],
        remove=["127.10.0.0/24"],
    )
    assert [item.value for item in changed.profile.ranges] == ["127.30.0.3/32"]
    assert changed.profile.ranges[0].source == "a person"
    again = discover(archive)
    assert "hotel.example" in own(again)
    assert "studie-muster.test" not in own(again)
    with pytest.raises(InputError, match="network range"):
        organisations.correct(archive, changed, ranges=["nonsense"])


def test_the_servers_own_configuration_gives_case_4(
    closed: ClosedNetwork, archive: Archive, tmp_path: Path
) -> None:
    organisation = discover(archive).organisation
    broken = tmp_path / "broken.conf"
    broken.write_text(
        "<VirtualHost *:80>\nServerName ok.uni-musterstadt.example\nServerAlias *.wild.example\nInclude "
        "missing.conf\n"
    )
    hosts, findings = discovery.read_vhosts(
        archive, organisation, [closed.folder / "nginx.conf", broken], allow_private=True
    )
    hidden = next(host for host in hosts if host.host == "verborgen.example")
    assert (hidden.own, hidden.case) == (True, 4)
    assert any("configuration" in words for words in hidden.evidence)
    told = {(finding.code, finding.place) for finding in findings}
    assert ("vhost-error", "line 4") in told
    assert ("vhost-error", "line 1") in told
    assert ("vhost-open-name", "line 3") in told


def test_only_declared_ranges_are_scanned(
    closed: ClosedNetwork, archive: Archive, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    organisation = discover(archive).organisation
    with pytest.raises(NotPermitted, match="off"):
        discovery.scan(archive, organisation)
    monkeypatch.setenv("WEBDEPOT_DISCOVERY_SCAN", "true")
    monkeypatch.setenv("WEBDEPOT_DISCOVERY_OWN_RANGES", "127.10.0.0/29")
    monkeypatch.setenv("WEBDEPOT_DISCOVERY_SCAN_PER_S", "1000")
    archive.config = read(home)
    with pytest.raises(NotPermitted, match=r"127\.20\.0\.0/24"):
        discovery.scan(archive, organisation, ["127.20.0.0/24"])
    found = discovery.scan(archive, organisation, allow_private=True)
    assert {answering.address for answering in found.answering} == {
        f"127.10.0.{number}" for number in range(1, 6)
    }
    assert set(found.names) == {"www.uni-musterstadt.example", "uni-musterstadt.example"}


def test_an_organisation_without_a_range_an_unknown_and_a_dead_root(archive: Archive) -> None:
    found = discovery.discover(archive, "fern.example", allow_private=True)
    assert found.organisation.profile.ranges == ()
    assert found.organisation.profile.name == "Universität Musterstadt"
    nothing = discovery.discover(archive, "gibtsnicht.example", allow_private=True)
    assert own(nothing) == set()
    assert any("does not resolve" in note for note in nothing.organisation.profile.notes)
    with pytest.raises(InputError):
        discovery.discover(archive, "not a domain")
    with pytest.raises(NotFound):
        organisations.get(archive, "nobody.example")
    # IDN: written with letters, asked with A-labels.
    assert (
        discovery.discover(archive, "müller.example", allow_private=True).organisation.root
        == "xn--mller-kva.example"
    )


def test_lying_and_silent_name_servers_are_not_a_no(closed: ClosedNetwork) -> None:
    async def ask(servers: str, *hosts: str) -> list[LookupStatus]:
        resolver = Resolver(servers, timeout_s=0.5)
        return [(await resolver.host(host))[0].status for host in hosts]

    here = f"127.0.0.1:{closed.dns_port}"
    found = event_loop.run(
        ask(here, "a.schleife.example", "www.schleife.example", "x" * 70 + ".example", "refused.invalid")
    )
    assert found[0] in (LookupStatus.FAILED, LookupStatus.NONE)
    assert found[1:] == [LookupStatus.FOUND, LookupStatus.FAILED, LookupStatus.FAILED]
    assert event_loop.run(ask("127.0.0.1:9", "www.uni-musterstadt.example")) == [LookupStatus.FAILED]
    with pytest.raises(ConfigError, match="resolver"):
        Resolver("nonsense:port")


def test_nothing_about_persons_is_kept(archive: Archive) -> None:
    discover(archive)
    kept = (archive.index_folder / lookup_network.LOOKUPS_NAME).read_bytes() + (
        archive.home / "webdepot.db"
    ).read_bytes()
    for secret in (b"Max Muster", b"max@gmx", b"kongress@", b"hostmaster@"):
        assert secret not in kept


def test_the_table_as_csv_is_safe_and_whole(archive: Archive) -> None:
    found = discover(archive)
    lines = organisations.as_csv(found.hosts).splitlines()
    assert lines[0].startswith("host,domain,case,score,own")
    assert len(lines) == len(found.hosts) + 1


def test_the_command_prints_one_list(closed: ClosedNetwork, tmp_path: Path, program: Path) -> None:
    command = [
        str(program),
        "--home",
        str(tmp_path / "new"),
        "organisation",
        "discover",
        ROOT,
        "--json",
        "--allow-private",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    listed = json.loads(done.stdout)
    assert {item["host"] for item in listed if item["own"]} == set(MEMBERS)
    assert {"host", "own", "score", "case", "evidence"} <= set(listed[0])
    assert all(0 <= item["score"] <= 1 for item in listed)
    assert {item["own"] for item in listed} == {True, False, None}
    shown = subprocess.run(
        [*command[:3], "organisation", "show"], capture_output=True, text=True, check=True, timeout=120
    )
    assert "127.10.0.0/24" in shown.stdout
    assert "Traceback" not in done.stderr
    rejected = subprocess.run(
        [*command[:3], "organisation", "reject", "bib.uni-musterstadt.example"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not part of" in rejected.stdout


@pytest.fixture
def program() -> Path:
    return Path(sys.executable).with_name("webdepot")


class Portal:
    """A browser's cookies and forms, on the served portal."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = build_opener(HTTPCookieProcessor())

    def get(self, path: str) -> tuple[int, str, str]:
        return self._ask(Request(self.url + path))

    def post(self, path: str, **form: str) -> tuple[int, str, str]:
        return self._ask(
            Request(self.url + path, data=urlencode(form).encode(), headers={"Sec-Fetch-Site": "same-origin"})
        )

    def sign_in(self, name: str) -> None:
        assert self.post("/sign-in", name=name, password="correct horse battery", to="/")[0] == 200

    def _ask(self, request: Request) -> tuple[int, str, str]:
        """Status, address after redirects, text."""
        try:
            with self._opener.open(request, timeout=30) as answer:
                return answer.status, answer.url, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.url or "", error.read().decode()


@pytest.fixture
def portal(archive: Archive, program: Path) -> Iterator[Portal]:
    for role in (Role.CURATOR, Role.REVIEWER):
        accounts.add(archive.database, role.value, "correct horse battery", [role], archive.clock())
    discover(archive)
    command = [
        str(program),
        "--home",
        str(archive.home),
        "serve",
        "--port",
        "0",
        "--replay-port",
        "0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Portal(json.loads(process.stdout.readline())["portal"])
        process.terminate()
        process.wait(20)


def test_the_pages_show_profile_picture_and_table(portal: Portal) -> None:
    assert "/sign-in" in portal.get(f"/organisations/{ROOT}")[1]
    portal.sign_in("reviewer")
    for language in ("en", "de", "nl"):
        assert "Universität Musterstadt" in portal.get(f"/organisations?lang={language}")[2]
        page = portal.get(f"/organisations/{ROOT}?lang={language}")[2]
        for words in (
            "127.10.0.0/24",
            "studie-muster.test",
            "its imprint names",
            "<svg",
            "<circle",
            "ns1.uni-musterstadt.example",
        ):
            assert words in page
    assert "laden.example" not in portal.get(f"/organisations/{ROOT}?own=own")[2]
    assert "studie-muster.test" in portal.get(f"/organisations/{ROOT}/hosts.csv")[2]
    assert portal.post(f"/organisations/{ROOT}/decide", host="hotel.example", answer="accept")[0] == 403


def test_a_curator_decides_corrects_and_starts_in_the_portal(archive: Archive, portal: Portal) -> None:
    portal.sign_in("curator")
    assert portal.post(f"/organisations/{ROOT}/decide", host="hotel.example", answer="accept")[0] == 200
    portal.post(f"/organisations/{ROOT}/correct", what="range", value="192.0.2.0/24")
    organisation = organisations.get(archive)
    assert "192.0.2.0/24" in {item.value for item in organisation.profile.ranges}
    hotel = next(
        host for host in organisations.hosts_of(archive, organisation) if host.host == "hotel.example"
    )
    assert (hotel.own, hotel.decided_by) == (True, "curator")
    assert portal.post(f"/organisations/{ROOT}/correct", what="range", value="nonsense")[0] == 400
    assert portal.post("/organisations", domain="no domain")[0] == 400
    assert portal.get("/organisations/nobody.example")[0] == 404
    assert portal.post("/organisations", domain="fern.example")[0] == 200
    wait_for(lambda: len(organisations.list_organisations(archive)) == 2)
