"""Responses to OAI-PMH requests. A partner that sends its token gets LMER and transfer objects in the form
chosen for it. Transfer objects themselves are delivered by `object_delivery.py`.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from webdepot import durable, query_budget
from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.exchange import partners
from webdepot.exchange.metadata.lmer import Version
from webdepot.exchange.oai import provider
from webdepot.exchange.oai.provider import Repository
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer
from webdepot.services.access import gate
from webdepot.services.access.gate import TooManyCaptures

NO_DOMAIN = "localhost.localdomain"
_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+\Z", re.ASCII)


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
    """A function that returns whether this reader may know of every file of a tree; False if there are too
    many captures to examine.
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
