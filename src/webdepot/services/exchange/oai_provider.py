"""What partners and readers get from us: answers of OAI-PMH, the page behind a URN, the transfer object.

Who may fetch an object is decided by the rules of access, asked for the access point of whoever asks (the
public, or a partner who shows the token that we gave): a ZIP holds everything, so it goes out only when no
rule closes any capture in it. Restricted records go to partners only. What was withdrawn is gone for
everybody.
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import NotFound, NotPermitted, Withdrawn
from webdepot.exchange import catalogue, partners, transfer
from webdepot.exchange.addresses import Addresses
from webdepot.exchange.catalogue import Access, Record
from webdepot.exchange.metadata.lmer import Version
from webdepot.exchange.oai import provider
from webdepot.exchange.oai.provider import Repository
from webdepot.exchange.transfer import Layout, Transfer
from webdepot.services.access import gate
from webdepot.services.access.gate import TooManyCaptures

NO_DOMAIN = "localhost.localdomain"
_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+\Z", re.ASCII)


class TokenNeeded(NotPermitted):
    """Partners may have it; whoever asked has shown no token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A transfer object that may go out."""

    record: Record
    transfer: Transfer
    layout: Layout
    archive: Archive

    def pieces(self, first: int, stop: int) -> Iterator[bytes]:
        """Bytes from `first` to before `stop`."""
        return self.layout.pieces(first, stop, self.archive.open_container)


def answer(
    archive: Archive,
    pairs: Sequence[tuple[str, str]],
    *,
    portal_url: str,
    reader: Reader = ANYONE,
    token: str = "",
) -> bytes:
    """The answer to a request of OAI-PMH; a partner with a token gets LMER and objects in the form that it
    asked for.

    The record of a tree names the address of each file. Where a rule hides one of them the object is offered
    in containers.
    """
    with archive.database.reading() as connection:
        partner = partners.find_by_token(connection, token)
        form = (partner.transfer if partner else "") or archive.config.exchange.transfer
        lmer = Version(partner.lmer) if partner else Version.NEW
        repository = repository_of(archive, portal_url, lmer=lmer, unpacked=form == "files")
        if repository.unpacked:
            asking = Reader(name=partner.name, access_point=AccessPoint.PARTNER) if partner else reader
            repository = replace(repository, may_tell=_may_tell(archive, asking))
        return provider.respond(pairs, repository, connection, archive.clock())


def _may_tell(archive: Archive, reader: Reader) -> Callable[[Transfer], bool]:
    """A function that says whether no file of a tree is hidden from this reader. If there are too many
    captures to examine, the answer is no.
    """
    try:
        hidden = {
            capture.location.container for capture in gate.iter_closed(archive, reader, hidden_only=True)
        }
    except TooManyCaptures:
        return lambda tree: False
    return lambda tree: hidden.isdisjoint(file.container for file in tree.files)


def repository_of(
    archive: Archive, portal_url: str, *, lmer: Version = Version.NEW, unpacked: bool = False
) -> Repository:
    config = archive.config.exchange
    domain = domain_of(archive)
    contact = archive.config.archive.contact
    return Repository(
        name=archive.config.archive.name,
        base_url=f"{portal_url}/oai",
        domain=domain,
        admin_email=config.admin_email or (contact if _is_mailbox(contact) else f"webdepot@{domain}"),
        addresses=Addresses(
            portal_url=portal_url, institution=archive.config.archive.name, code=config.institution_code
        ),
        secret=_secret(archive.home / "keys" / "oai.key"),
        page_size=config.records_per_page,
        token_life=timedelta(hours=config.token_hours),
        with_provenance=config.provenance,
        lmer=lmer,
        unpacked=unpacked,
    )


def domain_of(archive: Archive) -> str:
    """The domain name in our OAI identifiers. It does not depend on where the portal listens today."""
    named = archive.config.exchange.repository.lower()
    host = (urlsplit(archive.config.web.portal_url).hostname or "").lower()
    return next((name for name in (named, host) if _DOMAIN.match(name)), NO_DOMAIN)


def resolve(archive: Archive, urn: str) -> Record:
    """The record behind a URN; NotFound when there is none, Withdrawn when it is gone."""
    with archive.database.reading() as connection:
        record = catalogue.find_urn(connection, urn[:600])
    if record is None:
        raise NotFound(f"{urn[:200]} is not known here.")
    if record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    return record


def hand_over(
    archive: Archive, key: str, *, reader: Reader, token: str = "", unpacked: bool = False
) -> HandedOver:
    """The transfer object of a record, or its unpacked form.

    TokenNeeded or NotPermitted when it is not for whoever asks, Withdrawn when it is gone.
    """
    with archive.database.reading() as connection:
        record = catalogue.find(connection, key)
        packed = transfer.find(connection, key)
        made = transfer.find_tree(connection, key) if unpacked else packed
        partner = partners.find_by_token(connection, token)
    if record is not None and record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    if record is None or made is None or packed is None:
        raise NotFound(f"There is nothing to fetch for {key[:200]}.")
    asking = Reader(name=partner.name, access_point=AccessPoint.PARTNER) if partner else reader
    if record.access is Access.RESTRICTED and asking.access_point not in (
        AccessPoint.PARTNER,
        AccessPoint.STAFF,
    ):
        raise TokenNeeded(f"{record.urn} goes to partners only. Show the token that you were given.")
    containers = {file.container for file in (*packed.files, *made.files)}
    if not _is_open(archive, containers, asking):
        refusal = NotPermitted if partner else TokenNeeded
        raise refusal(f"A rule of access closes {record.urn}, or a part of it.")
    return HandedOver(record=record, transfer=made, layout=Layout(made.files), archive=archive)


def is_open(archive: Archive, record: Record, reader: Reader) -> bool:
    """Whether a reader may fetch the object of a record."""
    try:
        hand_over(archive, record.key, reader=reader)
    except (NotPermitted, NotFound, Withdrawn):
        return False
    return True


def _is_open(archive: Archive, containers: set[str], reader: Reader) -> bool:
    """Whether no rule closes a capture in these containers. If there are too many captures to examine, the
    answer is no.
    """
    try:
        return next(gate.iter_closed(archive, reader, containers=containers), None) is None
    except TooManyCaptures:
        return False


def _secret(path: Path) -> bytes:
    """What tokens are signed with; made when first needed, and the same ever after."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(secrets.token_bytes(32))
            sink.flush()
            os.fsync(sink.fileno())
        try:
            os.link(partial, path)  # whoever comes first decides
        except FileExistsError:
            pass
        finally:
            partial.unlink()
        return path.read_bytes()


def _is_mailbox(text: str) -> bool:
    return re.fullmatch(r"[^\s@:/]+@[^\s@:/]+\.[^\s@:/]+", text) is not None
