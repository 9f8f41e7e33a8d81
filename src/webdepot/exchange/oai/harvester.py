"""Reading a list of OAI-PMH 2.0 from another provider, page by page, with patience.

1. Ask; 503 and 429 say when to come again (seconds or an HTTP date), other failures are tried again a few
   times.
2. Read the page: records with header and metadata as they are, the token of the next page.
3. A token that comes back unchanged, or a second time, is a provider that goes in circles.

Which page comes next, and what is kept, is the caller's affair: see `services/exchange/oai_harvest.py`.
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
from webdepot.times import from_http

LARGEST_PAGE_BYTES = 64 << 20
TRIES = 4
LONGEST_WAIT_S = 3600.0
PAUSES_S = (2.0, 10.0, 30.0)
_NS = {"o": OAI}


class ProtocolError(RemoteError):
    """The provider answered with an error of the protocol."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"{code}: {words}", retry=False)
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
    """0 where the provider does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRepository:
    """Another depot. `wait` sleeps; `clock` tells the time for dates in Retry-After."""

    base_url: str
    client: PartnerClient
    wait: Callable[[float], None]
    clock: Callable[[], datetime]

    def list_records(self, arguments: Mapping[str, str]) -> ListPage:
        """One page of ListRecords; ProtocolError for an error of the protocol (an empty list is a page
        without records).
        """
        root = self._ask({"verb": "ListRecords", **arguments})
        return _page(root)

    def _ask(self, arguments: Mapping[str, str]) -> etree._Element:
        separator = "&" if "?" in self.base_url else "?"
        url = f"{self.base_url}{separator}{urlencode(arguments)}"
        failures = 0
        while True:
            pieces: list[bytes] = []
            try:
                got = self.client.get(url, _into(pieces), limit_bytes=LARGEST_PAGE_BYTES, packed=True)
                if got.status == 200:
                    return _root(b"".join(pieces), self.base_url)
                trouble = RemoteError(
                    f"{self.base_url} answers {got.status}.", retry=got.status in (429, 502, 503, 504)
                )
            except RemoteError as error:
                got, trouble = PartnerResponse(), error
            except InputError as error:
                raise RemoteError(f"{self.base_url}: {error}", retry=False) from error
            failures += 1
            if not trouble.retry or failures >= TRIES:
                raise trouble
            self.wait(self._pause(got, failures))

    def _pause(self, got: PartnerResponse, failures: int) -> float:
        """What Retry-After says, as seconds or as a date; our own pauses otherwise."""
        said = (got.headers.get("Retry-After") or "").strip()
        usual = PAUSES_S[min(failures, len(PAUSES_S)) - 1]
        if said.isascii() and said.isdigit():
            return min(float(said[:9]), LONGEST_WAIT_S)
        try:
            return min(max((from_http(said) - self.clock()).total_seconds(), 0.0), LONGEST_WAIT_S)
        except ValueError:
            return usual


class Circles:
    """Notices a provider that gives the same token again."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def check(self, token: str) -> None:
        mark = hashlib.sha256(token.encode()).digest()
        if mark in self._seen:
            raise RemoteError(
                "The provider goes in circles: it gave the same resumption token twice.", retry=False
            )
        self._seen.add(mark)


def _into(pieces: list[bytes]) -> Callable[[PartnerResponse, bytes], None]:
    return lambda _, piece: pieces.append(piece)


def _root(data: bytes, where: str) -> etree._Element:
    root = markup.parse(data, what="the answer")
    if root.tag != f"{{{OAI}}}OAI-PMH":
        raise InputError(f"what {where} answers is no OAI-PMH but {str(root.tag)[:100]}.")
    return root


def _page(root: etree._Element) -> ListPage:
    response_date = root.findtext("o:responseDate", "", _NS).strip()
    errors = [(error.get("code", ""), (error.text or "").strip()) for error in root.iterfind("o:error", _NS)]
    if errors and errors[0][0] == "noRecordsMatch":
        return ListPage(records=(), token="", response_date=response_date, list_size=0)
    if errors:
        raise ProtocolError(*errors[0])
    found = root.find("o:ListRecords", _NS)
    if found is None:
        raise RemoteError("The answer has neither records nor an error.", retry=False)
    token = found.find("o:resumptionToken", _NS)
    size = (token.get("completeListSize") or "") if token is not None else ""
    return ListPage(
        records=tuple(_record(record) for record in found.iterfind("o:record", _NS)),
        token=(token.text or "").strip() if token is not None else "",
        response_date=response_date,
        list_size=int(size) if size.isascii() and size.isdigit() else 0,
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
