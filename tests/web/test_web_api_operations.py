"""Every operation of the API description succeeds once, with good input: a program that follows the description gets
what it asks for. The other tests of the API ask what is refused.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from api_description import check_answer
from museum import ask
from staff_api import Api, api_of

from letters import box_running
from small_sites import small_site
from small_warcs import write_warc
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.selection.domains import organisations
from webdepot.selection.domains.profile import OrganisationProfile
from webdepot.services.jobs import job_control, kinds
from webdepot.services.schedule import scheduler
from webdepot.web.api.routes import API_ROUTES

PAGE = "https://mill.example/"


def page_of(path: str) -> str:
    return "" if path == "/missing.png" else f"<title>{path}</title><img src=/missing.png>"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with box_running() as box, small_site(page_of) as site:
        mail = f'[mail]\nhost = "127.0.0.1"\nport = {box.port}\nsecurity = "none"\nsender = "a@library.example"\n'
        depot = f'[depot]\nportal_places = ["{tmp_path}"]\n'
        with api_of(tmp_path / "home", site, settings=mail + depot) as made:
            yield made


@dataclass
class Client:
    """Calls operations in the first role that may, and notes those that succeeded."""

    api: Api
    done: set[tuple[str, str]] = field(default_factory=set)

    def call(
        self, method: str, template: str, sent: object = None, *, query: str = "", **parts: object
    ) -> Any:
        (row,) = (row for row in API_ROUTES if row.path == template and method in row.methods)
        role = next(role for role in (Role.CURATOR, Role.REVIEWER, Role.ADMINISTRATOR) if role in row.roles)
        status, value = self.api.call(method, template, sent, role=role, query=query, **parts)
        assert status < 300, (method, template, status, value)
        self.done.add((method, template))
        return value

    def read(self, template: str, *, query: str = "", host: str = "", **parts: str) -> None:
        """An operation for readers, whose answer may be anything but an error."""
        answer = ask((host or self.api.served.portal) + template.format(**parts) + query)
        described = self.api.document["paths"][template]["get"]["responses"]
        assert answer.status in (200, 302) and str(answer.status) in described, (
            template,
            answer.status,
            answer.text,
        )
        self.done.add(("GET", template))


def test_every_operation_of_the_description_succeeds_with_good_input(api: Api, tmp_path: Path):
    client = Client(api)
    select_sites(client)
    ask_owners(client)
    plan_and_review(client)
    import_files(client, tmp_path)
    close_and_describe(client)
    keep(client, tmp_path)
    exchange(client)
    manage_users(client)
    read_as_the_public(client)
    described = {
        (method.upper(), path)
        for path, item in api.document["paths"].items()
        for method in item.keys() & {"get", "post", "put", "patch", "delete"}
    }
    assert described - client.done == set(), "operations that never succeeded"
    assert client.done <= described


def select_sites(client: Client) -> None:
    made = client.call("POST", "/api/targets", {"seeds": [f"{client.api.site}/three"], "name": "Three"})[
        "target"
    ]
    one = {"target": made["id"]}
    client.call("GET", "/api/targets", query="?state=nominated")
    client.call("PATCH", "/api/targets/{target}", {"note": "by program"}, **one)
    for criterion in ("national", "cultural"):
        judged = {"criterion": criterion, "value": 1, "reason": "it is"}
        client.call("POST", "/api/targets/{target}/answers", judged, **one)
    client.call("POST", "/api/targets/{target}/decisions", {"act": "select"}, **one)
    ground = {"ground": "legal deposit law", "reason": "Legal Deposit Act", "until": "2099-12-31"}
    client.call("POST", "/api/targets/{target}/grounds", ground, **one)
    client.call("POST", "/api/targets/{target}/harvests", **one)
    assert client.call("GET", "/api/targets/{target}", **one)["latest_harvests"]


def ask_owners(client: Client) -> None:
    made = client.call("POST", "/api/targets", {"seeds": ["https://owner.example/"]})["target"]
    one = {"target": made["id"]}
    for criterion in ("national", "cultural"):
        judged = {"criterion": criterion, "value": 1, "reason": "it is"}
        client.call("POST", "/api/targets/{target}/answers", judged, **one)
    client.call("POST", "/api/targets/{target}/decisions", {"act": "select"}, **one)
    path = "/api/targets/{target}/contacts"
    contact = client.call("POST", path, {"name": "Ann", "mail": "ann@owner.example"}, **one)
    assert client.call("GET", path, **one)["contacts"] == [contact]
    client.call("GET", "/api/targets/{target}/letters", **one)
    letter = client.call("POST", "/api/targets/{target}/letters", {}, **one)
    client.call("GET", "/api/letters", query="?state=queued")
    assert client.call("POST", "/api/letters/deliveries")["is_sending"]
    client.api.wait("/api/letters/{letter}", "sent", letter=letter["id"])
    client.call("GET", "/api/letters/{letter}", letter=letter["id"])
    client.call("POST", "/api/targets/{target}/replies", {"answer": "consent"}, **one)
    client.call("DELETE", f"{path}/{{contact}}", contact=contact["id"], **one)
    template, path = {"kind": "notice", "language": "nl"}, "/api/letters/templates/{kind}/{language}"
    before = client.call("GET", path, **template)
    client.call("PUT", path, {"subject": before["subject"], "body": before["body"] + "\n"}, **template)


def plan_and_review(client: Client) -> None:
    client.call("PUT", "/api/profiles/{profile}", {"text": "delay_s = 0\nworkers = 1\n"}, profile="quick")
    client.call("GET", "/api/profiles/{profile}", profile="quick")
    client.call("GET", "/api/profiles")
    one = {"target": client.api.targets[0]}
    path = "/api/targets/{target}/plan"
    client.call("PUT", path, {"frequency": "once", "profile": "quick"}, **one)
    client.call("POST", f"{path}/orders", {"order": "pause"}, **one)
    assert client.call("GET", path, **one)["plan"]["is_active"] is False
    client.call("DELETE", path, **one)
    started = client.call("POST", "/api/targets/{target}/harvests", {"profile": "quick"}, **one)
    harvest = started["id"]
    which = {"harvest": harvest}
    with Archive.open(client.api.served.home) as archive:
        scheduler.run_due(archive)
    assert harvest in {each["id"] for each in client.call("GET", "/api/harvests")["items"]}
    client.call("GET", "/api/harvests/{harvest}", **which)
    client.call("GET", "/api/harvests/{harvest}/findings", **which)
    path = "/api/harvests/{harvest}/review"
    client.call("POST", f"{path}/notes", {"words": "Looks good."}, **which)
    client.call("POST", f"{path}/ratings", {"url": f"{client.api.site}/one", "rating": "good"}, **which)
    client.call("POST", f"{path}/ignored", {"code": "quality.part-error", "reason": "a banner"}, **which)
    client.call("POST", f"{path}/orders", {"order": "check"}, **which)
    client.call("GET", path, **which)
    client.call("POST", f"{path}/decisions", {"decision": "accept"}, **which)
    client.api.wait("/api/harvests/{harvest}", "kept", **which)
    turn_and_orders(client)


def turn_and_orders(client: Client) -> None:
    """A turn that waits is skipped, and the limits of a harvest that waits are changed."""
    one = {"target": client.api.targets[0]}
    harvest = client.call("POST", "/api/targets/{target}/harvests", {"profile": "quick"}, **one)
    order = {"order": "limits", "limit_pages": 3, "reason": "small"}
    client.call("POST", "/api/harvests/{harvest}/orders", order, harvest=harvest["id"])
    with Archive.open(client.api.served.home) as archive, archive.database.reading() as connection:
        turns = connection.exec_driver_sql("SELECT id FROM turns WHERE state = 'waiting'").scalars().all()
    client.call("POST", "/api/turns/{turn}/orders", {"order": "skip"}, turn=turns[-1])
    client.call("POST", "/api/pages", {"url": f"{client.api.site}/one"})


def import_files(client: Client, folder: Path) -> None:
    file = write_warc(
        folder / "mill.warc.gz",
        {PAGE: b"<title>Mill</title><p>It turns.<img src=a.png>"},
        when=datetime(2024, 1, 1, tzinfo=UTC),
    )
    parts = (
        b'--x\r\nContent-Disposition: form-data; name="collection"\r\n\r\nmills\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="mill.warc.gz"\r\n\r\n',
        file.read_bytes(),
        b"\r\n--x--\r\n",
    )
    headers = {
        "Authorization": f"Bearer {client.api.keys[Role.CURATOR]}",
        "Content-Type": "multipart/form-data; boundary=x",
    }
    answer = ask(f"{client.api.served.portal}/api/imports", "POST", headers=headers, body=b"".join(parts))
    job = check_answer(answer, "POST", "/api/imports", client.api.document)
    client.done.add(("POST", "/api/imports"))
    client.api.wait("/api/jobs/{job}", "done", job=job["id"])
    client.call("GET", "/api/jobs/{job}", job=job["id"])
    client.call("GET", "/api/jobs", query="?kind=import")


def close_and_describe(client: Client) -> None:
    sent = {"pattern": "closed.example", "answer": "hide", "reason": "court"}
    (rule,) = client.call("POST", "/api/rules", sent)["rules"]
    client.call("GET", "/api/rules", query="?answer=hide")
    client.call("POST", "/api/rules/{rule}/end", {"why": "a mistake"}, rule=rule["id"])
    case = client.call("POST", "/api/cases", {"url": "https://closed.example/", "words": "It is mine."})
    client.call("GET", "/api/cases", query="?state=received")
    which = {"case": case["reference"]}
    client.call("POST", "/api/cases/{case}/actions", {"action": "take"}, **which)
    client.call("GET", "/api/cases/{case}", **which)
    saved = {"title": "Mills", "text": "They turn.", "is_public": True}
    client.call("PUT", "/api/collections/{collection}", saved, collection="mills")
    client.call("GET", "/api/collections/{collection}", collection="mills")
    client.call("GET", "/api/collections")
    record = client.call("POST", "/api/targets/{target}/record", target=client.api.targets[0])
    client.call("PATCH", "/api/records/{record}", {"title": "The one"}, record=record["key"])
    client.call("GET", "/api/records/{record}", record=record["urn"])
    client.call("GET", "/api/records", query="?words=one")


def keep(client: Client, folder: Path) -> None:
    (package, *_) = client.call("GET", "/api/packages")["items"]
    client.call("GET", "/api/packages/{package}", package=package["id"])
    client.call("GET", "/api/depot")
    audit = client.call("POST", "/api/depot/audits", {"which": "all"})
    client.api.wait("/api/jobs/{job}", "done", job=audit["job"])
    place = client.call("POST", "/api/depot/places", {"name": "second", "address": str(folder / "second")})
    client.api.wait("/api/jobs/{job}", "done", job=place["id"])


def exchange(client: Client) -> None:
    with Archive.open(client.api.served.home) as archive, archive.database.transaction() as connection:
        profile = OrganisationProfile(root="museum.example", host="www.museum.example")
        organisations.save(connection, profile, now=archive.clock())
    one = {"organisation": "museum.example"}
    path = "/api/organisations/{organisation}"
    client.call("POST", f"{path}/decisions", {"hosts": ["shop.museum.example"], "accepted": True}, **one)
    client.call("POST", f"{path}/corrections", {"names": ["Museum"]}, **one)
    client.call("POST", f"{path}/targets", {"hosts": ["shop.museum.example"]}, **one)
    client.call("GET", path, **one)
    client.call("GET", "/api/organisations")
    job = client.call("POST", "/api/organisations", {"domain": "museum.example"})
    assert job["kind"]
    sent = {"name": "north", "url": f"{client.api.site}/oai"}
    client.call("POST", "/api/partners", sent)
    client.call("GET", "/api/partners")
    client.call("GET", "/api/partners/{partner}", partner="north")
    client.call("POST", "/api/partners/{partner}/orders", {"order": "run"}, partner="north")
    cancel_a_job(client)


def cancel_a_job(client: Client) -> None:
    """One that waits for a machine which does not exist."""
    with Archive.open(client.api.served.home) as archive:
        job = job_control.add(archive, kinds.IMPORT, "later", by="test", needs="another-machine")
    assert client.call("POST", "/api/jobs/{job}/cancellations", job=job.id)["state"] == "cancelled"


def manage_users(client: Client) -> None:
    sent = {"name": "Eve", "password": "a long password", "roles": ["curator"]}
    client.call("POST", "/api/users", sent)
    client.call("PATCH", "/api/users/{name}", {"roles": ["reviewer"]}, name="Eve")
    client.call("GET", "/api/users")
    (key,) = client.call("GET", "/api/users/{name}", name="reader")["keys"]
    client.call("DELETE", "/api/users/{name}/keys/{key}", name="reader", key=key["id"])
    client.call("DELETE", "/api/users/{name}/sessions", name="reader")
    hook = {"name": "desk", "url": f"{client.api.site}/hook", "events": ["harvest.finished"]}
    client.call("POST", "/api/webhooks", hook)
    client.call("POST", "/api/webhooks/{hook}/tests", hook="desk")
    client.call("GET", "/api/webhooks")
    client.call("DELETE", "/api/webhooks/{hook}", hook="desk")


def read_as_the_public(client: Client) -> None:
    for path in ("/api/search", "/api/images", "/api/suggest", "/search.atom"):
        client.read(path, query="?q=turns")
    client.read("/api/trend", query="?w=turns")
    client.read("/search/export", query="?q=turns&form=csv")
    client.read("/evidence", query=f"?url={quote(PAGE, safe='')}")
    client.read("/evidence/key.pem")
    host = client.api.served.replay
    where = {"collection": "all", "url": PAGE, "timestamp": "20240101000000"}
    client.read("/{collection}/cdx", query=f"?url={PAGE}", host=host, collection="all")
    client.read("/cdx/search/cdx", query=f"?url={PAGE}", host=host)
    client.read("/{collection}/timemap/{form}/{url}", host=host, form="link", **where)
    client.read("/{collection}/timemap/{form}/{timestamp}/{url}", host=host, form="link", **where)
    client.read("/{collection}/{timestamp}id_/{url}", host=host, **where)
    client.read("/{collection}/{timestamp}ns_/{url}", host=host, **where)
    client.read("/{collection}/timegate/{url}", host=host, **where)
    assert json.loads(ask(f"{client.api.served.portal}/api/search?q=turns").text)["hits"]
