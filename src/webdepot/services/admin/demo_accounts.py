"""The accounts of a demonstration, one for each role. Everybody may know the password: it opens invented data
only.
"""

from ipaddress import ip_address

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive

PASSWORD = "veldwijk-demo"  # noqa: S105 - shown to everybody, and only in a demonstration
PEOPLE = {
    "curator": Role.CURATOR,
    "reviewer": Role.REVIEWER,
    "administrator": Role.ADMINISTRATOR,
    "partner": Role.PARTNER,
    "reader": Role.READER,
}


def exist(archive: Archive) -> bool:
    """Whether they have been added."""
    return set(PEOPLE) <= {person.name for person in accounts.every(archive.database)}


def add(archive: Archive) -> None:
    """Add them; those of a killed run are there already."""
    known = {person.name for person in accounts.every(archive.database)}
    for name, role in PEOPLE.items():
        if name not in known:
            accounts.add(archive.database, name, PASSWORD, [role], archive.clock())


def may_sign_in(client: str) -> bool:
    """Whether somebody at this address may sign in: only on the machine itself, since everybody knows the
    password.
    """
    try:
        return ip_address(client).is_loopback
    except ValueError:
        return False


def sign_in_words() -> str:
    """How to sign in, for people."""
    return f"sign in as {', '.join(PEOPLE)}; the password is {PASSWORD}"
