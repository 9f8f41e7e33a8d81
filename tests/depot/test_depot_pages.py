"""Pages of the depot: who may see them, what they say in three languages, the alarm, the report that a third
party can check.
"""

import json

import pytest

from portal_client import Portal
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.depot.copies import CopyState
from webdepot.errors import CorruptData
from webdepot.provenance import append
from webdepot.services.depot import audit, status, storage_places
from webdepot.web.app import build_portal
from webdepot.web.language.language import load

PATHS = ("/depot", "/depot/packages", "/depot/report.json")


@pytest.fixture
def portal(archive, clock) -> Portal:
    accounts.add(archive.database, "anna", "a long password", [Role.CURATOR], clock())
    return Portal(build_portal(archive, portal_url="http://testserver", replay_url="http://replay.test"))


def sign_in(client: Portal) -> None:
    assert (
        client.post("/sign-in", {"name": "anna", "password": "a long password", "to": "/"}).status_code == 303
    )


def test_only_staff_sees_them(portal):
    for path in (*PATHS, "/depot/packages/urn:uuid:1"):
        assert portal.get(path).status_code == 303
        assert "/sign-in" in portal.get(path).headers["location"]


@pytest.mark.parametrize("language", ["en", "nl", "de"])
def test_an_empty_depot_has_pages(portal, language):
    sign_in(portal)
    for path in PATHS:
        assert portal.get(path, params={"lang": language}).status_code == 200


@pytest.mark.parametrize(
    ("language", "whole", "damaged"),
    [("en", "intact", "damaged"), ("nl", "intact", "beschadigd"), ("de", "intakt", "beschädigt")],
)
def test_packages_copies_events_and_the_alarm(portal, archive, keep_site, tmp_path, language, whole, damaged):
    sign_in(portal)
    kept = [keep_site(number) for number in range(1, 4)]
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    storage_places.fill(archive)
    page = portal.get("/depot", params={"lang": language}).text
    assert 'role="alert"' not in page
    assert f"4 {whole}" in page or f"3 {whole}" in page
    listed = portal.get("/depot/packages", params={"lang": language}).text
    assert all(load(language).dated_title(each.title) in listed for each in kept)
    shown = portal.get(f"/depot/packages/{kept[0].id}", params={"lang": language}).text
    assert "warc/site-1.warc.gz" in shown
    assert kept[0].urn in shown
    with archive.database.transaction() as connection:
        append(connection, archive.event("pictured", "package", kept[0].id))
    shown = portal.get(f"/depot/packages/{kept[0].id}", params={"lang": language}).text
    assert load(language).texts["actions.pictured"] in shown and "pictured" not in shown
    container = next((tmp_path / "second").rglob("site-1.warc.gz"))
    container.write_bytes(b"spoiled")
    audit.audit(archive, packages=[kept[0].id], repair=False)
    alarmed = portal.get("/depot", params={"lang": language}).text
    assert 'role="alert"' in alarmed
    assert damaged in alarmed
    assert kept[0].id in alarmed


def test_pages_of_packages_go_on_where_the_last_ended(portal, keep_site, monkeypatch):
    monkeypatch.setattr("webdepot.web.staff.depot.PER_PAGE", 2)
    sign_in(portal)
    kept = [keep_site(number) for number in range(1, 6)]
    seen, path = [], "/depot/packages"
    while path:
        text = portal.get(path).text
        seen += [each.title for each in kept if load("en").dated_title(each.title) in text]
        path = text.partition('rel="next" href="')[2].partition('"')[0]
    assert sorted(seen) == sorted(each.title for each in kept)


def test_the_report_is_signed_and_a_changed_one_is_found_out(portal, archive, keep_site):
    sign_in(portal)
    kept = keep_site(1)
    data = portal.get("/depot/report.json").content
    key = status.public_key(archive)
    assert status.check_report(data, key=key) == key
    document = json.loads(data)
    assert [(copy["package"], copy["state"]) for copy in document["report"]["copies"]] == [
        (kept.id, CopyState.WHOLE.value)
    ]
    document["report"]["copies"][0]["state"] = "lost"
    with pytest.raises(CorruptData):
        status.check_report(json.dumps(document).encode())
    with pytest.raises(CorruptData):
        status.check_report(data, key="AAAA")
    assert (archive.home / "keys" / "report.pem").stat().st_mode & 0o077 == 0


def test_a_package_that_is_not_there(portal):
    sign_in(portal)
    assert portal.get("/depot/packages/urn:none").status_code == 404


def test_levels_are_not_claimed_beyond_what_is_true(archive, keep_site, tmp_path, clock):
    keep_site(1)
    levels = {level.area: level.level for level in status.status(archive).levels}
    assert levels["storage"] == levels["integrity"] == levels["metadata"] == 0
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    storage_places.fill(archive)
    object.__setattr__(archive.config.depot, "virus_scanner", "true")
    levels = {level.area: level.level for level in status.status(archive).levels}
    assert (levels["storage"], levels["integrity"], levels["metadata"]) == (1, 4, 4)
    clock.pass_days(100)
    levels = {level.area: level.level for level in status.status(archive).levels}
    assert levels["integrity"] == 2, "every copy is overdue"
