"""The API for staff: every operation answers as it is described, for the right roles, page by page, and every
error is a problem of RFC 9457.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from museum import ask, serving, sign_in
from staff_api import SETTINGS, Api, make_keys, problem_of

from small_sites import cleared, small_site
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.model import Finding, HarvestId, Severity
from webdepot.quality import finding_rows
from webdepot.services.admin import setup
from webdepot.services.harvest import control, profiles
from webdepot.services.schedule import plans, scheduler
from webdepot.web.api.cursors import make_cursor
from webdepot.web.api.routes import API_ROUTES

FINDINGS = 7


def page_of(path: str) -> str:
    return f"<title>{path}</title><img src=/missing.png>" if path != "/missing.png" else ""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp("api") / "home"
    setup.create(home, settings=SETTINGS)
    with small_site(page_of) as site:
        with Archive.open(home, agent="Ada") as archive:
            keys = make_keys(archive)
            profiles.save(archive, "quick", "delay_s = 0\nworkers = 1\n")
            numbers = [cleared(archive, f"{site}/{name}") for name in ("one", "two")]
            for number in numbers:
                plans.run_now(archive, number, profile="quick")
            harvests = [turn.harvest for turn in scheduler.run_due(archive)]
            with archive.database.transaction() as connection:
                findings = [
                    Finding(
                        code="quality.link-broken" if number % 2 else "quality.part-error",
                        severity=list(Severity)[number % 3],
                        subject=f"{site}/{number}",
                        message=f"Finding {number}",
                        facts={"status": 404},
                    )
                    for number in range(FINDINGS)
                ]
                finding_rows.replace(connection, HarvestId(harvests[1]), findings)
        with serving(home) as served:
            document = json.loads(ask(f"{served.portal}/api/openapi.json").text)
            yield Api(served, site, keys, document, numbers, harvests)


# --- the description ---


def test_every_route_is_described_and_every_description_has_a_route(api: Api):
    described = {
        (path, method.upper())
        for path, item in api.document["paths"].items()
        for method in item
        if path.startswith("/api/") and method != "parameters"
    }
    own = {"/api/openapi.json", "/api/{rest:path}"}
    routes = {(row.path, method) for row in API_ROUTES for method in row.methods if row.path not in own}
    assert described == routes


def test_every_operation_names_its_roles_its_parameters_and_its_errors(api: Api):
    rows = {(row.path, method): row for row in API_ROUTES for method in row.methods if row.roles}
    names = set()
    for (path, method), row in rows.items():
        item = api.document["paths"][path]
        operation = item[method.lower()]
        assert all(role.value in operation["description"] for role in row.roles), path
        assert operation["security"] == [{"apiKey": []}]
        assert {"400", "401", "403"} <= set(operation["responses"]), path
        named = {each["name"] for each in item.get("parameters", ()) if each["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path)), path
        names.add(operation["operationId"])
    assert len(names) == len(rows)
    for status in (401, 403, 404):
        assert json.dumps(api.document).count(f'"{status}": {{"description"') > 3


# --- who may call what ---


def sample_path(path: str) -> str:
    return re.sub(r"\{\w+\}", "999999999", path)


@pytest.mark.parametrize("row", [row for row in API_ROUTES if row.roles], ids=lambda row: row.endpoint)
def test_each_operation_is_for_its_roles_alone(api: Api, row):
    (method,) = row.methods
    path = sample_path(row.path)
    problem_of(api.send(method, path), 401, "not-signed-in", api)
    problem_of(api.send(method, path, Authorization="Bearer wdk_wrong"), 401, "not-signed-in", api)
    for role in Role:
        answer = api.send(method, path, role=role)
        if role in row.roles:
            assert answer.status in (200, 400, 404), (role, answer.status, answer.text)
        else:
            problem_of(answer, 403, "not-permitted", api)


def test_a_session_reads_but_does_not_change_anything(api: Api):
    cookie = sign_in(api.served, "administrator")
    assert api.send("GET", "/api/targets", Cookie=cookie).status == 200
    for row in API_ROUTES:
        for method in row.methods:
            if row.roles and method != "GET":
                answer = api.send(method, sample_path(row.path), {}, Cookie=cookie)
                problem = problem_of(answer, 401, "not-signed-in", api)
                assert "API key" in problem["detail"]
    answer = api.send("POST", "/api/rules", {}, Cookie=cookie, Origin="http://evil.example")
    problem_of(answer, 403, "not-permitted", api)


# --- errors ---


def test_every_error_is_a_problem_in_the_language_of_the_client(api: Api):
    problem_of(api.send("GET", "/api/nothing"), 404, "not-found", api)
    answer = api.send("DELETE", "/api/targets")
    problem_of(answer, 405, "method-not-allowed", api)
    assert answer.headers["Allow"] == "GET, POST"
    problem_of(api.send("GET", "/api/search?q="), 400, "input", api)
    problem_of(api.send("GET", "/api/trend?w=%28"), 400, "input", api)
    problem_of(api.send("GET", "/api/images?q=" + "x" * 5000), 400, "input", api)
    german = problem_of(api.send("GET", "/api/targets", Accept_Language="de"), 401, "not-signed-in", api)
    assert "API-Schlüssel" in german["detail"]
    assert german["type"].startswith(api.served.portal)


@pytest.mark.parametrize(
    "body, kind, status, words",
    [
        (b"{", "application/json", 400, "not valid JSON"),
        (b"\xff", "application/json", 400, "not valid JSON"),
        (b"[" * 100_000, "application/json", 400, "not valid JSON"),
        (b"[]", "application/json", 400, "not a JSON object"),
        (b"{}", "application/json", 400, "pattern is missing"),
        (b"{}", "text/plain", 415, "Content-Type"),
        (b'{"pattern": 1}', "application/json", 400, "answer is missing"),
        (b'{"pattern": 1, "answer": "hide", "reason": "court"}', "application/json", 400, "pattern: 1 is not"),
        (b'{"pattern": "a.b", "answer": "x", "reason": "court"}', "application/json", 400, "one of show"),
        (b'{"pattern": "a\\u0000", "answer": "hide", "reason": "court"}', "application/json", 400, "pattern:"),
        (b'{"pattern": "\\ud800", "answer": "hide", "reason": "court"}', "application/json", 400, "pattern:"),
        (b'{"patern": "a.b"}', "application/json", 400, '"patern" is not a field'),
        (
            b'{"pattern": "a.b", "answer": "hide", "reason": "court", "embargo_days": NaN}',
            "application/json", 400, "not valid JSON",
        ),
        (
            b'{"pattern": "a.b", "answer": "hide", "reason": "court", "embargo_days": true}',
            "application/json", 400, "embargo_days: true is not a whole number",
        ),
        (
            b'{"pattern": "a.b", "answer": "hide", "reason": "court", "valid_to": "2026-02-30"}',
            "application/json", 400, "is not a day",
        ),
        (b" " * (300 << 10), "application/json", 413, ""),
    ],
)  # fmt: skip
def test_a_wrong_body_is_refused_with_the_field_that_is_wrong(api: Api, body, kind, status, words):
    headers = {"Authorization": f"Bearer {api.keys[Role.REVIEWER]}", "Content-Type": kind}
    answer = ask(f"{api.served.portal}/api/rules", "POST", headers=headers, body=body)
    code = {400: "input", 413: "too-large", 415: "not-json"}[status]
    assert words in problem_of(answer, status, code, api)["detail"]


@pytest.mark.parametrize(
    "query",
    [
        "state=nothing", "limit=0", "limit=201", "limit=x", "sate=kept", "state=kept&state=kept", "target=-1",
        "cursor=x", "cursor=" + make_cursor(1), "cursor=" + make_cursor("x", "y"), "oldest_first=yes",
        "cursor=" + make_cursor(datetime(1, 1, 1, tzinfo=UTC), "y"), "cursor=W1" * 300,
    ],
)  # fmt: skip
def test_a_wrong_query_is_refused_and_not_ignored(api: Api, query):
    problem_of(api.send("GET", f"/api/harvests?{query}", role=Role.CURATOR), 400, "input", api)


# --- lists ---


def walk(api: Api, template: str, *, query: str = "", **parts: str) -> list[Any]:
    """All items of a list, read one by one, by following the cursors."""
    items, cursor = [], ""
    while True:
        asked = f"?limit=1{query}" + (f"&cursor={cursor}" if cursor else "")
        _, page = api.call("GET", template, role=Role.CURATOR, query=asked, **parts)
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        assert len(page["items"]) == 1 and len(items) < 50
        cursor = page["next_cursor"]


def test_lists_are_read_page_by_page(api: Api):
    found = walk(api, "/api/harvests")
    assert {row["id"] for row in found} >= set(api.harvests) and len({row["id"] for row in found}) == len(
        found
    )
    assert walk(api, "/api/harvests", query="&oldest_first=true") == found[::-1]
    assert [row["id"] for row in walk(api, "/api/targets")][:2] == api.targets
    findings = walk(api, "/api/harvests/{harvest}/findings", harvest=api.harvests[1])
    assert len(findings) == FINDINGS
    assert [row["severity"] for row in findings] == sorted(
        (row["severity"] for row in findings), key=["error", "warning", "note"].index
    )
    broken = walk(
        api, "/api/harvests/{harvest}/findings", query="&code=quality.link-broken", harvest=api.harvests[1]
    )
    assert {row["code"] for row in broken} == {"quality.link-broken"} and len(broken) == FINDINGS // 2


def test_a_cursor_stays_valid_when_its_row_is_gone_and_rows_are_added(api: Api):
    def add(name: str) -> int:
        sent = {"pattern": f"{name}.cursor.example", "answer": "hide", "reason": "court"}
        status, added = api.call("POST", "/api/rules", sent, role=Role.REVIEWER)
        assert status == 201
        return added["rules"][0]["id"]

    numbers = [add(f"site{number}") for number in range(4)]
    _, page = api.call("GET", "/api/rules", role=Role.CURATOR, query="?limit=2")
    assert [rule["id"] for rule in page["items"]] == [numbers[3], numbers[2]]
    _, ended = api.call(
        "POST", "/api/rules/{rule}/end", {"why": "a mistake"}, role=Role.REVIEWER, rule=numbers[2]
    )
    assert ended["id"] == numbers[2]
    add("newer")
    query = f"?limit=2&cursor={page['next_cursor']}"
    answer = api.send("GET", f"/api/rules{query}", role=Role.CURATOR)
    assert [rule["id"] for rule in json.loads(answer.text)["items"]] == [numbers[1], numbers[0]]
    problem_of(
        api.send("POST", f"/api/rules/{numbers[2]}/end", {"why": "again"}, role=Role.REVIEWER),
        404,
        "not-found",
        api,
    )
    problem_of(
        api.send("POST", f"/api/rules/{numbers[1]}/end", {"why": " "}, role=Role.REVIEWER), 400, "input", api
    )


def test_a_page_names_the_next_one_in_its_header(api: Api):
    answer = api.send("GET", "/api/harvests?limit=1&kind=harvest", role=Role.CURATOR)
    link = re.fullmatch(r'<(.+)>; rel="next"', answer.headers["Link"])
    assert link is not None and link[1].startswith(f"{api.served.portal}/api/harvests?")
    following = ask(link[1], headers={"Authorization": f"Bearer {api.keys[Role.CURATOR]}"})
    first, second = (json.loads(each.text)["items"] for each in (answer, following))
    assert first[0]["id"] != second[0]["id"] and second[0]["kind"] == "harvest"


# --- the work of staff ---


def test_a_site_goes_from_nomination_to_a_harvest(api: Api):
    def post(template: str, sent: object, **parts: int):
        return api.call("POST", template, sent, role=Role.CURATOR, **parts)

    sent = {"seeds": [f"{api.site}/three"], "name": "Three", "collection": "tests"}
    status, made = post("/api/targets", sent)
    target = made["target"]
    assert status == 201 and target["state"] == "nominated" and target["nominated_by"] == "curator"
    assert post("/api/targets", sent) == (200, made)
    number = target["id"]
    _, changed = api.call(
        "PATCH", "/api/targets/{target}", {"note": "by program"}, role=Role.CURATOR, target=number
    )
    assert (changed["note"], changed["name"], changed["collection"]) == ("by program", "Three", "tests")
    refused = api.send("POST", f"/api/targets/{number}/harvests", role=Role.CURATOR)
    assert "may not be harvested" in problem_of(refused, 403, "not-permitted", api)["detail"]
    _, seen = api.call("GET", "/api/targets/{target}", role=Role.REVIEWER, target=number)
    assert seen["may_harvest"]["answer"] == "reject" and "select" not in seen["decisions"]
    for criterion in ("national", "cultural"):
        judged = {"criterion": criterion, "value": 1, "reason": "it is"}
        assert post("/api/targets/{target}/answers", judged, target=number)[0] == 200
    _, seen = api.call("GET", "/api/targets/{target}", role=Role.REVIEWER, target=number)
    assert "select" in seen["decisions"]
    assert [row["code"] for row in seen["criteria"] if row["value"]] == ["national", "cultural"]
    assert post("/api/targets/{target}/decisions", {"act": "select"}, target=number)[1]["state"] == "selected"
    again = api.send("POST", f"/api/targets/{number}/decisions", {"act": "select"}, role=Role.CURATOR)
    problem_of(again, 409, "conflict", api)
    ground = {"ground": "legal deposit law", "reason": "Legal Deposit Act", "until": "2099-12-31"}
    assert post("/api/targets/{target}/grounds", ground, target=number)[0] == 200
    status, harvest = post("/api/targets/{target}/harvests", {"profile": "quick"}, target=number)
    assert status == 202 and harvest["target"] == number and harvest["state"] == "running"
    problem_of(api.send("POST", f"/api/targets/{number}/harvests", role=Role.CURATOR), 409, "conflict", api)
    _, seen = api.call("GET", "/api/targets/{target}", role=Role.CURATOR, target=number)
    assert seen["grounds"][0]["until"] == "2099-12-31"
    assert [row["id"] for row in seen["latest_harvests"]] == [harvest["id"]]
    _, watched = api.call("GET", "/api/harvests/{harvest}", role=Role.CURATOR, harvest=harvest["id"])
    assert (watched["course"], watched["is_running"]) == ("waiting", False)
    orders = "/api/harvests/{harvest}/orders"
    problem_of(
        api.send("POST", orders.format(harvest=harvest["id"]), {"order": "pause"}, role=Role.CURATOR),
        409,
        "conflict",
        api,
    )
    _, limited = api.call(
        "POST",
        orders,
        {"order": "limits", "limit_pages": 3, "delay_s": 0.5, "reason": "small"},
        role=Role.CURATOR,
        harvest=harvest["id"],
    )
    assert limited["id"] == harvest["id"]
    with api.served.archive() as archive:
        watched = control.watch(archive, harvest["id"])
    assert (watched.options.limit_pages, watched.options.delay_s) == (3, 0.5)
    assert [(order.by, order.reason) for order in watched.orders] == [("curator", "small")]


def test_partners_nominate_and_learn_nothing_about_what_is_known(api: Api):
    sent = {"seeds": [f"{api.site}/from-a-partner"]}
    for _ in range(2):
        assert api.call("POST", "/api/targets", sent, role=Role.PARTNER) == (201, {"target": None})
    rows = walk(api, "/api/targets", query="&origin=partner")
    assert [row["nominated_by"] for row in rows] == ["partner"]


def test_a_harvest_is_reviewed_accepted_and_found_in_the_depot(api: Api):
    accepted, rejected = api.harvests
    review = "/api/harvests/{harvest}/review"
    _, seen = api.call("GET", review, role=Role.REVIEWER, harvest=accepted)
    assert seen["decisions"] == ["accept", "reject"] and seen["harvest"]["id"] == accepted
    note = {"words": "Looks good."}
    assert api.call("POST", f"{review}/notes", note, role=Role.CURATOR, harvest=accepted)[0] == 201
    rating = {"url": f"{api.site}/one", "rating": "good", "words": "complete"}
    status, rated = api.call("POST", f"{review}/ratings", rating, role=Role.CURATOR, harvest=accepted)
    assert (status, rated["rating"], rated["by"]) == (201, "good", "curator")
    path = f"{review}/decisions"
    problem_of(
        api.send("POST", path.format(harvest=rejected), {"decision": "reject"}, role=Role.REVIEWER),
        400,
        "input",
        api,
    )
    sent = {"decision": "reject", "words": "empty pages"}
    _, after = api.call("POST", path, sent, role=Role.REVIEWER, harvest=rejected)
    assert after["state"] == "rejected"
    _, after = api.call(
        "POST", path, {"decision": "reopen", "words": "no"}, role=Role.REVIEWER, harvest=rejected
    )
    assert after["state"] == "finished"
    _, after = api.call("POST", path, {"decision": "accept"}, role=Role.REVIEWER, harvest=accepted)
    api.wait("/api/harvests/{harvest}", "kept", harvest=accepted)
    _, seen = api.call("GET", review, role=Role.REVIEWER, harvest=accepted)
    assert [(each["decision"], each["by"]) for each in seen["reviews"]] == [
        ("accept", "reviewer"),
        ("annotate", "curator"),
    ]
    assert [page["words"] for page in seen["ratings"]] == ["complete"]
    again = api.send("POST", path.format(harvest=accepted), {"decision": "accept"}, role=Role.REVIEWER)
    problem_of(again, 409, "conflict", api)
    check_depot(api, accepted)


def check_depot(api: Api, harvest: str) -> None:
    (package,) = walk(api, "/api/packages")
    assert package["harvest"] == harvest
    _, seen = api.call("GET", "/api/packages/{package}", role=Role.CURATOR, package=package["id"])
    assert any(file["path"].endswith(".warc.gz") for file in seen["files"]) and seen["trouble"] == ""
    assert [copy["state"] for copy in seen["copies"]] == ["whole"]
    key = {"Authorization": f"Bearer {api.keys[Role.ADMINISTRATOR]}"}
    assert ask(seen["downloads"]["zip"], headers=key).body.startswith(b"PK")
    _, depot = api.call("GET", "/api/depot", role=Role.CURATOR)
    # An audit may have added the register of the depot to what is copied.
    assert (depot["packages"], depot["places"][0]["copies"].keys(), depot["alarms"]) == (1, {"whole"}, [])


def test_rules_of_the_api_hold_at_once(api: Api):
    sent = {
        "pattern": "*.closed.example",
        "answer": "refuse",
        "reason": "owner",
        "captured_from": "2019",
        "valid_to": "2099-01-01",
        "access_point": "public",
        "public_text": "Closed by its owner.",
    }
    status, added = api.call("POST", "/api/rules", sent, role=Role.REVIEWER)
    assert status == 201 and [rule["pattern"] for rule in added["rules"]] == [
        "closed.example",
        "*.closed.example",
    ]
    first = added["rules"][0]
    assert (first["captured_from"], first["valid_from"], first["valid_to"]) == (
        "20190101000000",
        None,
        "2099-01-01",
    )
    _, page = api.call("GET", "/api/rules", role=Role.CURATOR, query="?q=by+its+owner&answer=refuse")
    assert [rule["created_by"] for rule in page["items"]] == ["reviewer", "reviewer"]


def test_plans_and_profiles(api: Api):
    path, target = "/api/targets/{target}/plan", api.targets[0]
    assert api.call("GET", path, role=Role.REVIEWER, target=target)[1]["plan"] is None
    text = {"text": 'description = "Short"\nlimit_pages = 7\n'}
    status, saved = api.call("PUT", "/api/profiles/{profile}", text, role=Role.CURATOR, profile="short")
    assert (status, saved["description"]) == (200, "Short")
    listed = api.call("GET", "/api/profiles", role=Role.REVIEWER)[1]["profiles"]
    assert "short" in [each["name"] for each in listed]
    wrong = api.send("PUT", "/api/profiles/short", {"text": "limit_pages = ["}, role=Role.CURATOR)
    problem_of(wrong, 400, "input", api)
    sent = {"frequency": "monthly", "first_on": "2030-01-31", "at_time": "04:30", "profile": "short"}
    status, planned = api.call("PUT", path, sent, role=Role.CURATOR, target=target)
    assert (status, planned["plan"]["profile"], planned["plan"]["at_time"]) == (200, "short", "04:30")
    assert planned["next_dates"][1].startswith("2030-02-28T")
    paused = api.call("POST", f"{path}/orders", {"order": "pause"}, role=Role.CURATOR, target=target)[1]
    assert not paused["plan"]["is_active"] and not paused["next_dates"]
    assert api.call("DELETE", path, role=Role.CURATOR, target=target)[1]["plan"] is None
    problem_of(api.send("DELETE", path.format(target=target), role=Role.CURATOR), 404, "not-found", api)
    cron = {"frequency": "monthly", "cron": "0 3 * * *"}
    problem_of(api.send("PUT", path.format(target=target), cron, role=Role.CURATOR), 400, "input", api)


def test_web_hooks_and_audits(api: Api):
    sent = {"name": "desk", "url": "http://127.0.0.1:9/hook", "events": ["harvest.finished"]}
    status, added = api.call("POST", "/api/webhooks", sent, role=Role.ADMINISTRATOR)
    assert status == 201 and added["secret"].startswith("whsec_")
    problem_of(api.send("POST", "/api/webhooks", sent, role=Role.ADMINISTRATOR), 409, "conflict", api)
    wrong = {**sent, "name": "other", "events": ["harvest.begun"]}
    problem_of(api.send("POST", "/api/webhooks", wrong, role=Role.ADMINISTRATOR), 400, "input", api)
    tried = api.call("POST", "/api/webhooks/{hook}/tests", role=Role.ADMINISTRATOR, hook="desk")[1]
    assert (tried["event"], tried["state"]) == ("test", "given up") and tried["error"]
    (listed,) = api.call("GET", "/api/webhooks", role=Role.ADMINISTRATOR)[1]["webhooks"]
    assert listed["messages"] == [tried] and "secret" not in listed
    api.call("DELETE", "/api/webhooks/{hook}", role=Role.ADMINISTRATOR, hook="desk")
    assert api.call("GET", "/api/webhooks", role=Role.ADMINISTRATOR)[1] == {"webhooks": []}
    status, job = api.call("POST", "/api/depot/audits", {"which": "all"}, role=Role.CURATOR)
    assert status == 202 and job["job"] > 0
