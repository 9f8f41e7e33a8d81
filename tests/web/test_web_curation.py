"""Curation in the portal: public forms, the workflow of a site, letters, complaints, the catalogue; hostile
input; axe and a phone.
"""

import dataclasses
import html
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from museum import EDITIONS, NOW, PASSWORD, SITE, Answer, Served, Warc, ask, make_home, serving, sign_in
from playwright.sync_api import Page, sync_playwright

from letters import LetterBox, box_running
from looks import look, look_at, needs_axe, signed_in
from webdepot.access.policy import RuleAnswer
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.selection.cases import Decision
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import Judgement
from webdepot.selection.states import TargetState
from webdepot.services.access import rules
from webdepot.services.catalogue import description
from webdepot.services.permission import complaints, delivery, letters
from webdepot.services.permission.complaints import Ruling
from webdepot.services.selection import contacts, csv_lists, targets
from webdepot.services.selection import criteria as criteria_service

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}"
HEAD = """<!doctype html><html lang="nl"><head><title>Klokken &lt;b&gt;museum</title>
<meta name="author" content="J. Uurwerk"><meta name="keywords" content="klokken, uren; tijd">
<meta name="DC.publisher" content="Stad Utrecht">
<meta name="description" content="</script><script>alert(3)</script> Alles over klokken">
</head><body><h1>Klokken</h1></body></html>"""


@pytest.fixture(scope="module")
def box() -> Iterator[LetterBox]:
    with box_running() as running:
        yield running


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, box: LetterBox) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("curation")
    warc = Warc(folder / "site.warc.gz")
    warc.response(f"{SITE}/", EDITIONS[0], HEAD.encode())
    warc.response(f"{SITE}/news.html", EDITIONS[0], b"<title>News</title><h1>News of clocks</h1>")
    mail = (
        f'[mail]\nhost = "127.0.0.1"\nport = {box.port}\nsecurity = "none"\n'
        'sender = "archive@library.example"\n'
    )
    home = make_home(folder / "home", warc.write(), settings=mail + "[selection]\nsuggestions_per_hour = 6\n")
    with Archive.open(home, clock=lambda: NOW) as archive:
        for role in Role:
            accounts.add(archive.database, role.value, PASSWORD, [role], NOW)
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def cookies(office: Served) -> dict[str, str]:
    return {
        role.value: sign_in(office, role.value)
        for role in (Role.CURATOR, Role.REVIEWER, Role.PARTNER, Role.ADMINISTRATOR)
    }


def post(served: Served, path: str, cookie: str = "", **fields: str) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", **({"Cookie": cookie} if cookie else {})}
    return ask(served.portal + path, "POST", headers=headers, body=urlencode(fields).encode())


def get(served: Served, path: str, cookie: str = "") -> Answer:
    return ask(served.portal + path, headers={"Cookie": cookie} if cookie else {})


def harmless(text: str) -> bool:
    """No markup of a stranger is in the page; inside JSON-LD it is escaped."""
    return "<script>alert" not in text and "<img src=x" not in text and "{{7*7}}" in text


def test_anybody_suggests_a_site_and_floods_are_stopped(office: Served, cookies):
    told = post(office, "/suggest", address="https://clocks.example/", name=EVIL, reason=EVIL, who=EVIL)
    assert (told.status, told.headers["Location"]) == (303, "/suggest?done=new")
    assert (
        post(office, "/suggest", address="clocks.example/index.html").headers["Location"]
        == "/suggest?done=known"
    )
    assert post(office, "/suggest", address="javascript:alert(1)").status == 400
    assert post(office, "/suggest", address="https://spam.example/", website="http://spam").status == 303
    with office.archive() as archive:
        assert targets.find_known(archive, targets.public_address("spam.example")) is None
        number = targets.find(archive, "clocks.example").id
    for path in ("/targets", f"/targets/{number}", "/audit"):
        page = get(office, path, cookies["curator"])
        assert page.status == 200 and harmless(page.text), path
    statuses = [post(office, "/suggest", address=f"https://s{count}.example/").status for count in range(6)]
    assert statuses[-1] == 429
    assert post(office, "/suggest", address="x" * 100_000).status == 413


def test_a_wrong_form_comes_back_with_the_reason_and_what_was_typed(office: Served, cookies):
    curator = cookies["curator"]
    where = post(office, "/targets", curator, addresses="https://forms.example/").headers["Location"]
    typed = "all about <b>forms</b>"
    escaped = "all about &lt;b&gt;forms&lt;/b&gt;"
    for path, fields in (
        ("contacts", {"name": typed, "mail": "nobody"}),
        ("contacts", {"organisation": "", "mail": "", "note": typed}),
        ("change", {"name": typed, "collection": "not a name!"}),
        (
            "answers",
            {"answer-national": "1", "reason-national": "", "answer-cultural": "9", "reason-cultural": typed},
        ),
        ("reply", {"answer": "nothing", "words": typed}),
        ("decide", {"act": "reject", "reason": "", "look_again_on": "2031-02-03"}),
    ):
        answer = post(office, f"{where}/{path}", curator, **fields)
        assert answer.status == 400, path
        assert answer.text.count('class="wrong" role="alert"') == 1, path
        assert (escaped if typed in fields.values() else "2031-02-03") in answer.text, path
        assert typed not in answer.text and 'class="path"' in answer.text, "it is the page of the site"


def test_the_path_of_a_site_in_the_portal(office: Served, cookies, box: LetterBox):
    curator = cookies["curator"]
    where = post(office, "/targets", curator, addresses=SITE, name="Museum").headers["Location"]
    assert (
        post(office, "/targets", curator, addresses="example.org/index.html").headers["Location"]
        == f"{where}?known=1"
    )
    refused = post(office, f"{where}/decide", curator, act="select")
    assert refused.status == 409 and "Required state: judged" in refused.text
    fields = {
        "answer-national": "1",
        "reason-national": EVIL,
        "answer-cultural": "1",
        "reason-cultural": "clocks",
    }
    told = post(office, f"{where}/answers", curator, **fields)
    assert told.status == 303, told.text
    assert post(office, f"{where}/decide", curator, act="select").status == 303
    assert (
        post(
            office, f"{where}/contacts", curator, name=EVIL, mail="owner@museum.example", language="nl"
        ).status
        == 303
    )
    page = get(office, where, curator)
    assert (
        harmless(page.text)
        and "May not be harvested now" in page.text
        and "no letter has been sent" in page.text
    )
    assert "Geachte" in get(office, f"{where}/letter", curator).text
    assert post(office, f"{where}/ask", curator).status == 303
    [letter] = box.to("owner@museum.example")
    [answer] = re.findall(r"/answer/\S+", letter.text)
    assert "the owner can refuse until" in get(office, where, curator).text
    assert get(office, "/answer/nothing").status == 404
    assert "Museum" in get(office, answer).text
    assert post(office, answer, answer="refusal", words=EVIL).status == 303
    assert harmless(get(office, where, curator).text)
    assert ask(f"{office.replay}/all/{EDITIONS[0]}id_/{SITE}/").status == 451, (
        "a refusal closes access at once"
    )
    assert post(office, answer, answer="consent").status == 303
    assert ask(f"{office.replay}/all/{EDITIONS[0]}id_/{SITE}/").status == 200
    described = get(office, f"{where}/title", curator)
    assert (
        "J. Uurwerk" in described.text
        and "Stad Utrecht" in described.text
        and "<script>alert" not in described.text
    )
    form = {
        "title": "Klokkenmuseum",
        "creators": "J. Uurwerk\nT. Tik",
        "keywords": "klokken\nuren",
        "genre": "museum",
        "languages": "nl",
    }
    assert (
        post(office, f"{where}/title", curator, **form, abstract="</script><script>alert(3)</script>").status
        == 303
    )
    listed = get(office, "/catalogue?creator=Tik&genre=museum&keyword=uren")
    [key] = re.findall(r'href="/title/([^"]+)"', listed.text)
    title = get(office, f"/title/{key}")
    assert (
        "<script>alert" not in title.text
        and "application/ld+json" in title.text
        and "\\u003cscript" in title.text
    )
    assert (
        "Klokkenmuseum" in get(office, f"/title/{key}/marcxml").text
        and "dc:creator" in get(office, f"/title/{key}/dc").text
    )
    assert '"@type": "WebSite"' in get(office, f"/title/{key}/jsonld").text
    assert "Klokkenmuseum" not in get(office, "/catalogue?creator=Nobody").text


def test_a_list_is_uploaded_looked_at_and_imported(office: Served, cookies):
    body = (
        b'--x\r\nContent-Disposition: form-data; name="list"; filename="a.csv"\r\n'
        b"Content-Type: text/csv\r\n\r\n"
        b"address,name\nhttps://one.example/,=cmd()\nbad line,x\n\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Cookie": cookies["partner"]}
    seen = ask(f"{office.portal}/targets/import", "POST", headers=headers, body=body).headers["Location"]
    page = get(office, seen, cookies["partner"]).text
    assert "Nothing is imported while the list contains errors" in page and ">3<" in page
    assert get(office, seen, cookies["curator"]).status == 404, "somebody else's list"
    assert post(office, seen, cookies["partner"]).status == 409
    good = body.replace(b"bad line,x\n", b"")
    seen = ask(f"{office.portal}/targets/import", "POST", headers=headers, body=good).headers["Location"]
    assert post(office, seen, cookies["partner"]).status == 303
    exported = get(office, "/targets.csv?q=one.example", cookies["curator"]).text
    assert ",'=cmd()," in exported and "partner" in exported
    assert (
        ask(f"{office.portal}/targets/import", "POST", headers=headers, body=good + b" " * (10 << 20)).status
        == 413
    )


def test_a_complaint_from_the_form_to_a_closed_page(office: Served, cookies, box: LetterBox):
    url = f"{SITE}/news.html"
    assert "12 March 2009" in get(office, f"/complain?url={url}&at={EDITIONS[0]}").text
    reviewer = cookies["reviewer"]
    told = post(
        office,
        "/cases",
        reviewer,
        url=url,
        words=EVIL,
        who="rights holder",
        ground="copyright",
        name=EVIL,
        mail="me@home.example",
    ).headers["Location"]
    assert harmless(get(office, told, reviewer).text) and get(office, "/cases", reviewer).status == 200
    warned = {
        "act": "decide",
        "confirmed": "yes",
        "decision": "warning",
        "area": "page",
        "audience": "everyone",
        "public_text": EVIL,
    }
    assert post(office, told, reviewer, **warned).status == 303
    frame = ask(f"{office.frame}/all/{EDITIONS[0]}/{url}")
    assert frame.status == 200 and harmless(frame.text), "the warning stands above the page, as text"
    assert post(office, told, reviewer, act="reopen", reason="again").status == 303
    closed = {
        "act": "decide",
        "confirmed": "yes",
        "decision": "closed",
        "area": "page",
        "audience": "everyone",
        "public_text": "Closed now.",
        "words": "We agree.",
    }
    assert post(office, told, cookies["curator"], **closed).status == 403
    assert post(office, told, reviewer, **closed).status == 303
    for address in (
        f"{office.replay}/all/{EDITIONS[0]}id_/{url}",
        f"{office.frame}/all/{EDITIONS[0]}/{url}",
        f"{office.portal}/all/*/{url}",
    ):
        assert ask(address).status == 451, address
    assert url not in ask(f"{office.portal}/cdx/search/cdx?url={url}").text
    assert "News of clocks" not in get(office, "/search?q=news").text.partition('class="hits"')[2]
    assert post(office, told, reviewer, act="lift", reason="settled").status == 303
    assert ask(f"{office.replay}/all/{EDITIONS[0]}id_/{url}").status == 200


def test_a_template_and_the_criteria_are_changed_with_care(office: Served, cookies):
    wrong = post(office, "/letters/templates/notice/en", cookies["curator"], subject="s", body="{nonsense}")
    assert (
        wrong.status == 400 and "no field {nonsense}" in wrong.text and "{nonsense}</textarea>" in wrong.text
    )
    boss = cookies["administrator"]
    given = {
        "code-0": "ours",
        "question-0": EVIL,
        "kind-0": "yes-no",
        "weight-0": "2",
        "required-0": "1",
        "roles-0": "curator",
    }
    assert post(office, "/criteria", cookies["curator"], **given).status == 403
    with office.archive() as archive:
        before = criteria_service.criteria_of(archive)
        assert post(office, "/criteria", boss, **given).status == 303
        try:
            assert harmless(get(office, "/criteria", boss).text)
            assert [one.code for one in criteria_service.criteria_of(archive)] == ["ours"]
            shown = html.unescape(get(office, "/criteria?lang=nl", boss).text)
            assert "Heeft de site culturele inhoud?" not in shown
            criteria_service.set_criteria(archive, before)
            shown = html.unescape(get(office, "/criteria?lang=nl", boss).text)
            assert 'value="Heeft de site culturele inhoud?"' in shown
            dutch = given | {"code-0": "cultural", "question-0": "Heeft de site culturele inhoud?"}
            assert post(office, "/criteria?lang=nl", boss, **dutch).status == 303
            [one] = criteria_service.criteria_of(archive)
            assert one.is_default, "an unchanged question of ours stays one, whatever the language"
        finally:
            # The other tests of this office, in whatever order, answer the criteria that came with the
            # program.
            criteria_service.set_criteria(archive, before)


def test_a_lacking_role_is_403_and_a_rule_of_access_451(office: Served, cookies):
    given = {
        "code-0": "ours",
        "question-0": "Ours?",
        "kind-0": "yes-no",
        "weight-0": "2",
        "required-0": "1",
        "roles-0": "reviewer",
    }
    with office.archive() as archive:
        dossier, _ = targets.enter(archive, targets.draft(["https://roles.example/"]))
        before = criteria_service.criteria_of(archive)
        assert post(office, "/criteria", cookies["administrator"], **given).status == 303
        try:
            answer = {"answer-ours": "1", "reason-ours": "because"}
            refused = post(office, f"/targets/{dossier.id}/answers", cookies["curator"], **answer)
            assert refused.status == 403 and "Only reviewer may answer" in refused.text
            assert post(office, f"/targets/{dossier.id}/answers", cookies["reviewer"], **answer).status == 303
        finally:
            criteria_service.set_criteria(archive, before)
        closed = rules.add(archive, f"{SITE}/news.html", answer=RuleAnswer.REFUSE, public_text="Closed.")
        try:
            assert ask(f"{office.portal}/all/*/{SITE}/news.html").status == 451
            link = 'href="/rules?q=www.example.org"'
            assert link in get(office, f"/all/*/{SITE}/news.html", cookies["reviewer"]).text
            assert link not in get(office, f"/all/*/{SITE}/news.html").text
        finally:
            for rule in closed:
                rules.remove(archive, rule.id)


@pytest.fixture(scope="module")
def page(office: Served) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        with signed_in(browser, office.portal, "administrator") as made:
            yield made
        browser.close()


def pages_of(archive: Archive, box: LetterBox) -> list[str]:
    """Every page of curation, each with something on it: a site asked about, its letter and the owner's
    answer, a list with a bad line, a case with its decision, a described site.
    """
    long = (
        "A very long name of a museum of clocks and of everything else that ticks, strikes, chimes "
        "or stands still"
    )
    dossier, _ = targets.enter(
        archive, dataclasses.replace(targets.draft(["https://axe.example/a/very/long/path/"]), name=long)
    )
    number = dossier.id
    if dossier.state is TargetState.NOMINATED:
        criteria_service.answer(
            archive,
            number,
            [Judgement(criterion=code, value=1.0, reason="it is") for code in ("national", "cultural")],
        )
        targets.decide(archive, number, "select")
        contacts.add_contact(
            archive, Contact(target=number, name="O. Owner", mail="axe@owner.example", language="nl")
        )
        letters.ask(archive, [number], portal_url="http://portal.example")
        delivery.deliver_for(archive, number)
    [letter] = letters.letters_of(archive, number)
    [answer] = re.findall(r"/answer/\S+", box.to("axe@owner.example")[-1].text)
    rows = (
        b"address,name\nhttps://axe-one.example/,One\n"
        b"https://axe.example/a/very/long/path/,Known\nnot a site,Bad\n"
    )
    listed = csv_lists.preview(archive, rows, by="administrator").token
    case = complaints.complain(
        archive, url=f"{SITE}/news.html", words="It is mine. " * 40, name="Somebody", mail="axe@home.example"
    )
    complaints.decide(archive, case.reference, Ruling(decision=Decision.WARNING, public_text="Disputed."))
    open_case = complaints.complain(archive, url=f"{SITE}/", words="And this.")
    record = description.save(
        archive,
        number,
        {"title": long, "creators": ("J. Uurwerk",), "genre": "museum", "abstract": "Clocks. " * 60},
    )
    return [
        *(
            "/suggest",
            "/suggest?done=new",
            "/complain",
            f"/complain?url={SITE}/news.html&at={EDITIONS[0]}",
            answer,
            "/catalogue",
        ),
        *(
            f"/title/{record.key}",
            "/catalogue?words=nothing",
            "/targets",
            "/targets/new",
            f"/targets/{number}",
            f"/targets/{number}?tab=owner",
            f"/targets/{number}?tab=harvests",
            f"/targets/{number}?tab=history",
            f"/targets/{number}/letter",
        ),
        *("/rules?url=example.org", "/import", "/schedule/page"),
        *(
            f"/targets/{number}/title",
            f"/targets/import/{listed}",
            "/targets/ask",
            "/letters",
            f"/letters/{letter.id}",
            "/criteria",
        ),
        *(
            "/letters/templates/notice/de",
            "/cases",
            f"/cases/{case.reference}",
            f"/cases/{open_case.reference}",
            "/targets/999999",
        ),
    ]


@pytest.mark.browser
@needs_axe
def test_every_page_is_accessible_and_fits_a_phone(office: Served, box: LetterBox, page: Page):
    with office.archive() as archive:
        paths = pages_of(archive, box)
    for path in paths:
        look_at(page, office.portal, path, status=404 if path.endswith("999999") else 200)


@pytest.mark.browser
@needs_axe
def test_answers_to_forms_are_accessible_and_fit_a_phone(office: Served, page: Page):
    """Pages that only a form leads to: previews, results and questions."""
    with office.archive() as archive:
        number = targets.enter(archive, targets.draft(["https://results.example/"], name="Results"))[0].id
        targets.enter(archive, targets.draft(["https://other.results.example/"], name="Other"))
        judged = [Judgement(criterion=code, value=1.0, reason="r") for code in ("national", "cultural")]
        criteria_service.answer(archive, number, judged)
        targets.decide(archive, number, "select")
        contacts.add_contact(archive, Contact(target=number, name="Owner", mail="o@results.example"))
        letters.ask(archive, [number], portal_url=office.portal)
        answer = letters.letters_of(archive, number)[0].body.rpartition("/answer/")[2].split()[0]
        delivery.deliver_for(archive, number)
    look_at(page, office.portal, "/answer/nonsense", status=404)
    look_at(page, office.portal, f"/answer/{answer}")
    look(page, "answer")
    page.locator("[value=consent]").check()
    page.locator("main form button").click()
    page.wait_for_url("**done**")
    look(page, "answered")
    for name, rows in (("new", "address,name,odd\nhttps://csv.example/,New,x"), ("bad", "address\nno site")):
        page.goto(f"{office.portal}/targets/new")
        page.locator("[name=text]").evaluate("(field) => field.closest('details')?.setAttribute('open', '')")
        page.fill("[name=text]", rows)
        page.locator("form[action='/targets/import'] button").click()
        page.wait_for_url("**/targets/import/**")
        look(page, f"csv-{name}")
    page.goto(f"{office.portal}/targets?q=results.example")
    for box in page.locator("[name=target]").all():
        box.check()
    page.locator("select[name=act]").select_option("reject")
    page.locator("form[action^='/targets/bulk'] button").last.click()
    page.wait_for_url("**/targets/bulk**")
    look(page, "bulk")
    page.fill("[name=reason]", "out of scope")
    page.locator("form[action^='/targets/bulk/run'] button").click()
    page.wait_for_url(re.compile(r"/targets/bulk/\d+"))
    page.locator("main .notice, main .wrong").first.wait_for()
    look(page, "bulk-done")
    page.goto(f"{office.portal}/targets/{number}?tab=owner")
    page.locator("form[action$='/contacts'] button[name=end]").first.click()
    page.locator("[name=confirmed]").wait_for(state="attached")
    look(page, "question")
    page.locator("main a.button.second").click()
    page.wait_for_url("**tab=owner**")
