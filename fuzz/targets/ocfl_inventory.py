"""OCFL inventories of delivered packages; a usable one is written and read again."""

from contextlib import suppress

from webdepot.depot.ocfl import inventory
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.tombstone import from_json
from webdepot.errors import CorruptData

TOKENS = (
    b'{"id": "urn:a", "type": "https://ocfl.io/1.1/spec/#inventory", "digestAlgorithm": "sha256", ',
    b'"head": "v1", ', b'"manifest": {"', b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    b'": ["v1/content/a"]}, ', b'"versions": {"v1": {"created": "2020-01-01T00:00:00Z", "state": {',
    b'"message": "a", "user": {"name": "b"}', b"../", b"v2", b"null", b"[]", b"{}", b'"\\ud800"', b"1e999",
    b'"contentDirectory": "x"', b'"withdrawn_at": "2020-01-01"', b'"package": "a"', b'"reason": ',
)  # fmt: skip


def one_input(data: bytes) -> None:
    with suppress(CorruptData):
        from_json(data, where="fuzz")
    parsed = inventory.parse(data, where="fuzz")
    parsed.files()
    again, written = inventory.serialise(parsed.id, parsed.manifest, parsed.versions)
    assert _values(inventory.parse(written, where="again")) == _values(again)
    for number in range(1, parsed.head + 1):
        inventory.as_of(parsed, number)


def _values(one: Inventory) -> tuple[object, ...]:
    return one.id, one.head, dict(one.manifest), one.versions
