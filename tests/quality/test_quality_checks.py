"""Planted faults and their findings; complete harvests without findings."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdepot.model import Failure
from webdepot.quality import checks

A = "http://a.example/"


def found(traces):
    return sorted((each.code.removeprefix("quality."), each.subject) for each in checks.check(traces))


def test_a_whole_site_has_no_findings(site):
    site.visit(f"{A}robots.txt", 404, path="P")
    site.visit(A, path="", embeds=[f"{A}s.css", f"{A}old.png"], links=[f"{A}b", "http://elsewhere.example/"])
    site.visit(f"{A}b", embeds=[f"{A}s.css"], links=[A])
    site.visit(f"{A}s.css", path="E")
    site.visit(f"{A}old.png", 301, redirect=f"{A}new.png", path="E")
    site.visit(f"{A}new.png", path="ER")
    assert found(site.traces()) == []


@pytest.mark.parametrize(
    ("status", "log", "code", "words"),
    [
        (None, {}, "part-never-tried", "never requested"),
        (Failure.ROBOTS.status, {}, "part-robots", "robots.txt blocks it"),
        (
            Failure.SCOPE.status,
            {"rule": "host", "reason": "other host"},
            "part-out-of-scope",
            "other host (rule: host)",
        ),
        (Failure.LIMIT.status, {"reason": "its host has reached 5"}, "part-over-limit", "has reached 5."),
        (Failure.TIMEOUT.status, {}, "part-unreachable", "did not answer in time"),
        (Failure.DNS.status, {"rule": "robots", "reason": "no answer"}, "part-unreachable", "(no answer)"),
        (404, {}, "part-error", "returned 404 Not Found."),
        (503, {}, "part-error", "returned 503 Service Unavailable."),
        (599, {}, "part-error", "returned 599."),
    ],
)
def test_each_reason_why_a_part_is_absent(site, status, log, code, words):
    site.visit(A, path="", embeds=[f"{A}x.png"])
    site.visit(f"{A}b", embeds=[f"{A}x.png"])
    if status is not None:
        site.visit(f"{A}x.png", status, path="E", **log)
    (finding,) = checks.check(site.traces())
    assert (finding.code, finding.subject, finding.place) == (f"quality.{code}", f"{A}x.png", A)
    assert "2 pages" in finding.message
    assert words in finding.message
    assert finding.action


def test_what_only_a_page_of_an_error_asks_for_is_not_missed(site):
    site.visit(A, path="", links=[f"{A}gone"])
    site.visit(f"{A}gone", 404, embeds=[f"{A}x.png"], links=[f"{A}y"])
    site.visit(f"{A}x.png", 404, path="LE")
    site.visit(f"{A}y", 404, path="LL")
    assert found(site.traces()) == [("link-broken", f"{A}gone")]
    site.visit(f"{A}b", embeds=[f"{A}x.png"])
    assert found(site.traces()) == [("link-broken", f"{A}gone"), ("part-error", f"{A}x.png")]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "link-broken"),
        (410, "link-broken"),
        (500, "link-server-error"),
        (Failure.DNS.status, "link-unreachable"),
        (Failure.ROBOTS.status, "link-robots"),
    ],
)
def test_links_that_lead_nowhere(site, status, code):
    site.visit(A, path="", links=[f"{A}gone", "http://never.tried.example/"])
    site.visit(f"{A}gone", status)
    assert found(site.traces()) == [(code, f"{A}gone")]


def test_a_guess_that_finds_nothing_is_not_a_finding(site):
    missing = "<title>Page not found</title><h1>Page not found</h1>"
    site.visit(A, path="")
    for name, path in (("x", "EX"), ("y", "XR")):
        site.visit(f"{A}{name}.html", path=path, body=missing)
        site.visit(f"{A}{name}.js", 404, path=path)
    assert found(site.traces()) == []
    site.visit(f"{A}z.html", body=missing)
    assert found(site.traces()) == [("soft-missing", f"{A}z.html")]


def test_what_was_not_harvested_or_not_followed_is_told_once_for_each_rule(site):
    """A counter that is embedded and left out on purpose is not a missing part."""
    refused = Failure.SCOPE.status
    site.visit(A, path="", embeds=[f"{A}count.php"], links=[f"{A}h1"])
    site.visit(f"{A}count.php", refused, path="E", rule="counters", reason="Wiki rule 1")
    for number in (1, 2, 3):
        site.visit(f"{A}h{number}", refused, rule="histories", reason="Wiki rule 2")
    site.visit(f"{A}2050/1/", refused, rule="calendar", reason="it is about the year 2050")
    site.visit(f"{A}maze/1", refused, rule="mazes", reason="its server invents pages")
    site.visit(f"{A}nofollow", refused, rule="nofollow", reason="its page asks not to")
    site.visit(f"{A}same", note="warcRevisit:digest,soft404")
    site.visit(f"{A}cannot-exist", note="soft404Probe")
    traces = replace(
        site.traces(),
        trap_rules={"calendar"},
        left_out={"counters": "counters", "histories": "old versions", "mazes": "invented pages"},
        maze_kinds=("mazes",),
    )
    messages = {(each.code, each.subject): each.message for each in checks.check(traces)}
    assert sorted(messages) == [
        ("quality.left-out", f"{A}count.php"),
        ("quality.left-out", f"{A}h1"),
        ("quality.maze-stopped", f"{A}maze/1"),
        ("quality.says-missing", f"{A}same"),
        ("quality.trap-stopped", f"{A}2050/1/"),
    ]
    message = messages["quality.left-out", f"{A}h1"]
    assert message.startswith("Left out because the software of the site adds it")
    assert message.endswith("histories (old versions), Wiki rule 2. Number of such addresses: 3.")
    message = messages["quality.maze-stopped", f"{A}maze/1"]
    assert "the site invents pages without end" in message, "no software adds them"
    assert "software" not in message


def test_redirects_are_followed_to_their_end(site):
    site.visit(A, path="", embeds=[f"{A}1"], links=[f"{A}l"])
    site.visit(f"{A}1", 302, redirect=f"{A}2", path="E")
    site.visit(f"{A}2", 302, redirect=f"{A}3", path="ER")
    site.visit(f"{A}3", 404, path="ERR")
    site.visit(f"{A}l", 301, redirect=f"{A}3")
    assert found(site.traces()) == [("link-broken", f"{A}l"), ("part-error", f"{A}1")]


def test_a_redirect_loop_ends(site):
    site.visit(A, path="", embeds=[f"{A}1"])
    site.visit(f"{A}1", 302, redirect=f"{A}2", path="E")
    site.visit(f"{A}2", 302, redirect=f"{A}1", path="ER")
    assert found(site.traces()) == [("redirect-loop", f"{A}1")]


def test_spellings_of_one_address_meet(site):
    site.visit(A, path="", embeds=["http://www.a.example/x.png?b=2&a=1"])
    site.visit("https://a.example/x.png?a=1&b=2", path="E")
    assert found(site.traces()) == []


def test_a_later_try_counts(site):
    site.visit(A, path="", embeds=[f"{A}x"])
    site.visit(f"{A}x", 503, path="E")
    site.visit(f"{A}x", 200, path="E")
    assert found(site.traces()) == []


def test_bodies_that_are_not_whole(site):
    site.visit(A, path="", truncated="length")
    (finding,) = checks.check(site.traces())
    assert (finding.code, finding.subject) == ("quality.body-truncated", A)
    assert finding.place.startswith("x.warc.gz byte ")


def test_a_harvest_that_got_nothing(site):
    site.visit(f"{A}robots.txt", 200, path="P")
    site.visit(A, Failure.ROBOTS.status, path="", reason="robots.txt shuts every crawler out")
    assert found(site.traces()) == [("nothing-harvested", "h1"), ("seed-failed", A)]


def test_seeds_and_queue(site):
    site.visit(A, path="")
    site.waiting = 12
    assert found(site.traces(seeds=(A, "http://b.example/"))) == [
        ("queue-left", "h1"),
        ("seed-never-tried", "http://b.example/"),
    ]


def test_an_import_without_a_log_is_judged_by_its_containers(site):
    site.visit(A, path="", embeds=[f"{A}x", f"{A}y"])
    site.visit(f"{A}x", path="E")
    assert found(site.traces(with_log=False)) == [("part-never-tried", f"{A}y")]


def test_damaged_lines_and_containers_are_told(site):
    site.visit(A, path="")
    site.visit(f"{A}b")
    traces = site.traces()
    traces.log.write_bytes(b"{\n[]\nnull\n" + traces.log.read_bytes())
    path = site.folder / "x.warc.gz"
    data = bytearray(path.read_bytes())
    # Inside the packed bytes of the second record: a flag in a gzip header could change without harm.
    data[data.index(b"\x1f\x8b\x08", 20) + 40] ^= 255
    path.write_bytes(bytes(data))
    codes = {each.code for each in checks.check(traces)}
    assert "quality.log-damaged" in codes
    assert len(codes) > 1


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=80), max_size=8))
def test_any_bytes_as_log(tmp_path, lines):
    log = tmp_path / "crawl.jsonl"
    log.write_bytes(b"\n".join(lines))
    traces = checks.HarvestTraces(harvest="h", seeds=(), records=(), log=log)
    assert ("quality.nothing-harvested", "h") in [(each.code, each.subject) for each in checks.check(traces)]
