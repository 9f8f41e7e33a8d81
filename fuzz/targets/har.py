"""HAR files, converted to a container that is read again."""

from io import BytesIO

from fuzz.scratch import folder
from webdepot.container.conversion import har
from webdepot.container.reader import iter_records
from webdepot.model import Finding
from webdepot.times import from_iso

TOKENS = (
    b'{"log": {"entries": [',
    b'{"startedDateTime": "2020-01-01T00:00:00Z", ',
    b'"request": {"method": "GET", "url": "http://a.example/", "headers": [',
    b'{"name": "Host", "value": "a"}',
    b'"response": {"status": 200, ',
    b'"content": {"mimeType": "text/html", "text": "',
    b'"encoding": "base64"',
    b"charset=punycode",
    b"charset=idna",
    b"charset=utf-16",
    b"charset=iso-2022-kr",
    b"\\u0000",
    b"\\ud800",
    b"\\r\\n",
    b"1e999",
    b"null",
    b"]}}",
    b'"httpVersion": "h2"',
    b'"serverIPAddress": "[::1]"',
    b'"postData": {"text": "',
)


def one_input(data: bytes) -> None:
    now = from_iso("2020-01-01T00:00:00Z")
    findings: list[Finding] = []
    with folder() as place:
        path = place / "a.warc.gz"
        converted = har.to_warc(BytesIO(data), path, name="a.har", now=now, note=findings.append)
        damage: list[Finding] = []
        with path.open("rb") as stream:
            kinds = [record.kind for record in iter_records(stream, path.name, on_finding=damage.append)]
        assert not damage, damage[0].message
        assert len(kinds) == converted.records
