"""Values that several components share; a value used in one component is defined there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, BinaryIO, NewType

from webdepot.url import Url

TargetId = NewType("TargetId", int)
HarvestId = NewType("HarvestId", str)
PackageId = NewType("PackageId", str)

EVERYTHING = "all"
"""The collection that always exists and holds every capture."""


class Answer(StrEnum):
    ACCEPT = "accept"
    REJECT = "reject"
    PASS = "pass"  # noqa: S105 - not a password


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision with its rule and reason: on selection, scope, robots, permission, access or discovery."""

    answer: Answer
    rule: str
    reason: str

    def __bool__(self) -> bool:
        return self.answer is Answer.ACCEPT


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An observation about quality, format or damaged input: what, how severe, about what, and where."""

    code: str
    severity: Severity
    subject: str
    message: str
    place: str = ""
    """Byte offset, line or page where it was seen, as text."""
    action: str = ""
    """The one thing to do about it, if there is one."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Values for the placeholders of the message."""


class Purpose(StrEnum):
    """Why a site is kept: as heritage, or as evidence of public acts."""

    HERITAGE = "heritage"
    EVIDENCE = "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A site that was nominated, with what was decided about it."""

    id: TargetId
    name: str
    seeds: tuple[Url, ...]
    collection: str
    purpose: Purpose
    created_at: datetime


class HarvestKind(StrEnum):
    HARVEST = "harvest"
    IMPORT = "import"
    PATCH = "patch"
    """What an earlier harvest missed; its settings name that harvest as `patch_of`."""


class HarvestState(StrEnum):
    """States of a harvest; `harvest_rows.HARVEST` has the transitions. FAILED: nothing was fetched."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"
    """Waiting for a reviewer, or for the rules that accept it automatically."""
    REJECTED = "rejected"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """One run for a target, or one import of foreign containers."""

    id: HarvestId
    target: TargetId
    kind: HarvestKind
    state: HarvestState
    seeds: tuple[Url, ...]
    collection: str
    settings: Mapping[str, object]
    started_at: datetime
    ended_at: datetime | None = None
    reason: str = ""
    """Why it ended, as text."""
    counts: Mapping[str, int] = field(default_factory=dict)


class Hop(StrEnum):
    """How an address was found, as the letters of Heritrix's hop path, which existing log tools read."""

    LINK = "L"
    EMBED = "E"
    REDIRECT = "R"
    SPECULATIVE = "X"
    MANIFEST = "M"
    PREREQUISITE = "P"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An address to fetch, and how it was found."""

    url: Url
    via: Url | None = None
    path: str = ""
    """Hop letters since the seed; empty for a seed."""
    tries: int = 0
    """Failed tries so far."""
    outside: int = 0
    """Links followed since the scope was left; 0 inside it."""


class Failure(StrEnum):
    """Why a visit has no response. `status` is the fetch status in Heritrix's crawl log."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    DISCONNECT = "disconnect"
    PRIVATE_ADDRESS = "private-address"
    ROBOTS = "robots"
    SCOPE = "scope"
    LIMIT = "limit"

    @property
    def status(self) -> int:
        return _FAILURE_STATUS[self]


_FAILURE_STATUS = {
    Failure.DNS: -1, Failure.CONNECT: -2, Failure.DISCONNECT: -3, Failure.TIMEOUT: -4,
    Failure.PROTOCOL: -5, Failure.TLS: -8, Failure.LIMIT: -4000, Failure.SCOPE: -5000,
    Failure.PRIVATE_ADDRESS: -5001, Failure.ROBOTS: -9998,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request and its response, as exact bytes. Without a response: the failure, and `status` 0."""

    candidate: Candidate
    at: datetime
    duration_s: float
    request: bytes = b""
    """The request as sent: line, headers, empty line."""
    head: bytes = b""
    """Status line and headers as received, with the empty line; HTTP/2 and 3 written in HTTP/1.1 form."""
    body: BinaryIO
    """Seekable spool of the body as received, transfer coding included; closed by the caller of fetch."""
    body_bytes: int = 0
    status: int = 0
    server_address: str = ""
    protocol: str = "http/1.1"
    truncated: str = ""
    """WARC-Truncated reason (`length`, `time`, `disconnect`) when the body is incomplete."""
    failure: Failure | None = None
    failure_detail: str = ""
    permanent: bool = False
    """Retrying cannot help: the name does not exist, or the address is forbidden."""
    removed: tuple[str, ...] = ()  # headers whose values are not in `request` and `head`: secrets of a login


class RecordKind(StrEnum):
    """The types of WARC records (ISO 28500, 6)."""

    WARCINFO = "warcinfo"
    RESPONSE = "response"
    RESOURCE = "resource"
    REQUEST = "request"
    METADATA = "metadata"
    REVISIT = "revisit"
    CONVERSION = "conversion"
    CONTINUATION = "continuation"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a record is: container file name, first byte and length in the file (compressed or not)."""

    container: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One version of one address, as a line of the capture index (the fields of CDXJ)."""

    key: str
    timestamp: str
    url: str
    kind: RecordKind
    status: int
    """0 where the record has no HTTP response."""
    mime: str
    """Content-Type of the response, lower case, without parameters; `unk` (as in CDX) where it is missing."""
    digest: str
    """Labelled payload digest; empty where unknown."""
    location: Location
    redirect: str = ""
    """Absolute target of a redirect."""
    refers_to_url: str = ""
    refers_to_timestamp: str = ""
    replaced: bool = False
    """A patch replaced it: hidden from version lists, but revisits may refer to it."""


class ContainerState(StrEnum):
    SEALED = "sealed"
    KEPT = "kept"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A WARC or ARC file. `place`: SEALED, a path below the home; KEPT, a key in the depot's store;
    ELSEWHERE, an address.
    """

    name: str
    harvest: HarvestId
    state: ContainerState
    size_bytes: int
    sha256: str
    records: int
    place: str


class FormatVerdict(StrEnum):
    RECOGNISED = "recognised"
    UNCERTAIN = "uncertain"
    NOT_RECOGNISED = "not recognised"


class Basis(StrEnum):
    """What an identification rests on."""

    SIGNATURE = "signature"
    CONTAINER = "container"
    EXTENSION = "extension"
    TEXT = "text"
    SERVER = "server"
    NOTHING = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The format of a file by its bytes: PRONOM identifier, name, version, media type, and the basis."""

    puid: str
    name: str
    version: str
    mime: str
    basis: Basis
    verdict: FormatVerdict
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The unit of the depot (AIP): one harvest with its containers, metadata and events."""

    id: PackageId
    harvest: HarvestId
    urn: str
    title: str
    version: int
    size_bytes: int
    stored_at: datetime
