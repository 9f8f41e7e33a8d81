"""Harvests, reports, profiles and scope in the portal: who may see and do what, and what the pages show."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

import pytest
from museum import NOW, PASSWORD, Answer, Served, ask, serving, sign_in
from PIL import Image

from small_sites import small_site
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.harvest.report import live
from webdepot.harvest.report.last_pictures import MOST, LastPictures
from webdepot.harvest.report.result import CrawlProgress, HostWait
from webdepot.model import HarvestState
from webdepot.services.admin import setup
from webdepot.services.harvest import control, harvests, profiles, runner

PAGES = {
    "/": "<a href=/2>two</a><a href=/film.avi>film</a><a href=http://else.example/>else</a>",
    "/2": "<title>Two</title>two",
}

DOING = CrawlProgress(
    fetched=7, waiting=3, in_flight=1, size_bytes=900, rate=2.0, errors=0, robots_refused=0,
    host="a.example", elapsed_s=90.0, pages=4, asked="http://a.example/asked",
)  # fmt: skip


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A served home with one harvest that reached its limit, and a profile."""
    home = tmp_path_factory.mktemp("harvests") / "home"
    setup.create(home, settings="[harvest]\nallow_private = true\n")
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


@pytest.fixture(scope="module")
def served(harvested: tuple[Served, str]) -> Served:
    return harvested[0]


@pytest.fixture(scope="module")
def interrupted(served: Served) -> str:
    """A harvest whose process has died."""
    with Archive.open(served.home) as archive:
        options = profiles.options_of(archive, "museum")
        harvest = runner.start_or_resume(archive, ["http://127.0.0.1:9/"], options)
        assert control.course_of(archive, harvest).name == "waiting"
        harvests.folder_of(archive, harvest).mkdir(parents=True)  # as the process did, before it died
        return harvest.id


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


def test_what_a_running_harvest_does_is_shown(served: Served, interrupted: str) -> None:
    with Archive.open(served.home) as archive:
        harvest = harvests.get(archive, interrupted)
        folder = harvests.folder_of(archive, harvest)
        shown = {
            "Last request: http://a.example/asked": DOING,
            "Open in the browser: http://a.example/open": replace(DOING, opened="http://a.example/open"),
            "Waiting 12 s before the next request to a server.": replace(DOING, wait_s=12.3),
        }
        with harvests.locked(folder):
            for words, progress in shown.items():
                live.Publisher(folder, archive.clock).write(progress)
                page = get(served, f"/harvests/{interrupted}/live").text
                assert words in page
                assert "<dt>Pages</dt><dd>4</dd>" in page and "<dd>1.5</dd>" in page
        (folder / live.FILE_NAME).unlink()


def test_pace_waits_and_last_pages_of_a_running_harvest_are_shown(served: Served, interrupted: str) -> None:
    with Archive.open(served.home) as archive:
        folder = harvests.folder_of(archive, harvests.get(archive, interrupted))
        soon = archive.clock() + timedelta(minutes=5)
        waits = (
            HostWait(host="a.example", status=503, failure="", next_at=soon),
            HostWait(host="b.example", status=0, failure="timeout", next_at=soon),
        )
        publisher = live.Publisher(folder, archive.clock, every_s=0)
        for seconds, pages in ((2, 1), (7, 4), (12, 4)):
            publisher(replace(DOING, elapsed_s=float(seconds), pages=pages, waits=waits))
        # The next run of the harvest continues the line.
        live.Publisher(folder, archive.clock, every_s=0)(replace(DOING, elapsed_s=16.0, pages=9, waits=waits))
        picture = BytesIO()
        Image.new("RGB", (640, 480), "navy").save(picture, "PNG")
        pictures = LastPictures(folder)
        for number in range(MOST + 2):
            pictures.add(f"http://a.example/{number}", picture.getvalue())
        with harvests.locked(folder):
            page = get(served, f"/harvests/{interrupted}").text
        small = get(served, f"/harvests/{interrupted}/pictures/0-{MOST + 2}")
        for path in (folder / live.FILE_NAME, *(folder / "pictures").iterdir()):
            path.unlink()
    at = f"{soon:%H:%M:%S} UTC."
    assert f"a.example returned status 503; next try {at}" in page
    assert f"b.example did not respond (it took too long); next try {at}" in page
    assert "Now 300, on average 34, at most 300 after 0.3 minutes." in page
    assert page.count("<img src=") == MOST and "http://a.example/1<" not in page
    assert small.headers["Content-Type"] == "image/jpeg" and small.body.startswith(b"\xff\xd8")
    for name in ("0-1", "1-3", "../x", "0-x"):
        assert get(served, f"/harvests/{interrupted}/pictures/{name}").status == 404
    assert ask(f"{served.portal}/harvests/{interrupted}/pictures/0-3").status == 303
    assert get(served, f"/harvests/{interrupted}/pictures/0-3", "reader").status == 403


def test_an_interrupted_harvest_is_shown_as_such_and_can_be_aborted(served: Served, interrupted: str) -> None:
    assert ">interrupted<" in get(served, "/harvests").text
    page = get(served, f"/harvests/{interrupted}").text
    assert ">interrupted<" in page and 'value="abort"' in page and 'value="pause"' not in page
    path = f"/harvests/{interrupted}/orders"
    assert post(served, path, "reviewer", order="abort").status == 403
    assert post(served, path, order="abort", reason="wrong site", confirmed="yes").status == 303
    ends_s = time.monotonic() + 60
    with Archive.open(served.home) as archive:
        while (harvest := harvests.get(archive, interrupted)).state is not HarvestState.FINISHED:
            assert time.monotonic() < ends_s, get(served, f"/harvests/{interrupted}").text
            time.sleep(0.05)
    assert "Given up by request" in harvest.reason
    assert 'value="abort"' not in get(served, f"/harvests/{interrupted}").text


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


def test_a_profile_is_edited_in_a_form_and_its_text_keeps_everything_else(served: Served) -> None:
    path = served.home / "profiles" / "form.toml"
    text = '# ours\nscope = "host" # why\n\n[hosts."a.example"]\ndelay_s = 9\n'
    assert post(served, "/profiles/form", text=text).status == 303
    page = get(served, "/profiles/form").text
    assert 'name="limit_pages"' in page and "Shortest pause between two requests" in page
    rule = {"rule-0-answer": "reject", "rule-0-condition": "extension", "rule-0-value": "avi\r\nmp4"}
    sent = {"view": "form", "text": text, "scope": "domain", "behaviours-default": "1", "delay_s": "0,5"}
    assert post(served, "/profiles/form", **sent, **rule).status == 303
    saved = path.read_text()
    assert saved == (
        'delay_s = 0.5\n# ours\nscope = "domain" # why\n\n[hosts."a.example"]\ndelay_s = 9\n\n'
        '[[rules]]\nreject = "extension"\nof = ["avi", "mp4"]\n'
    )
    assert "het hele domein, met alle hosts" in get(served, "/profiles?lang=nl").text
    wrong = post(
        served, "/profiles/form", **sent | {"text": saved, "limit_pages": "many", "reject": "("}, **rule
    )
    assert wrong.status == 400 and path.read_text() == saved
    assert "Write a whole number" in wrong.text and 'value="many"' in wrong.text
    assert "is not a usable regular expression" in wrong.text and 'aria-invalid="true"' in wrong.text
    stale = post(served, "/profiles/form", **sent)
    assert stale.status == 400 and "Someone else has saved" in stale.text and path.read_text() == saved
    assert 'name="limit_pages"' not in get(served, "/profiles/form?view=text").text


def test_values_in_a_profile_form_are_escaped_once(served: Served) -> None:
    page = get(served, "/profiles/form?lang=nl").text
    assert "maar alleen pagina" in page and "&amp;#39;" not in page


def test_a_test_crawl_from_the_portal_shows_what_the_scope_leaves(served: Served) -> None:
    assert post(served, "/scope/test", "reviewer", addresses="http://a.example/").status == 403
    wrong = post(served, "/scope/test", addresses="http://a.example/", profile="museum", pages="500")
    assert (
        wrong.status == 400 and "between 1 and 50 pages" in wrong.text and "http://a.example/" in wrong.text
    )
    with small_site(lambda path: PAGES.get(path, "")) as site:
        begun = post(served, "/scope/test", addresses=f"{site}/", profile="museum", pages="5")
        assert begun.status == 303
        ends_s = time.monotonic() + 60
        while not (found := get(served, f"{begun.headers['Location']}/live")).headers["X-Ended"]:
            assert time.monotonic() < ends_s, found.text
            time.sleep(0.1)
    page = get(served, begun.headers["Location"]).text
    for words in ("Excluded", "extension", f"{site}/film.avi", "http://else.example/", "Nominate this site"):
        assert words in page
    assert get(served, "/scope/test/0000000000000000").status == 404


def test_start_urls_are_checked_when_a_site_is_nominated(served: Served) -> None:
    with small_site(lambda path: PAGES.get(path, "")) as site:
        sent = {"addresses": f"{site}/gone", "name": "Kept", "check_first": "1", "order": "save"}
        told = post(served, "/targets", **sent)
        assert told.status == 200 and "A seed seems to be wrong" in told.text
        assert 'value="Kept"' in told.text and "Nominate anyway" in told.text and "404" in told.text
        only = post(served, "/targets", addresses=f"{site}/2", order="check")
        assert only.status == 200 and "<dd>Two</dd>" in only.text and "Nothing was saved yet" in only.text
        saved = post(served, "/targets", **sent, checked=f"{site}/gone")
        assert saved.status == 303 and saved.headers["Location"].startswith("/targets/")
        assert post(served, "/targets", addresses=f"{site}/2", check_first="1").status == 303


def test_harvest_now_says_what_is_missing_on_the_page_of_the_site(served: Served) -> None:
    nominated = post(served, "/targets", addresses="http://nobody.example/").headers["Location"]
    assert "Harvest now" not in get(served, nominated).text
    refused = post(served, f"{nominated}/harvest")
    assert refused.status == 400 and "may not be harvested" in refused.text


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
