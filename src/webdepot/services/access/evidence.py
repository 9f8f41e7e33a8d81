"""Evidence of a capture: its digests, headers, server, container, harvest and history in the depot.

    collect    the facts about the version closest to a moment, through the access gate
    sign       the same as a signed JSON document
    check      whether a signed document is unchanged, and with which key it was signed

Secrets stay here: values of headers with cookies or credentials are replaced, names of members of staff and
addresses of storage places are left out.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection

from webdepot import digest, provenance
from webdepot.access import capture_evidence
from webdepot.access.capture_evidence import (
    CaptureEvidence,
    ContainerFacts,
    CopyFacts,
    CustodyEvent,
    EvidenceRecord,
    HarvestFacts,
    MessageFacts,
    PackageCustody,
    Pairs,
)
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.fields import read_pairs
from webdepot.container.reader import iter_records, read_record
from webdepot.container.record import Record
from webdepot.container.request_records import find_request
from webdepot.depot import copies, holdings, signing
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.harvest import harvest_rows
from webdepot.harvest.fetch.cookies import HIDDEN
from webdepot.model import Capture, Container, Harvest, HarvestKind, RecordKind
from webdepot.provenance import EventFilter
from webdepot.services.access import citation, gate, lookup
from webdepot.services.access.replay import replay, session_cookies
from webdepot.version import VERSION

MOST_BYTES = 64 << 20
"""Digests of larger records are not computed for a page: the checksum of the container covers them."""
MOST_EVENTS = 100
"""Most events of the container, of the harvest and of the package: the newest of each."""
_INFO_BYTES = 1 << 16
_SHOWN_INFO = frozenset(
    """
    software format conformsto publisher ispartof description robots http-header-user-agent tls profile
    """.split()  # noqa: SIM905 - reads better than a dozen quotes
)
_SECRET = re.compile(r"cookie|auth|token|secret|session|password|api-?key|csrf|xsrf", re.IGNORECASE)
_SHOWN_ACTIONS = {
    "harvest": frozenset({"started", "harvested", "accepted"}),
    "container": frozenset({"sealed", "imported", "referred"}),
    "package": frozenset({"kept", "copied", "audited", "repaired", "migrated"}),
}


def collect(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader, address: str = ""
) -> CaptureEvidence:
    """The evidence of the version closest to a moment; `address` is where the portal shows this version, with
    `{timestamp}` in place of its timestamp, if there is a portal.

    NotFound if there is none, Closed if a rule refuses it, CorruptData if it cannot be read.
    """
    capture = lookup.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    original = replay.find_original(archive, capture) if capture.kind is RecordKind.REVISIT else None
    with ExitStack() as stack:
        stream = _open(archive, capture, stack)
        record = read_record(stream, capture.location)
        request = find_request(stream, record)
        facts = CaptureEvidence(
            url=capture.url,
            timestamp=capture.timestamp,
            status=capture.status,
            mime=capture.mime,
            address=address.replace("{timestamp}", capture.timestamp),
            archive=archive.config.archive.name,
            contact=archive.config.archive.contact,
            software=f"webdepot {VERSION}",
            made_at=archive.clock(),
            server_address=record.fields.get("WARC-IP-Address") or "",
            protocol=", ".join(record.fields.get_all("WARC-Protocol")),
            record=_of_record(record),
            original=None,
            request_record=_of_record(request) if request else None,
            request=_message(request, hides_cookies=True) if request else None,
            response=_message(record, hides_cookies=session_cookies.concern(archive, capture.url)),
            container=None,
            harvest=None,
            package=None,
            events=(),
        )
    if original is not None and gate.is_open(archive, original, reader):
        with ExitStack() as stack:
            source = read_record(_open(archive, original, stack), original.location)
            facts = replace(facts, original=_of_record(source))
    return _with_custody(archive, capture, facts)


def sign(archive: Archive, facts: CaptureEvidence) -> bytes:
    """The evidence as a JSON document with the archive's signature."""
    return signing.sign(capture_evidence.to_report(facts), signing.load_key(signing.key_path(archive.home)))


def public_key(archive: Archive) -> bytes:
    """The archive's public key as a PEM file (RFC 8410)."""
    return signing.to_pem(signing.load_key(signing.key_path(archive.home)).public_key())


def check(data: bytes, *, key: str = "") -> tuple[str, dict[str, object]]:
    """The public key that signed a document, and its facts; `key` is the key it must be signed with: a
    PEM file's name, or the key in base64. CorruptData if the signature is wrong, InputError if it is not
    evidence.
    """
    wanted = _read_key(key) if key else ""
    signer, report = signing.check_document(data, key=wanted)
    if report.get("format") != capture_evidence.FORMAT:
        raise InputError("This document is signed, but it is not the evidence of a capture.")
    return signer, report


def _read_key(key: str) -> str:
    path = Path(key)
    try:
        return signing.from_pem(path.read_bytes()) if path.is_file() else key
    except OSError:  # too long for a name of a file
        return key


def _open(archive: Archive, capture: Capture, stack: ExitStack) -> BinaryIO:
    name = capture.location.container
    try:
        return stack.enter_context(archive.containers.open(name))
    except (NotFound, NotPermitted, RemoteError, OSError) as error:
        raise CorruptData(
            f"The container {name} of this version cannot be opened. "
            "The archive's staff can find out why: webdepot doctor",
            where=name,
        ) from error


def _of_record(record: Record) -> EvidenceRecord:
    facts = EvidenceRecord(
        kind=record.kind.value,
        id=(record.fields.get("WARC-Record-ID") or "").strip("<>"),
        date=record.date,
        container=record.location.container,
        offset=record.location.offset,
        length=record.location.length,
        block_bytes=record.size_bytes,
        stated_block_digest=record.fields.get("WARC-Block-Digest") or "",
        stated_payload_digest=record.payload_digest,
    )
    if record.size_bytes > MOST_BYTES:
        return facts
    block_sha1, block_sha256, _ = _digests(record.block())
    facts = replace(facts, block_sha1=block_sha1, block_sha256=block_sha256)
    compared = [(facts.stated_block_digest, (block_sha1, block_sha256))]
    if record.kind is not RecordKind.REVISIT:  # a revisit states the digest of a payload that is elsewhere
        payload_sha1, payload_sha256, size_bytes = _digests(record.payload())
        facts = replace(
            facts, payload_sha1=payload_sha1, payload_sha256=payload_sha256, payload_bytes=size_bytes
        )
        compared.append((facts.stated_payload_digest, (payload_sha1, payload_sha256)))
    return replace(facts, is_intact=_agree(compared))


def _agree(compared: list[tuple[str, tuple[str, str]]]) -> bool | None:
    """Whether each stated digest is one of those computed; None if there is no stated one to compare."""
    answers = []
    for stated, computed in compared:
        parsed = digest.parse(stated)
        if parsed is not None and parsed.algorithm in ("sha1", "sha256"):
            answers.append(any(digest.is_same(stated, value) for value in computed))
    return all(answers) if answers else None


def _digests(stream: BinaryIO) -> tuple[str, str, int]:
    sha1, sha256 = hashlib.sha1(usedforsecurity=False), hashlib.sha256()
    size_bytes = 0
    while chunk := stream.read(digest.CHUNK_BYTES):
        sha1.update(chunk)
        sha256.update(chunk)
        size_bytes += len(chunk)
    return digest.sha1_label(sha1.digest()), f"sha256:{sha256.hexdigest()}", size_bytes


def _message(record: Record, *, hides_cookies: bool) -> MessageFacts | None:
    """First line and headers. Credentials in a request are always replaced; so are the cookies of a response
    at an origin that the archive logs in to.
    """
    head = record.head
    if head is None:
        return None
    is_request = record.kind is RecordKind.REQUEST
    first_line = record.block().readline(1 << 16).decode("latin-1").strip()

    def shown(name: str, value: str) -> str:
        is_secret = _SECRET.search(name) if is_request else hides_cookies and "cookie" in name.lower()
        return HIDDEN if is_secret else value

    return MessageFacts(
        first_line=first_line if head.version else "",
        headers=tuple((name, shown(name, value)) for name, value in head.headers),
    )


def _with_custody(archive: Archive, capture: Capture, facts: CaptureEvidence) -> CaptureEvidence:
    with archive.database.reading() as connection:
        container = locations.find(connection, capture.location.container)
        if container is None:
            return facts
        harvest = harvest_rows.get(connection, container.harvest)
        package = holdings.find_of_harvest(connection, harvest.id)
        subjects = [("harvest", harvest.id), ("container", container.name)]
        kept = None
        if package is not None:
            subjects.append(("package", package.id))
            kept = PackageCustody(
                id=package.id,
                version=package.version,
                stored_at=package.stored_at,
                inventory_sha256=holdings.inventory_sha256(connection, package.id),
                copies=tuple(
                    CopyFacts(place=copy.place, state=copy.state.value, checked_at=copy.checked_at)
                    for copy in copies.of_package(connection, package.id)
                ),
            )
        events = [event for kind, subject in subjects for event in _events(connection, kind, subject)]
    return replace(
        facts,
        container=ContainerFacts(
            name=container.name,
            size_bytes=container.size_bytes,
            sha256=container.sha256,
            about=_about(archive, container, harvest),
        ),
        harvest=HarvestFacts(
            id=harvest.id,
            kind=harvest.kind.value,
            started_at=harvest.started_at,
            ended_at=harvest.ended_at,
            urn=citation.find_urn(archive, capture),
        ),
        package=kept,
        events=tuple(sorted(events, key=lambda event: event.at)),
    )


def _events(connection: Connection, kind: str, subject: str) -> Iterator[CustodyEvent]:
    wanted = EventFilter(subject_kind=kind, subject=subject)
    for _, event in reversed(provenance.page(connection, wanted, limit=MOST_EVENTS)):
        if event.action in _SHOWN_ACTIONS[kind]:
            yield CustodyEvent(
                at=event.at,
                action=event.action,
                outcome=event.outcome.value,
                place=str(event.detail.get("place") or ""),
            )


def _about(archive: Archive, container: Container, harvest: Harvest) -> Pairs:
    """The fields of a container's first record. For our own harvests the operator is the archive: the
    record names the person who started it, which is not published.
    """
    shown = _SHOWN_INFO | {"operator"} if harvest.kind is HarvestKind.IMPORT else _SHOWN_INFO
    try:
        with archive.containers.open(container.name) as stream:
            first = next(iter_records(stream, container.name, on_finding=lambda _: None), None)
            if first is None or first.kind is not RecordKind.WARCINFO:
                return ()
            text = "\n" + first.block().read(_INFO_BYTES).decode("utf-8", "replace")
    except (InputError, CorruptData, NotFound, NotPermitted, RemoteError, OSError):
        return ()
    return tuple((name, value.strip()) for name, value in read_pairs(text) if name.lower() in shown)
