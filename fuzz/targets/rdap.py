"""Answers of RDAP servers, of certificate transparency logs, the list of RDAP servers, and Retry-After."""

import json
from datetime import UTC, datetime

from webdepot.selection.domains.lookup import http_query, rdap, registrant, transparency

TOKENS = (
    b'{"entities": [{"roles": ["registrant"], "vcardArray": ["vcard", [', b'["fn", {}, "text", "Library"]',
    b'["adr", {"label": "x"}, "text", ["", "", "a"]]', b'["email", {}, "text", "a@b.example"]',
    b'"nameservers": [{"ldhName": "ns.a.example"}]',
    b'"startAddress": "192.0.2.0", "endAddress": "192.0.2.255"',
    b'"links": [{"rel": "related", "type": "application/rdap+json", "href": "x"}]',
    b'"services": [[["de"], ["https://a.example/"]]]', b'"name_value": "a.example\\n*.b.example"',
    b'"common_name": ', b"null", b"[]", b"{}", b"1e999", b"1", b'"\\ud800"', b'"roles": ', b'"name": ',
    b"\xb2", b"]", b"}",
)  # fmt: skip
_AT = datetime(2020, 1, 1, tzinfo=UTC)


def one_input(data: bytes) -> None:
    assert 0 <= http_query.retry_after_s(data.decode("latin-1"), _AT) <= 86_400
    transparency.names_in(data)
    answer = rdap._json(data)
    if not isinstance(answer, dict):
        return
    json.dumps(answer)
    registrant.registration_of_rdap(answer, source="fuzz", at=_AT)
    registrant.network_of_rdap(answer, source="fuzz", at=_AT)
    rdap._related(answer)
    rdap._has_registrant(answer)
    services = answer.get("services")
    if isinstance(services, list):
        rdap._server_of_name(services, "a.de")
        rdap._server_of_address(services, "192.0.2.1")
