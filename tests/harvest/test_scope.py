"""Scope rules, one by one and as a chain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import InputError
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind, may_move
from webdepot.harvest.scope.scope import decide, named_chain
from webdepot.harvest.scope.verdicts import Rule
from webdepot.model import Answer, Candidate, Verdict
from webdepot.url import Url

SEEDS = ["https://www.example.org/news/index.html"]


def chain(kind: ScopeKind, seeds: list[str], **given: object) -> list[Rule]:
    return [rule for _, rule in named_chain(kind, seeds, **given)]  # type: ignore[arg-type]


def candidate(url: str, path: str = "L", outside: int = 0) -> Candidate:
    return Candidate(url=Url(url), path=path, outside=outside)


def verdict(
    url: str,
    path: str = "L",
    *,
    kind: ScopeKind = ScopeKind.HOST,
    outside: int = 0,
    rejects: tuple[str, ...] = (),
    **limits: int,
) -> Verdict:
    rules = chain(kind, SEEDS, limits=ScopeLimits(**limits), rejects=rejects)
    return decide(candidate(url, path, outside), rules)


@pytest.mark.parametrize(
    ("kind", "url", "inside"),
    [
        (ScopeKind.HOST, "https://www.example.org/x", True),
        (ScopeKind.HOST, "http://www.example.org/x", True),
        (ScopeKind.HOST, "http://example.org/x", True),
        (ScopeKind.HOST, "https://www.example.org:8443/x", False),
        (ScopeKind.HOST, "https://img.example.org/x", False),
        (ScopeKind.HOST, "https://www.example.org.evil.example/x", False),
        (ScopeKind.HOST, "https://www.example.org@evil.example/x", False),
        (ScopeKind.DOMAIN, "https://img.example.org/x", True),
        (ScopeKind.DOMAIN, "https://example.com/x", False),
        (ScopeKind.DOMAIN, "https://notexample.org/x", False),
        (ScopeKind.PREFIX, "https://www.example.org/news/2026/x.html", True),
        (ScopeKind.PREFIX, "https://www.example.org/news/", True),
        (ScopeKind.PREFIX, "https://www.example.org/news", True),
        (ScopeKind.PREFIX, "https://www.example.org/newsletter", False),
        (ScopeKind.PREFIX, "https://www.example.org/", False),
        (ScopeKind.ANY, "https://elsewhere.example/", True),
    ],
)
def test_what_belongs_to_a_seed(kind: ScopeKind, url: str, inside: bool) -> None:
    assert bool(verdict(url, kind=kind)) is inside


def test_public_suffixes_are_not_domains() -> None:
    rules = chain(ScopeKind.DOMAIN, ["https://www.library.ox.ac.uk/"], limits=ScopeLimits())
    assert decide(candidate("https://maths.ox.ac.uk/"), rules)
    assert not decide(candidate("https://www.cam.ac.uk/"), rules)


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("LE", True),
        ("LLLE", True),
        ("LER", True),
        ("LEE", True),
        ("LEEE", True),
        ("LEEEE", False),
        ("LEX", False),
        ("LEXR", False),
        ("LEXE", True),
        ("LX", False),
        ("LEL", False),
        ("LR", False),
    ],
)
def test_embedded_parts_come_from_anywhere(path: str, inside: bool) -> None:
    assert bool(verdict("https://cdn.example/x", path)) is inside


def test_what_belongs_to_a_seed_may_be_embedded_as_deep_as_it_likes() -> None:
    own, cdn = "https://www.example.org/x.css", "https://cdn.example/x.js"
    assert verdict(own, "LEEEEEE").rule == "host"
    assert verdict(own, "LEEEEEE", kind=ScopeKind.LIST).reason == "embedded 6 deep"
    assert verdict(own, "L" + "E" * 101).reason == "embedded 101 deep"
    rules = chain(ScopeKind.HOST, SEEDS, limits=ScopeLimits())
    assert decide(Candidate(url=Url(cdn), via=Url("https://cdn.example/y.js"), path="EEEEE"), rules)
    assert not decide(Candidate(url=Url(cdn), via=Url("https://ads.example/y.js"), path="EEEEE"), rules)


def test_a_guess_never_leaves_the_scope() -> None:
    for path in ("X", "EX", "EEXR", "LX"):
        assert not verdict("https://far.example/x.js", path, outside=1, hops_outside=5)
        assert verdict("https://www.example.org/x.js", path)


def test_addresses_of_parts_may_be_long() -> None:
    url = "https://www.example.org/load.php?modules=" + "x" * 5000
    assert verdict(url, "LE")
    assert verdict(url, "LX").rule == verdict(url).rule == "length"


@pytest.mark.parametrize(
    ("outside", "most", "inside"), [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True), (0, 2, False)]
)
def test_hops_outside(outside: int, most: int, inside: bool) -> None:
    assert bool(verdict("https://far.example/x", outside=outside, hops_outside=most)) is inside


TRAPS = {
    "hops": ("https://www.example.org/x", "L" * 101),
    "redirects": ("https://www.example.org/x", "L" + "R" * 11),
    "path depth": ("https://www.example.org" + "/a%d" * 21 % tuple(range(21)), "L"),
    "repeating": ("https://www.example.org/a/b/a/b/a/b/a/b", "L"),
    "length": ("https://www.example.org/" + "x" * 2083, "L"),
    "query length": ("https://www.example.org/?" + "x" * 1025, "L"),
}


@pytest.mark.parametrize("rule", TRAPS)
def test_traps_are_named(rule: str) -> None:
    url, path = TRAPS[rule]
    decided = verdict(url, path)
    assert (decided.answer, decided.rule) == (Answer.REJECT, rule)
    assert decided.reason


def test_what_is_just_below_a_trap() -> None:
    assert verdict("https://www.example.org/a/b/a/b/a/b")
    assert verdict("https://www.example.org" + "/a%d" * 20 % tuple(range(20)), "L" * 100)


def test_the_operators_expressions_overrule_the_scope_but_not_the_seeds() -> None:
    decided = verdict("https://www.example.org/film.avi", rejects=(r"\.avi$", "calendar"))
    assert (decided.answer, decided.rule, decided.reason) == (Answer.REJECT, "reject", r"it matches \.avi$")
    assert not verdict("https://cdn.example/calendar.png", "LE", rejects=("calendar",))
    assert verdict("https://www.example.org/calendar", "", rejects=("calendar",))


def test_a_wrong_expression_is_reported() -> None:
    with pytest.raises(InputError, match="not a usable regular expression"):
        chain(ScopeKind.HOST, SEEDS, limits=ScopeLimits(), rejects=("(",))


def test_only_the_web_is_fetched() -> None:
    assert verdict("ftp://www.example.org/x", kind=ScopeKind.ANY).rule == "scheme"


def test_robots_txt_is_always_asked_for() -> None:
    assert verdict("https://cdn.example/robots.txt", "LEP")
    assert verdict("https://other.example/robots.txt", "LEPR")


def test_the_last_real_answer_wins_and_pass_is_none() -> None:
    def says(answer: Answer, name: str) -> Rule:
        return lambda candidate: Verdict(answer=answer, rule=name, reason="")

    one, two, three = says(Answer.ACCEPT, "one"), says(Answer.REJECT, "two"), says(Answer.PASS, "three")
    assert decide(candidate("http://a.example/"), [one, two, three]).rule == "two"
    assert decide(candidate("http://a.example/"), [two, one, three]).rule == "one"
    assert decide(candidate("http://a.example/"), [three]).answer is Answer.REJECT


@given(
    st.from_regex(r"https?://[a-z]{1,8}\.example/[a-z0-9/?=&%._-]{0,60}", fullmatch=True),
    st.text("LERXMP", max_size=8),
)
def test_every_address_gets_a_verdict_with_a_reason(url: str, path: str) -> None:
    for kind in ScopeKind:
        decided = verdict(url, path, kind=kind)
        assert decided.answer is not Answer.PASS
        assert decided.rule
        assert decided.reason


@pytest.mark.parametrize(
    ("target", "moves"),
    [("https://example.org/", True), ("https://shop.example.org/", True), ("https://example.com/", False)],
)
def test_where_a_seed_may_move(target: str, moves: bool) -> None:
    assert may_move(SEEDS[0], target) is moves
