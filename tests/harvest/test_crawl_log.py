"""The crawl log: Heritrix's columns, JSON lines, and cutting back."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import NoSpace
from webdepot.harvest.report.log import JSON_NAME, LOG_NAME, CrawlLog, LogLine, as_heritrix, as_json, cut

LINE = LogLine(
    at=datetime(2026, 11, 15, 9, 2, 51, 75_900, tzinfo=UTC),
    status=200,
    size=5120,
    url="https://a.example/x",
    path="LLE",
    via="https://a.example/",
    mime="text/html",
    digest="sha1:ABC",
    duration_s=0.0451,
    server="192.0.2.1",
    tries=2,
    note="lenTrunc",
)


def test_heritrix_columns() -> None:
    expected = (
        "2026-11-15T09:02:51.121Z   200       5120 https://a.example/x LLE https://a.example/ text/html"
        " #001 20261115090251075+45 sha1:ABC - 2t,lenTrunc\n"
    )
    assert as_heritrix(LINE) == expected


def test_heritrix_empty_columns() -> None:
    refused = replace(
        LINE,
        status=-9998,
        size=0,
        path="",
        via="",
        mime="unknown",
        digest="",
        duration_s=0.0,
        tries=0,
        note="",
    )
    expected = "2026-11-15T09:02:51.075Z -9998          - https://a.example/x - - unknown #001 - - - -\n"
    assert as_heritrix(refused) == expected


# The format that existing tools read: https://github.com/internetarchive/crawllog_loader splits at spaces.
COLUMNS = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z +-?\d+ +(-|\d+) \S+ \S+ \S+ \S+ #\d{3} "
    r"(-|\d{17}\+\d+) \S+ \S+ \S+\n\Z"
)


@given(
    st.builds(
        lambda text, number: replace(LINE, mime=text, note=text, path=text, size=number),
        st.text(max_size=20),
        st.integers(0, 10**13),
    )
)
def test_no_value_can_break_a_line(line: LogLine) -> None:
    assert COLUMNS.match(as_heritrix(line))
    assert json.loads(as_json(line))["mime"] == line.mime
    assert as_json(line).count("\n") == 1


def test_json_names() -> None:
    values = json.loads(as_json(LINE))
    assert set(values) == {
        *(
            "at",
            "status",
            "size",
            "url",
            "path",
            "via",
            "mime",
            "digest",
            "duration_s",
            "server",
            "tries",
            "rule",
            "reason",
            "note",
        )
    }
    assert (values["at"], values["duration_s"]) == ("2026-11-15T09:02:51.075Z", 0.045)


def test_cutting_back_to_a_checkpoint(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    log.write(LINE)
    marks = log.sync()
    before = {name: (tmp_path / name).read_bytes() for name in (LOG_NAME, JSON_NAME)}
    assert marks == {name: len(data) for name, data in before.items()}
    log.write(LINE)
    log.sync()
    log.close()

    cut(tmp_path, marks)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    log = CrawlLog(tmp_path)
    log.write(replace(LINE, status=404))
    assert log.sync()[JSON_NAME] > marks[JSON_NAME]
    log.close()
    assert [json.loads(line)["status"] for line in (tmp_path / JSON_NAME).read_text().splitlines()] == [
        200,
        404,
    ]
    cut(tmp_path, {})
    assert (tmp_path / LOG_NAME).stat().st_size == 0


def test_nothing_to_cut(tmp_path: Path) -> None:
    cut(tmp_path, {LOG_NAME: 5})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    for name in (LOG_NAME, JSON_NAME):
        (tmp_path / name).symlink_to(full)
    log = CrawlLog(tmp_path)
    log.write(LINE)
    with pytest.raises(NoSpace, match="could not be written"):
        log.sync()
    log.close()
