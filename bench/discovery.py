"""How well are the domains of an organisation found? Our evidence model compared with three simple
indicators, on generated worlds with labels.

    python -m bench.discovery [--quick] [--json PATH] [--picture PATH]

Several worlds of 1,400 hosts each (fixed seeds; five sectors, 70 % of registrants redacted, typing errors,
subsidiaries, guests, shared clouds). Measures precision, recall of findable domains, recall by sector and
number of queries; then, for comparison, three simple rules (range, name servers, registrant similarity >= T)
for each T, on the same worlds. The picture has both curves. Finally measures the cost of deciding about hosts
in a whole harvest with 50,000 distinct hosts, compared with a plain domain scope (`bench.discovery_harvest`).
"""

import argparse
import asyncio
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench import discovery_harvest
from bench.discovery_world import NOW, World
from PIL import Image, ImageDraw

from webdepot.selection.domains.host_discovery import HostDiscovery
from webdepot.selection.domains.ownership_rules import registrant_similarity
from webdepot.selection.domains.profile import ProfileMatcher
from webdepot.selection.domains.profiler import profile_of
from webdepot.selection.domains.verdict import HostJudge

SEEDS = (11, 12, 13, 14, 15)
THRESHOLDS = tuple(step / 20 for step in range(21))
Scores = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small world")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path, help="file for the picture; default: beside the JSON")
    given = parser.parse_args()
    picture = given.picture or (
        given.json or Path(__file__).parent / "results" / "discovery.json"
    ).with_suffix(".png")
    picture.parent.mkdir(parents=True, exist_ok=True)
    seeds, size = (SEEDS[:1], 400) if given.quick else (SEEDS, 1200)
    worlds = [asyncio.run(survey(seed, size)) for seed in seeds]
    ours = [figures(world, scores, 0.75) for world, scores, _ in worlds]
    peers = [figures(world, plain, 0.8) for world, _, plain in worlds]
    costs = discovery_harvest.measure(1_000 if given.quick else 50_000)
    report = {
        "machine": f"{platform.machine()}, {platform.python_version()}, shared with other work",
        "worlds": len(worlds),
        "hosts": sum(len(world.places) for world, _, _ in worlds),
        "domains": sum(len(world.domains()) for world, _, _ in worlds),
        "ours": mean(ours),
        "three indicators, T 0.8": mean(peers),
        "best three indicators over T": best_of_plain(worlds),
        "harvest": costs,
    }
    for name, value in report.items():
        print(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    draw(picture, curve([(w, s) for w, s, _ in worlds]), curve([(w, p) for w, _, p in worlds]))
    if given.json:
        given.json.write_text(json.dumps(report, indent=1, ensure_ascii=False))
    good = report["ours"]["precision"] >= 0.95 and report["ours"]["recall"] >= 0.93
    return 0 if good else 1


async def survey(seed: int, size: int) -> tuple[World, Scores, Scores]:
    """The world after a survey, our scores, and those of the simple rules (1 by range or name server,
    otherwise the similarity).
    """
    world = World(seed, size=size)
    begun_s = time.perf_counter()
    profile, facts = await profile_of(world.root, world, now=NOW)
    judge = HostJudge(sources=world, profile=profile, now=NOW)
    seen = await HostDiscovery(judge=judge).run(world.root, root_facts=facts)
    world.seconds = time.perf_counter() - begun_s  # type: ignore[attr-defined]
    world.questions = Counter(world.asked)  # type: ignore[attr-defined]
    ours = {item.judgement.host: item.judgement.score for item in seen if item.judgement.is_resolved}
    return world, ours, await plain_scores(world, ProfileMatcher(profile), ours)


async def plain_scores(world: World, measure: ProfileMatcher, hosts: Scores) -> Scores:
    """The three simple rules, with the same candidates as ours."""
    scores = {}
    for host in hosts:
        place = world.places.get(host)
        if place is None:
            continue
        domain = next(
            name
            for name in (host, host.partition(".")[2], ".".join(host.split(".")[-2:]))
            if name in world.zones
        )
        zone = world.zones[domain]
        if measure.range_of([place.address]) or measure.name_servers & set(zone.name_servers):
            scores[host] = 1.0
        else:
            scores[host] = registrant_similarity((await world.registration(domain)).registrant, measure)[0]
    return scores


def figures(world: World, scores: Scores, bound: float) -> dict[str, float]:
    members = {host for host, place in world.places.items() if place.is_member}
    findable = {host for host in members if world.places[host].findable}
    accepted = {host for host, score in scores.items() if score >= bound and host in world.places}
    by_case = {
        f"recall of case {case}": share(
            accepted, {host for host in findable if world.places[host].case == case}
        )
        for case in range(1, 6)
    }
    precision, recall = share(members, accepted), share(accepted, findable)
    questions = world.questions  # type: ignore[attr-defined]
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        **by_case,
        "registry questions per domain": questions["registry"] / len(world.domains()),
        "pages per host": questions["page"] / len(world.places),
        "most pages of a host": float(max(world.page_requests.values())),
        "seconds": world.seconds,  # type: ignore[attr-defined]
    }


def share(of: set[str], among: set[str]) -> float:
    return len(of & among) / len(among) if among else 1.0


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]}


def curve(worlds: Sequence[tuple[World, Scores]]) -> list[tuple[float, float, float, float]]:
    """Threshold, precision, recall, F1."""
    points = []
    for bound in THRESHOLDS:
        row = mean([figures(world, scores, bound) for world, scores in worlds])
        points.append((bound, row["precision"], row["recall"], row["f1"]))
    return points


def best_of_plain(worlds: Sequence[tuple[World, Scores, Scores]]) -> dict[str, float]:
    bound, precision, recall, f1 = max(
        curve([(world, plain) for world, _, plain in worlds]), key=lambda point: point[3]
    )
    return {"T": bound, "precision": precision, "recall": recall, "f1": f1}


# --- the picture ---

_WIDTH, _HEIGHT, _LEFT, _TOP, _SIDE = 980, 460, 60, 50, 360
_COLOURS = {"precision": "#0f5c5c", "recall": "#b4530a", "F1": "#333333"}


def draw(
    path: Path,
    ours: Sequence[tuple[float, float, float, float]],
    plain: Sequence[tuple[float, float, float, float]],
) -> None:
    """Two diagrams: the evidence model by threshold, the three indicators by T."""
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    pen = ImageDraw.Draw(image)
    for number, (title, points) in enumerate(
        (("evidence model, bound of the score", ours), ("three indicators, threshold T", plain))
    ):
        left = _LEFT + number * (_SIDE + 120)
        pen.text((left, 20), title, fill="black")
        pen.rectangle((left, _TOP, left + _SIDE, _TOP + _SIDE), outline="#999999")
        for tenth in range(0, 11, 2):
            y = _TOP + _SIDE - _SIDE * tenth / 10
            pen.line((left, y, left + _SIDE, y), fill="#dddddd")
            pen.text((left - 28, y - 6), f"{tenth / 10:.1f}", fill="black")
            pen.text((left + _SIDE * tenth / 10 - 8, _TOP + _SIDE + 6), f"{tenth / 10:.1f}", fill="black")
        for at, (name, colour) in enumerate(_COLOURS.items(), start=1):
            line = [(left + _SIDE * point[0], _TOP + _SIDE - _SIDE * point[at]) for point in points]
            pen.line(line, fill=colour, width=3)
            pen.text((left + 8 + 90 * (at - 1), _TOP + _SIDE + 26), name, fill=colour)
    image.save(path)


if __name__ == "__main__":
    sys.exit(main())
