"""Untrusted text that once stopped the whole process: each takes a moment now.

Processor time counts, not elapsed time: the machine may be busy. Each of these took minutes or never ended.
"""

import io
import signal
from contextlib import contextmanager

import pytest

from webdepot.access import cdx
from webdepot.access.replay import server_rewrite, title
from webdepot.container.http import HttpHead, parse_head
from webdepot.errors import InputError
from webdepot.harvest import profile
from webdepot.harvest.links import bodies, extract
from webdepot.harvest.politeness import robots
from webdepot.harvest.scope.limits import reject_pattern
from webdepot.model import Answer, Candidate
from webdepot.text.patterns import LinearPattern, wildcard
from webdepot.times import from_timestamp
from webdepot.url import Url
from webdepot.web.language import language

BUDGET_S = 3.0


@contextmanager
def quick():
    """Fail after a moment of processor time. Python's regular expressions look at signals now and then."""

    def fail(*_):
        raise AssertionError(f"more than {BUDGET_S} s")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, BUDGET_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("start", ["a", "a b", "GET /", "HTTP/1.1 200\x0b", "HTTP/1.1 200", "HTTP/1.1"])
@pytest.mark.parametrize("filling", [" ", "\t", " x", "\x0b", "HTTP/1.1 "])
def test_first_lines(start, filling):
    with quick():
        parse_head((start + filling * 200_000 + "!\r\n\r\n").encode())


def rules_of(text):
    return robots.RobotsRules(
        basis=robots.RobotsBasis.RULES,
        detail="",
        text=text,
        at=from_timestamp("20240101000000"),
        agent="Webdepot",
    )


def test_robots_rules_with_many_stars():
    rules = rules_of("User-agent: *\nDisallow: /a\nDisallow: /" + "*a" * 30 + "*b\n")
    with quick():
        verdict = rules.decide("http://x.example/" + "a" * 2000)
    assert verdict.answer is Answer.REJECT
    assert verdict.reason == "robots.txt: Disallow: /a"


@pytest.mark.parametrize(
    ("rule", "path", "covered"),
    [
        ("/a*b", "/axxb/c", True),
        ("/a*b$", "/axxb/c", False),
        ("/a*b$", "/ab", True),
        ("/ab*b$", "/ab", False),
        ("/*.pdf$", "/x.pdf.pdf", True),
        ("/*", "/", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/**a", "/xa", True),
        ("/a*a*a", "/aa", False),
        ("*", "/anything", True),
        ("/fish*.php", "/Fish.PHP", False),
    ],
)
def test_wildcards_of_robots_match_as_in_rfc_9309(rule, path, covered):
    assert robots._covers(rule, path) is covered


@pytest.mark.parametrize(
    "unit", [" ", "\t", "url( ", "url(", '"\\\\"', "@import ", "/*", "image-set(", "\\\\", "a'"]
)
def test_style_sheets(unit):
    sheet = ("url(" + unit * (300_000 // len(unit)))[:300_000]
    head = HttpHead(version="HTTP/1.1", status=200, reason="", headers=(("Content-Type", "text/css"),))
    with quick():
        server_rewrite.css(sheet, "http://x.example/a.css", lambda address: address)
        extract.extract(Url("http://x.example/a.css"), head, io.BytesIO(sheet.encode()), bodies.LinkLimits())


@pytest.mark.parametrize("unit", ["<", "<>", "<>;", '<>; a="', "<a>; rel=", " ", ";", "<>;\\\\"])
@pytest.mark.parametrize("name", ["Link", "Refresh", "Content-Type", "Location"])
def test_headers_of_answers(unit, name):
    value = (unit * 120_000)[:120_000]
    head = HttpHead(version="HTTP/1.1", status=200, reason="", headers=((name, value), ("X", "y")))
    with quick():
        extract.extract(Url("http://x.example/"), head, io.BytesIO(b""), bodies.LinkLimits())


@pytest.mark.parametrize("unit", ["<title>", "<title ", "<meta charset=", "<meta ", " "])
def test_titles_and_refreshes(unit):
    page = (unit * 100_000)[:65_536]
    with quick():
        title.of_html(io.BytesIO(page.encode()), "text/html")
        server_rewrite.refresh(page, "http://x.example/", lambda address: address)
        server_rewrite.srcset(page, "http://x.example/", lambda address: address)


def test_a_refresh_and_a_list_of_images_are_rewritten_as_before():
    def lead(address):
        return f"/all/{address}"

    base = "http://x.example/"
    assert (
        server_rewrite.refresh(' 5; URL = "a.html" ', base, lead) == "5; URL = /all/http://x.example/a.html"
    )
    assert server_rewrite.refresh("0;'a'b'", base, lead) == "0;/all/http://x.example/a'b"
    assert server_rewrite.refresh("5", base, lead) == "5"
    led = "/all/http://x.example/"
    assert server_rewrite.srcset("a.png 1x,  b.png 2x", base, lead) == f"{led}a.png 1x,  {led}b.png 2x"


def test_languages_of_a_reader():
    with quick():
        for part in ("a" + " " * 60_000 + "!", "a;" * 30_000, "a;q" + " " * 60_000):
            language._RANGE.match(part)


# --- expressions of people ---


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_patterns_of_staff_are_linear(pattern):
    rule = reject_pattern(pattern)
    with quick():
        rule(Candidate(url=Url("http://x.example/" + "a" * 2000 + "!")))


@pytest.mark.parametrize(
    "pattern", [r"(?=a)b", r"(?<!a)b", r"(a)\1", "(?P<x>a)(?P=x)", "a++", "(", "(a{900}){900}"]
)
def test_what_cannot_be_linear_is_refused_when_it_is_saved(pattern):
    assert "not a usable regular expression" in profile.KEYS["reject"].check([pattern])
    with pytest.raises(InputError, match="not a usable regular expression"):
        reject_pattern(pattern)
    if "?" in pattern or "\\" in pattern or "++" in pattern:
        with pytest.raises(ValueError, match="not supported"):
            LinearPattern(pattern)


def test_expressions_of_readers_are_small_and_linear():
    with pytest.raises(InputError, match="too large"):
        cdx._expression("(.{0,300}){3}z")
    expression = cdx._expression("(x+x+)+y")
    with quick():
        for _ in range(1000):
            expression.fullmatch("x" * 2000)


def test_half_a_surrogate_pair_is_no_error():
    assert LinearPattern("a").search("\ud800a")
    with pytest.raises(ValueError, match="not valid text"):
        LinearPattern("\ud800")


def test_wildcards_stand_for_any_characters():
    assert wildcard("video/*").fullmatch("Video/MP4")
    assert not wildcard("video/*").fullmatch("x-video/mp4")
    assert wildcard("utm_*").fullmatch("UTM_source")
    assert not wildcard("a.c").fullmatch("abc")
    with quick():
        wildcard("*a" * 20 + "b").fullmatch("a" * 5000)
