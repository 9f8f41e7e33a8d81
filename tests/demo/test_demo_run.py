"""The demonstration run on the real services: editions one after the other, none twice, none incomplete."""

import asyncio
import html
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlencode

import pytest
from starlette.types import ASGIApp

from webdepot.access.policy import Reader
from webdepot.accounts import accounts
from webdepot.archive import Archive
from webdepot.demo import domains, site
from webdepot.demo.resource import HOST
from webdepot.demo.run import COLLECTION, DemoClock, run
from webdepot.errors import Conflict
from webdepot.formats.registry import Risk
from webdepot.model import HarvestState
from webdepot.provenance import EventFilter
from webdepot.selection.cases import CaseState
from webdepot.selection.states import LetterState, TargetState
from webdepot.services.access import collections, search
from webdepot.services.admin import audit_trail, demo_accounts, setup
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.permission import complaints, letters
from webdepot.services.quality import format_watch
from webdepot.services.review import review_view, reviews
from webdepot.services.selection import organisations, targets
from webdepot.times import from_timestamp, to_timestamp
from webdepot.url import find_canonical, key
from webdepot.web.app import build_portal
from webdepot.web.language.language import load

pytestmark = pytest.mark.slow
TWO = (site.EDITIONS[0], site.EDITIONS[-1])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demonstration with its first and its last edition."""
    folder = tmp_path_factory.mktemp("demo") / "home"
    run(folder, lambda line: None, editions=TWO, staff=False, pictured=False)
    return folder


def _key(path: str) -> str:
    url = find_canonical(f"http://{HOST}{path}")
    assert url is not None
    return key(url)


def test_each_edition_is_kept_under_its_own_date(home: Path) -> None:
    with Archive.open(home) as archive:
        harvests = harvests_service.latest(archive, 10)
        versions = list(archive.captures.versions(_key("/")))
        assert "damask" in collections.get(archive, COLLECTION).text
    assert [harvest.state for harvest in harvests] == [HarvestState.KEPT, HarvestState.KEPT]
    days = [from_timestamp(capture.timestamp).date() for capture in versions if capture.status == 200]
    assert days == [edition.date.date() for edition in TWO]
    assert archive.config.archive.demo


def test_what_robots_closes_is_not_harvested_and_missing_pages_are_recorded(home: Path) -> None:
    with Archive.open(home) as archive:
        assert archive.captures.count(_key("/intern/rooster.html")) == 0
        assert archive.captures.last(_key("/media/waterschap-lurze.svg")).status == 404
        assert archive.captures.last(_key("/collectie.html")).status == 301
        assert archive.captures.last(_key("/data/collectie.json")).status == 200


def test_every_resource_of_the_editions_was_harvested(home: Path) -> None:
    with Archive.open(home) as archive:
        for edition in TWO:
            resources = site.serve(edition).resources.values()
            wanted = {resource.url for resource in resources if not resource.path.startswith("/intern/")}
            missing = {url for url in wanted if not _has(archive, url, edition.name)}
            assert missing == set()


def _has(archive: Archive, url: str, year: str) -> bool:
    canonical = find_canonical(url)
    assert canonical is not None
    return any(capture.timestamp.startswith(year) for capture in archive.captures.versions(key(canonical)))


def test_words_of_one_edition_are_found_in_that_edition(home: Path) -> None:
    with Archive.open(home) as archive:
        reader = Reader()
        old = search.search(archive, "Guldens", reader=reader).hits
        new = search.search(archive, "zonnepanelen", reader=reader).hits
        german = search.search(archive, "Schmuggler", reader=reader).hits
    assert {hit.timestamp[:4] for hit in old} == {"2003"}
    assert {hit.timestamp[:4] for hit in new} == {"2024"}
    assert any("/de/" in hit.url for hit in german)


def test_a_second_run_changes_nothing(home: Path) -> None:
    files = sorted(path for path in (home / "depot").rglob("*") if path.is_file())
    before = {path: path.stat().st_mtime_ns for path in files}
    told: list[str] = []
    run(home, told.append, editions=TWO, staff=False, pictured=False)
    assert sum("already archived" in line for line in told) == len(TWO)
    after = sorted(path for path in (home / "depot").rglob("*") if path.is_file())
    assert {path: path.stat().st_mtime_ns for path in after} == before
    assert any("damast" in line for line in told)


@pytest.fixture(scope="module")
def furnished(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration with its staff side."""
    folder = tmp_path_factory.mktemp("furnished") / "home"
    shutil.copytree(home, folder)
    told: list[str] = []
    run(folder, told.append, editions=TWO, pictured=False)
    assert demo_accounts.PASSWORD in told[-1]
    return folder


def test_staff_find_work_of_every_kind(furnished: Path) -> None:
    with Archive.open(furnished) as archive:
        for name in demo_accounts.PEOPLE:
            assert accounts.has_password(archive.database, name, demo_accounts.PASSWORD)
        states = {state for state, count in targets.counts(archive).items() if count}
        assert states == set(TargetState) - {TargetState.IMPORTED}
        assert {letter.state for letter in letters.all_letters(archive, None, 1)[0]} == {
            LetterState.SENT,
            LetterState.ANSWERED,
            LetterState.SILENT,
        }
        with_pictures, failed, waiting = harvests_service.latest(archive, 3)
        assert (failed.state, waiting.state) == (HarvestState.FAILED, HarvestState.FINISHED)
        assert reviews.dossier(archive, waiting.id).missing
        assert [page.replayed for page in review_view.view(archive, with_pictures.id).pages if page.now]
        (organisation,) = organisations.list_organisations(archive)
        assert organisation[1] == {"own": 3, "ask": 1, "other": 1}
        assert Risk.WATCH in {each.flag.risk for each in format_watch.watch_list(archive)}
        assert complaints.counts(archive)[CaseState.RECEIVED] == 1
        assert len(list(audit_trail.iter_trail(archive, EventFilter(action="repaired")))) == 1
        before = len(harvests_service.latest(archive, 100))
    run(furnished, lambda line: None, editions=TWO, pictured=False)
    with Archive.open(furnished) as archive:
        assert len(harvests_service.latest(archive, 100)) == before


FIRST_PAGES = (
    *(
        "/",
        "/about",
        "/help",
        "/search?q=Guldens",
        "/search/trend?q=damast",
        "/catalogue",
        "/suggest",
        "/complain",
    ),
    *(
        "/dashboard",
        "/targets",
        "/letters",
        "/criteria",
        "/cases",
        "/organisations",
        "/schedule",
        "/harvests",
    ),
    *("/review", "/profiles", "/depot", "/depot/packages", "/formats", "/formats/watch", "/formats/registry"),
    *(
        "/partners",
        "/statistics",
        "/audit",
        "/status",
        "/users",
        "/account",
        f"/scope?url={site.SEED}x&target=1",
    ),
    *(f"/organisations/{domains.ROOT}", f"/all/*/{site.SEED}"),
)
# The table of keys below the text of a profile is a reference for experts; it is in English.
NOT_WALKED = (
    "/profiles/",
    "/-/",
    "/all/",
    "/museum/",
    "/review-",
    "/sign-out",
    "/title/",
    "/urn/",
    "/oai",
    "/api/",
    "/search",
)
MOST_PAGES = 90


@pytest.mark.parametrize("code", ["nl", "de"])
def test_no_page_has_an_english_sentence_for_people_who_read_another_language(
    furnished: Path, code: str
) -> None:
    english, other = load("en").texts, load(code).texts
    pieces = {
        max(re.split(r"{\w+}", text), key=len).strip(): key
        for key, text in english.items()
        if text != other[key]
    }
    sentences = {
        piece: key for piece, key in pieces.items() if piece.count(" ") >= 2 and piece not in other.values()
    }
    waiting, seen, found = list(FIRST_PAGES), set[str](), list[str]()
    with Archive.open(furnished) as archive:
        app = build_portal(archive, portal_url="http://testserver", replay_url="http://replay.test")
        form = {"name": "administrator", "password": demo_accounts.PASSWORD}
        _, cookie, _ = _ask(app, "/sign-in", form=form)
        assert cookie
        while waiting and len(seen) < MOST_PAGES:
            path = waiting.pop(0)
            status, _, text = _ask(app, path, cookie=cookie, **{"accept-language": code})
            seen.add(_shape(path))
            assert status in (200, 301, 302, 303), path
            plain = html.unescape(
                re.sub(r"<(textarea|code|pre)\b.*?</\1>|<[^>]*>", "\n", text, flags=re.DOTALL)
            )
            found += [f"{path}: {key}: {piece}" for piece, key in sentences.items() if piece in plain]
            for link in re.findall(r'<a [^>]*?href="(/[^"#]*)', text):
                target = html.unescape(link)
                known = {_shape(each) for each in waiting} | seen
                if not target.startswith(NOT_WALKED) and "." not in target and _shape(target) not in known:
                    waiting.append(target)
    assert found == []
    assert len(seen) > 50


def _shape(path: str) -> str:
    """Pages of one kind have one shape."""
    return re.sub(r"\d{14}[\w-]*|\d+|urn[^/]*", "N", path.partition("?")[0])


def test_an_archive_that_is_not_a_demonstration_is_not_changed(tmp_path: Path) -> None:
    setup.create(tmp_path / "own")
    with pytest.raises(Conflict, match="no"):
        run(tmp_path / "own", lambda line: None, editions=TWO, staff=False, pictured=False)


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = f"from pathlib import Path; from webdepot.demo import run, site; run.run(Path({str(home)!r}), print, editions=site.EDITIONS[:1], staff=False, pictured=False)"
    process = subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().startswith("2003"):
            break
    _kill_when(process, home)
    process.stdout.close()
    process.wait()
    run(home, lambda line: None, editions=site.EDITIONS[:1], staff=False, pictured=False)
    with Archive.open(home) as archive:
        assert [harvest.state for harvest in harvests_service.latest(archive, 10)] == [HarvestState.KEPT]
        resources = site.serve(site.EDITIONS[0]).resources.values()
        for resource in resources:
            if not resource.path.startswith("/intern/"):
                assert archive.captures.count(_key(resource.path)) == 1, resource.path


def _kill_when(process: "subprocess.Popen[str]", home: Path) -> None:
    """As soon as something was written to a container, or when the run ended before."""
    tick = threading.Event()
    while process.poll() is None:
        if any(path.stat().st_size > 2000 for path in home.glob("harvests/*/warc/*.open")):
            process.send_signal(signal.SIGKILL)
            return
        tick.wait(0.002)


def test_the_clock_starts_on_the_day_and_runs() -> None:
    clock = DemoClock()
    assert clock().year > 2024
    clock.set(TWO[0].date)
    first = clock()
    assert to_timestamp(first)[:8] == "20030514"
    assert clock() >= first


def _ask(
    app: ASGIApp, path: str, *, form: dict[str, str] | None = None, client: str = "127.0.0.1", **more: str
) -> tuple[int, str, str]:
    """Status, cookies and text of the answer to a request, or to a form."""
    body = urlencode(form or {}).encode()
    headers = {
        "host": "testserver",
        "origin": "http://testserver",
        "content-type": "application/x-www-form-urlencoded",
        "content-length": str(len(body)),
        **more,
    }
    plain, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET" if form is None else "POST",
        "scheme": "http",
        "path": unquote(plain),
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": (client, 1),
        "server": ("testserver", 80),
    }
    sent: list[dict] = []
    requests = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict:
        if not requests:  # the client stays until it has the answer
            await asyncio.Event().wait()
        return requests.pop()

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    cookies = [
        value.decode().partition(";")[0] for name, value in sent[0]["headers"] if name == b"set-cookie"
    ]
    return (
        sent[0]["status"],
        "; ".join(cookies),
        b"".join(each.get("body", b"") for each in sent[1:]).decode(),
    )


@pytest.mark.parametrize(("client", "status"), [("127.0.0.1", 303), ("::1", 303), ("192.0.2.7", 403)])
def test_everybody_knows_the_password_so_it_works_on_this_machine_only(
    tmp_path: Path, client: str, status: int
) -> None:
    setup.create(tmp_path / "home", settings="[archive]\ndemo = true\n")
    with Archive.open(tmp_path / "home") as archive:
        demo_accounts.add(archive)
        app = build_portal(archive, portal_url="http://testserver", replay_url="http://replay.test")
        form = {"name": "curator", "password": demo_accounts.PASSWORD}
        assert _ask(app, "/sign-in", form=form, client=client)[0] == status
