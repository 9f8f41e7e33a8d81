"""Guessing is slowed down, but nobody can lock another person out."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from museum import NOW, PASSWORD, Answer, Served, ask, serving
from sqlalchemy import func, select

from webdepot.accounts import accounts, rate_limits, sessions, tables
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.times import utc_now
from webdepot.web.client_address import wider_network_of
from webdepot.web.session.sign_in_brake import MOST_FAILURES, MOST_FAILURES_OF_NETWORK, WINDOW, SignInBrake


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    setup.create(tmp_path / "home")
    with Archive.open(tmp_path / "home") as archive:
        for name in ("anna", "piet"):
            accounts.add(archive.database, name, PASSWORD, [Role.CURATOR], NOW)
    with serving(tmp_path / "home") as running:
        yield running


def sign_in(served: Served, name: str, password: str, *, source: str, cookie: str = "") -> Answer:
    return ask(
        f"{served.portal}/sign-in",
        "POST",
        headers={"Cookie": cookie} if cookie else {},
        body=urlencode({"name": name, "password": password}).encode(),
        source=source,
    )


def device_of(answer: Answer) -> str:
    cookies = answer.headers.get_all("Set-Cookie")
    assert answer.status == 303 and cookies
    return next(value.partition(";")[0] for value in cookies if value.startswith("device="))


def test_wrong_guesses_from_elsewhere_do_not_lock_a_person_out(served: Served) -> None:
    for source in ("127.0.0.5", "127.0.0.6", "127.0.0.7"):
        statuses = [sign_in(served, "anna", "wrong", source=source).status for _ in range(MOST_FAILURES + 2)]
        assert statuses == [401] * MOST_FAILURES + [429] * 2
        assert sign_in(served, "anna", PASSWORD, source=source).status == 429
    assert sign_in(served, "anna", PASSWORD, source="127.0.0.8").status == 303


def test_a_known_browser_gets_in_from_the_same_network(served: Served) -> None:
    device = device_of(sign_in(served, "anna", PASSWORD, source="127.0.0.5"))
    for number in range(MOST_FAILURES_OF_NETWORK):
        sign_in(served, f"somebody {number}", "wrong", source="127.0.0.5")
    assert sign_in(served, "anna", PASSWORD, source="127.0.0.5").status == 429
    assert sign_in(served, "anna", PASSWORD, source="127.0.0.5", cookie=device).status == 303
    # It says who signed in there: no other name, and nothing invented.
    assert sign_in(served, "piet", PASSWORD, source="127.0.0.5", cookie=device).status == 429
    forged = "device=" + "0" * 32 + "." + "0" * 64
    assert sign_in(served, "anna", PASSWORD, source="127.0.0.5", cookie=forged).status == 429


def test_a_known_browser_cannot_guess_for_ever(served: Served) -> None:
    device = device_of(sign_in(served, "anna", PASSWORD, source="127.0.0.5"))
    statuses = [
        sign_in(served, "anna", "wrong", source="127.0.0.5", cookie=device).status
        for _ in range(2 * MOST_FAILURES + 3)
    ]
    assert statuses[-1] == 429 and statuses.count(401) == 2 * MOST_FAILURES


def test_many_names_from_one_network_are_slowed_down(served: Served) -> None:
    statuses = [
        sign_in(served, f"name {number}", "wrong", source="127.0.0.5").status
        for number in range(MOST_FAILURES_OF_NETWORK + 5)
    ]
    assert statuses == [401] * MOST_FAILURES_OF_NETWORK + [429] * 5


def test_a_new_password_makes_known_browsers_unknown(served: Served) -> None:
    with served.archive() as archive:
        token = sessions.make_device(archive.database, "anna")
        assert sessions.find_device(archive.database, "anna", token)
        accounts.set_password(archive.database, "anna", "another horse battery", now=NOW, by="anna")
        assert not sessions.find_device(archive.database, "anna", token)
        for wrong in ("", ".", "x", "é" * 32 + ".é", token + "x", token.replace(".", "")):
            assert not sessions.find_device(archive.database, "anna", wrong)
        assert not sessions.find_device(archive.database, "nobody", token)


def test_networks_of_ipv6_cannot_be_changed_for_each_guess() -> None:
    assert wider_network_of("2001:db8:1:2::1") == wider_network_of("2001:db8:1:ffff::1") == "2001:db8:1::/48"


@pytest.mark.both_databases
def test_the_brake_has_a_limit_for_each_name_over_all_portals_and_is_released(archive: Archive) -> None:
    now = utc_now()
    with Archive.open(archive.home) as other_portal:
        brake = SignInBrake(archive.database, lambda: now)
        other = SignInBrake(other_portal.database, lambda: now)
        for _ in range(3):
            assert not other.is_on({"a": 3})
            brake.note_failure({"a": 3, "b": 5})
        for each in (brake, other):
            assert each.is_on({"a": 3}) and not each.is_on({"b": 5}) and not each.is_on({"a": 4, "c": 1})
        assert not SignInBrake(other_portal.database, lambda: now + WINDOW).is_on({"a": 3})
    limits, since = {"form": 2}, now - rate_limits.LONGEST
    counted = [rate_limits.note_unless_limited(archive.database, limits, now, since=since) for _ in range(4)]
    assert counted == [True, True, False, False]
    rate_limits.note(archive.database, ["x"], now + rate_limits.LONGEST)
    with archive.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(tables.attempts)).scalar_one() == 1
