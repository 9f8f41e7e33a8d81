"""Contacts: the people to write to about a target. A contact that has left is ended, not deleted."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, insert, select, update

from webdepot.errors import InputError, NotFound
from webdepot.mail import checked_address
from webdepot.model import TargetId
from webdepot.reasons import said
from webdepot.selection.tables import contacts

LONGEST_POST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    id: int = 0
    target: TargetId
    name: str = ""
    organisation: str = ""
    mail: str = ""
    post: str = ""
    """Postal address, for letters that are printed."""
    language: str = "en"
    note: str = ""
    ended_at: datetime | None = None

    @property
    def salutation(self) -> str:
        return self.name or self.organisation or self.mail


def checked(contact: Contact) -> Contact:
    """The contact unchanged; InputError if it has no address or a field is too long."""
    if not contact.mail and not contact.post.strip():
        raise InputError(
            said("contact_needs_address", "A contact needs an email address or a postal address.")
        )
    if contact.mail:
        checked_address(contact.mail)
    for name, value, longest in (
        ("name", contact.name, 200),
        ("organisation", contact.organisation, 200),
        ("post", contact.post, LONGEST_POST),
    ):
        if len(value) > longest:
            raise InputError(f"The {name} of a contact can have at most {longest} characters.")
    if not (contact.name + contact.organisation).isprintable():
        raise InputError(
            said("contact_one_line", "The name of a contact must be one line of printable characters.")
        )
    return contact


def add(connection: Connection, contact: Contact, *, now: datetime) -> Contact:
    kept = checked(contact)
    values = {
        "target": kept.target,
        "name": kept.name.strip(),
        "organisation": kept.organisation.strip(),
        "mail": kept.mail.strip(),
        "post": kept.post.strip(),
        "language": kept.language,
        "note": kept.note[:LONGEST_POST],
        "created_at": now,
    }
    return _contact(connection.execute(insert(contacts).values(**values).returning(*contacts.c)).one())


def end(connection: Connection, target: TargetId, number: int, *, now: datetime) -> Contact:
    chosen = update(contacts).where(
        contacts.c.id == number, contacts.c.target == target, contacts.c.ended_at.is_(None)
    )
    row = connection.execute(chosen.values(ended_at=now).returning(*contacts.c)).one_or_none()
    if row is None:
        raise NotFound(f"Target {target} has no contact {number}.")
    return _contact(row)


def of_target(connection: Connection, target: TargetId) -> list[Contact]:
    """Contacts of a target that have not been ended, newest first."""
    chosen = (
        select(contacts)
        .where(contacts.c.target == target, contacts.c.ended_at.is_(None))
        .order_by(contacts.c.id.desc())
    )
    return [_contact(row) for row in connection.execute(chosen)]


def _contact(row: Row[tuple[object, ...]]) -> Contact:
    values = row._mapping
    names = ("id", "name", "organisation", "mail", "post", "language", "note", "ended_at")
    return Contact(target=TargetId(values["target"]), **{name: values[name] for name in names})
