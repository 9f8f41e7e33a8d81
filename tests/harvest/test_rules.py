"""The conditions of profile rules, profiles that contain them, and the verdicts of the judge."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.harvest import profile
from webdepot.harvest.judge import CrawlJudge
from webdepot.harvest.politeness.robots import RobotsPolicy, judge, of_answer, page_directives, tag_directives
from webdepot.harvest.report.result import CrawlSettings
from webdepot.harvest.scope import profile_rules, scope
from webdepot.harvest.scope.conditions import CONDITIONS, ScopeFacts
from webdepot.harvest.scope.identity import identity, identity_without
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.profile_rules import RuleSpec
from webdepot.harvest.scope.trap_watch import FIRST_PAGES, SAME_ANSWERS, SAME_WITH_TOKEN, TrapWatch, shape_of
from webdepot.model import Answer, Candidate, Verdict
from webdepot.url import Url

NOW = datetime(2026, 11, 15, tzinfo=UTC)
FACTS = ScopeFacts(
    addresses_of=lambda host: ("192.0.2.7",) if host == "in.example" else ("198.51.100.1",),
    pages_of=lambda host: 100 if host else 1000,
    bytes_of=lambda host: 5_000 if host else 50_000,
    harvested_at=lambda url: NOW - timedelta(days=10) if "old" in url else None,
    organisation_of=lambda host: "it is ours" if host.endswith("ours.example") else "",
    now=NOW,
)

# condition -> (of or over, an address for which it holds, one for which it does not)
CASES: dict[str, tuple[object, tuple[str, str], tuple[str, str]]] = {
    "host": (["a.example"], ("http://a.example/", "L"), ("http://b.a.example/", "L")),
    "domain": (["a.example"], ("http://b.a.example/", "L"), ("http://ba.example/", "L")),
    "same_domain": (None, ("http://x.via.example/", "L"), ("http://a.example/", "L")),
    "prefix": (
        ["example,a)/news/"],
        ("http://www.a.example/news/1", "L"),
        ("http://a.example/newspaper", "L"),
    ),
    "path": (["/cgi-bin/"], ("http://a.example/cgi-bin/x", "L"), ("http://a.example/x/cgi-bin/", "L")),
    "regex": (["[?&]print=1"], ("http://a.example/?print=1", "L"), ("http://a.example/print=1", "L")),
    "extension": (["avi", ".MP4"], ("http://a.example/x.mp4?y", "L"), ("http://a.example/avi", "L")),
    "scheme": (["https"], ("https://a.example/", "L"), ("http://a.example/", "L")),
    "hops": (2, ("http://a.example/", "LLEXRL"), ("http://a.example/", "LLEEXR")),
    "hops_outside": (0, ("http://out.example/", "L"), ("http://a.example/", "L")),
    "embedded": (None, ("http://a.example/", "LER"), ("http://a.example/", "LEL")),
    "embed_depth": (1, ("http://a.example/", "LEE"), ("http://a.example/", "LE")),
    "guessed": (None, ("http://a.example/", "LXE"), ("http://a.example/", "LE")),
    "path_depth": (3, ("http://a.example/1/2/3/4", "L"), ("http://a.example/1/2/3", "L")),
    "repeating": (2, ("http://a.example/x/y/x/y/x", "L"), ("http://a.example/x/y/x", "L")),
    "address_length": (30, ("http://a.example/" + "x" * 20, "L"), ("http://a.example/", "L")),
    "query_length": (5, ("http://a.example/?123456", "L"), ("http://a.example/?12345", "L")),
    "query_arguments": (1, ("http://a.example/?a&b", "L"), ("http://a.example/?a", "L")),
    "ip_range": (
        ["192.0.2.0/24", "2001:db8::/32"],
        ("http://in.example:8080/", "L"),
        ("http://out.example/", "L"),
    ),
    "host_pages": (100, ("http://a.example/", "L"), ("", "")),
    "host_bytes": (5_000, ("http://a.example/", "L"), ("", "")),
    "pages": (1000, ("http://a.example/", "L"), ("", "")),
    "bytes": (50_000, ("http://a.example/", "L"), ("", "")),
    "harvested_days": (9, ("http://a.example/old", "L"), ("", "")),
    "organisation": (None, ("http://www.ours.example:81/", "L"), ("http://a.example/", "L")),
}


def candidate(url: str, path: str) -> Candidate:
    return Candidate(url=Url(url), via=Url("http://via.example/"), path=path, outside=int("out." in url))


def spec_of(
    condition: str, compared: object, answer: Answer = Answer.REJECT, *, unless: bool = False
) -> RuleSpec:
    table: dict[str, object] = {answer.value: condition, "unless": unless}
    if compared is not None:
        table["over" if isinstance(compared, int) else "of"] = compared
    return profile_rules.from_table(table, "test")


def test_every_condition_is_tried_here() -> None:
    assert CASES.keys() | {"mime"} == CONDITIONS.keys()


@pytest.mark.parametrize("condition", CASES)
def test_a_condition_holds_or_does_not_and_unless_turns_it_round(condition: str) -> None:
    compared, holding, other = CASES[condition]
    rule = profile_rules.rule_of(spec_of(condition, compared), FACTS)
    turned = profile_rules.rule_of(spec_of(condition, compared, unless=True), FACTS)
    assert rule is not None
    assert turned is not None
    verdict = rule(candidate(*holding))
    assert (verdict.answer, verdict.rule) == (Answer.REJECT, condition)
    assert verdict.reason
    assert turned(candidate(*holding)).answer is Answer.PASS
    if other[0]:
        assert rule(candidate(*other)).answer is Answer.PASS
        assert turned(candidate(*other)).answer is Answer.REJECT
        assert turned(candidate(*other)).rule == f"not {condition}"


@pytest.mark.parametrize("condition", CASES)
def test_a_rule_goes_into_a_table_and_back(condition: str) -> None:
    spec = spec_of(condition, CASES[condition][0], Answer.ACCEPT, unless=True)
    assert profile_rules.from_table(profile_rules.to_table(spec), "again") == spec
    assert condition in str(spec)


def test_limits_by_number_do_not_hold_below_them() -> None:
    for condition in ("host_pages", "host_bytes", "pages", "bytes"):
        rule = profile_rules.rule_of(spec_of(condition, 10**9), FACTS)
        assert rule is not None
        assert rule(candidate("http://a.example/", "L")).answer is Answer.PASS


def test_never_harvested_counts_as_long_ago() -> None:
    rule = profile_rules.rule_of(spec_of("harvested_days", 9, unless=True), FACTS)
    assert rule is not None
    assert rule(candidate("http://a.example/new", "L")).answer is Answer.PASS
    recent = profile_rules.rule_of(spec_of("harvested_days", 30, unless=True), FACTS)
    assert recent is not None
    assert recent(candidate("http://a.example/old", "L")).answer is Answer.REJECT


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"reject": "extention", "of": ["x"]}, "not a condition"),
        ({"of": ["x"]}, "accept"),
        ({"accept": "host", "reject": "host", "of": ["x"]}, "either"),
        ({"reject": "extension"}, "needs `of"),
        ({"reject": "hops", "of": ["2"]}, "needs `over"),
        ({"reject": "embedded", "over": 1}, "neither"),
        ({"reject": "regex", "of": ["("]}, "not a usable regular expression"),
        ({"reject": "ip_range", "of": ["300.0.0.0/8"]}, "not a network range"),
        ({"reject": "mime", "of": ["video"]}, "not a media type"),
        ({"reject": "hops", "over": -1}, "number of 0 or more"),
        ({"reject": "host", "of": ["x"], "wenn": 1}, "no key `wenn`"),
    ],
)
def test_a_wrong_rule_is_reported(table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        profile_rules.from_table(table, "profile x: rule 1")


TEXT = """
description = "Museums"
seeds = ["https://www.museum.example/"]
scope = "domain"
delay_s = 2
robots = "obey-but-embeds"
robots_reason = "the owner agreed"
ignore_parameters = ["utm_*"]

[[rules]]
reject = "extension"
of = ["avi"]

[[rules]]
accept = "path"
of = "/films/"

[hosts."slow.museum.example"]
delay_s = 10
credentials = "reading-room"
"""


def test_a_profile_is_read_saved_and_found_again(tmp_path: Path) -> None:
    saved = profile.save(tmp_path, "museum", TEXT)
    assert profile.get(tmp_path, {}, "museum") == saved
    assert saved.values["delay_s"] == 2.0
    assert [str(rule) for rule in saved.rules] == ["reject extension avi", "accept path /films/"]
    assert saved.hosts["slow.museum.example"]["credentials"] == "reading-room"
    sections = {"museum": {"scope": "host"}, "news": {"scope": "host"}}
    origins = [profile.get(tmp_path, sections, name).origin for name in sections]
    assert origins == ["profiles/museum.toml", "webdepot.toml"]
    with pytest.raises(NotFound, match="museum, news"):
        profile.get(tmp_path, {"news": {}}, "nwes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scop = 'host'", "Did you mean `scope`"),
        ("scope = 'hosts'", "one of host, domain"),
        ("delay_s = 'x'", "must be a number"),
        ("limit_pages = -1", "0 or more"),
        ("reject = ['(']", "not a usable regular expression"),
        ("robots = 'ignore'", "robots_reason"),
        ("rules = ['x']", "rules are tables"),
        ("[hosts]\nx = 1", "hosts are tables"),
        ("[hosts.'a.example']\ndelay = 1", "unknown key `delay`"),
        ("scope = ", "not valid TOML"),
        ("seeds = [1]", "list of strings"),
    ],
)
def test_a_wrong_profile_is_reported_and_not_saved(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        profile.save(tmp_path, "x", text)
    assert not (tmp_path / "profiles" / "x.toml").exists()


def test_a_name_is_not_a_path(tmp_path: Path) -> None:
    for name in ("../x", "X y", "", ".hidden", "a/b"):
        with pytest.raises(InputError):
            profile.save(tmp_path, name, "")


def settings(**given: object) -> CrawlSettings:
    return CrawlSettings(seeds=(Url("http://a.example/"),), user_agent="Webdepot/1", **given)  # type: ignore[arg-type]


def judge_of(**given: object) -> CrawlJudge:
    made = CrawlJudge(settings(**given), None, lambda: (0, 0))
    made.follow(made.settings, [Url("http://a.example/")])
    return made


def test_the_last_real_answer_wins() -> None:
    specs = tuple(
        profile_rules.from_table(table, "t")
        for table in ({"reject": "extension", "of": "avi"}, {"accept": "path", "of": "/films/"})
    )
    made = judge_of(rules=specs)
    assert made.of_link(candidate("http://a.example/x.avi", "L")).rule == "extension"
    assert made.of_link(candidate("http://a.example/films/x.avi", "L"))
    steps = made.explain(candidate("http://a.example/films/x.avi", "L"))
    assert [step.rule for step in steps if step.decides] == ["accept path /films/"]
    assert [step.verdict.answer.value for step in steps if step.verdict.answer is not Answer.PASS] == [
        "reject",
        "accept",
        "reject",
        "accept",
    ]


def test_types_decide_about_keeping_but_not_of_seeds() -> None:
    made = judge_of(rules=(profile_rules.from_table({"reject": "mime", "of": ["video/*"]}, "t"),))
    assert made.of_answer(candidate("http://a.example/x", "L"), "video/mp4").rule == "mime"
    assert made.of_answer(candidate("http://a.example/x", "L"), "text/html")
    assert made.of_answer(Candidate(url=Url("http://a.example/")), "video/mp4")


@pytest.mark.parametrize(
    ("nofollow", "page", "link"), [("all", False, False), ("page", False, True), ("none", True, True)]
)
def test_nofollow_directives(nofollow: str, page: bool, link: bool) -> None:
    made = judge_of(nofollow=nofollow)
    assert bool(made.of_link(candidate("http://a.example/x", "L"), page_says_no=True)) is page
    assert bool(made.of_link(candidate("http://a.example/x", "L"), link_says_no=True)) is link
    assert made.of_link(candidate("http://a.example/x.png", "LE"), page_says_no=True, link_says_no=True)


def test_a_later_rule_about_an_address_wins_over_one_about_types() -> None:
    no_video = {"reject": "mime", "of": "video/*"}
    made = judge_of(
        rules=tuple(
            profile_rules.from_table(table, "t") for table in (no_video, {"accept": "path", "of": "/films/"})
        )
    )
    assert made.of_answer(candidate("http://a.example/films/x", "L"), "video/mp4")
    assert made.of_answer(candidate("http://a.example/x", "L"), "video/mp4").rule == "mime"
    turned = judge_of(
        rules=tuple(
            profile_rules.from_table(table, "t") for table in ({"accept": "path", "of": "/films/"}, no_video)
        )
    )
    assert turned.of_answer(candidate("http://a.example/films/x", "L"), "video/mp4").rule == "mime"
    # Rules about the address were applied before: a limit reached meanwhile discards no response.
    late = judge_of(
        rules=tuple(
            profile_rules.from_table(table, "t") for table in (no_video, {"reject": "path", "of": "/x"})
        )
    )
    assert late.of_answer(candidate("http://a.example/x", "L"), "text/html")


def test_a_verdict_is_remembered_once_until_rules_change_and_never_where_rules_count() -> None:
    told = Verdict(answer=Answer.ACCEPT, rule="told", reason="")
    page, made = candidate("http://a.example/x", "L"), judge_of()
    made.remember(page, told)
    assert made.before_asking(candidate("http://a.example/x", "LL")).rule == "host"
    made.remember(page, told)
    assert [made.before_asking(page).rule for _ in range(2)] == ["told", "host"]
    made.remember(page, told)
    made.follow(settings(rejects=("/x$",)), [Url("http://a.example/")])
    assert made.before_asking(page).rule == "reject"
    counting = judge_of(rules=(profile_rules.from_table({"reject": "extension", "of": "avi"}, "t"),))
    counting.remember(page, told)
    assert counting.before_asking(page).rule == "host"
    turning = candidate("http://a.example/s/ab12cd34ef56gh78/x", "L")
    for _ in range(FIRST_PAGES + SAME_WITH_TOKEN + 1):
        made.learn(turning, 200, lambda: {1})
    made.remember(turning, told)
    assert made.before_asking(turning).rule == "same answers"
    part = candidate(turning.url, "LE")
    made.remember(part, told)
    assert made.before_asking(part).rule == "told"


def test_guesses_end_where_most_of_them_are_wrong() -> None:
    made = judge_of()
    guess = candidate("http://a.example/x.html", "X")
    for number in range(20):
        assert made.of_link(guess), number
        made.learn(guess, 404, bytes)
    assert made.of_link(guess).reason == "20 of 20 guesses at its host were wrong"
    assert made.of_link(candidate("http://a.example/x.html", "L"))
    again = CrawlJudge(settings(), None, lambda: (0, 0), made.to_json())
    again.follow(again.settings, [Url("http://a.example/")])
    assert again.of_link(guess).rule == "guesses"


def test_policies_of_robots() -> None:
    known = of_answer(status=200, body=b"User-agent: *\nDisallow: /x", at=NOW, agent="webdepot")
    url = "http://a.example/x.png"
    assert not judge(known, url, RobotsPolicy.OBEY, is_part=True)
    assert judge(known, url, RobotsPolicy.OBEY_BUT_EMBEDS, is_part=True).reason == "robots.txt: Disallow: /x"
    assert not judge(known, url, RobotsPolicy.OBEY_BUT_EMBEDS, is_part=False)
    assert judge(known, url, RobotsPolicy.IGNORE, is_part=False).rule == "robots ignored"
    gone = of_answer(status=503, body=b"", at=NOW, agent="webdepot")
    assert not judge(gone, url, RobotsPolicy.OBEY_BUT_EMBEDS, is_part=True)


def test_robots_directives_of_pages() -> None:
    assert page_directives("NoIndex, nofollow") == {"noindex", "nofollow"}
    assert page_directives("none") >= {"noindex", "nofollow"}
    assert tag_directives(["otherbot: nofollow", "noarchive"], "webdepot") == {"noarchive"}
    assert tag_directives(["otherbot: noindex, Webdepot: nofollow"], "webdepot") == {"nofollow"}
    assert "nofollow" in tag_directives(["unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow"], "webdepot")


def test_addresses_that_say_nothing_new_are_a_trap_until_one_does() -> None:
    traps = TrapWatch()
    for number in range(FIRST_PAGES + 1 + SAME_WITH_TOKEN):
        url = f"http://a.example/s/{number:04x}9f8e7d6c5b4a/page"
        assert traps.find_rejection(url) is None
        traps.note(url, lambda: {1, 2})
    verdict = traps.find_rejection("http://a.example/s/ffff9f8e7d6c5b4a/page")
    assert isinstance(verdict, Verdict)
    assert (verdict.rule, verdict.reason[:17]) == ("same answers", "the last 40 pages")
    assert traps.find_rejection("http://a.example/other") is None
    sample = (f"http://a.example/s/{number:04x}9f8e7d6c5b4a/page" for number in range(5000))
    taken = [url for url in sample if traps.find_rejection(url) is None]
    assert 0 < len(taken) < 60
    traps.note(taken[0], lambda: {2, 3})
    assert traps.find_rejection("http://a.example/s/bbbb9f8e7d6c5b4a/page") is None


def test_a_parameter_that_adds_nothing_is_a_trap_in_every_combination() -> None:
    traps = TrapWatch()
    for number in range(FIRST_PAGES + 2 * SAME_ANSWERS + 1):
        sort = f"&sort={number}" if number % 2 else ""
        traps.note(f"http://a.example/list?id={number}{sort}", lambda number=number: {number // 2})
    verdict = traps.find_rejection("http://a.example/list?colour=red&sort=7")
    assert verdict is not None and verdict.reason == "the last 100 pages with sort said nothing new"
    assert traps.find_rejection("http://a.example/list?colour=red&id=7") is None
    assert traps.find_rejection("http://a.example/other?sort=7") is None


def test_what_cannot_be_compared_or_has_a_plain_address_is_not_a_trap() -> None:
    traps = TrapWatch()
    for number in range(FIRST_PAGES + 2 * SAME_ANSWERS):
        traps.note(f"http://a.example/item?id={number}", lambda: None)  # a file
        traps.note(f"http://a.example/item-{number}", lambda: {1})
    assert not traps.trapped
    assert shape_of("http://a.example/2024/item-7?id=12&x1=") == ("http://a.example/#/item-#", {"id", "x#"})


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("http://a.example/calendar/2044/01/", False),
        ("http://a.example/cal?date=2044-01-01", False),
        ("http://a.example/cal?year=2044&month=1", False),
        ("http://a.example/cal?month=204401", False),
        ("http://a.example/cal/0099/12/", False),
        ("http://a.example/2019/07/news", True),
        ("http://a.example/1648/10/peace", True),
        ("http://a.example/2031/07/", True),
        ("http://a.example/item/20440101", True),
        ("http://a.example/?id=2044", True),
    ],
)
def test_calendars_have_an_end(url: str, inside: bool) -> None:
    chain = scope.named_chain(ScopeKind.HOST, ["http://a.example/"], limits=ScopeLimits(), year=2026)
    verdict = scope.decide(candidate(url, "L"), [rule for _, rule in chain])
    assert bool(verdict) is inside
    assert inside or verdict.rule == "calendar"


def test_ignored_query_arguments() -> None:
    same = identity_without(["utm_*", "ref"])
    assert same("http://a.example/?utm_source=x&a=1&REF=2") == "http://a.example/?a=1"
    assert same("http://a.example/?utm_source=x") == "http://a.example/"
    assert same("http://a.example/?reference=1") == "http://a.example/?reference=1"
    assert identity_without([]) is identity


@given(st.text(max_size=300))
def test_any_address_gets_an_answer_from_every_condition(tail: str) -> None:
    asked = candidate(f"http://a.example/{tail}", "L")
    for condition, (compared, _, _) in CASES.items():
        rule = profile_rules.rule_of(spec_of(condition, compared), FACTS)
        assert rule is not None
        assert rule(asked).answer in (Answer.PASS, Answer.REJECT)
