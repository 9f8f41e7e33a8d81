"""Deduplication: a visit whose payload is stored already becomes a revisit record.

Earlier harvests are looked up through the `CaptureIndex` port, the running one through two callables: its
captures are not indexed yet. A revisit never refers to another revisit, and never replaces a body that is
empty (nothing to save) or incomplete (not the same). The response to a POST is found by its request, so it is
neither replaced nor referred to.
"""

from collections.abc import Callable, Sequence

from webdepot.model import Capture, Location, RecordKind, Visit
from webdepot.ports.captures import CaptureIndex
from webdepot.times import to_timestamp
from webdepot.url import key

SMALLEST_BODY_BYTES = 1
_NOWHERE = Location(container="", offset=0, length=0)


def find(visits: Sequence[tuple[Visit, str]], captures: CaptureIndex) -> list[Capture | None]:
    """For each visit and its payload digest, the earlier response with the same payload, of the same address
    if there is one.
    """
    repeatable = [_may_repeat(visit, digest) for visit, digest in visits]
    payloads = [
        (digest, visit.candidate.url) for (visit, digest), is_asked in zip(visits, repeatable) if is_asked
    ]
    originals = iter(captures.find_digests(payloads) if payloads else ())
    return [_response(next(originals)) if is_asked else None for is_asked in repeatable]


def _response(capture: Capture | None) -> Capture | None:
    return capture if capture is not None and capture.kind is RecordKind.RESPONSE else None


def find_in_harvest(visit: Visit, digest: str, recall: Callable[[str], bytes | None]) -> Capture | None:
    """The response of this harvest with the same payload; its location is not known yet."""
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
    """Remember the payload of a visit that is stored as a response."""
    if _may_repeat(visit, digest):
        remember(f"payload:{digest}", f"{to_timestamp(visit.at)} {visit.candidate.url}".encode())


def _may_repeat(visit: Visit, digest: str) -> bool:
    return (
        bool(digest)
        and not visit.truncated
        and not visit.request.startswith(b"POST ")
        and visit.failure is None
        and visit.body_bytes >= SMALLEST_BODY_BYTES
    )
