"""How long does a harvest of this size take on N machines, how much load do the engines get, and what is the
bottleneck?

    python -m bench.simulation [--quick] [--json PATH] [--svg FOLDER] [--documents N] [--servers N]
        [--delay SECONDS] [--machines N] [--most N]

A calculation, not a measurement: it multiplies what was measured on one machine (`COSTS`, with their sources).
Servers have documents by Zipf's law; one request at a time and a delay for each server limit how fast any number
of machines can be. All servers that still have documents are asked in turn. `--most` is a limit of documents for
each server, as `[harvest] limit_host_documents`.
"""

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HOUR_S, DAY_S = 3600.0, 86_400.0
MACHINES = (1, 3, 10, 100)
ZIPF = 1.1
MOST = 50_000
"""A usual limit of documents for each server."""
EXACT_RANKS = 20_000
SIZES = {"1e8": (10**8, 200_000), "1e10": (10**10, 20_000_000)}
"""Documents and servers, by name."""


@dataclass(frozen=True)
class Costs:
    """What one document costs. Measured on two cores under load: CPU may be a third too high."""

    machine_rate: float = 1000.0  # documents a second of one harvesting machine, decision 61
    harvest_cpu_s: float = 0.00055  # CPU of the crawler, decision 61
    journal_cpu_s: float = 0.0002  # queue, journal and packing of a part, decision 87
    pg_cpu_s: float = 0.000013  # leases and checkpoints at PostgreSQL, decision 87
    pg_wal_bytes: float = 49
    stored_bytes: float = 15_000  # compressed, with its request
    segments: float = 2  # each byte is stored as a segment first, then in its container
    copies: float = 2  # SeaweedFS with replication 001
    s3_cpu_s_mb: float = 0.027  # of a megabyte that we send, with both copies
    capture_cpu_s: float = 0.000025  # PostgreSQL, decision 83
    capture_wal_bytes: float = 584
    capture_bytes: float = 404
    extract_cpu_s: float = 0.00144  # reading a container for both indexes
    states: float = 0.175  # states of pages for each capture
    state_cpu_s: float = 0.00162  # OpenSearch, for each copy
    state_bytes: float = 3_100
    foreign_links: float = 0.6  # links to hosts of other parts that are not known yet, for each document
    handed_row_cpu_s: float = 0.00003  # PostgreSQL, for each row of links handed over
    parts: int = 4  # of a harvest, for each machine
    safe_s: float = 10.0  # between two checkpoints
    lease_s: float = 30.0
    replay_s: float = 1.0  # until a successor works
    mtbf_s: float = 60 * DAY_S  # of one machine


@dataclass(frozen=True)
class Engines:
    """The load that the engines can handle."""

    s3_bytes_s: float = 1.25e9  # one 10 Gbit/s network
    pg_cores: float = 8
    batch_cores: float = 64
    words_cores: float = 32


COSTS, ENGINES = Costs(), Engines()


def server_sizes(documents: int, servers: int, most: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
    """Documents of servers in descending order, up to a limit, and the number of servers of each size: the small ones
    together.
    """
    if servers <= EXACT_RANKS:
        edges = np.arange(1, servers + 2, dtype=float)
    else:
        rest = np.unique(np.geomspace(EXACT_RANKS + 1, servers + 1, 20_000).round())
        edges = np.concatenate([np.arange(1, EXACT_RANKS + 1, dtype=float), rest])
    counts = np.diff(edges)
    middles = np.sqrt(edges[:-1] * (edges[1:] - 1))
    weights = middles**-ZIPF
    return np.minimum(documents * weights / (weights * counts).sum(), most), counts


def harvest(
    documents: int, servers: int, delay_s: float, machines: int, most: float = math.inf, costs: Costs = COSTS
):
    """(seconds, documents) over the course of the harvest: each active server returns one document in
    `delay_s`, all together no more than the machines can process.
    """
    sizes, counts = server_sizes(documents, servers, most)
    sizes, counts = sizes[::-1], counts[::-1]  # the smallest end first
    active = np.cumsum(counts[::-1])[::-1]
    steps = np.diff(np.concatenate([[0.0], sizes]))  # documents of each active server until the next ones end
    rate = np.minimum(active / delay_s, machines * costs.machine_rate)
    done = steps * active
    return np.cumsum(done / rate), np.cumsum(done)


def time_until(share: float, seconds: np.ndarray, done: np.ndarray) -> float:
    return float(np.interp(share * done[-1], np.concatenate([[0], done]), np.concatenate([[0], seconds])))


def load(machines: int, costs: Costs = COSTS) -> dict[str, float]:
    """The load on the engines of machines that harvest as fast as they can, in cores and bytes per second."""
    rate, parts = machines * costs.machine_rate, machines * costs.parts
    pairs = parts * max(parts - 1, 0)
    links = rate * costs.foreign_links * (parts - 1) / parts  # of all parts, a second
    rows = pairs / costs.safe_s * -math.expm1(-links * costs.safe_s / pairs) if pairs else 0.0
    s3_bytes = rate * costs.stored_bytes * costs.segments
    return {
        "harvest_cores": rate * (costs.harvest_cpu_s + costs.journal_cpu_s),
        "postgresql_cores": rate * costs.pg_cpu_s + rows * costs.handed_row_cpu_s,
        "postgresql_wal_bytes_s": rate * costs.pg_wal_bytes,
        "handed_rows_s": rows,
        "s3_bytes_s": s3_bytes * costs.copies,
        "s3_cores": s3_bytes / 1e6 * costs.s3_cpu_s_mb,
        "captures_cores": rate * costs.capture_cpu_s,
        "captures_wal_bytes_s": rate * costs.capture_wal_bytes,
        "extract_cores": rate * costs.extract_cpu_s,
        "words_cores": rate * costs.states * costs.state_cpu_s * costs.copies,
    }


def deaths(machines: int, seconds: float, costs: Costs = COSTS) -> dict[str, float]:
    """The cost of machines that die in that time."""
    count = machines * seconds / costs.mtbf_s
    lost_s = count * (costs.lease_s + costs.replay_s)
    return {
        "deaths": count,
        "asked_again": count * costs.machine_rate * costs.safe_s / 2,
        "capacity_lost": lost_s / (machines * seconds),
    }


def stages(
    documents: int, servers: int, delay_s: float, machines: int, most: float = math.inf, costs: Costs = COSTS
) -> dict[str, float]:
    """How many seconds each part of the work takes by itself; the longest is the bottleneck."""
    seconds, done = harvest(documents, servers, delay_s, machines, most, costs)
    alone, _ = harvest(documents, servers, delay_s, 10**9, most, costs)
    documents = int(done[-1])
    stored = documents * costs.stored_bytes * costs.segments * costs.copies
    pg_cpu_s = costs.pg_cpu_s + costs.capture_cpu_s
    return {
        "politeness, 99 %": time_until(0.99, alone, done),
        "politeness, last server": float(alone[-1]),
        "machines": documents / (machines * costs.machine_rate),
        "S3": stored / ENGINES.s3_bytes_s,
        "PostgreSQL": documents * pg_cpu_s / ENGINES.pg_cores,
        "extraction": documents * costs.extract_cpu_s / ENGINES.batch_cores,
        "words": documents * costs.states * costs.state_cpu_s * costs.copies / ENGINES.words_cores,
        "harvest, half": time_until(0.5, seconds, done),
        "harvest, 99 %": time_until(0.99, seconds, done),
    }


def bottleneck(times: dict[str, float]) -> str:
    """The slowest part, without the last few servers, which more machines cannot speed up."""
    left_out = ("politeness, last server", "harvest, half", "harvest, 99 %")
    return max((name for name in times if name not in left_out), key=times.__getitem__)


def storage(documents: int, costs: Costs = COSTS) -> dict[str, float]:
    """Bytes at the end, one copy of each."""
    return {
        "containers": documents * costs.stored_bytes,
        "captures": documents * costs.capture_bytes,
        "words": documents * costs.states * costs.state_bytes,
    }


def draw(documents: int, servers: int, delay_s: float) -> str:
    """Share of documents over time for several numbers of machines, as SVG with a logarithmic axis of time."""
    width, height, left, top = 640, 320, 60, 40
    low, high = math.log10(HOUR_S), math.log10(1000 * DAY_S)
    colours = ("#1b4965", "#5fa8d3", "#ca6702", "#9b2226")

    def x_of(seconds: float) -> float:
        return left + (math.log10(max(seconds, HOUR_S)) - low) / (high - low) * width

    def y_of(share: float) -> float:
        return top + height - share * height

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 50}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f"<title>Documents fetched over time: {documents:.0e} documents of {servers:,} servers</title>",
        f'<rect width="{left + width + 20}" height="{top + height + 50}" fill="#fff"/>',
        f'<text x="{left}" y="20">{documents:.0e} documents of {servers:,} servers, {delay_s:g} s delay: share fetched (dashed: without a limit for each server)</text>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = y_of(share)
        parts.append(f'<path d="M{left} {y:.0f}H{left + width}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    ticks = (
        ("1 h", HOUR_S),
        ("10 h", 10 * HOUR_S),
        ("4 d", 4 * DAY_S),
        ("30 d", 30 * DAY_S),
        ("1 y", 365 * DAY_S),
    )
    for name, seconds in ticks:
        x = x_of(seconds)
        parts.append(f'<path d="M{x:.0f} {top}V{top + height}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{top + height + 20}" text-anchor="middle">{name}</text>')
    for number, (machines, colour) in enumerate(zip(MACHINES, colours)):
        for most, dashes in ((MOST, ""), (math.inf, ' stroke-dasharray="3 4"')):
            seconds, done = harvest(documents, servers, delay_s, machines, most)
            known_s, known = np.concatenate([[0], seconds]), np.concatenate([[0], done]) / done[-1]
            points = []
            for step in range(161):
                moment = 10 ** (low + (high - low) * step / 160)
                points.append(f"{x_of(moment):.1f},{y_of(float(np.interp(moment, known_s, known))):.1f}")
            line = f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"'
            parts.append(f"{line}{dashes}/>")
        words = f"{machines} machine{'s' if machines > 1 else ''}"
        parts.append(
            f'<text x="{left + 10 + number * 110}" y="{top + height + 42}" fill="{colour}">{words}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def figures(documents: int, servers: int, delay_s: float, machines: int, most: float) -> dict[str, object]:
    times = stages(documents, servers, delay_s, machines, most)
    sizes, counts = server_sizes(documents, servers, most)
    documents = int((sizes * counts).sum())
    return {
        "documents": documents,
        "hours": {name: seconds / HOUR_S for name, seconds in times.items()},
        "bottleneck": bottleneck(times),
        "load": load(machines),
        "deaths": deaths(machines, times["harvest, 99 %"]),
        "bytes": storage(documents),
    }


def _print(
    documents: int, servers: int, delay_s: float, most: float, by_machines: dict[int, dict[str, Any]]
) -> None:
    limit = f", at most {most:,.0f} of each" if math.isfinite(most) else ""
    print(f"\n{documents:.0e} documents, {servers:,} servers{limit}, {delay_s:g} s")
    print(f"{'machines':>8} {'half h':>9} {'99 % h':>9} {'last d':>8}  bottleneck")
    for count, found in by_machines.items():
        hours = found["hours"]
        last_d = max(hours["politeness, last server"], hours["machines"]) / 24
        half, nearly = hours["harvest, half"], hours["harvest, 99 %"]
        print(f"{count:8} {half:9.0f} {nearly:9.0f} {last_d:8.0f}  {found['bottleneck']}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="only the smaller size")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path, help="folder for the curves of the documentation")
    parser.add_argument("--documents", type=float)
    parser.add_argument("--servers", type=float, default=200_000)
    parser.add_argument("--delay", type=float, default=1.5)
    parser.add_argument("--machines", type=int)
    parser.add_argument("--most", type=float, help="limit of documents for each server")
    options = parser.parse_args()
    sizes = dict(list(SIZES.items())[: 1 if options.quick else None])
    if options.documents:
        sizes = {"asked": (int(options.documents), int(options.servers))}
    counts = (options.machines,) if options.machines else MACHINES
    results: dict[str, object] = {"costs": asdict(COSTS), "engines": asdict(ENGINES)}
    for name, (documents, servers) in sizes.items():
        for most in (options.most,) if options.most else (MOST, math.inf):
            by_machines = {count: figures(documents, servers, options.delay, count, most) for count in counts}
            _print(documents, servers, options.delay, most, by_machines)
            results[f"{name}, at most {most:g}"] = by_machines
        if options.svg and name in SIZES:
            (options.svg / f"harvest-{name}.svg").write_text(
                draw(documents, servers, options.delay), encoding="utf-8"
            )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
