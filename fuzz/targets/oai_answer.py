"""Answers of OAI-PMH providers, with the records in them, through the client that the program uses."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from webdepot.exchange.client import PartnerClient, PartnerResponse
from webdepot.exchange.oai.harvester import RemoteRepository

TOKENS = (
    b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'>",
    b"<responseDate>2020-01-01T00:00:00Z</responseDate>", b"<ListRecords>", b"<record><header>",
    b"<header status='deleted'>", b"<identifier>oai:a:1</identifier>", b"<datestamp>2020-01-01</datestamp>",
    b"<setSpec>a:b</setSpec>", b"</header><metadata>", b"</metadata></record>",
    b"<resumptionToken completeListSize='10'>", b"</resumptionToken>", b"<error code='badArgument'>",
    b"<error code='noRecordsMatch'/>", b"</ListRecords></OAI-PMH>",
    b"<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/'>", b"<!DOCTYPE a>", b"<?pi?>",
    b"<!-- -->", b"HTTP/1.1 503 Busy\r\n", b"Retry-After: 5\r\n", b"\r\n\r\n",
)  # fmt: skip


class _Canned:
    """A fetcher that answers every request with the same bytes: header lines, if there are any, and a
    body.
    """

    def __init__(self, data: bytes) -> None:
        head, mark, body = data.partition(b"\r\n\r\n")
        self._lines, self._body = (head.split(b"\r\n"), body) if mark else ([], data)

    def get(self, url: str, take: Callable[[PartnerResponse, bytes], None], **_: Any) -> PartnerResponse:
        response = PartnerResponse()
        for line in self._lines:
            response.add_header_line(line + b"\r\n")
        response.status = response.status or 200
        take(response, self._body)
        return response


def one_input(data: bytes) -> None:
    waited: list[float] = []
    repository = RemoteRepository(
        base_url="http://a.example/oai",
        client=cast(PartnerClient, _Canned(data)),
        wait=waited.append,
        clock=_clock,
    )
    arguments: Mapping[str, str] = {"metadataPrefix": "oai_dc"}
    try:
        page = repository.list_records(arguments)
    finally:
        assert all(0 <= wait_s <= 86_400 for wait_s in waited), waited
    assert all(record.identifier for record in page.records)


def _clock() -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC)
