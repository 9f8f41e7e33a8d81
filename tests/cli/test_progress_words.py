"""Progress and counts in words, and `--browser` with and without a mode."""

import pytest

from webdepot.cli.main import with_browser_mode
from webdepot.cli.output import duration_words, failure_words
from webdepot.cli.progress import _pieces
from webdepot.cli.report import _left_out_lines
from webdepot.services.progress import Phase, Progress, WholeProgress


def test_progress_has_units_and_says_what_goes_on() -> None:
    progress = Progress(
        phase=Phase.HARVEST,
        done=64,
        pages=12,
        waiting=75,
        size_bytes=3_400_000,
        rate=4.12,
        errors=2,
        note="in the browser: https://a.example/",
    )
    assert "".join(_pieces(progress, 65)) == (
        "Harvesting: 12 pages · 64 documents · 75 addresses waiting, 2 failed · 3.4 MB · 4.1 documents/s · 1:05"
        "  in the browser: https://a.example/"
    )
    first = Progress(phase=Phase.HARVEST, done=1, pages=1, waiting=20_553)
    assert "".join(_pieces(first, 1)) == "Harvesting: 1 page · 1 document · 20,553 addresses waiting · 0:01"
    assert _pieces(Progress(phase=Phase.EXPORT, done=0, total=1), 1)[1] == "0 of 1 address · 0:01"
    assert "".join(_pieces(Progress(phase=Phase.INDEX, done=2, total=5), 7200)) == (
        "Indexing: 2 of 5 containers · 2:00:00"
    )


def test_the_progress_of_an_import_tells_bytes_rate_and_time_left() -> None:
    whole = WholeProgress(
        done_bytes=34_000_000_000, total_bytes=10**12, bytes_per_s=5_200_000, left_s=185_769
    )
    words = _pieces(Progress(phase=Phase.INDEX, done=3, total=10, whole=whole), 65)[1]
    assert words == ("3 of 10 containers · 1:05 · total 34.0 GB of 1.0 TB · 5.2 MB/s · about 51:36:09 left")
    unknown = WholeProgress(done_bytes=0, total_bytes=10**9, bytes_per_s=0, left_s=None)
    assert _pieces(Progress(phase=Phase.IMPORT, done=0, total=2, whole=unknown), 1)[1] == (
        "0 of 2 files · 0:01 · total 0 bytes of 1.0 GB"
    )


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_words(phase: Phase) -> None:
    assert _pieces(Progress(phase=phase, done=1), 0.4)[1].endswith(" · 0:00")


def test_failures_are_counted_once() -> None:
    assert failure_words(15, 12) == "3 pages and 12 parts could not be fetched"
    assert failure_words(1, 0) == "1 page could not be fetched"
    assert failure_words(1, 1) == "1 part could not be fetched"
    assert failure_words(0, 0) == ""
    assert duration_words(59.9) == "0:59"


def test_browser_alone_means_always() -> None:
    assert with_browser_mode(["archive", "--browser", "https://a.example/"])[1] == "--browser=always"
    assert with_browser_mode(["archive", "x", "--browser"])[2] == "--browser=always"
    given = ["archive", "--browser", "auto", "https://a.example/"]
    assert with_browser_mode(given) == given
    given = ["--home", "/srv/h", "harvester", "--browser"]  # has no modes
    assert with_browser_mode(given) == given


def test_pages_that_a_site_invents_are_not_counted_as_what_its_software_adds() -> None:
    assert _left_out_lines({}, 0) == []
    (invented, _) = _left_out_lines({}, 1_204)
    assert invented == "  Left out    1,204 addresses of pages that the site invents without end"
    added, _, invented, how = _left_out_lines({"apis": 1}, 3)
    assert "1 address that is not content: 1 apis" in added
    assert "3 addresses of pages" in invented
    assert "--include mazes" in how
