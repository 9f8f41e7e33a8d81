"""Are the pages for curators fast with 100,000 targets of 10 harvests each? Every list page over HTTP,
filtered and sorted.

    python -m bench.curation [--quick] [--json PATH]

An archive is filled with SQL (fixed seed) and served by a separate process; one client, signed in, requests
each page in turn. Printed are the median and the maximum of several requests in milliseconds, measured by the
client, and separately the first request of each page, with cold caches (the sign-in form was opened four
seconds before). The limit is 200 ms for every list page.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.portal import add_person, time_pages
from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.exchange import catalogue_words
from webdepot.services.admin import setup

LIMIT_MS = 200.0
NOW = datetime.now(UTC)
STATES = (
    "('suggested','nominated','judged','put off','rejected','selected','asked','cleared','cleared','refused')"
)
PAGES = {
    "targets": "/targets",
    "targets, last page": "/targets?page=2000",
    "targets by state": "/targets?state=cleared&sort=since&order=down",
    "targets by words": "/targets?q=museum+9",
    "targets by a rare word": "/targets?q=seum4711",
    "targets, no match": "/targets?q=nothing+here",
    "targets by state and words": "/targets?state=cleared&q=museum+9&sort=since&order=down",
    "targets by words, last page": "/targets?q=museum+9&page=2000",
    "targets by collection": "/targets?collection=c7",
    "letters": "/letters",
    "letters by state": "/letters?state=sent",
    "cases": "/cases",
    "harvests": "/harvests",
    "harvests, page 500": "/harvests?page=500",
    "harvests by state": "/harvests?state=failed",
    "harvests by collection": "/harvests?collection=c7",
    "harvests of a target": "/harvests?target=77",
    "review": "/review",
    "review, rejected": "/review?state=rejected",
    "review by collection": "/review?collection=c7",
    "calendar": "/schedule",
    "calendar, a day": f"/schedule?day={NOW:%Y-%m}-28",
    "plans": "/schedule/targets",
    "plans, last page": "/schedule/targets?page=2000",
    "plans by frequency": "/schedule/targets?frequency=weekly",
    "plans by name": "/schedule/targets?sort=name",
    "plans by words": "/schedule/targets?q=museum+9",
    "queue": "/schedule/queue",
    "queue, waiting": "/schedule/queue?state=waiting",
    "queue, failed": "/schedule/queue?state=failed",
    "audit": "/audit",
    "audit by person": "/audit?agent=person7",
    "audit by action": "/audit?action=accepted",
    "audit by subject": "/audit?subject_kind=target&subject=77",
    "audit, failures": "/audit?outcome=failure",
    "audit by day": f"/audit?since={NOW:%Y-%m}-01&until={NOW:%Y-%m}-02",
    "people": "/users",
    "catalogue": "/catalogue",
    "catalogue, further on": "/catalogue?after=site-museum-77777",
    "catalogue by author": "/catalogue?creator=person+77",
    "catalogue by genre": "/catalogue?genre=museum",
    "catalogue by a rare genre": "/catalogue?genre=almanac",
    "catalogue by keyword": "/catalogue?keyword=clocks",
    "catalogue by a rare keyword": "/catalogue?keyword=k4711",
    "catalogue by words": "/catalogue?words=museum+777",
    "catalogue by two common words": "/catalogue?words=person+makers",
    "catalogue by two words, few together": "/catalogue?words=person+k1",
    "catalogue by two words, none together": "/catalogue?words=almanac+k4711",
    "catalogue, no match": "/catalogue?words=nothing+here",
    "subjects": "/catalogue/subjects",
    "home": "/",
    "collections": "/collections",
    "access rules": "/rules",
    "organisations": "/organisations",
    "packages": "/depot/packages",
}
OTHERS = {"dashboard": "/dashboard", "plan of a target": "/schedule/targets/77", "target": "/targets/77"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data, for a smoke test")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    targets, rounds = (500, 3) if given.quick else (100_000, 9)
    figures: dict[str, float | str] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0],
        "targets": targets,
        "harvests": targets * 10,
    }
    with tempfile.TemporaryDirectory(prefix="bench-curation-") as place:
        home = Path(place) / "home"
        began = time.perf_counter()
        fill(home, targets)
        figures["fill_s"] = time.perf_counter() - began
        figures |= time_pages(home, PAGES | OTHERS, rounds)
    for label, value in figures.items():
        print(f"{label:40} {value if isinstance(value, str) else format(value, ',.1f')}")
    slow = [
        label
        for label, value in figures.items()
        if label.endswith(" median ms") and float(value) > LIMIT_MS and _is_list(label)
    ]
    print(f"List pages over {LIMIT_MS:.0f} ms: {', '.join(slow) or 'none'}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if slow and not given.quick else 0


def _is_list(label: str) -> bool:
    return label.removesuffix(" median ms") in PAGES


def fill(home: Path, targets: int) -> None:
    setup.create(home)
    with Archive.open(home) as archive:
        add_person(archive, NOW)
        with archive.database.transaction() as connection:
            _fill_targets(connection, targets)
            _fill_harvests(connection, targets)
            _fill_plans(connection, targets)
            _fill_events(connection, targets)
            _fill_catalogue(connection, targets)
        with archive.database.engine.connect() as connection:
            connection.exec_driver_sql("ANALYZE")


def _numbers(count: int) -> str:
    return f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"


def _moment(days: str) -> str:
    """A time in the past, in SQL."""
    return f"strftime('%Y-%m-%dT%H:%M:%S', 'now', '-' || ({days}) || ' minutes') || '.000000Z'"


def _fill_targets(connection: Connection, count: int) -> None:
    states = STATES.strip("()").split(",")
    chosen = (
        "CASE n % 10 "
        + " ".join(f"WHEN {number} THEN {state}" for number, state in enumerate(states))
        + " END"
    )
    run = connection.exec_driver_sql
    run(
        f"""{_numbers(count)} INSERT INTO targets (id, key, name, seeds, collection, purpose, created_at, host, state, state_since,
        words)
        SELECT n, '["org,museum' || n || ')/"]', 'Museum ' || (n * 7919 % {count}), '["https://museum' || n || '.example.org/"]',
        'c' || (n % 50), 'heritage', {_moment("n * 5")}, 'museum' || n || '.example.org', {chosen}, {_moment("n * 3 % 500000")},
        'museum ' || (n * 7919 % {count}) || ' museum' || n || '.example.org' FROM numbers"""
    )
    run(
        f"""{_numbers(count)} INSERT INTO target_seeds (target, key, url)
        SELECT n, 'org,example,museum' || n || ')/', 'https://museum' || n || '.example.org/' FROM numbers"""
    )
    run(
        f"""{_numbers(count // 2)} INSERT INTO letters (kind, target, state, language, recipient, subject, body, token_hash, term_days,
        term_ends_on, remind_on, message_id, error, tries, agent, queued_at, sent_at)
        SELECT 'notice', n, CASE n % 4 WHEN 0 THEN 'sent' WHEN 1 THEN 'answered' ELSE 'silent' END, 'en', 'owner' || n || '@example.org',
        'Your site', 'Dear owner', 'hash' || n, 30, date('now', '-' || (n % 700) || ' days'), '', '', '', 1, 'bench',
        {_moment("n * 11")}, {_moment("n * 11")} FROM numbers"""
    )


def _fill_harvests(connection: Connection, targets: int) -> None:
    run = connection.exec_driver_sql
    chosen = "CASE WHEN n % 1000 = 1 THEN 'stopped' WHEN n % 200 = 3 THEN 'failed' WHEN n % 100 = 5 THEN 'finished' "
    chosen += "WHEN n % 300 = 7 THEN 'rejected' ELSE 'kept' END"
    run(
        f"""{_numbers(targets * 10)} INSERT INTO harvests (id, target, kind, state, seeds, collection, settings, started_at, ended_at,
        reason, counts) SELECT 'h' || printf('%09d', n), (n * 7919 % {targets}) + 1, 'harvest', {chosen},
        '["https://museum' || ((n * 7919 % {targets}) + 1) || '.example.org/"]', 'c' || (((n * 7919 % {targets}) + 1) % 50),
        '{{"scope": "host", "delay_s": 1.0, "workers": 16, "robots": "obey"}}', {_moment("n * 4 / 10")}, {_moment("n * 4 / 10 - 60")},
        'All addresses in scope were fetched.', '{{"fetched": ' || (n % 5000) || ', "bytes": ' || (n % 5000 * 30000) || ', "errors": '
        || (n % 30) || ', "waiting": 0}}' FROM numbers"""
    )
    run(
        f"""INSERT INTO judgements (harvest, answer, rule, reason, judged_at) SELECT id, 'pass', 'missing-parts',
        '12 parts of pages are missing, more than 5% of 120 documents.', {_moment("1")} FROM harvests
        WHERE state IN ('finished', 'rejected')"""
    )
    run(
        """INSERT INTO containers (name, harvest, state, size_bytes, sha256, original_sha256, records, place)
        SELECT id || '.warc.gz', id, 'sealed', 90000000, id, id, 1000, 'harvests/' || id FROM harvests"""
    )


def _fill_plans(connection: Connection, targets: int) -> None:
    run = connection.exec_driver_sql
    names = (
        "daily",
        "weekly",
        "fortnightly",
        "monthly",
        "quarterly",
        "half-yearly",
        "yearly",
        "monthly",
        "monthly",
        "yearly",
    )
    chosen = (
        "CASE n % 10 "
        + " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names))
        + " END"
    )
    run(
        f"""{_numbers(targets)} INSERT INTO schedules (target, frequency, first_on, at_time, cron, last_on, window_opens, window_closes,
        profile, is_active, next_at, last_at, changed_by, changed_at) SELECT n, {chosen}, date('now', '-' || (n % 400) || ' days'),
        '03:00', '', '', '', '', '', n % 20 <> 0,
        CASE WHEN n % 20 <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', 'now', '+' || (n % 30000) || ' minutes')
        || '.000000Z' END, {_moment("n % 30000")}, 'bench', {_moment("n")} FROM numbers"""
    )
    states = "CASE WHEN n % 500 = 1 THEN 'failed' WHEN n % 400 = 2 THEN 'refused' WHEN n < 200 THEN 'waiting' ELSE 'done' END"
    run(
        f"""{_numbers(targets * 10)} INSERT INTO turns (target, due_at, state, not_before, tries, holder, harvest, reason)
        SELECT (n * 7919 % {targets}) + 1, {_moment("n * 4 / 10")}, {states}, {_moment("n * 4 / 10")}, 1, '', 'h' || printf('%09d', n), ''
        FROM numbers"""
    )


def _fill_events(connection: Connection, targets: int) -> None:
    actions = ("harvested", "checked", "accepted", "kept", "planned")
    chosen = (
        "CASE n % 5 "
        + " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(actions))
        + " END"
    )
    connection.exec_driver_sql(
        f"""{_numbers(targets * 20)} INSERT INTO events (at, agent, action, subject_kind, subject, outcome, message, detail)
        SELECT {_moment(f"({targets * 20} - n) * 2 / 10")}, 'person' || (n % 40), {chosen},
        CASE n % 2 WHEN 0 THEN 'target' ELSE 'harvest' END,
        CASE n % 2 WHEN 0 THEN '' || (n * 31 % {targets}) ELSE 'h' || printf('%09d', n % {targets * 10}) END, 'success', '',
        '{{"before": {{"state": "finished"}}, "after": {{"state": "kept"}}}}' FROM numbers"""
    )


def _fill_catalogue(connection: Connection, targets: int) -> None:
    """A record for each site and one for each of its harvests, like those of a deposit."""
    columns = "key, level, parent, urn, title, subtitle, responsibility, creators, contributors, publisher, place, country, genre, keywords,"
    columns += " ddc, abstract, languages, run_from, run_to, date, part, identifiers, addresses, rights, access, collection, target, harvest,"
    columns += ' package, is_object, sources, "foreign", origin, created_at, changed_at, withdrawn_reason'
    run = connection.exec_driver_sql
    run(
        f"""{_numbers(targets)} INSERT INTO catalogue ({columns})
        SELECT 'site-museum-' || n, 'site', '', 'urn:nbn:de:bench-' || n, 'Museum ' || (n * 7919 % {targets}), '', '',
        '["Person ' || (n % 977) || '"]', '[]', 'City ' || (n % 300), '', 'nl', CASE WHEN n % 5000 = 0 THEN 'almanac' ELSE 'museum' END,
        '["clocks", "hours", "k' || (n % 20000) || '"]', '[]', 'All about the clocks of museum ' || n || ', their makers and their hours.',
        '["nl"]', '', '', '', '', '[]', '["https://museum' || n || '.example.org/"]', '', 'open', 'c' || (n % 50), n, '', '', 0, '{{}}',
        '[]', '{{}}', {_moment("n * 5")}, {_moment("n * 5")}, '' FROM numbers"""
    )
    run(
        f"""INSERT INTO catalogue ({columns}) SELECT h.id, 'slice', 'site-museum-' || h.target, 'urn:nbn:de:bench-' || h.id,
        'Museum ' || (h.target * 7919 % {targets}), '', '', '[]', '[]', '', '', '', 'Website', '[]', '[]', '', '["nl"]', '', '',
        substr(h.started_at, 1, 10), substr(h.started_at, 1, 10), '[]', h.seeds, '', 'open', h.collection, h.target, h.id,
        'package-' || h.id, 1, '{{}}', '[]', '{{}}', h.started_at, h.started_at, '' FROM harvests h"""
    )
    read = "SELECT key, title, creators, publisher, genre, keywords, abstract, urn, addresses FROM catalogue WHERE level = 'site'"
    for row in run(read).mappings().all():
        lists = {name: json.loads(row[name]) for name in ("creators", "keywords", "addresses")}
        catalogue_words.put(connection, row["key"], {**row, **lists})


if __name__ == "__main__":
    sys.exit(main())
