"""Harvests, reports, profiles and scope in the portal: who may see and do what, and what the pages show."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from museum import NOW, PASSWORD, Answer, Served, ask, serving, sign_in

from small_sites import small_site
from webdepot.accounts import accounts
from webdepot.accounts.accounts import Role
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.harvest import profiles, runner

PAGES = {
    "/": "<a href=/2>two</a><a href=/film.avi>film</a><a href=http://else.example/>else</a>",
    "/2": "<title>Two</title>two",
}


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A served home with one harvest that reached its limit, and a profile."""
    home = tmp_path_factory.mktemp("harvests") / "home"
    setup.found(home, settings="[harvest]\nallow_private = true\n")
    with small_site(lambda path: PAGES.get(path, "")) as site, Archive.open(home) as archive:
        profiles.save(
            archive,
            "museum",
            'description = "Museums"\ndelay_s = 0\n[[rules]]\nreject = "extension"\nof = ["avi"]\n',
        )
        options = profiles.options_of(archive, "museum")
        harvest = runner.start_or_resume(archive, [f"{site}/"], options)
        runner.run(archive, harvest)
        for role in (Role.READER, Role.CURATOR, Role.REVIEWER):
            accounts.add(archive.database, role.value, PASSWORD, [role], NOW)
    with serving(home) as served:
        yield served, harvest.id


def get(served: Served, path: str, who: str = "curator") -> Answer:
    return ask(served.portal + path, headers={"Cookie": sign_in(served, who)})


def post(served: Served, path: str, who: str = "curator", **fields: str) -> Answer:
    headers = {"Cookie": sign_in(served, who), "Content-Type": "application/x-www-form-urlencoded"}
    return ask(served.portal + path, "POST", headers=headers, body=urlencode(fields).encode())


def test_staff_only(harvested: tuple[Served, str]) -> None:
    served, harvest = harvested
    paths = (
        "/harvests",
        f"/harvests/{harvest}",
        f"/harvests/{harvest}/reports/hosts",
        "/profiles",
        "/profiles/museum",
        "/scope",
    )
    for path in paths:
        assert ask(served.portal + path).status == 303
        assert get(served, path, "reader").status == 403
        assert get(served, path, "reviewer").status == 200
    assert post(served, f"/harvests/{harvest}/orders", "reviewer", order="stop").status == 403
    assert post(served, "/profiles/x", "reviewer", text="").status == 403


def test_the_list_and_one_harvest(harvested: tuple[Served, str]) -> None:
    served, harvest = harvested
    assert f"/harvests/{harvest}" in get(served, "/harvests").text
    page = get(served, f"/harvests/{harvest}").text
    assert "/profiles/museum" in page
    assert "Complete. The queue is empty." in page
    live = get(served, f"/harvests/{harvest}/live")
    assert live.headers["X-Ended"] == "1"
    assert "<html" not in live.text
    refused = post(served, f"/harvests/{harvest}/orders", order="pause")
    assert refused.status == 409
    assert "Only a harvest that is running or was stopped" in refused.text
    assert get(served, "/harvests/nothing").status == 404


def test_reports_as_page_csv_and_json(harvested: tuple[Served, str]) -> None:
    served, harvest = harvested
    for kind in ("hosts", "mime", "status", "seeds", "rejected", "traps"):
        assert get(served, f"/harvests/{harvest}/reports/{kind}").status == 200
    assert "extension" in get(served, f"/harvests/{harvest}/reports/rejected").text
    table = get(served, f"/harvests/{harvest}/reports/status.csv")
    assert table.headers["Content-Type"].startswith("text/csv")
    assert table.text.splitlines()[0] == "name,documents,bytes,example,reason"
    rows = json.loads(get(served, f"/harvests/{harvest}/reports/rejected.json").text)["rows"]
    assert {row["name"]: row["refused"] for row in rows} == {"extension": 1, "outside": 1}
    assert get(served, f"/harvests/{harvest}/reports/nothing").status == 400


def test_profiles_are_written_in_the_portal_and_a_wrong_one_is_explained(
    harvested: tuple[Served, str],
) -> None:
    served, _ = harvested
    assert "museum" in get(served, "/profiles").text
    assert post(served, "/profiles", name="news").headers["Location"] == "/profiles/news"
    assert post(served, "/profiles/news", text='scope = "domain"\r\n').status == 303
    assert (served.home / "profiles" / "news.toml").read_text() == 'scope = "domain"\n'
    wrong = post(served, "/profiles/news", text='scop = "domain"')
    assert wrong.status == 400
    assert "Did you mean `scope`" in wrong.text
    assert "scop = " in wrong.text
    assert (served.home / "profiles" / "news.toml").read_text() == 'scope = "domain"\n'
    assert post(served, "/profiles/..%2Fx", text="").status in (400, 404, 405)
    assert post(served, "/profiles/news", text='scope = "domain"\r\n', fetch="when-empty").status == 303
    assert (served.home / "profiles" / "news.toml").read_text() == 'fetch = "when-empty"\nscope = "domain"\n'
    assert "when-empty" in get(served, "/profiles/news").text
    assert post(served, "/profiles/news", text='scope = "domain"\n', fetch="netscape").status == 400


def test_scope_is_explained(harvested: tuple[Served, str]) -> None:
    served, _ = harvested
    query = urlencode(
        {"url": "http://a.example/x.avi", "profile": "museum", "seed": "http://a.example/", "path": "L"}
    )
    page = get(served, f"/scope?{query}").text
    assert "This address is not harvested" in page
    assert "reject extension avi" in page
    assert "There is no target" in get(served, "/scope?url=http://a.example/&target=99").text


def test_paths_of_the_home_are_not_shown(harvested: tuple[Served, str], tmp_path: Path) -> None:
    served, harvest = harvested
    assert str(served.home) not in get(served, f"/harvests/{harvest}").text
