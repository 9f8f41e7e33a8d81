"""Changes on the command line are recorded with person, before and after, and never with a secret."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from webdepot.access import lending_seats
from webdepot.access.policy import RuleAnswer
from webdepot.accounts import accounts, api_keys
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.model import EVERYTHING
from webdepot.provenance import Event, latest
from webdepot.services.access import lending, rules
from webdepot.services.catalogue import records
from webdepot.services.exchange import partner_admin
from webdepot.services.selection import targets
from webdepot.url import key

PASSWORD = "correct horse battery"
PAGE = "https://lent.example/page"


def lend(archive: Archive) -> None:
    now = archive.clock()
    with archive.database.transaction() as connection:
        lending_seats.take(
            connection, key(PAGE), PAGE, "192.0.2.7", now=now, until=now + timedelta(minutes=5)
        )


def described(archive: Archive) -> str:
    target = targets.nominate(archive, [PAGE], collection=EVERYTHING)
    return records.site_record(archive, target).key


CHANGES: dict[str, Callable[[Archive], object]] = {
    "rule added": lambda archive: rules.add(archive, "lent.example", answer=RuleAnswer.REFUSE),
    "rule removed": lambda archive: rules.remove(
        archive, rules.add(archive, "lent.example", answer=RuleAnswer.HIDE)[0].id
    ),
    "page freed": lambda archive: (lend(archive), lending.free(archive, PAGE)),
    "partner added": lambda archive: partner_admin.add(
        archive, "sister", "http://127.0.0.1:9/oai", token="very-secret"
    ),
    "partner changed": lambda archive: (
        partner_admin.add(archive, "sister", "http://127.0.0.1:9/oai"),
        partner_admin.change(archive, "sister", token="very-secret", collection="c"),
    ),
    "partner's token": lambda archive: (
        partner_admin.add(archive, "sister", "http://127.0.0.1:9/oai"),
        partner_admin.issue_token(archive, "sister"),
    ),
    "partner removed": lambda archive: (
        partner_admin.add(archive, "sister", "http://127.0.0.1:9/oai"),
        partner_admin.remove(archive, "sister"),
    ),
    "person added": lambda archive: accounts.add(
        archive.database, "kees", PASSWORD, [Role.READER], archive.clock(), by="Ada"
    ),
    "key made": lambda archive: (
        accounts.add(archive.database, "kees", PASSWORD, [Role.READER], archive.clock(), by="Ada"),
        api_keys.make_key(archive.database, "kees", "script", [Role.READER], archive.clock(), by="Ada"),
    ),
    "work restricted": lambda archive: records.restrict(archive, described(archive), "restricted"),
    "work named": lambda archive: records.assign_urn(
        archive, described(archive), "urn:nbn:de:0000-2011051900"
    ),
    "work closed": lambda archive: records.close(archive, described(archive), reason="asked for"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_before_and_after_are_on_record_and_no_secret_is(archive: Archive, change: str):
    made = CHANGES[change](archive)
    with archive.database.reading() as connection:
        event: Event = latest(connection, 1)[0]
    before, after = event.detail["before"], event.detail["after"]
    assert isinstance(before, dict) and isinstance(after, dict) and before != after
    assert event.agent in (archive.agent, "Ada")
    told = str(event)
    for secret in (
        "very-secret",
        PASSWORD,
        "192.0.2.7",
        *([made[1]] if change == "partner's token" else [made[1][1]] if change == "key made" else []),
    ):
        assert secret not in told
