"""The simulation of large harvests: it agrees with what can be calculated by hand, and with the documentation."""

import re
from pathlib import Path

import pytest
from bench import simulation
from bench.simulation import COSTS, DAY_S, HOUR_S, MACHINES, MOST, SIZES

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "scale.md"


def test_one_server_takes_its_documents_times_the_delay_on_any_number_of_machines():
    for machines in MACHINES:
        seconds, done = simulation.harvest(1000, 1, 2.0, machines)
        assert seconds[-1] == pytest.approx(2000) and done[-1] == pytest.approx(1000)


def test_many_equal_servers_take_what_the_machines_can():
    documents = 10**7
    for machines in (1, 3):
        seconds, done = simulation.harvest(documents, 10**6, 0.001, machines, most=5)
        assert done[-1] < documents and seconds[-1] == pytest.approx(done[-1] / (machines * 1000))


def test_load_grows_with_machines_and_links_handed_over_faster():
    three, hundred = simulation.load(3), simulation.load(100)
    assert hundred["s3_bytes_s"] / three["s3_bytes_s"] == pytest.approx(100 / 3)
    assert three["s3_bytes_s"] == 3000 * COSTS.stored_bytes * COSTS.segments * COSTS.copies
    assert hundred["handed_rows_s"] > 100 * three["handed_rows_s"]
    assert simulation.load(1)["handed_rows_s"] > 0


def test_deaths_cost_half_a_checkpoint_each():
    found = simulation.deaths(100, 30 * DAY_S)
    assert found["deaths"] == pytest.approx(50)
    assert found["asked_again"] == pytest.approx(50 * 1000 * COSTS.safe_s / 2)


def test_the_page_shows_the_figures_of_the_simulation():
    rows = re.findall(
        r"^\| (10⁸|10¹⁰) \| (\d+) \| (\d+) \| (\d+) \| ([\w% ,]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) == len(SIZES) * len(MACHINES)
    for name, machines, half, nearly, slowest in rows:
        documents, servers = SIZES[{"10⁸": "1e8", "10¹⁰": "1e10"}[name]]
        times = simulation.stages(documents, servers, 1.5, int(machines), MOST)
        assert round(times["harvest, half"] / HOUR_S) == int(half)
        assert round(times["harvest, 99 %"] / HOUR_S) == int(nearly)
        assert simulation.bottleneck(times).startswith(slowest)
