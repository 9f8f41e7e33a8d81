"""What replay, its lists and its proxy answer to hostile captures and to pages of other sites."""

import json
import re
from collections.abc import Iterator

import pytest
from museum import EDITIONS, NOW, PASSWORD, Served, Warc, ask, make_home, serving, sign_in

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.access import rules

STAMP = EDITIONS[1]
CLOSED, SECRET, CDN = "http://closed.example", "http://secret.example", "http://cdn.example"
ROOM = "127.0.0.2"
ACTING = {
    "X-Accel-Redirect": "/etc/passwd",
    "X-Robots-Tag": "all, index",
    "Integrity-Policy": "blocked-destinations=(script)",
    "Set-Login": "logged-in",
    "Activate-Storage-Access": "load",
    "IdP-SignIn-Status": "signin",
    "Connection-Allowlist": "*",
    "Access-Control-Allow-Origin": "https://evil.example",
    "Service-Worker-Allowed": "/",
    "Some-Header-Of-2040": "do it",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("answers")
    warc = Warc(folder / "answers.warc.gz")
    cookies = [("Set-Cookie", "sid=LOGINSECRET; Path=/"), ("set-cookie2", "sid=LOGINSECRET")]
    warc.response(f"{CLOSED}/", STAMP, b"<title>Closed</title>", headers=[*ACTING.items(), *cookies])
    warc.response(f"{CLOSED}/other.html", STAMP, b"<title>Other</title>")
    warc.response(f"{SECRET}/", STAMP, b"<title>TOPSECRET</title>")
    warc.response(f"{CDN}/a.css", STAMP, b"body {}", mime="text/css")
    warc.response("http://open.example/", STAMP, b"<title>Open</title>", headers=[*ACTING.items(), *cookies])
    settings = f'[web]\nreading_room_networks = ["{ROOM}/32"]\n'
    home = make_home(folder / "home", warc.write(), settings=settings)
    with Archive.open(home, clock=lambda: NOW) as archive:
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], NOW)
        for site in (CLOSED, SECRET, CDN):
            rules.add(archive, site, answer=RuleAnswer.REFUSE, access_point=AccessPoint.PUBLIC)
    with serving(home, clock=folder / "clock", as_proxy=True) as running:
        yield running


def pass_to(served: Served, url: str) -> str:
    """The pass that a member of staff gets from the portal on the way to a page."""
    there = ask(f"{served.portal}/all/{STAMP}/{url}", headers={"Cookie": sign_in(served, "curator")})
    found = re.search(r"/-/pass/([^/]+)/", there.headers["Location"])
    assert found
    return found[1]


def test_a_pass_opens_its_page_and_the_parts_but_no_other_page(served: Served):
    shelf = f"{served.replay}/all~{pass_to(served, f'{CLOSED}/')}"
    for modifier in ("id_", "sw_", "ns_"):
        assert ask(f"{shelf}/{STAMP}{modifier}/{CLOSED}/").status == 200
    worker = {"X-Replay-Destination": "style"}
    assert ask(f"{shelf}/{STAMP}sw_/{CDN}/a.css", headers=worker).status == 200
    by_script = {"X-Replay-Destination": "empty"}
    assert ask(f"{shelf}/{STAMP}sw_/{CLOSED}/other.html", headers=by_script).status == 200
    for destination in ("", "empty", "iframe", "document", "frame", "object", "embed"):
        headers = {"X-Replay-Destination": destination, "Sec-Fetch-Dest": destination}
        for modifier in ("id_", "sw_", "ns_", "js_"):
            answer = ask(f"{shelf}/{STAMP}{modifier}/{SECRET}/", headers=headers)
            assert answer.status == 451 and b"TOPSECRET" not in answer.body, (destination, modifier)
    for modifier in ("id_", "ns_"):
        assert ask(f"{shelf}/{STAMP}{modifier}/{CLOSED}/other.html").status == 451
    for path in ("cdx?url=secret.example", f"timemap/link/{SECRET}/"):
        assert SECRET.encode() + b"/\n" not in ask(f"{shelf}/{path}").body
        assert ask(f"{shelf}/{path}").status >= 400


def test_a_pass_of_the_frame_opens_one_page(served: Served):
    entered = ask(f"{served.frame}/-/pass/{pass_to(served, f'{CLOSED}/')}/all/{STAMP}/{CLOSED}/")
    cookie = {"Cookie": entered.headers["Set-Cookie"].partition(";")[0]}
    assert ask(f"{served.frame}/all/{STAMP}/{CLOSED}/", headers=cookie).status == 200
    for url in (f"{CLOSED}/other.html", f"{SECRET}/"):
        answer = ask(f"{served.frame}/all/{STAMP}/{url}", headers=cookie)
        assert answer.headers["Location"] == f"{served.portal}/all/{STAMP}/{url}", "staff get a pass there"
        assert ask(f"{served.frame}/-/banner/all/{STAMP}/{url}", headers=cookie).status == 451
    assert ask(f"{served.replay}/all/{STAMP}id_/{CLOSED}/", headers=cookie).status == 451


@pytest.mark.parametrize("modifier", ["id_", "sw_", "ns_", "js_"])
def test_archived_headers_have_no_effect(served: Served, modifier: str):
    headers = ask(f"{served.replay}/all/{STAMP}{modifier}/http://open.example/").headers
    for name, value in ACTING.items():
        assert value not in headers.get_all(name, []), name
        assert headers[f"X-Archive-Orig-{name}"] == value
    assert headers.get_all("X-Robots-Tag") == ["noindex, nofollow"]
    assert "LOGINSECRET" not in str(headers)


@pytest.mark.parametrize(
    "path",
    [
        "/all/cdx?url=secret.example",
        "/all/cdx?url=*.example&output=json",
        "/cdx/search/cdx?url=secret.example",
        "/cdx/search/cdx?url=*.example&showNumPages=true",
        f"/all/timemap/link/{SECRET}/",
        f"/all/timemap/json/{SECRET}/",
    ],
)
def test_lists_of_the_reading_room_are_not_for_other_sites(served: Served, path: str):
    for origin in ("http://live.example.net", "null"):
        answer = ask(served.replay + path, source=ROOM, headers={"Origin": origin})
        assert (
            SECRET.encode() not in answer.body.replace(f"{SECRET}/ is".encode(), b"") or answer.status >= 400
        )
    room = ask(served.replay + path, source=ROOM)
    assert room.status == 200 and "Access-Control-Allow-Origin" not in room.headers


def test_lists_of_what_is_open_may_be_read_by_all(served: Served):
    for source in ("", ROOM):
        answer = ask(
            f"{served.replay}/all/cdx?url=open.example&output=json",
            source=source,
            headers={"Origin": "http://live.example.net"},
        )
        assert answer.headers["Access-Control-Allow-Origin"] == "*" and answer.headers["Vary"] == "Origin"
        assert json.loads(answer.text.splitlines()[0])["url"] == "http://open.example/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://other.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://webdepot.proxy.evil.example"}, 403),
        ({"Origin": "https://webdepot.proxy"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://webdepot.proxy"}, 303),
    ],
)
def test_an_archived_page_cannot_set_the_date_of_a_terminal(
    served: Served, headers: dict[str, str], status: int
):
    form = {"Host": "webdepot.proxy", "Content-Type": "application/x-www-form-urlencoded"}
    answer = ask(f"{served.proxy}/", "POST", headers={**form, **headers}, body=b"date=1999")
    assert answer.status == status
