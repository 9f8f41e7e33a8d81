"""The evidence of a capture: what it says, what it does not say, and that a changed document is noticed."""

import base64
import gzip
import hashlib
import json
import sys
from pathlib import Path

import pytest

from webdepot.access import rule_rows
from webdepot.access.capture_evidence import CaptureEvidence
from webdepot.access.policy import ANYONE, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.cli.main import main
from webdepot.errors import Closed, CorruptData, InputError, NotFound
from webdepot.services import pipeline
from webdepot.services.access import evidence
from webdepot.services.admin import setup
from webdepot.services.depot import audit, storage_places
from webdepot.url import key as key_of

URL, OTHER = "http://mill.example/", "http://mill.example/after"
BODY = b"<title>Mill</title><p>The mill turns."
STAMPS = ("20100302101500", "20120302101500")
REQUEST = (
    b"GET / HTTP/1.1\r\nHost: mill.example\r\nUser-Agent: Harvester\r\nCookie: sid=SECRET\r\n"
    b"Authorization: Basic SECRET\r\nX-Auth-Token: SECRET\r\n\r\n"
)
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: visit=1\r\n\r\n" + BODY


def sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def record(
    kind: str, number: int, block: bytes, stamp: str = STAMPS[0], url: str = URL, **fields: str
) -> bytes:
    """One record; names of fields are written with _ for -."""
    at = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:]}Z"
    what = {"warcinfo": "application/warc-fields"}.get(kind, f"application/http; msgtype={kind}")
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:00000000-0000-4000-8000-{number:012d}>",
        "WARC-Date": at,
        **({} if kind == "warcinfo" else {"WARC-Target-URI": url}),
        **{name.replace("_", "-"): value for name, value in fields.items()},
        "WARC-Block-Digest": sha1(block),
        "Content-Type": what,
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"WARC/1.1\r\n{lines}\r\n".encode() + block + b"\r\n\r\n"


def records() -> list[bytes]:
    digest = sha1(BODY)
    info = b"software: OldBot/3\r\noperator: Town Library\r\nhostname: secret-host\r\n"
    return [
        record("warcinfo", 1, info),
        record("request", 2, REQUEST, WARC_Concurrent_To="<urn:uuid:00000000-0000-4000-8000-000000000003>"),
        record("response", 3, RESPONSE, WARC_IP_Address="192.0.2.7", WARC_Payload_Digest=digest),
        record("response", 4, RESPONSE, url=OTHER, WARC_Payload_Digest=digest),
        record("request", 5, REQUEST, url=OTHER),
        record(
            "revisit",
            6,
            RESPONSE.partition(BODY)[0],
            STAMPS[1],
            WARC_Profile="http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            WARC_Payload_Digest=digest,
            WARC_Refers_To_Target_URI=URL,
            WARC_Refers_To_Date="2010-03-02T10:15:00Z",
        ),
    ]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory):
    """An archive with a container whose every byte is known, deposited."""
    folder = tmp_path_factory.mktemp("evidence")
    (folder / "mill.warc.gz").write_bytes(b"".join(gzip.compress(each) for each in records()))
    setup.create(folder / "home", settings='[archive]\nname = "Mill archive"\n[index]\nworkers = 1\n')
    with Archive.open(folder / "home", agent="clerk") as opened:
        pipeline.import_files(opened, [folder / "mill.warc.gz"], collection="mills")
        storage_places.add_place(opened, "vault", str(folder / "vault"))
        storage_places.fill(opened)
        audit.audit(opened, older_than_days=0)
        yield opened


def evidence_of(archive: Archive, url: str = URL, stamp: str = STAMPS[0]) -> CaptureEvidence:
    return evidence.collect(
        archive, url, stamp, collection="all", reader=ANYONE, address=f"http://portal/all/{{timestamp}}/{url}"
    )


def test_it_says_where_every_byte_is_and_what_its_digests_are(archive: Archive):
    facts = evidence_of(archive)
    assert (facts.url, facts.timestamp, facts.status, facts.server_address) == (
        URL,
        STAMPS[0],
        200,
        "192.0.2.7",
    )
    assert facts.address == f"http://portal/all/{STAMPS[0]}/{URL}"
    assert facts.record.payload_sha256 == "sha256:" + hashlib.sha256(BODY).hexdigest()
    assert facts.record.payload_sha1 == facts.record.stated_payload_digest == sha1(BODY)
    assert facts.record.block_sha1 == facts.record.stated_block_digest == sha1(RESPONSE)
    assert facts.record.is_intact and facts.record.payload_bytes == len(BODY)
    assert facts.record.id == "urn:uuid:00000000-0000-4000-8000-000000000003"
    with archive.containers.open(facts.record.container) as stream:
        stream.seek(facts.record.offset)
        assert gzip.decompress(stream.read(facts.record.length)) == records()[2]
        stream.seek(0)
        assert facts.container and facts.container.sha256 == hashlib.sha256(stream.read()).hexdigest()


def test_the_request_before_or_after_its_response_is_shown_without_secrets(archive: Archive):
    for url in (URL, OTHER):
        facts = evidence_of(archive, url)
        assert facts.request and facts.request.first_line == "GET / HTTP/1.1"
        headers = dict(facts.request.headers)
        assert headers["User-Agent"] == "Harvester"
        assert {headers[name] for name in ("Cookie", "Authorization", "X-Auth-Token")} == {"[removed]"}
        assert "SECRET" not in evidence.sign(archive, facts).decode()
    assert dict(facts.response.headers)["Set-Cookie"] == "visit=1"


def test_custody_has_the_checks_and_copies_but_no_names_of_people_or_machines(archive: Archive):
    facts = evidence_of(archive)
    assert facts.package and {copy.place: copy.state for copy in facts.package.copies} == {
        "main": "whole",
        "vault": "whole",
    }
    assert {"imported", "kept", "copied", "audited"} <= {event.action for event in facts.events}
    assert [event.at for event in facts.events] == sorted(event.at for event in facts.events)
    assert dict(facts.container.about) == {"software": "OldBot/3", "operator": "Town Library"}
    document = evidence.sign(archive, facts).decode()
    for hidden in ("clerk", "secret-host", str(archive.home.parent)):
        assert hidden not in document


def test_a_revisit_names_the_record_that_holds_its_content(archive: Archive):
    facts = evidence_of(archive, stamp=STAMPS[1])
    assert facts.record.kind == "revisit" and facts.original
    assert facts.original.payload_sha1 == facts.record.stated_payload_digest
    assert facts.original.offset == evidence_of(archive).record.offset
    rule = Rule(
        id=0,
        prefix=key_of(URL),
        exact=True,
        captured_from=STAMPS[0],
        captured_to=STAMPS[0],
        answer=RuleAnswer.HIDE,
        created_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        made = rule_rows.add(connection, rule)
    try:
        assert evidence_of(archive, stamp=STAMPS[0]).timestamp == STAMPS[1]
        assert evidence_of(archive, stamp=STAMPS[1]).original is None
    finally:
        with archive.database.transaction() as connection:
            rule_rows.remove(connection, made.id)


def test_what_may_not_be_shown_has_no_evidence(archive: Archive):
    with pytest.raises(NotFound):
        evidence_of(archive, "http://mill.example/never")
    rule = Rule(
        id=0,
        prefix="example,mill)/",
        answer=RuleAnswer.REFUSE,
        public_text="Closed.",
        created_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        made = rule_rows.add(connection, rule)
    try:
        with pytest.raises(Closed):
            evidence_of(archive)
    finally:
        with archive.database.transaction() as connection:
            rule_rows.remove(connection, made.id)


def test_a_changed_document_is_noticed(archive: Archive, tmp_path: Path):
    data = evidence.sign(archive, evidence_of(archive))
    pem = tmp_path / "key.pem"
    pem.write_bytes(evidence.public_key(archive))
    signer, facts = evidence.check(data, key=str(pem))
    assert facts["captured_at"] == "2010-03-02T10:15:00Z" and len(base64.b64decode(signer)) == 32
    document = json.loads(data)
    document["report"]["timestamp"] = STAMPS[1]
    with pytest.raises(CorruptData):
        evidence.check(json.dumps(document).encode())
    with pytest.raises(CorruptData):
        evidence.check(data, key=base64.b64encode(bytes(32)).decode())
    for wrong in (b"", b"[]", b'{"report": 1}', json.dumps({"report": {}, "signature": {}}).encode()):
        with pytest.raises(InputError):
            evidence.check(wrong)


def test_the_command_writes_and_verifies(archive: Archive, tmp_path: Path, monkeypatch, capsys):
    def run(*words: object) -> tuple[int, str]:
        arguments = ["webdepot", "--home", str(archive.home), "evidence", *map(str, words)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    file = tmp_path / "evidence.json"
    assert run("write", URL, "--at", "2010", "-o", file)[0] == 0
    status, said = run("verify", file)
    assert status == 0 and URL in said and "2010-03-02T10:15:00Z" in said
    file.write_bytes(file.read_bytes().replace(b"192.0.2.7", b"192.0.2.8"))
    assert run("verify", file)[0] == CorruptData.exit_status
    assert run("verify", tmp_path / "none.json")[0] == InputError.exit_status
    assert run("write", URL, "--at", "yesterday")[0] == InputError.exit_status
