"""The evidence of a capture as a sheet in the reader's language: sections of labels and values, which the
page and the PDF file show alike.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from webdepot.access.capture_evidence import CaptureEvidence, EvidenceRecord, MessageFacts
from webdepot.times import moment_of
from webdepot.web.language.language import Language

LONGEST_VALUE = 2000
"""Longer values are cut on the sheet; the signed document has all of them."""
MOST_HEADERS = 200


@dataclass(frozen=True, slots=True)
class SheetRow:
    label: str
    value: str
    is_code: bool = False
    """Digests, headers and identifiers, in a font whose characters cannot be confused."""


@dataclass(frozen=True, slots=True)
class SheetSection:
    name: str
    """Its anchor on the page."""
    title: str
    rows: tuple[SheetRow, ...]


def sections(facts: CaptureEvidence, spoken: Language) -> list[SheetSection]:
    """The sheet; sections about which the archive knows nothing are left out."""
    parts = {
        "capture": _capture(facts, spoken),
        "digests": _digests(facts, spoken),
        "record": _record(facts, spoken),
        "response": _message(facts.response, spoken),
        "request": _message(facts.request, spoken),
        "harvest": _harvest(facts, spoken),
        "custody": _custody(facts, spoken),
    }
    return [
        SheetSection(name, spoken.say(f"evidence.{name}"), rows)
        for name, part in parts.items()
        if (rows := tuple(row for row in part if row.value))
    ]


def exact(spoken: Language, moment: datetime) -> str:
    """A moment to the second, in UTC."""
    return f"{spoken.date(moment)}, {moment:%H:%M:%S} UTC"


def _capture(facts: CaptureEvidence, spoken: Language) -> Iterator[SheetRow]:
    say = spoken.say
    yield SheetRow(say("evidence.url"), facts.url, True)
    yield SheetRow(say("evidence.captured_at"), exact(spoken, moment_of(facts.timestamp)))
    yield SheetRow(say("evidence.status"), str(facts.status) if facts.status else "")
    yield SheetRow(say("evidence.mime"), facts.mime)
    yield SheetRow(say("evidence.server_address"), facts.server_address, True)
    yield SheetRow(say("evidence.protocol"), facts.protocol)
    yield SheetRow(say("evidence.address"), facts.address, True)


def _digests(facts: CaptureEvidence, spoken: Language) -> Iterator[SheetRow]:
    say, source = spoken.say, facts.original or facts.record
    if source.payload_bytes is not None:
        yield SheetRow(say("evidence.payload_size"), _bytes(spoken, source.payload_bytes))
    yield SheetRow(say("evidence.payload_sha256"), source.payload_sha256, True)
    yield SheetRow(say("evidence.payload_sha1"), source.payload_sha1, True)
    yield SheetRow(say("evidence.stated_payload"), facts.record.stated_payload_digest, True)
    yield SheetRow(say("evidence.block_sha256"), facts.record.block_sha256, True)
    yield SheetRow(say("evidence.block_sha1"), facts.record.block_sha1, True)
    yield SheetRow(say("evidence.stated_block"), facts.record.stated_block_digest, True)
    yield SheetRow(say("evidence.comparison"), say(f"evidence.{_comparison(facts)}"))


def _comparison(facts: CaptureEvidence) -> str:
    """How the digests in the records compare with those computed from their bytes."""
    answers = [record.is_intact for record in (facts.record, facts.original) if record is not None]
    if False in answers:
        return "differs"
    return "same" if True in answers else "not_compared"


def _record(facts: CaptureEvidence, spoken: Language) -> Iterator[SheetRow]:
    say = spoken.say
    yield from _place(facts.record, spoken)
    if facts.original is not None:
        yield SheetRow(say("evidence.original"), say("evidence.original_words"))
        yield from _place(facts.original, spoken)
    if facts.request_record is not None:
        yield SheetRow(say("evidence.request_record"), facts.request_record.id, True)
    if facts.container is not None:
        yield SheetRow(say("evidence.container_size"), _bytes(spoken, facts.container.size_bytes))
        yield SheetRow(say("evidence.container_sha256"), f"sha256:{facts.container.sha256}", True)


def _place(record: EvidenceRecord, spoken: Language) -> Iterator[SheetRow]:
    say = spoken.say
    yield SheetRow(say("evidence.record_id"), record.id, True)
    yield SheetRow(say("evidence.record_kind"), _value(spoken, "record", record.kind))
    yield SheetRow(say("evidence.record_date"), exact(spoken, record.date))
    yield SheetRow(say("evidence.container"), record.container, True)
    yield SheetRow(
        say("evidence.position"), say("evidence.position_words", offset=record.offset, length=record.length)
    )


def _message(message: MessageFacts | None, spoken: Language) -> Iterator[SheetRow]:
    if message is None:
        return
    yield SheetRow(spoken.say("evidence.first_line"), _cut(message.first_line), True)
    for name, value in message.headers[:MOST_HEADERS]:
        yield SheetRow(name, _cut(value), True)


def _harvest(facts: CaptureEvidence, spoken: Language) -> Iterator[SheetRow]:
    say = spoken.say
    yield SheetRow(say("evidence.operator"), facts.archive)
    yield SheetRow(say("evidence.contact"), facts.contact)
    if (harvest := facts.harvest) is not None:
        yield SheetRow(say("evidence.harvest_id"), harvest.id, True)
        yield SheetRow(say("evidence.harvest_kind"), say(f"harvests.kind_{harvest.kind}"))
        yield SheetRow(say("evidence.started_at"), exact(spoken, harvest.started_at))
        yield SheetRow(say("evidence.ended_at"), exact(spoken, harvest.ended_at) if harvest.ended_at else "")
        yield SheetRow(say("evidence.urn"), harvest.urn, True)
    for name, value in facts.container.about if facts.container else ():
        label = spoken.texts.get(f"evidence.info_{name.lower().replace('-', '_')}", name)
        shown = _value(spoken, name.lower(), value)
        yield SheetRow(label, _cut(shown), shown == value)


def _value(spoken: Language, name: str, value: str) -> str:
    """A value in words if it is one of ours, otherwise as it is recorded; the signed document has the
    recorded one. A reason after a colon is not ours.
    """
    known, colon, reason = value.partition(": ")
    for text, rest in ((value, ""), (known, colon + reason)):
        key = f"evidence.values.{name}_{re.sub(r'[^a-z]+', '_', text.lower()).strip('_')}"
        if translated := spoken.texts.get(key):
            return translated + rest
    return value


def _custody(facts: CaptureEvidence, spoken: Language) -> Iterator[SheetRow]:
    say = spoken.say
    if (package := facts.package) is not None:
        yield SheetRow(say("evidence.package"), package.id, True)
        yield SheetRow(say("evidence.package_version"), str(package.version))
        yield SheetRow(say("evidence.inventory"), f"sha256:{package.inventory_sha256}", True)
        for copy in package.copies:
            yield SheetRow(
                say("evidence.copy", place=copy.place),
                say(
                    "evidence.copy_words",
                    state=say(f"depot.state_{copy.state}"),
                    date=exact(spoken, copy.checked_at),
                ),
            )
    else:
        yield SheetRow(say("evidence.package"), say("evidence.no_package"))
    for event in facts.events:
        facts_of_event = [
            say(f"evidence.act_{event.action}"),
            event.place,
            say(f"status.outcome_{event.outcome}"),
        ]
        yield SheetRow(exact(spoken, event.at), " · ".join(filter(None, facts_of_event)))


def _bytes(spoken: Language, size_bytes: int) -> str:
    return spoken.say("evidence.bytes", count=size_bytes)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " …"
