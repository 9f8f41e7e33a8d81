"""JSON documents in packages and beside them: catalogue records, transfer objects, signed reports."""

from contextlib import suppress

from webdepot.depot import signing
from webdepot.errors import WebdepotError
from webdepot.exchange import catalogue

TOKENS = (
    b'{"format": "webdepot-catalogue", ', b'"format_version": 1, ', b'"records": [', b'"transfer": {}',
    b'"key": "a"', b'"level": "site"', b'"created_at": "2020-01-01T00:00:00Z"', b'"signature": {"key": "',
    b'"value": "', b'"report": {}', b"null", b"[]", b"{}", b"1e999", b"NaN", b'"\\ud800"',
    b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", b"]", b"}",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with suppress(WebdepotError):
        signing.check(data)
    records, _ = catalogue.from_document(data, where="fuzz")
    for record in records:
        catalogue.sets_of(record)
