"""robots.txt: RFC 9309 by cases."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.harvest.politeness import robots
from webdepot.harvest.politeness.robots import RobotsBasis, RobotsRules, product_token
from webdepot.model import Answer, Failure

NOW = datetime(2026, 11, 15, tzinfo=UTC)
SITE = "http://a.example"


def read(text: str | bytes, status: int = 200, agent: str = "Webdepot") -> RobotsRules:
    return robots.of_answer(
        status=status, body=text if isinstance(text, bytes) else text.encode(), at=NOW, agent=agent
    )


RULES = {
    "nothing said": ("", "/x", True),
    "all shut": ("User-agent: *\nDisallow: /", "/x", False),
    "empty disallow": ("User-agent: *\nDisallow:", "/x", True),
    "folder": ("User-agent: *\nDisallow: /a/", "/a/b", False),
    "beside the folder": ("User-agent: *\nDisallow: /a/", "/ab", True),
    "longest match wins": ("User-agent: *\nDisallow: /a/\nAllow: /a/b/", "/a/b/c", True),
    "tie goes to allow": ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
    "our own group": ("User-agent: *\nDisallow: /\n\nUser-agent: webdepot\nDisallow: /no", "/x", True),
    "our own group forbids": ("User-agent: *\nAllow: /\n\nUser-agent: WEBDEPOT\nDisallow: /no", "/no", False),
    "another's group": ("User-agent: otherbot\nDisallow: /", "/x", True),
    "groups merge": ("User-agent: webdepot\nDisallow: /a\nUser-agent: webdepot\nDisallow: /b", "/b", False),
    "two agents, one group": ("User-agent: otherbot\nUser-agent: webdepot\nDisallow: /a", "/a", False),
    "wildcard": ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
    "wildcard end": ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", True),
    "percent": ("User-agent: *\nDisallow: /%C3%BC", "/%c3%bc", False),
    "byte-order mark": ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
    "Windows lines": ("User-agent: *\r\nDisallow: /a\r\n", "/a", False),
    "comments": ("User-agent: * # all\nDisallow: /a # this", "/a", False),
    "query": ("User-agent: *\nDisallow: /*?", "/a?b", False),
    "robots.txt itself": ("User-agent: *\nDisallow: /", "/robots.txt", True),
    "a page instead of rules": ("<html><body>Disallow: / is not here</body></html>", "/x", True),
}


@pytest.mark.parametrize("case", RULES)
def test_rules(case: str) -> None:
    text, path, allowed = RULES[case]
    verdict = read(text).decide(SITE + path)
    assert bool(verdict) is allowed
    assert verdict.rule == "robots"
    assert verdict.reason


@pytest.mark.parametrize(
    ("status", "basis", "allowed"),
    [(200, RobotsBasis.RULES, False), (206, RobotsBasis.RULES, False)]
    + [(status, RobotsBasis.NO_RULES, True) for status in (301, 400, 401, 403, 404, 410, 418)]
    + [(status, RobotsBasis.UNREACHABLE, False) for status in (429, 500, 502, 503, 599)],
)
def test_status_codes(status: int, basis: RobotsBasis, allowed: bool) -> None:
    read_as = read("User-agent: *\nDisallow: /", status)
    assert read_as.basis is basis
    assert bool(read_as.decide(f"{SITE}/x")) is allowed


def test_no_answer_forbids_and_says_why() -> None:
    unreachable = robots.of_failure(Failure.CONNECT, "connection refused", at=NOW, agent="Webdepot")
    assert unreachable.decide(f"{SITE}/x").answer is Answer.REJECT
    assert "connection refused" in unreachable.decide(f"{SITE}/x").reason
    assert unreachable.failure is Failure.CONNECT


def test_the_refusing_line_is_named() -> None:
    text = (
        "User-agent: otherbot\nDisallow: /a/b/c\n\n"
        "User-agent: *\nDisallow: /a\nDisallow: /a/b\nDisallow: /*.pdf$"
    )
    assert read(text).decide(f"{SITE}/a/b/c").reason == "robots.txt: Disallow: /a/b"
    assert read(text).decide(f"{SITE}/x.pdf").reason == "robots.txt: Disallow: /*.pdf$"


def test_only_the_first_500_kib_count() -> None:
    text = b"User-agent: *\nDisallow: /a\n" + b"#" * robots.LONGEST_BYTES + b"\nDisallow: /b\n"
    assert not read(text).decide(f"{SITE}/a")
    assert read(text).decide(f"{SITE}/b")


@pytest.mark.parametrize(
    ("text", "shut"),
    [
        ("User-agent: *\nDisallow: /", True),
        ("User-agent: webdepot\nDisallow: /", True),
        ("User-agent: *\nDisallow: /\nAllow: /public/", False),
        ("User-agent: *\nDisallow: /a", False),
        ("User-agent: otherbot\nDisallow: /", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: webdepot\nDisallow:", False),
        ("User-agent: otherbot\nAllow: /\n\nUser-agent: *\nDisallow: /", True),
        ("", False),
    ],
)
def test_shutting_everybody_out(text: str, shut: bool) -> None:
    assert read(text).shuts_out(SITE) is shut


def test_crawl_delay_and_sitemaps() -> None:
    text = (
        "Sitemap: http://a.example/one.xml\nUser-agent: *\nCrawl-delay: 2.5\n"
        "User-agent: webdepot\nCrawl-delay: 7\nSitemap: /two.xml"
    )
    assert read(text).crawl_delay_s == 7
    assert read(text, agent="Other").crawl_delay_s == 2.5
    assert read(text).sitemaps == ["http://a.example/one.xml", "/two.xml"]
    assert read("User-agent: *\nCrawl-delay: soon").crawl_delay_s is None
    assert read("User-agent: *\nCrawl-delay: -3").crawl_delay_s is None
    assert read("", 404).crawl_delay_s is None
    assert read("", 404).sitemaps == []


def test_a_copy_is_good_for_a_day() -> None:
    assert read("").is_fresh(NOW + timedelta(hours=23))
    assert not read("").is_fresh(NOW + timedelta(hours=24))


def test_kept_and_read_again() -> None:
    original = read("User-agent: *\nDisallow: /ü")
    assert robots.from_json(original.to_json()) == original


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("Webdepot/1.0 (+https://a.example/bot)", "Webdepot"),
        ("Mozilla/5.0 (compatible; my-archive/2.0; +https://a.example)", "my-archive"),
        ("", "webdepot"),
    ],
)
def test_the_name_we_go_by(user_agent: str, token: str) -> None:
    assert product_token(user_agent) == token


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["/", "/a/b?c", "/%zz"]))
def test_any_bytes_give_a_verdict(body: bytes, path: str) -> None:
    read_as = read(body)
    assert read_as.decide(SITE + path).answer in (Answer.ACCEPT, Answer.REJECT)
    assert read_as.crawl_delay_s is None or read_as.crawl_delay_s >= 0
    read_as.shuts_out(SITE)
    assert robots.from_json(read_as.to_json()).decide(SITE + path) == read_as.decide(SITE + path)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["Disallow", "Allow"]), st.text("/ab*$.", min_size=1, max_size=6)),
        max_size=6,
    ),
    st.text("/ab.", max_size=6),
)
def test_a_refusal_names_a_line_of_the_file(lines: list[tuple[str, str]], path: str) -> None:
    text = "User-agent: *\n" + "\n".join(f"{kind}: /{value}" for kind, value in lines)
    verdict = read(text).decide(f"{SITE}/{path}")
    if not verdict:
        assert (
            verdict.reason.removeprefix("robots.txt: ") in text
            or verdict.reason == "disallowed by robots.txt"
        )
