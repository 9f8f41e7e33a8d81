"""Accounts, sessions and keys: who gets in, for how long, and what the database stores of it."""

from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text

from webdepot.accounts import accounts, sessions
from webdepot.accounts.roles import Role
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.times import utc_now

PASSWORD = "correct horse battery"


def test_sign_in_gives_a_session_that_ends(archive):
    now = utc_now()
    accounts.add(archive.database, "anna", PASSWORD, [Role.CURATOR], now)
    token = sessions.sign_in(archive.database, "anna", PASSWORD, now, hours=2)
    person = sessions.find_session(archive.database, token, now + timedelta(hours=1))
    assert person.name == "anna"
    assert person.roles == {Role.CURATOR}
    assert sessions.find_session(archive.database, token, now + timedelta(hours=3)) is None
    assert sessions.find_session(archive.database, token + "x", now) is None


def test_sessions_do_not_pile_up(archive):
    now, database = utc_now(), archive.database
    tokens = [
        sessions.sign_in_external(database, "issuer#1", "anna", None, now + timedelta(seconds=number))
        for number in range(sessions.MOST_SESSIONS + 2)
    ]
    later = now + timedelta(minutes=1)
    assert [sessions.find_session(database, token, later) is None for token in tokens[:3]] == [
        True,
        True,
        False,
    ]
    assert len(sessions.sessions_of(database, "anna", later)) == sessions.MOST_SESSIONS


def test_sign_out_ends_the_session(archive):
    now = utc_now()
    accounts.add(archive.database, "anna", PASSWORD, [Role.READER], now)
    token = sessions.sign_in(archive.database, "anna", PASSWORD, now)
    sessions.sign_out(archive.database, token, now)
    assert sessions.find_session(archive.database, token, now) is None


def test_a_wrong_password_or_name_gives_nothing(archive):
    now = utc_now()
    accounts.add(archive.database, "anna", PASSWORD, [Role.READER], now)
    assert sessions.sign_in(archive.database, "anna", "wrong password", now) is None
    assert sessions.sign_in(archive.database, "bob", PASSWORD, now) is None
    assert sessions.sign_in(archive.database, "anna", "", now) is None


def test_the_database_holds_neither_password_nor_token(archive, home):
    now = utc_now()
    accounts.add(archive.database, "anna", PASSWORD, [Role.READER], now)
    token = sessions.sign_in(archive.database, "anna", PASSWORD, now)
    with archive.database.reading() as connection:
        dump = str(connection.execute(text("select * from people")).all()) + str(
            connection.execute(text("select * from sessions")).all()
        )
    assert PASSWORD not in dump
    assert token not in dump


def test_hashing_uses_the_recommended_parameters(archive, monkeypatch):
    """RFC 9106, its second recommended option; tests use a cheaper one elsewhere."""
    monkeypatch.setattr(accounts, "PasswordHasher", PasswordHasher)
    accounts.add(archive.database, "anna", PASSWORD, [Role.READER], utc_now())
    with archive.database.reading() as connection:
        kept = connection.execute(text("select password_hash from people")).scalar_one()
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_a_new_password_ends_all_sessions(archive):
    now = utc_now()
    accounts.add(archive.database, "anna", PASSWORD, [Role.READER], now)
    token = sessions.sign_in(archive.database, "anna", PASSWORD, now)
    accounts.set_password(archive.database, "anna", PASSWORD + "2")
    assert sessions.find_session(archive.database, token, now) is None
    assert sessions.sign_in(archive.database, "anna", PASSWORD, now) is None
    assert sessions.sign_in(archive.database, "anna", PASSWORD + "2", now)


def test_bad_names_and_passwords_are_refused_with_a_message(archive):
    now = utc_now()
    with pytest.raises(InputError, match="password"):
        accounts.add(archive.database, "anna", "short", [Role.READER], now)
    with pytest.raises(InputError, match="name"):
        accounts.add(archive.database, " ", PASSWORD, [Role.READER], now)
    accounts.add(archive.database, "anna", PASSWORD, [Role.READER], now)
    with pytest.raises(Conflict, match="anna"):
        accounts.add(archive.database, "anna", PASSWORD, [Role.READER], now)
    with pytest.raises(NotFound, match="bob"):
        accounts.set_password(archive.database, "bob", PASSWORD)
