"""Identical bytes are stored once: a visit whose payload is kept already becomes a revisit record.

The look-up comes in through the `CaptureIndex` port. A revisit never refers to another revisit, and never stands for a body that
is empty (nothing to save) or not whole (not the same thing).
"""

from webdepot.model import Capture, RecordKind, Visit
from webdepot.ports import CaptureIndex

SMALLEST_BODY_BYTES = 1


def find(visit: Visit, digest: str, captures: CaptureIndex) -> Capture | None:
    """The earlier response with the same payload, of the same URL if there is one."""
    if not digest or visit.truncated or visit.failure is not None or visit.body_bytes < SMALLEST_BODY_BYTES:
        return None
    found = captures.find_digest(digest, url=visit.candidate.url)
    return found if found is not None and found.kind is RecordKind.RESPONSE else None
