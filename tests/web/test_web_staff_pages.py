"""Pages of staff and partners over HTTP: actions on several sites, access rules, nominations of a partner, sites
of an organisation.
"""

import io
import re
import time
import zipfile
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from museum import EDITIONS, NOW, PASSWORD, SITE, Answer, Served, Warc, ask, make_home, serving, sign_in
from sqlalchemy import update

from small_sites import cleared, small_site
from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotPermitted
from webdepot.harvest.tables import harvests as harvests_table
from webdepot.model import HarvestState
from webdepot.provenance import EventFilter
from webdepot.provenance import page as page_of_events
from webdepot.selection.domains import organisations
from webdepot.selection.domains.profile import OrganisationProfile
from webdepot.selection.states import TargetState
from webdepot.selection.targets import Origin
from webdepot.services import pipeline
from webdepot.services.access import rules, search
from webdepot.services.admin import setup, target_view
from webdepot.services.catalogue import records
from webdepot.services.depot import storage_places
from webdepot.services.harvest import harvests
from webdepot.services.review import reviews
from webdepot.services.schedule import plans, scheduler
from webdepot.services.selection import targets

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("staff")
    warc = Warc(folder / "site.warc.gz")
    for page in ("", "news.html"):
        warc.response(f"{SITE}/{page}", EDITIONS[0], f"<title>Clocks</title><h1>{page}</h1>".encode())
    home = make_home(folder / "home", warc.write())
    with Archive.open(home, clock=lambda: NOW) as archive:
        for role in Role:
            accounts.add(archive.database, role.value, PASSWORD, [role], NOW)
        accounts.add(archive.database, "other-partner", PASSWORD, [Role.PARTNER], NOW)
        with archive.database.transaction() as connection:
            profile = OrganisationProfile(root="museum.example", host="www.museum.example")
            organisations.save(connection, profile, now=NOW)
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def cookies(office: Served) -> dict[str, str]:
    names = [role.value for role in (Role.CURATOR, Role.REVIEWER, Role.PARTNER)]
    return {name: sign_in(office, name) for name in (*names, "other-partner")}


def post(served: Served, path: str, cookie: str, fields: dict[str, str] | list[tuple[str, str]]) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
    return ask(served.portal + path, "POST", headers=headers, body=urlencode(fields).encode())


def get(served: Served, path: str, cookie: str = "") -> Answer:
    return ask(served.portal + path, headers={"Cookie": cookie} if cookie else {})


def wrongs(answer: Answer) -> list[str]:
    return re.findall(r'class="wrong" role="alert">([^<]*)', answer.text)


def test_an_action_on_ticked_sites_is_shown_first_and_then_done(office: Served, cookies):
    curator = cookies["curator"]
    with office.archive() as archive:
        numbers = [
            targets.enter(archive, targets.draft([f"https://bulk{count}.example/"]))[0].id
            for count in range(3)
        ]
        targets.decide(archive, numbers[2], "reject", reason="spam")
    ticked = [("target", str(number)) for number in numbers]
    for path in ("/targets/bulk", "/targets/bulk/run"):
        [why] = wrongs(post(office, path, curator, {"act": "reject"}))
        assert "No site was chosen" in why
    shown = post(office, "/targets/bulk", curator, [*ticked, ("act", "reject")])
    assert shown.status == 200 and "2 sites will be changed" in shown.text and "1 will not" in shown.text
    order = [*ticked, ("act", "reject"), ("count", "2")]
    wrong = post(office, "/targets/bulk/run", curator, [*order, ("reason", "")])
    assert wrong.status == 400 and len(wrongs(wrong)) == 1 and f'value="{numbers[0]}"' in wrong.text
    changed = post(
        office, "/targets/bulk/run", curator, [*ticked, ("act", "reject"), ("count", "9"), ("reason", EVIL)]
    )
    assert changed.status == 400 and "has changed" in changed.text and "<script>alert" not in changed.text
    done = post(office, "/targets/bulk/run", curator, [*order, ("reason", "not ours")])
    assert done.status == 303
    assert "2 sites were changed" in when_done(office, done.headers["Location"], curator)
    with office.archive() as archive:
        assert {targets.get(archive, number).state for number in numbers} == {TargetState.REJECTED}
        assert targets.history(archive, numbers[0])[0].agent == "curator"
    assert post(office, "/targets/bulk/run", cookies["reviewer"], order).status == 403


def when_done(office: Served, path: str, cookie: str) -> str:
    """The page of a job when the job has ended."""
    deadline = time.monotonic() + 60
    while "data-refresh" in (page := get(office, path, cookie).text):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return page


def test_an_action_on_all_that_match_a_filter(office: Served, cookies):
    curator = cookies["curator"]
    with office.archive() as archive:
        for count in range(4):
            targets.enter(archive, targets.draft([f"https://filtered{count}.example/"]))
        other = targets.enter(archive, targets.draft(["https://unmatched.example/"]))[0].id
    path = "/targets/bulk?q=filtered"
    assert "4 sites will be changed" in post(office, path, curator, {"all": "1", "act": "collection"}).text
    fields = {"all": "1", "act": "collection", "count": "4", "collection": "chosen"}
    begun = post(office, "/targets/bulk/run?q=filtered", curator, fields)
    when_done(office, begun.headers["Location"], curator)
    with office.archive() as archive:
        assert targets.find(archive, "filtered2.example").target.collection == "chosen"
        assert targets.get(archive, other).target.collection == "all"


def test_a_rule_is_added_listed_and_ended_with_who_and_why(office: Served, cookies):
    reviewer, url = cookies["reviewer"], f"{SITE}/news.html"
    assert get(office, f"/all/*/{url}").status == 200
    form = {"pattern": url, "answer": "refuse", "reason": "privacy", "text": "Closed.", "note": EVIL}
    assert post(office, "/rules", cookies["curator"], form).status == 403
    wrong = post(office, "/rules", reviewer, form | {"valid_to": "never"})
    assert wrong.status == 400 and len(wrongs(wrong)) == 1 and url in wrong.text
    assert "&lt;script&gt;" in wrong.text and "<script>alert" not in wrong.text
    wrong = post(office, "/rules", reviewer, form | {"captured_from": "4-13-2019"})
    assert wrong.status == 400 and 'value="4-13-2019"' in wrong.text
    period = {"captured_from": "mrt 2001", "captured_to": "31-12-2025"}
    assert post(office, "/rules", reviewer, form | period).status == 303
    assert get(office, f"/all/*/{url}").status == 451
    page = get(office, f"/rules?q={url}", cookies["curator"]).text
    assert "example.org/news.html" in page and "reviewer" in page and "1 capture" in page
    assert 'name="end"' not in page, "a curator reads only"
    with office.archive() as archive:
        [rule] = rules.every(archive)
    assert (rule.captured_from, rule.captured_to) == ("20010301000000", "20251231235959")
    silent = post(office, "/rules", reviewer, {"end": str(rule.id), "why": ""})
    assert silent.status == 400 and len(wrongs(silent)) == 1
    assert (
        post(office, "/rules", reviewer, {"end": str(rule.id), "why": "settled", "confirmed": "yes"}).status
        == 303
    )
    assert get(office, f"/all/*/{url}").status == 200
    assert "settled" in get(office, "/rules", reviewer).text
    assert post(office, "/rules", reviewer, {"end": "99999", "why": "x", "confirmed": "yes"}).status == 404


def test_patterns_of_rules_read_as_people_type_them(office: Served):
    typed = ["a.example", "*.a.example", "a.example/news/*", "a.example/page.html", "a.example:8080/x/*"]
    with office.archive() as archive:
        for pattern in typed:
            made = rules.add(archive, pattern, answer=rules.RuleAnswer.WARN)
            assert pattern in {rules.pattern_of(rule) for rule in made}, pattern
            for rule in made:
                rules.remove(archive, rule.id)


def test_a_partner_sees_what_became_of_their_nominations_and_nothing_else(office: Served, cookies):
    partner = cookies["partner"]
    told = post(office, "/targets", partner, {"addresses": "https://mine.example/", "name": "Mine"})
    assert told.headers["Location"] == "/nominations?done=1"
    post(office, "/targets", cookies["other-partner"], {"addresses": "https://theirs.example/"})
    page = get(office, "/nominations", partner).text
    assert "mine.example" in page and "being considered" in page and "theirs.example" not in page
    with office.archive() as archive:
        number = targets.find(archive, "mine.example").id
        targets.decide(archive, number, "reject", reason="an internal remark")
    page = get(office, "/nominations", partner).text
    assert "not chosen for this archive" in page and "internal remark" not in page
    for path in ("/targets", f"/targets/{number}", "/dashboard", "/rules", "/harvests"):
        assert get(office, path, partner).status == 403, path
    assert get(office, "/nominations", cookies["curator"]).status == 403
    signed = ask(
        f"{office.portal}/sign-in",
        "POST",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=urlencode({"name": "partner", "password": PASSWORD}).encode(),
    )
    assert signed.headers["Location"] == "/nominations"


def test_a_partner_does_not_learn_of_what_is_hidden_or_not_accepted(office: Served, tmp_path):
    warc = Warc(tmp_path / "theirs.warc.gz")
    warc.response("http://partnered.example/", EDITIONS[1], b"<title>Partnered</title>")
    nomination = targets.draft(["http://partnered.example/"], origin=Origin.PARTNER, by="Kay")
    kay = Reader(name="Kay", roles=frozenset({Role.PARTNER}), access_point=AccessPoint.PARTNER)
    with office.archive() as archive:
        number = targets.enter(archive, nomination)[0].id
        assert cleared(archive, "http://partnered.example/") == number
        report = pipeline.import_files(archive, [warc.write()], collection="partnered").taken
        assert report is not None
        with archive.database.transaction() as connection:
            connection.execute(
                update(harvests_table).values(target=number).where(harvests_table.c.id == report.harvest.id)
            )

        def outcome() -> str:
            [(_, became)] = target_view.nominations_of(archive, "Kay", kay).rows
            return became

        assert outcome() == "archived"
        [rule] = rules.add(archive, "http://partnered.example/", answer=rules.RuleAnswer.HIDE)
        assert outcome() == "chosen"
        rules.remove(archive, rule.id)
        with archive.database.transaction() as connection:
            finished = update(harvests_table).values(state=HarvestState.FINISHED.value)
            connection.execute(finished.where(harvests_table.c.id == report.harvest.id))
        assert outcome() == "chosen", "a harvest under review does not count"
        with archive.database.transaction() as connection:
            kept = update(harvests_table).values(state=HarvestState.KEPT.value)
            connection.execute(kept.where(harvests_table.c.id == report.harvest.id))


def test_hosts_of_an_organisation_become_sites_or_one_site(office: Served, cookies):
    curator, path = cookies["curator"], "/organisations/museum.example"
    with office.archive() as archive:
        root = organisations_of(archive)
        for host in ("www.museum.example", "shop.museum.example", "blog.museum.example"):
            with archive.database.transaction() as connection:
                organisations.decide(connection, root, host, accepted=True, by="Ada", now=NOW)
    assert 'form="make-sites"' in get(office, path, curator).text
    none = post(office, f"{path}/sites", curator, {"as": "sites", "which": "ticked"})
    assert none.status == 400 and wrongs(none) == ["No host was chosen. Tick at least one."]
    stranger = post(office, f"{path}/sites", curator, {"host": "evil.example", "as": "sites"})
    assert stranger.status == 400 and "not a known host" in stranger.text
    two = [("host", "shop.museum.example"), ("host", "blog.museum.example"), ("as", "sites")]
    assert post(office, f"{path}/sites", curator, two).headers["Location"].endswith("?nominated=2#sites")
    one = post(office, f"{path}/sites", curator, {"which": "own", "as": "one", "collection": "museums"})
    with office.archive() as archive:
        assert targets.find(archive, "shop.museum.example").state is TargetState.NOMINATED
        dossier = targets.get(archive, int(one.headers["Location"].rpartition("/")[2]))
    assert len(dossier.target.seeds) == 3 and dossier.target.collection == "museums"


def organisations_of(archive: Archive) -> int:
    with archive.database.reading() as connection:
        return organisations.get(connection, "museum.example").id


def upload(
    served: Served, cookie: str, name: str, data: bytes, collection: str = "uploads", **more: bytes
) -> Answer:
    """Post a file; `more` are the parts of an object, by their names with `_` for `.`."""
    fields = {"collection": collection, "what": "object" if more else "containers"}
    files = {name: data, **{key.replace("_", "."): value for key, value in more.items()}}
    parts = [
        *(
            f'--edge\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}'.encode()
            for key, value in fields.items()
        ),
        *(
            f'--edge\r\nContent-Disposition: form-data; name="files"; filename="{key}"\r\n'.encode()
            + b"Content-Type: application/gzip\r\n\r\n"
            + value
            for key, value in files.items()
        ),
        b"--edge--\r\n",
    ]
    headers = {"Content-Type": "multipart/form-data; boundary=edge", "Cookie": cookie}
    return ask(f"{served.portal}/import", "POST", headers=headers, body=b"\r\n".join(parts))


def test_an_uploaded_warc_is_imported_and_reported(office: Served, cookies, tmp_path):
    curator = cookies["curator"]
    warc = Warc(tmp_path / "late.warc.gz")
    warc.response("http://uploaded.example/", EDITIONS[1], b"<title>Uploaded</title><p>pendulum</p>")
    data = warc.write().read_bytes()
    for name, collection in (("late.warc.gz", "not a name!"), ("late.exe", "uploads"), ("", "uploads")):
        wrong = upload(office, curator, name, data, collection)
        assert wrong.status == 400 and len(wrongs(wrong)) == 1, name
        assert f'value="{collection}"' in wrong.text or not name
    assert upload(office, cookies["reviewer"], "late.warc.gz", data).status == 403
    assert upload(office, curator, "late.warc.gz", data).status == 303
    page = imported(office, curator)
    assert "1 file was imported." in page and "late.warc.gz" in page and 'href="/harvests/' in page
    assert get(office, "/uploads/*/http://uploaded.example/").status == 200
    # Other tests of this module may have imported something before.
    reviews = re.findall(r'href="(/review/[^"#]+)#pages">See the imported pages', page)
    link = f'href="/uploads/{EDITIONS[1]}/http://uploaded.example/"'
    assert [link in get(office, review, curator).text for review in reviews].count(True) == 1
    assert not list(office.home.glob(".uploading-*")), "the uploaded file is removed"
    with office.archive() as archive, archive.database.reading() as connection:
        events = [event for _, event in page_of_events(connection, EventFilter(action="uploaded"), limit=5)]
    [agent] = [event.agent for event in events if event.detail["after"]["files"] == ["late.warc.gz"]]
    assert agent == "curator"


def imported(office: Served, curator: str) -> str:
    """The page of imports when none runs any more."""
    deadline = time.monotonic() + 60
    while "<progress" in (page := get(office, "/import", curator).text) and time.monotonic() < deadline:
        time.sleep(0.1)
    return page


def test_an_uploaded_object_is_taken_in_with_its_record(office: Served, cookies):
    curator = cookies["curator"]
    record = (
        b'<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
        b'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Escapements</dc:title></oai_dc:dc>'
    )
    wrong = upload(office, curator, "thesis?.html", b"x", dc_xml=record)
    assert wrong.status == 400 and "Rename it" in wrongs(wrong)[0]
    assert upload(office, curator, "thesis.html", b"<p>The deadbeat of Graham", dc_xml=record).status == 303
    page = imported(office, curator)
    assert "thesis.html, dc.xml" in page and "1 file was imported." in page
    with office.archive() as archive:
        (hit,) = search.search(archive, "deadbeat", reader=ANYONE).hits
        assert records.get(archive, hit.url.partition("/")[0]).title == "Escapements"
    assert upload(office, curator, "thesis.html", b"other", dc_xml=b"<broken").status == 303
    assert "dc.xml is not well-formed XML" in imported(office, curator)


def test_an_upload_has_at_most_the_configured_size(tmp_path):
    home = make_home(tmp_path / "home", settings="[web]\nupload_bytes = 1000\n")
    with Archive.open(home) as archive:
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], NOW)
    with serving(home) as served:
        refused = upload(served, sign_in(served, "curator"), "a.warc.gz", b"x" * (3 << 20))
    assert refused.status == 400 and "at most" in wrongs(refused)[0]


def test_the_depot_is_checked_and_a_package_downloaded(office: Served, cookies, tmp_path):
    curator, boss = cookies["curator"], sign_in(office, "administrator")
    warc = Warc(tmp_path / "kept.warc.gz")
    warc.response("http://kept.example/", EDITIONS[1], b"<title>Kept</title>")
    with office.archive() as archive:
        report = pipeline.import_files(archive, [warc.write()], collection="kept").taken
    assert report is not None and report.package is not None
    path = f"/depot/packages/{report.package.id}"
    page = get(office, path, curator).text
    assert f"/harvests/{report.harvest.id}" in page and f'href="/targets/{report.harvest.target}"' in page
    assert "download.wacz" not in page and get(office, f"{path}/download.wacz", curator).status == 403
    assert "download.wacz" in get(office, path, boss).text
    sent = get(office, f"{path}/download.wacz", boss)
    assert sent.headers["Content-Disposition"].startswith("attachment")
    assert any(name.startswith("archive/") for name in zipfile.ZipFile(io.BytesIO(sent.body)).namelist())
    assert get(office, f"{path}/download.exe", boss).status == 404
    assert get(office, "/depot/packages/nothing/download.zip", boss).status == 404
    assert post(office, "/depot/audit", cookies["reviewer"], {}).status == 403
    assert post(office, "/depot/audit", curator, {"which": "all"}).status == 303
    deadline = time.monotonic() + 60
    while "data-refresh" in (page := get(office, "/depot", curator).text):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "Last check:" in page
    closed = post(office, "/depot/places", boss, {"name": "vault", "address": "/tmp/elsewhere"})
    assert closed.status == 403 and "portal_places" in wrongs(closed)[0]


def test_places_are_added_only_where_the_configuration_allows(tmp_path):
    home = make_home(tmp_path / "home", settings=f'[depot]\nportal_places = ["{tmp_path}/vaults"]\n')
    with Archive.open(home) as archive:
        accounts.add(archive.database, "boss", PASSWORD, [Role.ADMINISTRATOR], NOW)
        for address in (
            "/etc",
            f"{tmp_path}/vaults/../x",
            f"{tmp_path}/vaults-too",
            "s3://b?endpoint=http://h",
        ):
            with pytest.raises(NotPermitted):
                storage_places.check_portal_place(archive, address)
    with serving(home) as served:
        boss = sign_in(served, "boss")
        form = {"name": "Not A Name", "address": f"{tmp_path}/vaults/one"}
        wrong = post(served, "/depot/places", boss, form)
        assert wrong.status == 400 and wrongs(wrong) and "vaults/one" in wrong.text
        assert post(served, "/depot/places", boss, form | {"name": "one"}).status == 303
        assert "vaults/one" in get(served, "/depot", boss).text


def test_one_page_is_archived_through_permission_and_review(tmp_path):
    requested: list[str] = []

    def page_of(path: str) -> str:
        requested.append(path)
        return f"<title>{path}</title><a href=/other.html>other</a><img src=/dot.png>"

    home = tmp_path / "home"
    setup.create(home, settings="[harvest]\nallow_private = true\ndelay_s = 0\n")
    with small_site(page_of) as site, Archive.open(home) as archive:
        with pytest.raises(InputError):
            plans.archive_page(archive, f"{site}/news.html")
        number = targets.enter(archive, targets.draft([f"{site}/"]))[0].id
        with pytest.raises(NotPermitted):
            plans.archive_page(archive, f"{site}/news.html")
        assert cleared(archive, f"{site}/") == number
        harvest = plans.archive_page(archive, f"{site}/news.html", by="Ada")
        with pytest.raises(Conflict):
            plans.archive_page(archive, f"{site}/news.html")
        [waiting] = plans.of_target(archive, number).turns
        plans.skip(archive, waiting.id)
        plans.retry(archive, waiting.id)
        assert harvests.get(archive, harvest.id).state is HarvestState.FAILED
        [turn] = scheduler.run_due(archive)
        assert turn.harvest == harvest.id, "another attempt is for the page, not for the site"
        ended = harvests.get(archive, harvest.id)
        assert ended.state is HarvestState.FINISHED, "it waits for a reviewer"
        assert "/news.html" in requested and "/dot.png" in requested and "/other.html" not in requested
        assert not archive.captures.total(), "and readers do not see it"
        plans.run_now(archive, number)
        [whole] = scheduler.run_due(archive)
        assert whole.harvest != harvest.id and "/other.html" in requested
        found = reviews.dossier(archive, whole.harvest)
        assert found.compared is None, "a site is not compared with a page"
