"""Identical bytes are stored once: a visit whose payload is kept already becomes a revisit record.

The look-up comes in through the `CaptureIndex` port for earlier harvests, and through two callables for the
one that runs: its captures are not indexed yet. A revisit never refers to another revisit, and never stands
for a body that is empty (nothing to save) or not whole (not the same thing).
"""

from collections.abc import Callable

from webdepot.model import Capture, Location, RecordKind, Visit
from webdepot.ports import CaptureIndex
from webdepot.times import to_timestamp
from webdepot.url import key

SMALLEST_BODY_BYTES = 1
_NOWHERE = Location(container="", offset=0, length=0)


def find(visit: Visit, digest: str, captures: CaptureIndex) -> Capture | None:
    """The earlier response with the same payload, of the same URL if there is one."""
    if not _may_repeat(visit, digest):
        return None
    found = captures.find_digest(digest, url=visit.candidate.url)
    return found if found is not None and found.kind is RecordKind.RESPONSE else None


def find_in_harvest(visit: Visit, digest: str, recall: Callable[[str], bytes | None]) -> Capture | None:
    """The response of this very harvest with the same payload; its place is not known yet."""
    stored = recall(f"payload:{digest}") if _may_repeat(visit, digest) else None
    if stored is None:
        return None
    timestamp, _, url = stored.decode().partition(" ")
    return Capture(
        key=key(url),
        timestamp=timestamp,
        url=url,
        kind=RecordKind.RESPONSE,
        status=visit.status,
        mime="unk",
        digest=digest,
        location=_NOWHERE,
    )


def remember_in_harvest(visit: Visit, digest: str, remember: Callable[[str, bytes], None]) -> None:
    """To be called for a visit that is stored as a response."""
    if _may_repeat(visit, digest):
        remember(f"payload:{digest}", f"{to_timestamp(visit.at)} {visit.candidate.url}".encode())


def _may_repeat(visit: Visit, digest: str) -> bool:
    return (
        bool(digest)
        and not visit.truncated
        and visit.failure is None
        and visit.body_bytes >= SMALLEST_BODY_BYTES
    )
