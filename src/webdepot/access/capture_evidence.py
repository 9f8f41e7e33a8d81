"""The facts about one capture that prove what was archived and when, for people who need evidence.

Pages, the PDF file and the signed document are made from these values. `to_report` is the document that is
signed (`depot/signing.py`); its names are a format: version 1.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from webdepot.times import moment_of, to_iso

FORMAT = "webdepot-evidence"
FORMAT_VERSION = 1

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """A record of a container: where it is, and its digests as stated and as computed now."""

    kind: str
    id: str
    date: datetime
    container: str
    offset: int
    length: int
    block_bytes: int
    stated_block_digest: str
    """Empty where the record states none, as in old containers."""
    stated_payload_digest: str
    block_sha1: str = ""
    """Computed from the bytes; empty if the record is too large to be read for a page."""
    block_sha256: str = ""
    payload_sha1: str = ""
    payload_sha256: str = ""
    payload_bytes: int | None = None
    is_intact: bool | None = None
    """Whether the digests that the record states are those of its bytes; None if none could be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    """An HTTP message as it is in the container; the values of secret headers are replaced."""

    first_line: str
    headers: Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    name: str
    size_bytes: int
    sha256: str
    about: Pairs
    """Fields of its first record (warcinfo): which software wrote it, for whom, and how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestFacts:
    id: str
    kind: str
    started_at: datetime
    ended_at: datetime | None
    urn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFacts:
    place: str
    state: str
    checked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CustodyEvent:
    at: datetime
    action: str
    outcome: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageCustody:
    id: str
    version: int
    stored_at: datetime
    inventory_sha256: str
    copies: Sequence[CopyFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEvidence:
    """Everything about one capture. Parts that the archive does not have are None."""

    url: str
    timestamp: str
    status: int
    mime: str
    address: str
    """Where the portal shows the version."""
    archive: str
    contact: str
    software: str
    made_at: datetime
    server_address: str
    protocol: str
    record: EvidenceRecord
    original: EvidenceRecord | None
    """Of a revisit: the record that holds the payload, if the reader may know about it."""
    request_record: EvidenceRecord | None
    request: MessageFacts | None
    response: MessageFacts | None
    container: ContainerFacts | None
    harvest: HarvestFacts | None
    package: PackageCustody | None
    events: Sequence[CustodyEvent]
    """Oldest first."""


def to_report(evidence: CaptureEvidence) -> dict[str, object]:
    """The evidence as JSON values."""
    facts = {name: _plain(value) for name, value in asdict(evidence).items()}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "captured_at": to_iso(moment_of(evidence.timestamp)),
        **facts,
    }


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
