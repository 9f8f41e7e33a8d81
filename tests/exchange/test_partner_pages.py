"""The page of partners: last harvest, counts, failures with reasons, and trying again."""

import time
from urllib.parse import urlencode

import pytest
from exchange_samples import ask, portal
from partner_doubles import desk, put
from partner_offers import article, checksum

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest

PASSWORD = "correct horse battery"


def sign_in(url: str, name: str) -> dict[str, str]:
    form = urlencode({"name": name, "password": PASSWORD, "to": "/"}).encode()
    answer = ask(
        f"{url}/sign-in", "POST", headers={"Content-Type": "application/x-www-form-urlencoded"}, body=form
    )
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    setup.create(folder)
    with Archive.open(folder) as archive:
        for role in (Role.CURATOR, Role.REVIEWER, Role.ADMINISTRATOR):
            accounts.add(archive.database, role.value, PASSWORD, [role], archive.clock())
    return folder


def test_a_refused_object_is_seen_with_its_reason_and_tried_again(home):
    with desk() as partner:
        put(partner, [article()], change=checksum("0" * 64))
        with Archive.open(home, agent="test") as archive:
            partner_admin.add(archive, "p", f"{partner.url}/oai")
            oai_harvest.harvest(archive, "p")
            partner_ingest.ingest(archive, "p")
        with portal(home) as url:
            assert ask(f"{url}/partners").status == 303, "not for readers"
            staff, curator = sign_in(url, "reviewer"), sign_in(url, "curator")
            listed = ask(f"{url}/partners", headers=staff)
            assert listed.status == 200
            assert partner.url in listed.text
            shown = ask(f"{url}/partners/p", headers=staff).text
            assert "the ZIP is damaged: expected SHA-256" in shown
            assert 'value="retry"' not in shown, "a reviewer only looks"
            assert 'value="retry"' in ask(f"{url}/partners/p", headers=curator).text
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            assert ask(f"{url}/partners/p", "POST", headers=form | staff, body=b"what=retry").status == 403
            foreign = form | curator | {"Origin": "http://evil.example"}
            assert ask(f"{url}/partners/p", "POST", headers=foreign, body=b"what=retry").status == 403
            assert (
                ask(f"{url}/partners/p", "POST", headers=form | curator, body=b"what=nonsense").status == 400
            )
            put(partner, [article()])
            assert ask(f"{url}/partners/p", "POST", headers=form | curator, body=b"what=retry").status == 303
            until = time.monotonic() + 120
            while (
                "No records were refused" not in (page := ask(f"{url}/partners/p", headers=curator).text)
                or "is being harvested" in page
            ):
                assert time.monotonic() < until, page
                time.sleep(0.3)
        with Archive.open(home) as archive:
            assert records.get(archive, article().levels[-1].urn).is_object


def test_a_partner_is_added_by_an_administrator(home):
    with portal(home) as url:
        form = sign_in(url, "administrator") | {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(
            {"name": "nlb", "url": "https://depot.example.org/oai", "set": "", "token": "geheim"}
        ).encode()
        answer = ask(f"{url}/partners", "POST", headers=form, body=body)
        assert (answer.status, answer.headers["Location"]) == (303, "/partners/nlb")
        page = ask(f"{url}/partners/nlb", headers=form).text
        assert "geheim" not in page
        assert ask(f"{url}/partners", "POST", headers=form, body=body).status == 409
        assert (
            ask(f"{url}/partners", "POST", headers=form, body=b"name=x&url=javascript:alert(1)").status == 400
        )
