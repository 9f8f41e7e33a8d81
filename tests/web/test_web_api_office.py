"""The API for the work around harvests: letters, complaints, records, collections, organisations, imports, jobs,
partners and accounts; and what of the portal programs cannot do, with the reason.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from museum import ask
from staff_api import Api, api_of, problem_of

from small_sites import small_site
from small_warcs import write_warc
from webdepot.accounts.roles import STAFF, Role
from webdepot.archive import Archive
from webdepot.selection.domains import organisations
from webdepot.selection.domains.profile import OrganisationProfile
from webdepot.web.api.routes import API_ROUTES
from webdepot.web.routes import PORTAL_ROUTES

IN_THE_API = {
    "/collections/{name}/edit": "/api/collections/{collection}",
    "/users": "/api/users",
    "/users/{name}": "/api/users/{name}",
    "/jobs": "/api/jobs/{job}/cancellations",
    "/depot/audit": "/api/depot/audits",
    "/depot/places": "/api/depot/places",
    "/partners": "/api/partners",
    "/partners/{name}": "/api/partners/{partner}/orders",
    "/organisations": "/api/organisations",
    "/organisations/{root}/decide": "/api/organisations/{organisation}/decisions",
    "/organisations/{root}/correct": "/api/organisations/{organisation}/corrections",
    "/organisations/{root}/sites": "/api/organisations/{organisation}/targets",
    "/harvests/{harvest}/orders": "/api/harvests/{harvest}/orders",
    "/import": "/api/imports",
    "/schedule/targets/{target}": "/api/targets/{target}/plan",
    "/schedule/queue": "/api/turns/{turn}/orders",
    "/schedule/page": "/api/pages",
    "/review/{harvest}/decide": "/api/harvests/{harvest}/review/decisions",
    "/review/{harvest}/note": "/api/harvests/{harvest}/review/notes",
    "/review/{harvest}/patch": "/api/harvests/{harvest}/review/orders",
    "/review/{harvest}/rate": "/api/harvests/{harvest}/review/ratings",
    "/review/{harvest}/check": "/api/harvests/{harvest}/review/orders",
    "/review/{harvest}/ignore": "/api/harvests/{harvest}/review/ignored",
    "/review/{harvest}/pictures": "/api/harvests/{harvest}/review/orders",
    "/profiles/{name}": "/api/profiles/{profile}",
    "/targets": "/api/targets",
    "/targets/{target}/answers": "/api/targets/{target}/answers",
    "/targets/{target}/decide": "/api/targets/{target}/decisions",
    "/targets/{target}/change": "/api/targets/{target}",
    "/targets/{target}/contacts": "/api/targets/{target}/contacts",
    "/targets/{target}/harvest": "/api/targets/{target}/harvests",
    "/targets/{target}/ask": "/api/targets/{target}/letters",
    "/targets/{target}/reply": "/api/targets/{target}/replies",
    "/targets/{target}/title": "/api/records/{record}",
    "/targets/{target}/grounds": "/api/targets/{target}/grounds",
    "/letters/send": "/api/letters/deliveries",
    "/letters/templates/{kind}/{language}": "/api/letters/templates/{kind}/{language}",
    "/rules": "/api/rules",
    "/cases": "/api/cases",
    "/cases/{case}": "/api/cases/{case}/actions",
}
"""What staff change in the portal, and where programs change it."""
PORTAL_ALONE = {
    "/profiles": "opens the form for a new profile; programs write it at once",
    "/targets/import": "a list is many nominations; programs send them one by one",
    "/targets/import/{token}": "the same",
    "/targets/ask": "letters to many owners; programs write them one by one",
    "/targets/bulk": "one action on many sites; programs take the sites one by one",
    "/targets/bulk/run": "the same",
    "/scope/test": "a person looks at a test crawl before a harvest; nothing of it is kept",
    "/formats/registry": "a file of the institution; by command: webdepot formats registry",
    "/criteria": "the institution's questions, which are set once",
}


def page_of(path: str) -> str:
    return f"<title>{path}</title>"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp("office") / "home"
    with small_site(page_of) as site, api_of(home, site) as made:
        yield made


def test_what_staff_change_in_the_portal_programs_can_change_too():
    changed = {row.path for row in PORTAL_ROUTES if row.roles & STAFF and "POST" in row.methods} - {
        row.path for row in API_ROUTES
    }
    own = {path for path in changed if path.startswith("/account/") or path == "/searches"}
    assert changed - own == IN_THE_API.keys() | PORTAL_ALONE.keys()
    assert set(IN_THE_API.values()) <= {row.path for row in API_ROUTES}


def test_an_owner_is_asked_and_answers(api: Api):
    def post(path: str, sent: object, role: Role = Role.CURATOR, **parts: object):
        return api.call("POST", f"/api/targets/{{target}}{path}", sent, role=role, **parts)

    _, made = api.call("POST", "/api/targets", {"seeds": ["https://owner.example/"]}, role=Role.CURATOR)
    target = made["target"]["id"]
    refused = api.send("POST", f"/api/targets/{target}/letters", role=Role.CURATOR)
    assert "No letter was written" in problem_of(refused, 409, "conflict", api)["detail"]
    for criterion in ("national", "cultural"):
        post("/answers", {"criterion": criterion, "value": 1, "reason": "it is"}, target=target)
    post("/decisions", {"act": "select"}, target=target)
    refused = api.send("POST", f"/api/targets/{target}/contacts", {"name": "Ann"}, role=Role.CURATOR)
    problem_of(refused, 400, "input", api)
    status, contact = post("/contacts", {"name": "Ann", "mail": "ann@owner.example"}, target=target)
    assert (status, contact["language"]) == (201, "en")
    letters = "/api/targets/{target}/letters"
    _, seen = api.call("GET", letters, role=Role.REVIEWER, target=target)
    assert seen["can_ask"] and "Ann" in seen["preview"]["body"] and seen["letters"] == []
    status, letter = post("/letters", {"term_days": 30}, target=target)
    assert (status, letter["state"], letter["recipient"]) == (201, "queued", "ann@owner.example")
    _, whole = api.call("GET", "/api/letters/{letter}", role=Role.REVIEWER, letter=letter["id"])
    assert whole["body"] == ""  # the secret address for the answer
    _, page = api.call("GET", "/api/letters", role=Role.REVIEWER, query="?state=queued")
    assert [each["id"] for each in page["items"]] == [letter["id"]]
    status, replied = post("/replies", {"answer": "refusal", "words": "no"}, target=target)
    assert (status, replied["state"]) == (200, "refused")
    one = "/api/targets/{target}/contacts/{contact}"
    _, left = api.call("DELETE", one, role=Role.CURATOR, target=target, contact=contact["id"])
    assert left == {"contacts": []}
    template = {"kind": "notice", "language": "nl"}
    path = "/api/letters/templates/{kind}/{language}"
    wrong = {"subject": "x", "body": "Dear {stranger}"}
    problem_of(api.send("PUT", path.format(**template), wrong, role=Role.CURATOR), 400, "input", api)
    _, before = api.call("GET", path, role=Role.REVIEWER, **template)
    saved = {"subject": before["subject"], "body": f"{before['body']}\n"}
    assert (
        before["is_default"]
        and not api.call("PUT", path, saved, role=Role.CURATOR, **template)[1]["is_default"]
    )


def test_a_complaint_closes_a_page_and_is_lifted(api: Api):
    sent = {"url": "https://closed.example/page", "words": "It is mine.", "ground": "copyright"}
    status, case = api.call("POST", "/api/cases", sent, role=Role.CURATOR)
    assert (status, case["state"], case["origin"]) == (201, "received", "staff")
    act = f"/api/cases/{case['reference']}/actions"
    problem_of(api.send("POST", act, {"action": "decide"}, role=Role.REVIEWER), 400, "input", api)
    problem_of(api.send("POST", act, {"action": "take"}, role=Role.CURATOR), 403, "not-permitted", api)

    def do(**sent: str):
        path, which = "/api/cases/{case}/actions", case["reference"]
        return api.call("POST", path, sent, role=Role.REVIEWER, case=which)[1]

    do(action="take")
    decided = do(action="decide", decision="closed", area="host", public_text="Closed.")
    assert decided["state"] == "decided" and "lift" in decided["actions"]
    _, rules = api.call("GET", "/api/rules", role=Role.CURATOR, query="?q=closed.example")
    assert [rule["id"] for rule in rules["items"]] == decided["rules"]
    problem_of(api.send("POST", act, {"action": "take"}, role=Role.REVIEWER), 409, "conflict", api)
    assert do(action="lift", reason="agreed")["rules"] == []
    _, page = api.call("GET", "/api/cases", role=Role.CURATOR, query="?host=closed.example&state=lifted")
    assert [each["reference"] for each in page["items"]] == [case["reference"]]


def test_files_are_imported_and_described(api: Api, tmp_path):
    file = tmp_path / "mill.warc.gz"
    write_warc(
        file,
        {"https://mill.example/": b"<title>Mill</title>It turns."},
        when=datetime(2024, 1, 1, tzinfo=UTC),
    )
    parts = [
        b'--x\r\nContent-Disposition: form-data; name="collection"\r\n\r\nmills\r\n',
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="mill.warc.gz"\r\n\r\n',
        file.read_bytes(),
        b"\r\n--x--\r\n",
    ]
    headers = {
        "Authorization": f"Bearer {api.keys[Role.CURATOR]}",
        "Content-Type": "multipart/form-data; boundary=x",
    }
    url = f"{api.served.portal}/api/imports"
    answer = ask(url, "POST", headers=headers, body=b"".join(parts))
    assert answer.status == 202, answer.text
    job = json.loads(answer.text)["id"]
    assert api.wait("/api/jobs/{job}", "done", job=job)["kind"] == "import"
    _, page = api.call("GET", "/api/jobs", role=Role.REVIEWER, query="?kind=import&state=done")
    assert [each["id"] for each in page["items"]] == [job]
    ended = api.send("POST", f"/api/jobs/{job}/cancellations", role=Role.CURATOR)
    problem_of(ended, 409, "conflict", api)
    wrong = b"".join(parts).replace(b"mill.warc.gz", b"mill.exe")
    problem_of(ask(url, "POST", headers=headers, body=wrong), 400, "input", api)
    path = "/api/collections/{collection}"
    sent = {"title": "Mills", "text": "They turn.", "is_public": False}
    _, saved = api.call("PUT", path, sent, role=Role.CURATOR, collection="mills")
    assert (saved["title"], saved["is_public"]) == ("Mills", False)
    listed = api.call("GET", "/api/collections", role=Role.REVIEWER)[1]["collections"]
    assert saved in listed
    picture = {"picture_url": "https://mill.example/"}
    problem_of(
        api.send("PUT", path.format(collection="mills"), picture, role=Role.CURATOR), 400, "input", api
    )


def test_a_site_is_described(api: Api):
    path, target = "/api/records/{record}", api.targets[0]
    _, record = api.call("POST", "/api/targets/{target}/record", role=Role.CURATOR, target=target)
    sent = {"title": "The one", "keywords": ["mills", "wind"], "country": "nl", "access": "restricted"}
    _, changed = api.call("PATCH", path, sent, role=Role.CURATOR, record=record["key"])
    assert (changed["title"], changed["keywords"], changed["access"]) == (
        "The one",
        ["mills", "wind"],
        "restricted",
    )
    assert changed["sources"]["title"] == "person" and changed["target"] == target
    problem_of(
        api.send("PATCH", path.format(record=record["key"]), {"title": ""}, role=Role.CURATOR),
        400,
        "input",
        api,
    )
    _, page = api.call("GET", "/api/records", role=Role.REVIEWER, query="?keyword=wind&limit=1")
    assert [each["key"] for each in page["items"]] == [record["key"]]
    _, seen = api.call("GET", path, role=Role.REVIEWER, record=record["urn"])
    assert seen == changed


def test_organisations_and_partners(api: Api):
    with Archive.open(api.served.home) as archive, archive.database.transaction() as connection:
        profile = OrganisationProfile(root="museum.example", host="www.museum.example")
        organisations.save(connection, profile, now=archive.clock())
    path = "/api/organisations/{organisation}"
    named = {"organisation": "museum.example"}
    decided = {"hosts": ["shop.museum.example"], "accepted": True}
    _, seen = api.call("POST", f"{path}/decisions", decided, role=Role.CURATOR, **named)
    _, seen = api.call("POST", f"{path}/corrections", {"names": ["Museum"]}, role=Role.CURATOR, **named)
    assert "Museum" in seen["names"]
    _, listed = api.call("GET", "/api/organisations", role=Role.REVIEWER)
    assert [each["root"] for each in listed["organisations"]] == ["museum.example"]
    refused = api.send("POST", f"{path.format(**named)}/targets", {"hosts": ["a.b"]}, role=Role.CURATOR)
    problem_of(refused, 400, "input", api)
    problem_of(api.send("POST", "/api/organisations", {"domain": "?"}, role=Role.CURATOR), 400, "input", api)
    sent = {"name": "north", "url": "https://north.example/oai", "token": "secret"}
    status, partner = api.call("POST", "/api/partners", sent, role=Role.ADMINISTRATOR)
    assert (status, partner["records"], partner["last_run"]) == (201, {}, None)
    assert "secret" not in json.dumps(partner)
    problem_of(api.send("POST", "/api/partners", sent, role=Role.ADMINISTRATOR), 409, "conflict", api)
    status, job = api.call(
        "POST", "/api/partners/{partner}/orders", {"order": "run"}, role=Role.CURATOR, partner="north"
    )
    assert (status, job["kind"], job["subject"]) == (202, "partner", "north")


def test_accounts_are_changed_and_a_key_makes_no_key(api: Api):
    def send(method: str, path: str, sent: object = None, **parts: object):
        return api.call(method, path, sent, role=Role.ADMINISTRATOR, **parts)

    sent = {"name": "Eve", "password": "a long password", "roles": ["curator"]}
    status, made = send("POST", "/api/users", sent)
    assert (status, made["roles"], made["keys"]) == (201, ["curator"], [])
    problem_of(api.send("POST", "/api/users", sent, role=Role.ADMINISTRATOR), 409, "conflict", api)
    path = "/api/users/{name}"
    for role in ("king", ""):
        wrong = api.send("PATCH", "/api/users/Eve", {"roles": [role]}, role=Role.ADMINISTRATOR)
        problem_of(wrong, 400, "input", api)
    _, changed = send("PATCH", path, {"roles": ["reviewer"], "is_closed": True}, name="Eve")
    assert changed["roles"] == ["reviewer"] and changed["closed_at"]
    last = api.send("PATCH", "/api/users/administrator", {"roles": ["reader"]}, role=Role.ADMINISTRATOR)
    problem_of(last, 409, "conflict", api)
    (key,) = send("GET", path, name="reader")[1]["keys"]
    _, without = send("DELETE", f"{path}/keys/{{key}}", name="reader", key=key["id"])
    assert without["keys"] == []
    send("DELETE", f"{path}/sessions", name="reader")
    assert not [row for row in API_ROUTES if "key" in row.path and "POST" in row.methods]
