"""What partners and readers get from us: OAI-PMH responses, the record of a URN, transfer objects.

The access rules decide who may fetch an object, for the access point of the request (the public, or a partner
that sends the token we issued). A ZIP holds everything, so it is delivered only if no rule closes any capture
in it. Restricted records are for partners only. Withdrawn objects are gone for everybody.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from webdepot import durable, query_budget
from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import NotFound, NotPermitted, Withdrawn
from webdepot.exchange import catalogue, partners, transfer_zip
from webdepot.exchange.addresses import ObjectAddresses
from webdepot.exchange.catalogue import Access, CatalogueRecord
from webdepot.exchange.metadata.lmer import Version
from webdepot.exchange.oai import provider
from webdepot.exchange.oai.provider import Repository
from webdepot.exchange.transfer_zip import Layout, Transfer
from webdepot.reasons import said
from webdepot.services.access import gate
from webdepot.services.access.gate import TooManyCaptures
from webdepot.services.access.replay import session_cookies

NO_DOMAIN = "localhost.localdomain"
_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+\Z", re.ASCII)


class TokenNeeded(NotPermitted):
    """The object is for partners, and the request had no valid token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A transfer object that may be delivered."""

    record: CatalogueRecord
    transfer: Transfer
    layout: Layout
    archive: Archive

    def pieces(self, first: int, stop: int) -> Iterator[bytes]:
        """The bytes from `first` up to but without `stop`."""
        return self.layout.pieces(first, stop, self.archive.containers.open)


def answer(
    archive: Archive,
    pairs: Sequence[tuple[str, str]],
    *,
    portal_url: str,
    reader: Reader = ANYONE,
    token: str = "",
) -> bytes:
    """The response to an OAI-PMH request. A partner with a token gets LMER and objects in the form chosen for
    it.

    The record of a tree names the address of each file. If a rule hides one of them, the object is offered in
    containers. Without a token, the answer must stay within the budget of the request.
    """
    with query_budget.spending(None), archive.database.reading() as connection:
        partner = partners.find_by_token(connection, token)
    with query_budget.spending(None) if partner else nullcontext(), archive.database.reading() as connection:
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

    @cache
    def hidden() -> frozenset[str] | None:
        captures = gate.iter_closed(archive, reader, hidden_only=True)
        try:
            return frozenset(capture.location.container for capture in captures)
        except TooManyCaptures:
            return None

    def may_tell(tree: Transfer) -> bool:
        containers = hidden()
        return containers is not None and containers.isdisjoint(file.container for file in tree.files)

    return may_tell


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
        addresses=ObjectAddresses(
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
    """The domain name in our OAI identifiers. It does not depend on where the portal listens."""
    configured = archive.config.exchange.repository.lower()
    host = (urlsplit(archive.config.web.portal_url).hostname or "").lower()
    return next((name for name in (configured, host) if _DOMAIN.match(name)), NO_DOMAIN)


def resolve(archive: Archive, urn: str) -> CatalogueRecord:
    """The record of a URN; NotFound if there is none, Withdrawn if it was withdrawn."""
    with archive.database.reading() as connection:
        record = catalogue.find_urn(connection, urn[:600])
    if record is None:
        raise NotFound(said("missing_urn", "This archive has no object with the URN {urn}.", urn=urn[:200]))
    if record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    return record


def hand_over(
    archive: Archive, key: str, *, reader: Reader, token: str = "", unpacked: bool = False
) -> HandedOver:
    """The transfer object of a record, or its unpacked form.

    TokenNeeded or NotPermitted if this reader may not have it, Withdrawn if it was withdrawn.
    """
    with archive.database.reading() as connection:
        record = catalogue.find(connection, key)
        packed = transfer_zip.find(connection, key)
        wanted = transfer_zip.find_tree(connection, key) if unpacked else packed
        partner = partners.find_by_token(connection, token)
    if record is not None and record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    if record is None or wanted is None or packed is None:
        raise NotFound(f"There is no transfer object for {key[:200]}.")
    asking = Reader(name=partner.name, access_point=AccessPoint.PARTNER) if partner else reader
    if record.access is Access.RESTRICTED and asking.access_point not in (
        AccessPoint.PARTNER,
        AccessPoint.STAFF,
    ):
        raise TokenNeeded(f"{record.urn} is for partners only. Send the token that you were given.")
    containers = {file.container for file in (*packed.files, *wanted.files)}
    if not _is_open(archive, containers, asking):
        refusal = NotPermitted if partner else TokenNeeded
        raise refusal(f"An access rule closes {record.urn}, or a part of it.")
    is_staff = asking.access_point is AccessPoint.STAFF
    if not unpacked and not is_staff and any(session_cookies.are_in(archive, name) for name in containers):
        raise NotPermitted(f"{record.urn} has session cookies of a log-in and is not handed over.")
    return HandedOver(record=record, transfer=wanted, layout=Layout(wanted.files), archive=archive)


def is_open(archive: Archive, record: CatalogueRecord, reader: Reader) -> bool:
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
    """The key that signs resumption tokens; created when first needed, and never changed."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with durable.locked(path.with_name(f".{path.name}.lock")):
            if not path.exists():  # another process may have been first
                durable.write_whole(path, secrets.token_bytes(32), mode=0o600)
        return path.read_bytes()


def _is_mailbox(text: str) -> bool:
    return re.fullmatch(r"[^\s@:/]+@[^\s@:/]+\.[^\s@:/]+", text) is not None
