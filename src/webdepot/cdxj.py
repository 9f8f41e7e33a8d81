"""CDXJ: the capture index as lines of text, in the form of pywb and cdxj-indexer
(https://specs.webrecorder.net/cdxj/0.1.0/).

    org,example)/ 20200101000000 {"url": "http://example.org/", "mime": "text/html", "status": "200",
    "digest": "sha1:…", "length": "315",
                                  "offset": "0", "filename": "a.warc.gz"}

All such lines are written and read here: for the index, for packages, for WACZ, for other programs.

Three facts that pywb does not know have additional names, so that nothing is lost when a line is read back:
the kind of a record that is neither response nor revisit, what a revisit refers to, and the type of its page
(pywb writes `warc/revisit` instead).
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from webdepot.errors import InputError
from webdepot.model import Capture, Location, RecordKind

LONGEST_LINE = 1 << 20
REVISIT_MIME = "warc/revisit"
"""The type of a revisit in most indexes; in ours, if the record does not state the type of the page."""
_KIND, _REDIRECT, _ORIGINAL_MIME = "record", "redirect", "original-mime"
_SPACE = re.compile(r"[\x00-\x20]")
_REFERS_URL, _REFERS_TIMESTAMP = "refers-to-url", "refers-to-timestamp"


def line(capture: Capture) -> str:
    """The line of a capture, without line end; ASCII."""
    is_revisit = capture.kind is RecordKind.REVISIT
    fields: dict[str, str] = {
        "url": capture.url,
        "mime": REVISIT_MIME if is_revisit else capture.mime,
        "status": str(capture.status) if capture.status else "",
        "digest": capture.digest,
        "length": str(capture.location.length),
        "offset": str(capture.location.offset),
        "filename": capture.location.container,
        _KIND: "" if capture.kind in (RecordKind.RESPONSE, RecordKind.REVISIT) else capture.kind.value,
        _ORIGINAL_MIME: capture.mime if is_revisit and capture.mime != REVISIT_MIME else "",
        _REDIRECT: capture.redirect,
        _REFERS_URL: capture.refers_to_url,
        _REFERS_TIMESTAMP: capture.refers_to_timestamp,
    }
    present = {name: value for name, value in fields.items() if value}
    # Keys are percent-encoded; if one contained white space after all, the line must still have three parts.
    key = _SPACE.sub(lambda match: f"%{ord(match[0]):02x}", capture.key)
    return f"{key} {capture.timestamp} {json.dumps(present)}"


def read(lines: Iterable[str], *, name: str) -> Iterator[Capture]:
    """Captures of CDXJ lines in their order; comments and headers (`!meta`) are skipped. InputError names the
    invalid line.
    """
    for number, text in enumerate(lines, start=1):
        if text.strip() and not text.startswith(("!", "#", " ")):
            try:
                yield parse(text)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{name}, line {number} is not CDXJ: {text[:100].strip()!r}. "
                    "Write: key timestamp {json}"
                ) from error


def parse(text: str) -> Capture:
    """The capture of one line; ValueError, KeyError or TypeError if it is invalid."""
    if len(text) > LONGEST_LINE:
        raise ValueError("line too long")
    key, timestamp, fields_text = text.rstrip("\r\n").split(" ", 2)
    try:
        fields: Any = json.loads(fields_text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(fields, dict):
        raise ValueError("no fields")
    if not (key.isprintable() and key.isascii()):
        raise ValueError("no key")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) == 14):
        raise ValueError("no timestamp")
    mime = _text(fields.get("mime")) or "unk"
    is_revisit = mime == REVISIT_MIME
    status = _text(fields.get("status"))
    return Capture(
        key=key,
        timestamp=timestamp,
        url=_text(fields["url"]),
        kind=RecordKind.REVISIT if is_revisit else RecordKind(_text(fields.get(_KIND)) or "response"),
        status=int(status) if status.isascii() and status.isdigit() and len(status) < 5 else 0,
        mime=_text(fields.get(_ORIGINAL_MIME)) or mime,
        digest=_text(fields.get("digest")),
        location=Location(
            container=_text(fields["filename"]),
            offset=whole_number(str(fields["offset"])),
            length=whole_number(str(fields["length"])),
        ),
        redirect=_text(fields.get(_REDIRECT)),
        refers_to_url=_text(fields.get(_REFERS_URL)),
        refers_to_timestamp=_text(fields.get(_REFERS_TIMESTAMP)),
    )


def whole_number(text: str) -> int:
    """An offset or a length; ValueError if it is not one that a file or a database can have."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"{text[:30]!r} is not an offset or a length")
    return int(text)


def _text(value: object) -> str:
    """A field value as text; some tools write numbers, or `-` for nothing."""
    return "" if value is None or value == "-" else str(value)
