"""Addresses for monitoring: health, readiness, figures for Prometheus, and the page of jobs."""

import json
import re
from pathlib import Path

import pytest
from museum import Served, ask, sign_in

import databases
from webdepot.services.jobs import job_control, kinds

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def curator(served: Served) -> dict[str, str]:
    return {"Cookie": sign_in(served, "curator")}


def test_anybody_sees_whether_the_portal_answers(served: Served):
    for path in ("/health", "/ready"):
        answer = ask(served.portal + path)
        assert (answer.status, answer.text, answer.headers["Cache-Control"]) == (200, "ok\n", "no-store")


def test_staff_get_figures_in_the_format_of_prometheus(served: Served, curator):
    assert ask(f"{served.portal}/metrics").status == 303
    answer = ask(f"{served.portal}/metrics", headers=curator)
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    line = re.compile(
        r'(# (HELP|TYPE) .+|webdepot_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)\Z'
    )
    assert all(line.match(each) for each in answer.text.splitlines())
    values = dict(each.rsplit(" ", 1) for each in answer.text.splitlines() if not each.startswith("#"))
    assert float(values['webdepot_harvests{state="finished"}']) >= 1
    assert values["webdepot_containers_not_indexed"] == "0"
    assert values['webdepot_jobs{state="failed"}'] == "0"


def test_the_dashboard_for_grafana_names_figures_that_exist(served: Served, curator):
    board = json.loads((ROOT / "deploy" / "grafana" / "webdepot.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [each["query"] for each in board["templating"]["list"]]
    named = set(re.findall(r"webdepot_\w+", " ".join(queries)))
    given = set(
        re.findall(r"^# TYPE (\S+)", ask(f"{served.portal}/metrics", headers=curator).text, re.MULTILINE)
    )
    assert named == given


def test_jobs_are_listed_and_cancelled_by_curators_and_by_who_started_them(served: Served, curator):
    with served.archive() as archive:  # no worker can take them
        job, other = (
            job_control.add(
                archive, kinds.IMPORT, name, {"names": [f"{name}.warc"]}, by="reviewer", needs="uploads/none"
            )
            for name in ("first", "second")
        )
    page = ask(f"{served.portal}/jobs", headers=curator).text
    assert "first.warc" in page and "second.warc" in page and page.count("waiting</span>") >= 2
    forms = {"Content-Type": "application/x-www-form-urlencoded"}

    def cancel(headers: dict[str, str], number: int) -> int:
        body = f"job={number}&confirmed=yes".encode()
        return ask(f"{served.portal}/jobs", "POST", headers=headers | forms, body=body).status

    reviewer = {"Cookie": sign_in(served, "reviewer")}
    with served.archive() as archive:
        own = job_control.add(archive, kinds.SURVEY, "none", by="curator", needs="uploads/none")
    assert cancel(reviewer, own.id) == 403
    assert cancel(reviewer, job.id) == 303
    assert cancel(curator, other.id) == 303 and cancel(curator, other.id) == 409
    assert cancel(curator, own.id) == 303 and cancel(curator, 10**9) == 404
    assert "cancelled by reviewer" in ask(f"{served.portal}/jobs?state=cancelled", headers=curator).text


def test_administrators_see_the_machines(served: Served, curator):
    assert ask(f"{served.portal}/machines", headers=curator).status == 403
    administrator = {"Cookie": sign_in(served, "administrator")}
    page = ask(f"{served.portal}/machines", headers=administrator)
    assert page.status == 200
    assert ("This archive is on one machine" in page.text) is not databases.IS_CHOSEN
    assert "data-refresh" in page.text and 'href="/machines"' in page.text
    assert 'href="/machines"' not in ask(f"{served.portal}/jobs", headers=curator).text
