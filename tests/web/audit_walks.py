"""Every changing form and operation of the portal, one after the other, as people use them."""

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from audit_office import ADA, Walk
from museum import PASSWORD, ask, sign_in

from letters import LetterBox
from webdepot.accounts import api_keys, sessions
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.exchange import partners
from webdepot.exchange.partners import PartnerRecord, RecordState
from webdepot.model import TargetId
from webdepot.provenance import EventFilter
from webdepot.selection.criteria import Judgement
from webdepot.selection.domains import organisations
from webdepot.services.access import collections, rules
from webdepot.services.admin import audit_trail
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.jobs import job_control, kinds
from webdepot.services.permission import owner_answers
from webdepot.services.schedule import plans
from webdepot.services.selection import contacts, targets
from webdepot.services.selection import criteria as criteria_service


def walk_the_path_of_a_site(walk: Walk, box: LetterBox) -> None:
    here = walk.post("/targets", addresses="https://path.example/", name="Path").headers["Location"]
    walk.post(
        f"{here}/answers",
        **{f"{part}-{code}": "1" for code in ("national", "cultural") for part in ("answer", "reason")},
    )
    walk.post(
        f"{here}/change", name="A path", collection="c", purpose="evidence", strategy="snapshot", note="n"
    )
    walk.post(f"{here}/decide", act="select")
    walk.post(f"{here}/contacts", name="Owner", mail="owner@path.example", language="en")
    walk.post(f"{here}/ask")
    token = re.search(r"/answer/([\w-]+)", box.to("owner@path.example")[0].text)
    assert token
    walk.post(f"/answer/{token[1]}", by="owner", answer="consent")
    walk.post(f"{here}/reply", answer="conditions", showing="reading room", words="only there")
    walk.post(f"{here}/grounds", ground="open licence", reason="CC BY")
    with Archive.open(walk.office.served.home) as archive:
        ground = owner_answers.grounds_of(archive, TargetId(int(here.rpartition("/")[2])))[-1].id
    walk.post_final(f"{here}/grounds", withdraw=str(ground), reason="expired")
    walk.post(f"{here}/title", title="The path", creators="J. Path", access="open")
    with Archive.open(walk.office.served.home) as archive:
        contact = contacts.contacts_of(archive, TargetId(int(here.rpartition("/")[2])))[0]
    walk.post_final(f"{here}/contacts", end=str(contact.id))
    walk.post("/suggest", by="public form", address="https://suggested.example/", who="Jan")
    body = b'--x\r\nContent-Disposition: form-data; name="list"; filename="a.csv"\r\n\r\naddress,name,contact_mail\nhttps://one.example/,One,o@one.example\n\r\n--x--\r\n'
    seen = walk.office.post("/targets/import", body, "multipart/form-data; boundary=x").headers["Location"]
    walk.post(seen)
    walk.post(
        "/letters/templates/notice/en",
        subject="Your site {site}",
        body="Dear owner of {site}: {answer_address} {term_ends}",
    )
    walk_a_list_of_letters(walk, box)


def walk_a_list_of_letters(walk: Walk, box: LetterBox) -> None:
    with Archive.open(walk.office.served.home) as archive:
        one = targets.find(archive, "https://one.example/")
        criteria_service.answer(
            archive,
            one.id,
            [Judgement(criterion=code, value=1.0, reason="it is") for code in ("national", "cultural")],
        )
        targets.decide(archive, one.id, "select")
    walk.office.new_events()
    box.busy = True
    walk.post("/targets/ask?state=selected", count="1")
    deadline = time.monotonic() + 20
    while (
        not any(event.action == "could not send a letter" for event in walk.office.new_events())
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    box.busy = False
    walk.post("/letters/send")


def walk_staff_pages(walk: Walk) -> None:
    with walk.office.served.archive() as archive:
        one, _ = targets.enter(archive, targets.draft(["https://bulk.example/"]))
        collection = sorted(collections.names(archive, hidden=True))[0]
        with archive.database.transaction() as connection:
            root = organisations.get(connection, "museum.example")
            organisations.decide(
                connection, root.id, "a.museum.example", accepted=True, by=ADA, now=archive.clock()
            )
    walk.office.new_events()
    walk.post("/targets/bulk/run", target=str(one.id), act="reject", reason="no", count="1")
    walk.post(f"/collections/{collection}/edit", title="Everything", text="All sites", public="1")
    walk.post("/rules", pattern="closed.example", answer="hide", reason="court")
    with walk.office.served.archive() as archive:
        rule = rules.list_rules(archive, words="closed.example").rows[0].rule.id
    walk.post_final("/rules", end=str(rule), why="settled")
    walk.post("/organisations/museum.example/sites", host="a.museum.example")
    walk.post("/depot/audit")
    walk.post("/depot/places", name="vault", address=str(walk.office.served.home.parent / "vault"))
    body = (
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.warc"\r\n\r\n'
        b"not a record\r\n--x--\r\n"
    )
    sent = walk.office.post("/import", body, "multipart/form-data; boundary=x")
    assert sent.status == 303, sent.text
    walk.look("/import")
    with walk.office.served.archive() as archive:  # a job that no worker can take
        waiting = job_control.add(
            archive, kinds.IMPORT, "none", {"names": ["x.warc"]}, by=ADA, needs="uploads/none"
        )
    walk.post_final("/jobs", job=str(waiting.id))
    with walk.office.served.archive() as archive:
        page = targets.get(archive, walk.office.free_target).target.seeds[0]
    walk.post("/schedule/page", url=page)


def walk_api(walk: Walk) -> None:
    """The same steps by a program with an API key."""
    with walk.office.served.archive() as archive:
        _, key = api_keys.make_key(archive.database, ADA, "walk", list(Role), archive.clock())
    walk.office.new_events()

    def send(path: str, method: str = "POST", **sent: object) -> Any:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        answer = ask(
            walk.office.served.portal + path, method, headers=headers, body=json.dumps(sent).encode()
        )
        assert answer.status in (200, 201, 202), (path, answer.status, answer.text)
        walk.look(path)
        return json.loads(answer.text)

    site = f"/api/targets/{send('/api/targets', seeds=['https://program.example/'])['target']['id']}"
    for criterion in ("national", "cultural"):
        send(f"{site}/answers", criterion=criterion, value=1, reason="it is")
    send(f"{site}/decisions", act="select")
    send(f"{site}/grounds", ground="legal deposit law", reason="Legal Deposit Act")
    send(f"{site}/plan", "PUT", frequency="monthly")
    send(f"{site}/plan/orders", order="pause")
    send(f"{site}/plan", "DELETE")
    send("/api/profiles/programmed", "PUT", text="limit_pages = 7\n")
    send("/api/webhooks", name="programmed", url="https://program.example/hook")
    send("/api/webhooks/programmed", "DELETE")
    send("/api/depot/audits", which="due")
    harvest = send(f"{site}/harvests", profile="quick")["id"]
    send(f"/api/harvests/{harvest}/orders", order="limits", limit_pages=3, reason="small")
    review = f"/api/harvests/{walk.office.harvests[1]}/review"
    send(f"{review}/notes", words="looks good")
    send(f"{review}/ratings", url="https://program.example/", rating="good")
    send(f"{review}/decisions", decision="reject", words="too little")
    added = send("/api/rules", pattern="program.example", answer="hide", reason="court")
    send(f"/api/rules/{added['rules'][0]['id']}/end", why="a mistake")
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="b.warc"\r\n\r\nnone\r\n--x--\r\n'
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "multipart/form-data; boundary=x"}
    assert ask(f"{walk.office.served.portal}/api/imports", "POST", headers=headers, body=body).status == 202
    walk.look("/api/imports")
    walk_api_of_owners(walk, send)
    walk_api_of_administrators(walk, send)


def walk_api_of_owners(walk: Walk, send: Callable[..., Any]) -> None:
    """Letters, complaints, records, collections and organisations."""
    other = f"/api/targets/{send('/api/targets', seeds=['https://owned.example/'])['target']['id']}"
    send(other, "PATCH", note="by program")
    for criterion in ("national", "cultural"):
        send(f"{other}/answers", criterion=criterion, value=1, reason="it is")
    send(f"{other}/decisions", act="select")
    contact = send(f"{other}/contacts", mail="owner@owned.example", name="Owner")["id"]
    send(f"{other}/letters", term_days=30)
    send(f"{other}/replies", answer="consent", words="yes")
    send(f"{other}/contacts/{contact}", "DELETE")
    template = "/api/letters/templates/notice/en"
    send(template, "PUT", subject="About your site", body="{recipient}: {answer_address}, until {term_ends}.")
    case = send("/api/cases", url="https://owned.example/", words="wrong")["reference"]
    send(f"/api/cases/{case}/actions", action="note", reason="telephoned")
    record = send(f"{other}/record")["key"]
    send(f"/api/records/{record}", "PATCH", title="Owned", keywords=["mills"])
    with walk.office.served.archive() as archive:
        (name, *_) = collections.names(archive, hidden=True)
    send(f"/api/collections/{name}", "PUT", title="By program", text="One.")
    root = "/api/organisations/museum.example"
    send(f"{root}/decisions", hosts=["program.museum.example"], accepted=True)
    send(f"{root}/corrections", names=["Programmed"])
    send(f"{root}/targets", hosts=["program.museum.example"])
    send("/api/organisations", domain="programmed.example")
    review = f"/api/harvests/{walk.office.harvests[1]}/review"
    send(f"{review}/ignored", code="quality.link-broken", reason="by design")
    send(f"{review}/orders", order="check")
    target = send("/api/pages", url="https://owned.example/")["target"]
    with walk.office.served.archive() as archive:
        turn = plans.find_open(archive, target)
    assert turn is not None
    send(f"/api/turns/{turn.id}/orders", order="skip")


def walk_api_of_administrators(walk: Walk, send: Callable[..., Any]) -> None:
    send("/api/users", name="Programmed", password="long enough password", roles=["curator"])
    send("/api/users/Programmed", "PATCH", roles=["reviewer"])
    with walk.office.served.archive() as archive:
        key, _ = api_keys.make_key(archive.database, "Programmed", "x", [Role.REVIEWER], archive.clock())
        sessions.sign_in(archive.database, "Programmed", "long enough password", archive.clock())
        waiting = job_control.add(
            archive, kinds.IMPORT, "no", {"names": ["x.warc"]}, by=ADA, needs="uploads/none"
        )
    walk.office.new_events()
    send(f"/api/users/Programmed/keys/{key.id}", "DELETE")
    send("/api/users/Programmed/sessions", "DELETE")
    send("/api/partners", name="programmed", url="https://partner.example/oai")
    send("/api/partners/programmed/orders", order="run")
    send(f"/api/jobs/{waiting.id}/cancellations")
    place = walk.office.served.home.parent / "programmed place"
    send("/api/depot/places", name="programmed", address=str(place))


def walk_plans_and_orders(walk: Walk) -> None:
    plan = f"/schedule/targets/{walk.office.target}"
    first = (datetime.now(UTC) + timedelta(days=3)).date().isoformat()
    walk.post(plan, order="set", frequency="monthly", first_on=first, at_time="03:00", profile="quick")
    walk.post(plan, order="pause")
    walk.post(plan, order="resume")
    walk.post(plan, order="run")
    with Archive.open(walk.office.served.home) as archive:
        turn = plans.of_target(archive, walk.office.target).turns[0].id
    walk.post("/schedule/queue", order="skip", turn=str(turn))
    walk.post("/schedule/queue", order="retry", turn=str(turn))
    walk.post("/schedule/queue", order="skip", turn=str(turn))
    walk.post_final(plan, order="remove")
    walk.post(f"/targets/{walk.office.target}/harvest")
    with Archive.open(walk.office.served.home) as archive:
        turn = plans.of_target(archive, walk.office.target).turns[0].id
    walk.post("/schedule/queue", order="skip", turn=str(turn))
    walk.post("/scope/test", addresses="https://path.example/", pages="1")
    orders = f"/harvests/{walk.office.open_harvest}/orders"
    with Archive.open(walk.office.served.home) as archive:
        folder = harvests_service.folder_of(archive, harvests_service.get(archive, walk.office.open_harvest))
    with harvests_service.locked(folder):  # it is being worked on
        for order in ("pause", "resume"):
            walk.post(orders, order=order, reason="lunch")
        walk.post(orders, order="limits", limit_pages="500")
        walk.post(orders, order="add", urls="https://path.example/more")
        walk.post_final(orders, order="remove", patterns="/calendar/")
        walk.post_final(orders, order="reject", patterns="/calendar/")
        walk.post(orders, order="stop")
        walk.post_final(orders, order="abort")


def walk_quality_and_review(walk: Walk) -> None:
    first, second = walk.office.harvests
    walk.post_final(f"/review/{first}/ignore", code="quality.link-broken", reason="known")
    walk.post(f"/review/{first}/check")
    walk.post(f"/review/{first}/note", words="looks good")
    walk.post(f"/review/{first}/patch")
    walk.post(f"/review/{second}/patch")
    walk.post(f"/review/{first}/rate", url="https://path.example/", rating="good", words="complete")
    walk.post_final(f"/review/{first}/decide", order="reject", words="too little")
    walk.post(f"/review/{first}/decide", order="reopen", words="on second thoughts")
    walk.post_final(f"/review/{first}/decide", order="accept", words="good")


def walk_cases(walk: Walk) -> None:
    walk.post(
        "/complain",
        by="public form",
        url="https://path.example/",
        words="my picture",
        who="person concerned",
        ground="privacy",
    )
    given = {
        "url": "https://path.example/two",
        "words": "my text",
        "who": "rights holder",
        "ground": "copyright",
    }
    case = walk.post("/cases", **given).headers["Location"]
    walk.post(case, act="take")
    walk.post(case, act="note", reason="telephoned")
    closing = {"decision": "closed", "words": "they are right", "area": "page", "audience": "everyone"}
    walk.post_final(case, act="decide", **closing)
    walk.post(case, act="lift", reason="settled")
    walk.post(case, act="reopen", reason="again")
    walk.post(case, act="drop", reason="a mistake")


def walk_settings(walk: Walk) -> None:
    fields = {
        "code-0": "national",
        "question-0": "Is it national?",
        "kind-0": "yes-no",
        "weight-0": "1",
        "required-0": "1",
        "roles-0": "curator",
    }
    walk.post("/criteria", **fields)
    walk.post("/profiles/deep", text="limit_pages = 10\n")
    walk.post("/formats/registry", puid="fmt/1", name="Wave", risk="watch", reason="old")
    walk.post("/partners", name="sister", url="http://127.0.0.1:9/oai")
    walk.post("/partners/sister", what="run")
    with Archive.open(walk.office.served.home) as archive, archive.database.transaction() as connection:
        facts = {
            "datestamp": "2026-01-01",
            "sets": (),
            "xml": "<x/>",
            "sha256": "0",
            "seen_at": archive.clock(),
        }
        partners.keep_record(
            connection,
            PartnerRecord(partner="sister", identifier="oai:1", state=RecordState.REFUSED, **facts),
        )
    walk.post("/partners/sister", what="retry")
    walk.post("/organisations", domain="museum.example")
    walk.post("/organisations/museum.example/decide", host="shop.museum.example", answer="accept")
    walk.post("/organisations/museum.example/correct", what="name", value="Museum of clocks")


def walk_people(walk: Walk) -> None:
    office = walk.office
    walk.post("/users", name="piet", password=PASSWORD, role="reader")
    walk.post("/users/piet", order="roles", role="curator")
    walk.post("/users/piet", order="password", password=f"{PASSWORD} 2")
    walk.post("/users/piet", order="close")
    walk.post("/users/piet", order="reopen")
    made = office.post("/account/keys", {"label": "script", "role": "reader"})
    text = re.search(rf"{api_keys.KEY_PREFIX}[\w-]+", made.text)
    assert made.status == 200 and text, "the key is told once"
    walk.look("/account/keys")
    with Archive.open(office.served.home) as archive:
        number = api_keys.keys_of(archive.database, ADA)[0].id
        events = audit_trail.trail(archive, EventFilter(action="key made"), limit=1)
    assert events and text[0][:12] not in str(events), "never the key itself"
    walk.post_final("/account/keys", revoke=str(number))
    other = sign_in(office.served, ADA)
    walk.look("/sign-in")
    walk.post("/account/sessions", session=sessions.session_id(other.partition("=")[2]))
    walk.post("/sign-out")
    office.cookie = sign_in(office.served, ADA)
    office.new_events()
    walk.post("/account/password", old=PASSWORD, password=f"{PASSWORD} 3")
