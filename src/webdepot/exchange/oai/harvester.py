"""Read a list from an OAI-PMH 2.0 provider, page by page, with retries.

1. Request a page. Status 503 and 429 say when to retry (seconds or an HTTP date); other failures are retried
   a few times.
2. Read the page: records with header and metadata as received, and the token of the next page.
3. A token that the provider sends a second time means that its list is a loop.

The caller decides which page comes next and what is stored: see `services/exchange/oai_harvest.py`.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from lxml import etree

from webdepot.errors import InputError, RemoteError
from webdepot.exchange.client import PartnerClient, PartnerResponse
from webdepot.exchange.metadata import markup
from webdepot.exchange.oai.protocol import OAI
from webdepot.http_headers import stated_number
from webdepot.times import from_http

LARGEST_PAGE_BYTES = 64 << 20
TRIES = 4
LONGEST_WAIT_S = 3600.0
PAUSES_S = (2.0, 10.0, 30.0)
_NS = {"o": OAI}


class ProtocolError(RemoteError):
    """The provider returned a protocol error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}", retry=False)
        self.oai_code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRecord:
    identifier: str
    datestamp: str
    sets: tuple[str, ...]
    is_deleted: bool
    xml: str
    """The metadata, empty for a deleted record."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    records: tuple[ListedRecord, ...]
    token: str
    """Empty on the last page."""
    response_date: str
    list_size: int
    """0 if the provider does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRepository:
    """The repository of a partner. `wait` sleeps; `clock` gives the time for dates in Retry-After."""

    base_url: str
    client: PartnerClient
    wait: Callable[[float], None]
    clock: Callable[[], datetime]

    def list_records(self, arguments: Mapping[str, str]) -> ListPage:
        """One page of ListRecords; ProtocolError for a protocol error (an empty list is a page without
        records).
        """
        root = self._request({"verb": "ListRecords", **arguments})
        return _page(root)

    def _request(self, arguments: Mapping[str, str]) -> etree._Element:
        separator = "&" if "?" in self.base_url else "?"
        url = f"{self.base_url}{separator}{urlencode(arguments)}"
        failures = 0
        while True:
            pieces: list[bytes] = []
            try:
                response = self.client.get(url, _into(pieces), limit_bytes=LARGEST_PAGE_BYTES, packed=True)
                if response.status == 200:
                    return _root(b"".join(pieces), self.base_url)
                failure = RemoteError(
                    f"{self.base_url} returned status {response.status}.",
                    retry=response.status in (429, 502, 503, 504),
                )
            except RemoteError as error:
                response, failure = PartnerResponse(), error
            except InputError as error:
                raise RemoteError(f"{self.base_url}: {error}", retry=False) from error
            failures += 1
            if not failure.retry or failures >= TRIES:
                raise failure
            self.wait(self._pause(response, failures))

    def _pause(self, response: PartnerResponse, failures: int) -> float:
        """The pause in Retry-After, in seconds or as a date; our own pauses otherwise."""
        retry_after = (response.headers.get("Retry-After") or "").strip()
        usual = PAUSES_S[min(failures, len(PAUSES_S)) - 1]
        if retry_after.isascii() and retry_after.isdigit():
            return min(float(retry_after[:9]), LONGEST_WAIT_S)
        try:
            return min(max((from_http(retry_after) - self.clock()).total_seconds(), 0.0), LONGEST_WAIT_S)
        except ValueError:
            return usual


class LoopDetector:
    """Detects a provider that sends the same token again."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def check(self, token: str) -> None:
        mark = hashlib.sha256(token.encode()).digest()
        if mark in self._seen:
            raise RemoteError(
                "The provider's list is a loop: it sent the same resumption token twice.", retry=False
            )
        self._seen.add(mark)


def _into(pieces: list[bytes]) -> Callable[[PartnerResponse, bytes], None]:
    return lambda _, piece: pieces.append(piece)


def _root(data: bytes, where: str) -> etree._Element:
    root = markup.parse(data, what="the response")
    if root.tag != f"{{{OAI}}}OAI-PMH":
        raise InputError(f"the response of {where} is not OAI-PMH but {str(root.tag)[:100]}.")
    return root


def _page(root: etree._Element) -> ListPage:
    response_date = root.findtext("o:responseDate", "", _NS).strip()
    errors = [(error.get("code", ""), (error.text or "").strip()) for error in root.iterfind("o:error", _NS)]
    if errors and errors[0][0] == "noRecordsMatch":
        return ListPage(records=(), token="", response_date=response_date, list_size=0)
    if errors:
        raise ProtocolError(*errors[0])
    listing = root.find("o:ListRecords", _NS)
    if listing is None:
        raise RemoteError("The response has neither records nor an error.", retry=False)
    token = listing.find("o:resumptionToken", _NS)
    return ListPage(
        records=tuple(_record(record) for record in listing.iterfind("o:record", _NS)),
        token=(token.text or "").strip() if token is not None else "",
        response_date=response_date,
        list_size=stated_number(token.get("completeListSize")) or 0 if token is not None else 0,
    )


def _record(record: etree._Element) -> ListedRecord:
    header = record.find("o:header", _NS)
    identifier = "" if header is None else header.findtext("o:identifier", "", _NS).strip()
    if header is None or not identifier or len(identifier) > 500:
        raise RemoteError("A record of the list has no identifier.", retry=False)
    metadata = record.find("o:metadata", _NS)
    inside = next(markup.children(metadata), None) if metadata is not None else None
    is_deleted = header.get("status") == "deleted"
    xml = markup.verbatim(inside) if inside is not None and not is_deleted else ""
    return ListedRecord(
        identifier=identifier,
        datestamp=header.findtext("o:datestamp", "", _NS).strip()[:20],
        sets=tuple((each.text or "").strip() for each in header.iterfind("o:setSpec", _NS)),
        is_deleted=is_deleted,
        xml=xml,
        sha256=hashlib.sha256(xml.encode()).hexdigest() if not is_deleted else "deleted",
    )
