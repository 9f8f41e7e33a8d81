"""Pages of formats and quality: for staff only, in every language, and editable."""

import json

import pytest
from museum import ask, serving, sign_in

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services import pipeline
from webdepot.services.admin import setup

PAGES = [
    "/formats",
    "/formats?collection=museums",
    "/formats/watch",
    "/formats/watch?collection=museums",
    "/formats/registry",
    "/formats/registry.json",
    "/formats.csv",
]


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory, museum):
    from museum import NOW, PASSWORD

    home = tmp_path_factory.mktemp("surveyed") / "archive"
    setup.create(home, clock=lambda: NOW)
    with Archive.open(home, clock=lambda: NOW) as archive:
        taken = pipeline.import_files(archive, [museum], collection="museums").taken
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], NOW)
    with serving(home) as running:
        yield running, taken.harvest.id


def test_only_for_staff(surveyed):
    served, harvest = surveyed
    for path in (*PAGES, f"/quality/{harvest}"):
        assert ask(served.portal + path).status == 303


@pytest.mark.parametrize("language", ["en", "nl", "de"])
def test_pages(surveyed, language):
    served, harvest = surveyed
    cookie = {"Cookie": sign_in(served, "curator"), "Accept-Language": language}
    for path in PAGES:
        answer = ask(served.portal + path, headers=cookie)
        assert answer.status == 200, path
    moved = ask(f"{served.portal}/quality/{harvest}", headers=cookie)
    assert moved.status == 301 and moved.headers["Location"] == f"/review/{harvest}"
    quality = ask(f"{served.portal}/review/{harvest}", headers=cookie)
    assert quality.status == 200
    assert "http://live.example.net/leak.png" in quality.text  # a part that was never tried
    assert "image/png" in quality.text
    assert ask(f"{served.portal}/review/nothing", headers=cookie).status == 404


def test_tables_as_files(surveyed):
    served, _ = surveyed
    cookie = {"Cookie": sign_in(served, "curator")}
    for what, column in (
        ("shares", "byte_share"),
        ("years", "year"),
        ("mismatches", "server_said"),
        ("unknown", "bytes"),
        ("watch", "risk"),
    ):
        answer = ask(f"{served.portal}/formats.csv?what={what}", headers=cookie)
        assert answer.headers["Content-Type"].startswith("text/csv")
        assert column in answer.text.splitlines()[0]
    assert "image/png" in ask(f"{served.portal}/formats.csv", headers=cookie).text


def test_the_registry_is_changed(surveyed):
    served, _ = surveyed
    cookie = {
        "Cookie": sign_in(served, "curator"),
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": served.portal,
    }
    form = b"what=format&puid=image/x-odd&name=Odd&risk=at+risk&reason=Nobody+reads+it&software=browser&note="
    assert ask(f"{served.portal}/formats/registry", "POST", headers=cookie, body=form).status == 303
    known = json.loads(
        ask(f"{served.portal}/formats/registry.json", headers={"Cookie": cookie["Cookie"]}).text
    )
    assert {
        "puid": "image/x-odd",
        "name": "Odd",
        "risk": "at risk",
        "reason": "Nobody reads it",
        "note": "",
        "software": ["browser"],
    } in known["formats"]
    wrong = form.replace(b"risk=at+risk", b"risk=none+such")
    assert ask(f"{served.portal}/formats/registry", "POST", headers=cookie, body=wrong).status == 400


def test_ignoring_and_checking_again(surveyed):
    served, harvest = surveyed
    cookie = {
        "Cookie": sign_in(served, "curator"),
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": served.portal,
    }
    form = b"code=quality.part-never-tried&subject=http://live.example.net/leak.png&reason=&confirmed=yes"
    assert ask(f"{served.portal}/review/{harvest}/ignore", "POST", headers=cookie, body=form).status == 303
    assert ask(f"{served.portal}/review/{harvest}/check", "POST", headers=cookie, body=b"").status == 303
    page = ask(f"{served.portal}/review/{harvest}", headers={"Cookie": cookie["Cookie"]}).text
    assert "Ignored" in page
