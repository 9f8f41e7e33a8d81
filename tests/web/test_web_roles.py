"""Who may do what: every route as every role, changing requests from other sites, sessions, keys, accounts
and the audit trail.
"""

import csv
import io
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from museum import NOW, PASSWORD, Answer, Served, ask, serving, sign_in
from sqlalchemy import select

from webdepot.accounts import accounts, api_keys, sessions, tables
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.web.route_row import RouteRow
from webdepot.web.routes import PORTAL_ROUTES
from webdepot.web.site import local_path

LEAVES = ("/sign-out", "/account/sessions")
"""They would end the session that walks."""


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("roles") / "home"
    setup.create(home)
    with Archive.open(home) as archive:
        for role in Role:
            accounts.add(archive.database, role.value, PASSWORD, [role], NOW, by="test")
    with serving(home) as served:
        yield served


@pytest.fixture(scope="module")
def cookies(ruled: Served) -> dict[Role | None, str]:
    return {None: "", **{role: sign_in(ruled, role.value) for role in Role}}


def post(
    served: Served,
    path: str,
    cookie: str,
    fields: dict[str, str] | list[tuple[str, str]] = {},  # noqa: B006
    **headers: str,
) -> Answer:
    given = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return ask(served.portal + path, "POST", headers=given, body=urlencode(fields).encode())


def path_of(page: RouteRow) -> str:
    """A path of the route with a name that does not exist for each of its parameters."""
    return re.sub(r"\{\w+(:path)?\}", "nothing-of-the-kind", page.path)


def is_refused(answer: Answer, role: Role | None) -> bool:
    if answer.headers.get("Content-Type") == "application/problem+json":  # the API
        return answer.status in (401, 403)
    if role is None:
        return answer.status == 303 and answer.headers["Location"].startswith("/sign-in?to=")
    return answer.status == 403 and "does not have the role" in answer.text


@pytest.mark.parametrize("role", [None, *Role])
def test_every_route_lets_in_whom_the_table_says(ruled: Served, cookies, role):
    for page in PORTAL_ROUTES:
        for method in page.methods:
            if page.path in LEAVES and role is not None:
                continue
            answer = ask(
                ruled.portal + path_of(page),
                method,
                headers={"Cookie": cookies[role]},
                body=b"" if method != "GET" else None,
            )
            is_by_session = not (page.path.startswith("/api/") and page.roles and method != "GET")
            may = not page.roles or (role in page.roles and is_by_session)
            assert is_refused(answer, role) is not may, (method, page.path, answer.status)
            assert answer.status < 500, (method, page.path, answer.text)


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.ADMINISTRATOR}))
def test_a_key_never_does_more_than_its_role(ruled: Served, role):
    with ruled.archive() as archive:
        if "all" not in {person.name for person in accounts.every(archive.database)}:
            accounts.add(archive.database, "all", PASSWORD, set(Role) - {Role.ADMINISTRATOR}, NOW)
        _, text = api_keys.make_key(archive.database, "all", role.value, [role], NOW)
    for page in PORTAL_ROUTES:
        if page.roles and role not in page.roles:
            headers = {"Authorization": f"Bearer {text}", "Content-Type": "application/x-www-form-urlencoded"}
            answer = ask(
                ruled.portal + path_of(page),
                page.methods[0],
                headers=headers,
                body=b"" if "POST" in page.methods else None,
            )
            assert is_refused(answer, role), (page.path, answer.status)
    for path in ("/account/password", "/account/keys", "/account/sessions"):
        answer = ask(
            ruled.portal + path,
            "POST",
            headers={"Authorization": f"Bearer {text}"},
            body=b"label=x&role=administrator&session=&old=x",
        )
        assert answer.status == 400 and "with an API key" in answer.text, path


def test_every_changing_route_asks_for_a_role_or_is_meant_for_everybody():
    everybody = {page.path for page in PORTAL_ROUTES if set(page.methods) - {"GET"} and not page.roles}
    assert everybody <= {
        "/api/{rest:path}",
        "/oai",
        "/-/left/{address:path}",
        "/-/seat/{address:path}",
        "/sign-in",
        "/sign-out",
        "/suggest",
        "/complain",
        "/answer/{token}",
    }
    for page in PORTAL_ROUTES:
        assert len(page.methods) == 1 or page.path in ("/oai", "/api/{rest:path}"), page.path
        assert page.methods in (("GET",), ("POST",)) or page.path.startswith("/api/") or page.path == "/oai"


def test_changing_requests_from_other_sites_are_refused_everywhere(ruled: Served, cookies):
    for page in PORTAL_ROUTES:
        if "GET" in page.methods:
            continue
        for header in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "http://evil.example"},
        ):
            answer = ask(
                ruled.portal + path_of(page),
                "POST",
                headers={"Cookie": cookies[Role.ADMINISTRATOR], **header},
                body=b"",
            )
            assert answer.status == 403 and "came from another site" in answer.text, (page.path, header)


def test_a_session_given_to_a_browser_before_it_signs_in_is_worth_nothing(ruled: Served):
    planted = sign_in(ruled, "reader")
    form = {"name": "curator", "password": PASSWORD, "to": "/"}
    answer = post(ruled, "/sign-in", planted, form)
    given = answer.headers["Set-Cookie"].partition(";")[0]
    assert given != planted
    assert ask(f"{ruled.portal}/account", headers={"Cookie": planted}).status == 303
    assert "curator" in ask(f"{ruled.portal}/account", headers={"Cookie": given}).text


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "",
    ],
)
def test_signing_in_leads_to_no_other_site(ruled: Served, to):
    assert local_path(to) == "/"
    answer = post(ruled, "/sign-in", "", {"name": "reader", "password": PASSWORD, "to": to})
    assert answer.headers["Location"] == "/"
    assert ask(f"{ruled.portal}/-/language?{urlencode({'lang': 'nl', 'to': to})}").headers["Location"] == "/"


def test_people_are_added_changed_and_closed_and_each_change_is_on_record(ruled: Served, cookies):
    boss = cookies[Role.ADMINISTRATOR]
    assert post(ruled, "/users", boss, {"name": "piet", "password": "short", "role": "reader"}).status == 400
    assert post(ruled, "/users", boss, {"name": "piet", "password": PASSWORD}).status == 400
    assert (
        post(ruled, "/users", boss, {"name": "piet", "password": PASSWORD, "role": "curator"}).headers[
            "Location"
        ]
        == "/users/piet"
    )
    assert (
        post(ruled, "/users", boss, {"name": "piet", "password": PASSWORD, "role": "curator"}).status == 409
    )
    session = sign_in(ruled, "piet")
    assert ask(f"{ruled.portal}/harvests", headers={"Cookie": session}).status == 200
    assert (
        post(ruled, "/users/piet", boss, [("order", "roles"), ("role", "reader"), ("role", "partner")]).status
        == 303
    )
    assert ask(f"{ruled.portal}/harvests", headers={"Cookie": session}).status == 403
    assert post(ruled, "/users/piet", boss, {"order": "close"}).status == 303
    assert ask(f"{ruled.portal}/account", headers={"Cookie": session}).status == 303
    assert post(ruled, "/sign-in", "", {"name": "piet", "password": PASSWORD}).status == 401
    page = ask(
        f"{ruled.portal}/audit?subject_kind=person&subject=piet&action=roles+changed",
        headers={"Cookie": boss},
    ).text
    assert "<del>curator</del>" in page and "<ins>partner, reader</ins>" in page and "administrator" in page
    table = ask(f"{ruled.portal}/audit.csv?subject=piet", headers={"Cookie": boss}).text
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["action"] for row in rows] == ["closed", "roles changed", "signed in", "added"]
    assert (
        rows[1]["before"] == '{"roles": ["curator"]}'
        and rows[1]["after"] == '{"roles": ["partner", "reader"]}'
    )
    assert rows[1]["agent"] == "administrator"


def test_the_last_administrator_stays(ruled: Served, cookies):
    boss = cookies[Role.ADMINISTRATOR]
    for fields in ({"order": "close"}, {"order": "roles", "role": "reader"}):
        answer = post(ruled, "/users/administrator", boss, fields)
        assert answer.status == 409 and "only administrator" in answer.text


def test_sessions_are_listed_and_ended(ruled: Served, cookies):
    first, second = sign_in(ruled, "partner"), sign_in(ruled, "partner")
    text = ask(f"{ruled.portal}/account", headers={"Cookie": first}).text
    other = sessions.session_id(second.partition("=")[2])
    assert sessions.session_id(first.partition("=")[2]) in text and other in text and "this session" in text
    assert second.partition("=")[2] not in text
    assert post(ruled, "/account/sessions", first, {"session": other}).status == 303
    assert ask(f"{ruled.portal}/account", headers={"Cookie": second}).status == 303
    assert ask(f"{ruled.portal}/account", headers={"Cookie": first}).status == 200
    stranger = sessions.session_id(cookies[Role.CURATOR].partition("=")[2])
    assert post(ruled, "/account/sessions", first, {"session": stranger}).status == 404
    assert ask(f"{ruled.portal}/account", headers={"Cookie": cookies[Role.CURATOR]}).status == 200


def test_a_key_opens_what_its_role_opens_and_no_more(ruled: Served, cookies):
    curator = cookies[Role.CURATOR]
    assert post(ruled, "/account/keys", curator, {"label": "too much", "role": "administrator"}).status == 400
    made = post(ruled, "/account/keys", curator, {"label": "script", "role": "curator", "days": "30"}).text
    key = re.search(r"wdk_[\w-]+", made)
    assert key is not None
    header = {"Authorization": f"Bearer {key[0]}"}
    assert ask(f"{ruled.portal}/harvests", headers=header).status == 200
    assert ask(f"{ruled.portal}/users", headers=header).status == 403
    text = ask(f"{ruled.portal}/account", headers={"Cookie": curator}).text
    assert "script" in text and key[0] not in text
    with ruled.archive() as archive, archive.database.reading() as connection:
        stored = connection.execute(select(tables.api_keys)).all()
    assert stored and key[0] not in str(stored)
    wrong = ask(f"{ruled.portal}/harvests", headers={"Authorization": "Bearer wdk_wrong", "Cookie": curator})
    assert wrong.status == 401 and "Bearer" in wrong.headers["WWW-Authenticate"]
    number = re.search(r'name="revoke" value="(\d+)"', text)
    assert number is not None
    refused = ask(
        f"{ruled.portal}/account/keys", "POST", headers=header, body=urlencode({"revoke": number[1]}).encode()
    )
    assert refused.status == 400 and "with an API key" in refused.text
    assert post(ruled, "/account/keys", curator, {"revoke": number[1], "confirmed": "yes"}).status == 303
    assert ask(f"{ruled.portal}/harvests", headers=header).status == 401


def test_a_key_ends_on_its_day_and_with_its_person(ruled: Served):
    with ruled.archive() as archive:
        accounts.add(archive.database, "kees", PASSWORD, [Role.CURATOR, Role.READER], NOW)
        _, text = api_keys.make_key(archive.database, "kees", "x", [Role.CURATOR], NOW, days=1)
        assert api_keys.find_key(archive.database, text, NOW) == accounts.Person(
            name="kees", roles=frozenset({Role.CURATOR})
        )
        accounts.set_roles(archive.database, "kees", [Role.READER], NOW, by="test")
        assert api_keys.find_key(archive.database, text, NOW) == accounts.Person(
            name="kees", roles=frozenset()
        )
        assert api_keys.find_key(archive.database, text, NOW.replace(day=NOW.day + 2)) is None
        accounts.close(archive.database, "kees", NOW, by="test")
        assert api_keys.find_key(archive.database, text, NOW) is None


def test_ones_own_password_can_be_changed_with_the_old_one(ruled: Served):
    with ruled.archive() as archive:
        accounts.add(archive.database, "jan", PASSWORD, [Role.READER], NOW)
    session = sign_in(ruled, "jan")
    assert (
        post(ruled, "/account/password", session, {"old": "wrong", "password": "another long one"}).status
        == 400
    )
    assert post(ruled, "/account/password", session, {"old": PASSWORD, "password": PASSWORD}).status == 303
    assert ask(f"{ruled.portal}/account", headers={"Cookie": session}).status == 303


def test_the_trail_is_paged_and_its_cells_run_nothing(ruled: Served, cookies):
    with ruled.archive() as archive:
        for number in range(120):
            accounts.add(
                archive.database, "x", PASSWORD, [Role.READER], NOW, by="test"
            ) if number == 0 else accounts.set_roles(
                archive.database, "x", [Role.READER], NOW, by='=HYPERLINK("http://evil.example")'
            )
    boss = {"Cookie": cookies[Role.ADMINISTRATOR]}
    first = ask(f"{ruled.portal}/audit?subject=x", headers=boss).text
    older = re.search(r'href="(/audit\?[^"]*older=\d+)"', first)
    assert older is not None and first.count('id="event-') == 100
    assert ask(ruled.portal + older[1].replace("&amp;", "&"), headers=boss).text.count('id="event-') == 20
    table = ask(f"{ruled.portal}/audit.csv?subject=x", headers=boss).text
    assert "'=HYPERLINK" in table and ",=HYPERLINK" not in table and ',"=HYPERLINK' not in table
