"""Queries of the CDX server in both dialects; filters and fields are applied to one capture."""

from urllib.parse import parse_qsl

from webdepot.access import cdx
from webdepot.model import Capture, Location, RecordKind

TOKENS = (
    b"url=example.org", b"&matchType=domain", b"&matchType=prefix", b"&filter=~url:", b"&filter=!=status:200",
    b"&filter=mimetype:text/.*", b"&collapse=timestamp:8", b"&collapse=digest", b"&limit=-1", b"&page=0",
    b"&pageSize=", b"&showNumPages=true", b"&resumeKey=", b"&from=2020", b"&to=20211231",
    b"&closest=20200101000000", b"&sort=closest", b"&sort=reverse", b"&fl=urlkey,timestamp", b"&output=json",
    b"&collapseTime=10", b"&resolveRevisits=true", b"&allowFuzzy=1", b"*", b"%00", b"(a+)+$", b"[", b"\\",
    b"%FF", b"&showResumeKey=true",
)  # fmt: skip
_CAPTURE = Capture(
    key="org,example)/", timestamp="20200101000000", url="http://example.org/", kind=RecordKind.RESPONSE,
    status=200, mime="text/html", digest="sha1:AAAA",
    location=Location(container="a.warc.gz", offset=0, length=315),
)  # fmt: skip


def one_input(data: bytes) -> None:
    try:
        pairs = parse_qsl(data.decode("latin-1"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        return
    for dialect in cdx.Dialect:
        query = cdx.parse(pairs, dialect)
        for capture in cdx.selected(iter([_CAPTURE]), query):
            assert len(cdx.values(capture, query)) == len(query.fields)
