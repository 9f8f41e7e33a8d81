"""Files of a delivered package: captures, formats and findings (packed rows), and the chain of events."""

import gzip
from io import BytesIO

from webdepot.depot import event_chain, rows
from webdepot.errors import CorruptData

TOKENS = (
    b'org,example)/ 20200101000000 {"url": "http://example.org/", ',
    b'"filename": "a", "offset": 0, "length": 1}\n',
    b'{"code": "a", "severity": "error", "subject": "s", "message": "m"}\n', b'"facts": {}', b'"place": ',
    b'{"action": "a", "agent": "b", "at": "2020-01-01T00:00:00Z", "detail": {}, "message": "m", ',
    b'"outcome": "success", "previous": "", "subject": "s", "subject_kind": "package"}\n',
    b'"message_said": ', b'["code", {}]', b"null", b"[", b"{", b"}", b"Infinity", b"1e999", b'"\\ud800"',
    b"\x1f\x8b\x08\0",
)  # fmt: skip


def one_input(data: bytes) -> None:
    for form in (data, gzip.compress(data, 1)):
        for read in (rows.read_captures, rows.read_rows, rows.read_findings):
            try:
                for _ in read(BytesIO(form), where="fuzz"):
                    pass
            except CorruptData:
                continue
    list(event_chain.check(BytesIO(data), subject="fuzz"))
    events = list(event_chain.read(BytesIO(data), where="fuzz"))
    written = event_chain.extend(b"", events)
    again = event_chain.read(BytesIO(written), where="again")
    assert event_chain.extend(b"", again) == written
