"""Numbers of thousands of digits, and digits that are not ASCII: Python refuses to convert them, so every place
that reads a number from a form, a query or a foreign server must refuse them first.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from museum import NOW, PASSWORD, Served, ask, serving, sign_in

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.harvest.fetch import cookies
from webdepot.selection.domains.lookup.http_query import retry_after_s
from webdepot.selection.targets import find_named
from webdepot.services.admin import setup
from webdepot.services.selection import targets
from webdepot.url import Url
from webdepot.web.routes import PORTAL_ROUTES

SOURCES = Path(__file__).parents[2] / "src" / "webdepot" / "web"
LEAVES = ("/sign-out", "/account/sessions", "/account/password", "/users")
WRONG = ("9" * 5000, "9" * 25, "²", "-1", "nan", "1e999")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("numbers") / "home"
    setup.create(home)
    with Archive.open(home) as archive:
        accounts.add(archive.database, "all", PASSWORD, list(Role), NOW, by="test")
        targets.nominate(archive, [Url("https://www.example.org/")], collection="sites")
    with serving(home) as running:
        yield running


def field_names() -> set[str]:
    """Every field of a form or a query that the program reads, by name."""
    texts = [
        path.read_text()
        for folder in ("staff", "reader", "api", "")
        for path in (SOURCES / folder).glob("*.py")
    ]
    names = {name for text in texts for name in re.findall(r'\.get\(\s*"([a-z_-]+)"', text)}
    from_lists = {name for text in texts for name in re.findall(r'"([a-z_]{3,20})"', text)}
    return names | from_lists | {"answer-national", "answer-cultural", "reason-national"}


@pytest.mark.parametrize("wrong", WRONG)
def test_no_form_or_query_fails_on_a_wrong_number(served: Served, wrong: str) -> None:
    cookie = sign_in(served, "all")
    names = sorted(field_names())
    assert {"answer-national", "page", "limit_pages", "days"} <= set(names)
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    fields = "&".join(f"{name}={wrong}" for name in names[:500]).encode()
    few = [name for name in names if name.startswith(("answer", "limit", "page", "days", "year", "number"))]
    bodies = [fields, urlencode(dict.fromkeys(few, wrong)).encode()]
    for row in PORTAL_ROUTES:
        path = re.sub(r"\{\w+(:path)?\}", "1", row.path)
        if row.path.startswith(LEAVES):
            continue
        for method in row.methods:
            if method == "POST":
                for body in bodies:
                    answer = ask(served.portal + path, "POST", headers=headers, body=body)
                    assert answer.status < 500, (path, answer.status, answer.text[:300])
            else:
                query = urlencode(
                    dict.fromkeys(("page", "year", "from", "to", "limit", "days"), wrong[:1500])
                )
                answer = ask(f"{served.portal}{path}?{query}", headers={"Cookie": cookie})
                assert answer.status < 500, (path, answer.status, answer.text[:300])
                other = re.sub(r"\{\w+(:path)?\}", wrong[:1500].replace("²", "%C2%B2"), row.path)
                answer = ask(served.portal + other, headers={"Cookie": cookie})
                assert answer.status < 500, (other[:100], answer.status, answer.text[:300])


def test_an_answer_of_5000_digits_is_refused_with_a_message(served: Served) -> None:
    cookie = sign_in(served, "all")
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode({"answer-national": "1" * 5000, "reason-national": "x"}).encode()
    answer = ask(f"{served.portal}/targets/1/answers", "POST", headers=headers, body=body)
    assert answer.status == 400
    assert "is not an answer to" in answer.text


def test_numbers_of_foreign_servers(tmp_path: Path) -> None:
    now = NOW
    for text in WRONG:
        assert 0 <= retry_after_s(text, now) <= 86_400
        for age in (text, f"-{text}", f"--{text}"):
            cookie = cookies.parse(f"a=1; Max-Age={age}", "http://a.example/", now)
            assert cookie is None or cookie.ends_at is None or cookie.ends_at <= now + timedelta(days=400)
    setup.create(tmp_path / "home")
    with Archive.open(tmp_path / "home") as archive, archive.database.reading() as connection:
        assert find_named(connection, "9" * 5000) is None
