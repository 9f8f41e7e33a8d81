"""Contacts of a target: the people to write to about it."""

from dataclasses import replace

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.provenance import append, difference
from webdepot.selection import contacts, targets
from webdepot.selection.contacts import Contact
from webdepot.selection.targets import Dossier
from webdepot.services.selection import targets as targets_service


def contacts_of(archive: Archive, target: TargetId) -> list[Contact]:
    with archive.database.reading() as connection:
        return contacts.of_target(connection, target)


def add_contact(archive: Archive, contact: Contact, *, by: str = "") -> Contact:
    """Whom to write to from now on; InputError when an address is none."""
    with archive.database.transaction() as connection:
        return add_contact_in(
            connection, archive, targets.dossier_of(connection, contact.target), contact, by=by
        )


def add_contact_in(
    connection: Connection, archive: Archive, dossier: Dossier, contact: Contact, *, by: str = ""
) -> Contact:
    kept = contacts.add(connection, replace(contact, target=dossier.id), now=archive.clock())
    detail = difference(
        {},
        {"name": kept.name, "organisation": kept.organisation, "mail": kept.mail, "language": kept.language},
    )
    append(
        connection,
        targets_service.event(
            archive, dossier, "added a contact", by=by, message=kept.salutation, detail=detail
        ),
    )
    return kept


def end_contact(archive: Archive, target: TargetId, number: int, *, by: str = "") -> None:
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        ended = contacts.end(connection, target, number, now=archive.clock())
        detail = difference({"name": ended.name, "mail": ended.mail}, {})
        append(
            connection,
            targets_service.event(
                archive, dossier, "ended a contact", by=by, message=ended.salutation, detail=detail
            ),
        )
