"""Contacts of a target: the people to write to about it."""

from dataclasses import replace

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.provenance import append, difference
from webdepot.selection import contacts, targets
from webdepot.selection.contacts import Contact
from webdepot.selection.targets import Dossier


def contacts_of(archive: Archive, target: TargetId) -> list[Contact]:
    with archive.database.reading() as connection:
        return contacts.of_target(connection, target)


def add_contact(archive: Archive, contact: Contact, *, by: str = "") -> Contact:
    """Add a contact; InputError if an address is not valid."""
    with archive.database.transaction() as connection:
        return add_contact_in(
            connection, archive, targets.dossier_of(connection, contact.target), contact, by=by
        )


def add_contact_in(
    connection: Connection, archive: Archive, dossier: Dossier, contact: Contact, *, by: str = ""
) -> Contact:
    """As `add_contact`, in the caller's transaction."""
    added = contacts.add(connection, replace(contact, target=dossier.id), now=archive.clock())
    names = ("name", "organisation", "mail", "language")
    detail = difference({}, {name: getattr(added, name) for name in names})
    message = added.salutation
    append(
        connection,
        archive.event("added a contact", "target", str(dossier.id), by=by, message=message, detail=detail),
    )
    return added


def end_contact(archive: Archive, target: TargetId, number: int, *, by: str = "") -> None:
    with archive.database.transaction() as connection:
        ended = contacts.end(connection, target, number, now=archive.clock())
        detail = difference({"name": ended.name, "mail": ended.mail}, {})
        message = ended.salutation
        append(
            connection,
            archive.event("ended a contact", "target", str(target), by=by, message=message, detail=detail),
        )
