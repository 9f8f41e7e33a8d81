"""The events of a package as a chain of hashed lines: `log/events.jsonl`.

Each line is one JSON object with sorted names. `previous` is the SHA-256 of the line before it (without its
line end), so that a line cannot be changed, removed or inserted without breaking the chain. A new version
only appends lines.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from webdepot.errors import CorruptData
from webdepot.model import Finding, Severity
from webdepot.provenance import Event, Outcome
from webdepot.reasons import from_told, to_told
from webdepot.times import from_iso

START = "0" * 64
LONGEST_LINE_BYTES = 16 << 20


def extend(existing: bytes, events: Iterable[Event]) -> bytes:
    """The lines with further events appended; events that are already there are not repeated."""
    lines = existing.splitlines()
    known = {_facts(line) for line in lines}
    previous = hashlib.sha256(lines[-1]).hexdigest() if lines else START
    for event in events:
        line = _line(event, previous)
        if _facts(line) in known:
            continue
        known.add(_facts(line))
        lines.append(line)
        previous = hashlib.sha256(line).hexdigest()
    return b"".join(line + b"\n" for line in lines)


def check(stream: BinaryIO, *, subject: str) -> Iterator[Finding]:
    """One finding for each line whose `previous` is not the hash of the line before."""
    expected = START
    for number, line in enumerate(_lines(stream), 1):
        try:
            previous = json.loads(line)["previous"]
        except (ValueError, KeyError, TypeError, RecursionError):
            previous = ""
        if previous != expected:
            yield Finding(
                code="depot.chain-broken",
                severity=Severity.ERROR,
                subject=subject,
                message=f"Line {number} of {subject} does not match the line before it: the log was changed.",
                place=f"line {number}",
                action="Restore the file from another copy.",
            )
        expected = hashlib.sha256(line).hexdigest()


def read(stream: BinaryIO, *, where: str) -> Iterator[Event]:
    for number, line in enumerate(_lines(stream), 1):
        try:
            facts = json.loads(line)
            facts.pop("previous")
            facts["message"] = from_told(
                {"reason": facts["message"], "reason_said": facts.pop("message_said", None)}
            )
            yield Event(**facts | {"at": from_iso(facts["at"]), "outcome": Outcome(facts["outcome"])})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise CorruptData(f"Line {number} of {where} is not an event: {error}.", where=where) from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(LONGEST_LINE_BYTES):
        yield line.removesuffix(b"\n")


def _line(event: Event, previous: str) -> bytes:
    facts: dict[str, object] = {
        "at": event.at.isoformat().replace("+00:00", "Z"),
        "agent": event.agent,
        "action": event.action,
        "subject_kind": event.subject_kind,
        "subject": event.subject,
        "outcome": event.outcome.value,
        "message": str(event.message),
        "detail": dict(event.detail),
        "previous": previous,
    }
    if (coded := to_told(event.message).get("reason_said")) is not None:
        facts["message_said"] = coded
    return json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _facts(line: bytes) -> bytes:
    """The line without its link to the one before, to recognise equal events."""
    facts = json.loads(line)
    for name in ("previous", "message_said"):
        facts.pop(name, None)
    return json.dumps(facts, sort_keys=True).encode()
