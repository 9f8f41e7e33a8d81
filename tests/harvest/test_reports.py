"""Reports from the log, estimates and live numbers."""

import json
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from webdepot.harvest.host_book import MOST_SHOWN, HostCounts
from webdepot.harvest.report import live, reports
from webdepot.harvest.report.estimate import EstimateBasis, Sampler
from webdepot.harvest.report.reports import ReportKind
from webdepot.harvest.report.result import CrawlProgress

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def line(url: str, status: int = 200, **more: object) -> str:
    made = {
        "status": status,
        "url": url,
        "size": 100,
        "path": "L",
        "mime": "text/html",
        "note": "",
        "rule": "host",
        "reason": "",
        "tries": 1,
    }
    return json.dumps(made | more) + "\n"


LOG = [
    line("http://a.example/robots.txt", 404, path="P", mime="text/plain"),
    line("http://a.example/", path=""),
    line("http://a.example/1", note="warcRevisit:digest"),
    line("http://a.example/gone", 404),
    line("http://b.example/x.png", path="LE", mime="image/png"),
    line("http://b.example/dead", -2, reason="refused"),
    line("http://a.example/secret", -9998, rule="robots", reason="robots.txt: Disallow: /secret", tries=0),
    line("http://a.example/2044/01/", -5000, rule="calendar", reason="it is about the year 2044", tries=0),
    line("http://a.example/2044/02/", -5000, rule="calendar", reason="it is about the year 2044", tries=0),
]


def made(folder: Path, kind: ReportKind) -> list[dict[str, object]]:
    reports.refresh(folder / "crawl.jsonl", folder / reports.FILE_NAME)
    return reports.read(folder / reports.FILE_NAME, kind).rows


def test_every_report(tmp_path: Path) -> None:
    (tmp_path / "crawl.jsonl").write_text("".join(LOG))
    hosts = {row["name"]: row for row in made(tmp_path, ReportKind.HOSTS)}
    assert hosts["a.example"] == {
        "name": "a.example",
        "documents": 4,
        "bytes": 400,
        "errors": 2,
        "refused": 3,
        "duplicates": 1,
    }
    assert hosts["b.example"]["errors"] == 1
    assert {row["name"]: row["documents"] for row in made(tmp_path, ReportKind.MIME)} == {
        "text/html": 3,
        "text/plain": 1,
        "image/png": 1,
    }
    status = {row["name"]: row for row in made(tmp_path, ReportKind.STATUS)}
    assert {name: row["documents"] for name, row in status.items()} == {
        "200": 3,
        "404": 2,
        "-2": 1,
        "-9998": 1,
        "-5000": 2,
    }
    assert status["-9998"]["reason"] == "robots"
    assert made(tmp_path, ReportKind.SEEDS) == [
        {"name": "http://a.example/", "status": 200, "documents": 1, "reason": ""}
    ]
    rejected = made(tmp_path, ReportKind.REJECTED)
    assert [(row["name"], row["refused"], row["example"]) for row in rejected] == [
        ("calendar", 2, "http://a.example/2044/01/"),
        ("robots", 1, "http://a.example/secret"),
    ]
    traps = made(tmp_path, ReportKind.TRAPS)
    assert [(row["name"], row["host"], row["refused"]) for row in traps] == [("calendar", "a.example", 2)]


def test_wrong_guesses_are_not_errors_of_their_host(tmp_path: Path) -> None:
    guesses = [line("http://a.example/x.js", 404, path="LX"), line("http://a.example/y.js", -2, path="LEXR")]
    (tmp_path / "crawl.jsonl").write_text("".join([*guesses, line("http://a.example/z.js", 404, path="LXE")]))
    assert [row["errors"] for row in made(tmp_path, ReportKind.HOSTS)] == [1]


def test_a_growing_log_is_read_once_and_half_a_line_waits(tmp_path: Path) -> None:
    log = tmp_path / "crawl.jsonl"
    log.write_text(LOG[1] + LOG[2][:20])
    assert made(tmp_path, ReportKind.HOSTS)[0]["documents"] == 1
    log.write_text(LOG[1] + LOG[2])
    assert made(tmp_path, ReportKind.HOSTS)[0]["documents"] == 2
    assert made(tmp_path, ReportKind.HOSTS)[0]["documents"] == 2


def test_a_log_that_was_cut_back_is_counted_again(tmp_path: Path) -> None:
    log = tmp_path / "crawl.jsonl"
    log.write_text("".join(LOG[1:4]))
    assert made(tmp_path, ReportKind.HOSTS)[0]["documents"] == 3
    log.write_text(LOG[1])
    assert made(tmp_path, ReportKind.HOSTS)[0]["documents"] == 1
    log.write_text("".join([LOG[1], *(line(f"http://a.example/new{n}") for n in range(10))]))
    assert made(tmp_path, ReportKind.HOSTS)[0]["documents"] == 11
    changed = "".join([LOG[1].replace("/a.", "/z."), *(line(f"http://a.example/old{n}") for n in range(20))])
    log.write_text(changed)
    assert sum(int(str(row["documents"])) for row in made(tmp_path, ReportKind.HOSTS)) == 21


def test_more_hosts_than_are_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / "crawl.jsonl").write_text(
        "".join(line(f"http://h{n % 25_000}.example/{n}") for n in range(50_000))
    )
    reports.refresh(tmp_path / "crawl.jsonl", tmp_path / reports.FILE_NAME)
    found = reports.read(tmp_path / reports.FILE_NAME, ReportKind.HOSTS, limit=10)
    assert found.total == 25_000
    assert [row["documents"] for row in found.rows] == [2] * 10


@given(st.binary(max_size=400))
def test_any_bytes_are_counted_and_never_an_error(data: bytes) -> None:
    counts: dict[tuple[str, str], object] = {}
    for raw in data.splitlines():
        try:
            reports._note(json.loads(raw), counts)  # type: ignore[arg-type]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def test_estimates_name_their_basis() -> None:
    sampler = Sampler()
    sampler.add(0, 1)
    assert sampler.estimate(0, 1).basis is EstimateBasis.TOO_EARLY
    sampler.add(100, 500)
    growing = sampler.estimate(100, 400)
    assert growing.basis is EstimateBasis.GROWING
    assert growing.share == 0.2
    assert "at most 20%" in str(growing)
    for done in range(200, 5_000, 100):
        sampler.add(done, 500 + (done - 100) // 2)
    shrinking = sampler.estimate(5_000, 100)
    assert shrinking.basis is EstimateBasis.SHRINKING
    assert shrinking.to_come == 200  # each of the 100 brings half a page, and so on
    assert sampler.estimate(5_000, 0).basis is EstimateBasis.FINISHED


def test_live_numbers_are_written_and_read(tmp_path: Path) -> None:
    publisher = live.Publisher(tmp_path, lambda: NOW, every_s=3600)
    hosts = {f"h{n}.example": HostCounts(fetched=n) for n in range(100)}
    for fetched in (1, 2):
        publisher(
            CrawlProgress(
                fetched=fetched,
                waiting=3,
                in_flight=1,
                size_bytes=10,
                rate=1.5,
                errors=0,
                robots_refused=0,
                host="a.example",
                elapsed_s=1,
                seen=6,
                done=2,
                refusals={"outside": 7},
                hosts=hosts,
            )
        )
    first = live.read(tmp_path)
    assert first is not None
    assert first.fetched == 1  # not more often than asked for
    publisher.close()
    last = live.read(tmp_path)
    assert last is not None
    assert (last.fetched, last.at, last.refusals) == (2, NOW, {"outside": 7})
    assert [host.host for host in last.hosts][:2] == ["h99.example", "h98.example"]
    assert len(last.hosts) == MOST_SHOWN
    (tmp_path / live.FILE_NAME).write_text("{half")
    assert live.read(tmp_path) is None
