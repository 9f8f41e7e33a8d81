"""Every form of the portal with wrong input: one clear message in the form, and what was typed is still there.

Each changing route of the route table is either sent something wrong here or is named with the reason why there
is nothing to type.
"""

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from urllib.parse import urlencode

import pytest
from museum import PASSWORD, Answer, Served, ask, serving, sign_in

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.selection import letter_rows as kept_letters
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import Judgement
from webdepot.selection.domains import organisations
from webdepot.selection.domains.profile import OrganisationProfile
from webdepot.services.admin import setup
from webdepot.services.permission import complaints, letters
from webdepot.services.selection import contacts, csv_lists, targets
from webdepot.services.selection import criteria as criteria_service
from webdepot.web.routes import PORTAL_ROUTES

TYPED = "typed <b>by</b> a person"

WRONG: dict[str, dict[str, str]] = {
    "/sign-in": {"name": TYPED, "password": "wrong"},
    "/suggest": {"address": "no address", "name": TYPED},
    "/complain": {"url": "https://a.example/", "words": "", "name": TYPED},
    "/answer/{token}": {"answer": "perhaps", "words": TYPED},
    "/targets": {"addresses": "no address", "note": TYPED},
    "/targets/bulk": {"act": "reject"},
    "/targets/bulk/run": {"target": "{target}", "act": "reject", "count": "9", "reason": TYPED},
    "/targets/ask": {"count": "99"},
    "/targets/{target}/answers": {"answer-national": "9", "reason-national": TYPED},
    "/targets/{target}/decide": {"act": "dance", "reason": TYPED},
    "/targets/{target}/change": {"name": TYPED, "collection": "not a name!"},
    "/targets/{target}/contacts": {"name": TYPED, "mail": "nobody"},
    "/targets/{target}/ask": {},
    "/targets/{target}/reply": {"answer": "perhaps", "words": TYPED},
    "/targets/{target}/grounds": {"ground": "none", "reason": TYPED},
    "/targets/{target}/title": {"title": TYPED, "country": "Nowhere"},
    "/targets/import/{token}": {},
    "/letters/templates/{kind}/{language}": {"subject": TYPED, "body": "{nonsense}"},
    "/criteria": {"code-0": "ours", "question-0": TYPED, "kind-0": "dance", "weight-0": "2"},
    "/cases": {"url": "https://a.example/", "words": "", "name": TYPED},
    "/cases/{case}": {"act": "decide", "decision": "dance", "public_text": TYPED},
    "/rules": {"pattern": "a.example", "answer": "refuse", "reason": "court", "text": TYPED, "valid_to": "x"},
    "/schedule/page": {"url": f"https://a.example/{TYPED}"},
    "/schedule/targets/{target}": {"order": "set", "frequency": "cron", "cron": TYPED},
    "/schedule/queue": {"order": "dance", "turn": "1"},
    "/organisations": {"domain": TYPED},
    "/organisations/{root}/decide": {"answer": "dance", "host": "a.example"},
    "/organisations/{root}/correct": {"what": "range", "value": TYPED},
    "/organisations/{root}/sites": {"host": "stranger.example", "collection": "plain"},
    "/partners": {"name": "Not A Name", "url": "https://a.example/oai", "set": TYPED},
    "/depot/places": {"name": "vault", "address": f"/nowhere/{TYPED}"},
    "/formats/registry": {"what": "format", "risk": "dance", "name": TYPED},
    "/users": {"name": TYPED, "password": "short", "role": "curator"},
    "/users/{name}": {"order": "password", "password": "short"},
    "/account/password": {"old": "wrong", "password": "a new password"},
    "/account/keys": {"label": TYPED},
}
"""A wrong form for each route; `{target}` and the like stand for things of the office."""

NOTHING_TYPED = {
    "/oai": "a question of a machine",
    "/searches": "a button; the query was typed elsewhere",
    "/sign-out": "a button",
    "/-/seat/{address:path}": "sent by a script",
    "/-/left/{address:path}": "sent by a script",
    "/account/sessions": "a button",
    "/partners/{name}": "buttons",
    "/letters/send": "a button",
    "/depot/audit": "buttons",
    "/jobs": "a button",
    "/import": "files: see test_web_staff_pages",
    "/targets/import": "a file: see test_a_pasted_list_comes_back",
    "/profiles": "leads to the page of a profile",
    "/profiles/{name}": "see the tests of profiles",
    "/harvests/{harvest}/orders": "see the tests of harvests",
    "/review/{harvest}/decide": "see the tests of reviews",
    "/review/{harvest}/note": "see the tests of reviews",
    "/review/{harvest}/patch": "a button",
    "/review/{harvest}/check": "a button",
    "/review/{harvest}/ignore": "a button",
    "/review/{harvest}/pictures": "a button",
    "/review/{harvest}/rate": "see the tests of reviews",
    "/scope/test": "see the tests of harvests",
    "/targets/{target}/harvest": "a button",
    "/collections/{name}/edit": "see the tests of browsing",
}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str, dict[str, str]]]:
    """A server, the session of a person with every role, and the things that paths name."""
    home = tmp_path_factory.mktemp("wrong") / "home"
    setup.create(
        home, settings='[depot]\nportal_places = ["/somewhere"]\n[selection]\nsuggestions_per_hour = 99\n'
    )
    with Archive.open(home) as archive:
        accounts.add(archive.database, "Ada", PASSWORD, list(Role), datetime.now(UTC))
        number = targets.enter(archive, targets.draft(["https://forms.example/"]))[0].id
        answers = [Judgement(criterion=code, value=1.0, reason="r") for code in ("national", "cultural")]
        asked = targets.enter(archive, targets.draft(["https://asked.example/"]))[0].id
        criteria_service.answer(archive, asked, answers)
        targets.decide(archive, asked, "select")
        contacts.add_contact(archive, Contact(target=asked, name="Owner", mail="o@asked.example"))
        letters.ask(archive, [asked])
        [letter] = letters.letters_of(archive, asked)
        token = letter.body.rpartition("/")[2]
        with archive.database.transaction() as connection:
            kept_letters.move(connection, letter, "send", sent_at=archive.clock(), body="sent")
        case = complaints.complain(archive, url="https://forms.example/", words="It is mine.")
        listed = csv_lists.preview(archive, b"address\nno address\n", by="Ada")
        with archive.database.transaction() as connection:
            profile = OrganisationProfile(root="museum.example", host="www.museum.example")
            organisations.save(connection, profile, now=archive.clock())
            root = organisations.get(connection, "museum.example").id
            organisations.decide(
                connection, root, "www.museum.example", accepted=True, by="Ada", now=archive.clock()
            )
    things = {
        "target": str(number),
        "selected": str(asked),
        "token": token,
        "list": listed.token,
        "case": case.reference,
        "kind": "notice",
        "language": "en",
        "root": "museum.example",
        "name": "Ada",
    }
    with serving(home) as served:
        yield served, sign_in(served, "Ada"), things


def send(
    office: tuple[Served, str, dict[str, str]], path: str, fields: dict[str, str], lang: str = "en"
) -> Answer:
    served, cookie, things = office
    if path.startswith("/targets/import/"):
        things = things | {"token": things["list"]}
    if path.endswith("/grounds"):
        things = things | {"target": things["selected"]}
    filled = {name: value.replace("{target}", things["target"]) for name, value in fields.items()}
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Cookie": cookie,
        "Accept-Language": lang,
    }
    return ask(
        served.portal + path.format(**things), "POST", headers=headers, body=urlencode(filled).encode()
    )


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_form_comes_back_with_its_message_and_what_was_typed(office, path):
    answer = send(office, path, WRONG[path])
    assert 400 <= answer.status < 500, (answer.status, answer.headers.get("Location"))
    assert answer.text.count('class="wrong" role="alert"') == 1, "one message, in the form"
    assert "<b>by</b>" not in answer.text
    assert not re.search(r'href="\?(tab|own)=', answer.text), "a tab must not lead to the address of the form"
    for value in WRONG[path].values():
        if TYPED in value:
            assert html.escape(value) in answer.text.replace("&#34;", "&quot;"), "what was typed is lost"


def test_a_translated_message_is_not_marked_as_english(office):
    paths = ("/cases/{case}", "/criteria", "/targets/{target}/title", "/letters/templates/{kind}/{language}")
    for path in paths:
        answer = send(office, path, WRONG[path], "nl")
        assert '<html lang="nl"' in answer.text
        assert 'class="wrong" role="alert"' in answer.text and 'role="alert" lang=' not in answer.text, path


def test_every_changing_route_is_sent_something_wrong():
    pages = [page for page in PORTAL_ROUTES if not page.path.startswith("/api/")]  # see test_web_api
    changing = {page.path for page in pages if "POST" in page.methods}
    assert set(WRONG) | set(NOTHING_TYPED) == changing
    assert not set(WRONG) & set(NOTHING_TYPED)


def test_a_pasted_list_comes_back(office):
    served, cookie, _ = office
    body = f'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nname\n{TYPED}\r\n--x--\r\n'.encode()
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Cookie": cookie}
    answer = ask(f"{served.portal}/targets/import", "POST", headers=headers, body=body)
    assert answer.status == 400 and answer.text.count('class="wrong" role="alert"') == 1
    assert html.escape(TYPED) in answer.text


def test_patterns_of_fields_are_valid_in_browsers():
    """Browsers compile them with the flag v and ignore an invalid one: in a class, a hyphen that is not a
    range must be escaped (HTML, 4.10.5.3.6).
    """
    for template in (files("webdepot.web") / "templates").iterdir():
        for pattern in re.findall(r'pattern="([^"]*)"', template.read_text(encoding="utf-8")):
            assert not re.search(r"\[-|(?<!\\)-\]", pattern), (template.name, pattern)
