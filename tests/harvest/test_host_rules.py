"""Rules about whole hosts: undecided ones wait, rejections are named once, parts of pages start no lookup."""

from webdepot.harvest.scope import host_rules, scope
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.verdicts import Rule
from webdepot.model import Answer, Candidate, Verdict
from webdepot.url import Url


class Known:
    def __init__(self, **hosts: bool) -> None:
        self.verdicts = {host: _verdict(belongs) for host, belongs in hosts.items()}
        self.asked: list[tuple[str, str]] = []

    def find(self, host: str) -> Verdict | None:
        return self.verdicts.get(host)

    def ask(self, host: str, via: str) -> None:
        self.asked.append((host, via))

    def waiting(self) -> int:
        return len(self.asked)


def _verdict(belongs: bool) -> Verdict:
    return Verdict(answer=Answer.ACCEPT if belongs else Answer.REJECT, rule="BelongsTo", reason="because")


def decide(
    hosts: Known, url: str, *, path: str = "L", outside: int = 0, hops_outside: int = 0, rules: object = None
) -> Verdict:
    chain = rules or chain_of(hosts, hops_outside)
    return scope.decide(
        Candidate(url=Url(url), via=Url("http://seed.example/"), path=path, outside=outside), chain
    )  # type: ignore[arg-type]


def chain_of(hosts: Known, hops_outside: int = 0) -> list[Rule]:
    limits = ScopeLimits(hops_outside=hops_outside)
    hosts_rules = host_rules.rules_of(hosts)
    chain = scope.named_chain(ScopeKind.HOST, ["http://seed.example/"], limits=limits, hosts=hosts_rules)
    return [rule for _, rule in chain]


def test_an_unknown_host_waits_and_is_asked_about() -> None:
    hosts = Known()
    verdict = decide(hosts, "http://new.example:8080/x")
    assert (bool(verdict), verdict.rule) == (True, host_rules.UNDECIDED)
    assert hosts.asked == [("new.example", "seed.example")]
    assert decide(hosts, "http://new.example/x", outside=1, hops_outside=1).rule == host_rules.UNDECIDED


def test_parts_of_pages_are_taken_without_asking() -> None:
    hosts = Known()
    verdict = decide(hosts, "http://cdn.example/style.css", path="LE")
    assert (bool(verdict), verdict.rule) == (True, "embedded")
    assert hosts.asked == []


def test_what_belongs_is_taken_by_its_rule_also_beyond_the_scope() -> None:
    hosts = Known(**{"member.example": True})
    for outside in (0, 1, 5):
        verdict = decide(hosts, "http://member.example/", outside=outside, hops_outside=1)
        assert (bool(verdict), verdict.rule, verdict.reason) == (True, "BelongsTo", "because")


def test_a_stranger_is_named_once_and_may_still_be_a_link_outside() -> None:
    hosts = Known(**{"stranger.example": False})
    rules = chain_of(hosts)
    assert [decide(hosts, f"http://stranger.example/{page}", rules=rules).rule for page in "abc"] == [
        "BelongsTo",
        "outside",
        "outside",
    ]
    assert decide(hosts, "http://stranger.example/", outside=1, hops_outside=1).rule == "hops outside"


def test_a_verdict_that_comes_later_counts_at_once() -> None:
    hosts = Known()
    rules = chain_of(hosts)
    assert decide(hosts, "http://late.example/", rules=rules).rule == host_rules.UNDECIDED
    hosts.verdicts["late.example"] = _verdict(True)
    assert decide(hosts, "http://late.example/", rules=rules).rule == "BelongsTo"


def test_many_waiting_hosts_are_asked_about_less_often() -> None:
    hosts = Known()
    assert host_rules.wait_s(hosts) == host_rules.SHORTEST_WAIT_S
    hosts.asked = [("x", "")] * 500_000
    assert host_rules.wait_s(hosts) == host_rules.LONGEST_WAIT_S


def test_addresses_in_brackets_and_with_users() -> None:
    hosts = Known(**{"::1": True, "member.example": True})
    assert decide(hosts, "http://[::1]:8080/").rule == "BelongsTo"
    assert decide(hosts, "http://user@member.example/").rule == "BelongsTo"
