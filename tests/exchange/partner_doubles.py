"""Partners made for tests: a foreign provider (oaipmh.server of the ETH library), and one whose answers a
test writes by hand.
"""

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import oaipmh.common
import oaipmh.error
import oaipmh.metadata
import oaipmh.server
from lxml import etree

from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.exchange.metadata import regbib
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer, TransferFile, TransferForm

Answer = tuple[int, dict[str, str], bytes]


class Desk:
    """A web server on loopback whose answers are functions of path and arguments; every request is noted."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[dict[str, str], dict[str, str]], Answer]] = {}
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        desk = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                arguments = dict(parse_qsl(parts.query, keep_blank_values=True))
                headers = {name.lower(): value for name, value in self.headers.items()}
                desk.asked.append((parts.path, arguments, headers))
                found = desk.answers.get(parts.path)
                status, more, body = found(arguments, headers) if found else (404, {}, b"not here")
                self.send_response(status)
                length = more.pop("Content-Length", str(len(body)))
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = length != str(len(body))

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Clients that are refused break off; that is what these tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def desk() -> Iterator[Desk]:
    made = Desk()
    try:
        yield made
    finally:
        made.close()


@dataclass
class Offer:
    """An object as a partner offers it: levels and files, turned into a METS record and a ZIP."""

    levels: list[CatalogueRecord]
    files: dict[str, bytes]
    mimes: dict[str, str] = field(default_factory=dict)
    start: str = ""

    def zip(self) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in self.files.items():
                # A fixed date, so that the same files make the same ZIP a moment later.
                packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return buffer.getvalue()

    def mets(self, base: str, packed: bytes | None = None) -> etree._Element:
        packed = self.zip() if packed is None else packed
        files = tuple(
            TransferFile(
                path="/" + (name.rpartition("/")[0] + "/" if "/" in name else ""),
                name=name.rpartition("/")[2],
                size_bytes=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                mime=self.mimes.get(name, "application/octet-stream"),
                format="HTML 4.01",
                at="2005-03-01T09:30:00Z",
                container="x",
            )
            for name, data in self.files.items()
        )
        start = self.start or files[0].member
        form = TransferForm.FILES
        made = Transfer(
            form=form,
            files=files,
            start=start,
            size_bytes=len(packed),
            sha256=hashlib.sha256(packed).hexdigest(),
        )
        return regbib.to_element(
            self.levels, made, addresses=ObjectAddresses(portal_url=base, institution="Partner")
        )

    @property
    def key(self) -> str:
        return self.levels[-1].key


def put(
    desk: Desk,
    offers: list[Offer],
    *,
    change: Callable[[etree._Element], None] | None = None,
    zips: dict[str, bytes] | None = None,
) -> None:
    """Offer these objects at /oai and their ZIPs at /transfer/; `change` spoils the METS, `zips` replaces
    what is served.
    """
    documents = {}
    for offer in offers:
        packed = offer.zip()
        document = offer.mets(desk.url, packed)
        if change:
            change(document)
        documents[offer.key] = etree.tostring(document)
        served = (zips or {}).get(offer.key, packed)
        desk.answers[f"/transfer/{offer.key}.zip"] = ranged(served)
    desk.answers["/oai"] = lambda arguments, headers: (200, {"Content-Type": "text/xml"}, page(documents))


def ranged(data: bytes) -> Callable[[dict[str, str], dict[str, str]], Answer]:
    etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'

    def answer(arguments: dict[str, str], headers: dict[str, str]) -> Answer:
        asked = headers.get("range", "")
        if asked.startswith("bytes=") and headers.get("if-range", etag) == etag:
            first = int(asked.removeprefix("bytes=").rstrip("-"))
            if first >= len(data):
                return 416, {}, b""
            return (
                206,
                {"ETag": etag, "Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"},
                data[first:],
            )
        return 200, {"ETag": etag}, data

    return answer


def page(
    records: dict[str, bytes],
    *,
    token: str | None = None,
    deleted: tuple[str, ...] = (),
    stamp: str = "2026-03-01T00:00:00Z",
) -> bytes:
    """A page of ListRecords by hand."""
    entries = "".join(
        f"<record><header><identifier>oai:p.example:{key}</identifier><datestamp>{stamp}</datestamp></header>"
        f"<metadata>{xml.decode()}</metadata></record>"
        for key, xml in records.items()
    )
    entries += "".join(
        f"<record><header status='deleted'><identifier>oai:p.example:{key}</identifier><datestamp>{stamp}</datestamp></header></record>"
        for key in deleted
    )
    more = "" if token is None else f"<resumptionToken>{token}</resumptionToken>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        "<responseDate>2026-03-02T00:00:00Z</responseDate><request>http://p.example/oai</request>"
        f"<ListRecords>{entries}{more}</ListRecords></OAI-PMH>"
    ).encode()


def foreign_provider(
    documents: dict[str, etree._Element], deleted: set[str], *, batch: int = 10
) -> oaipmh.server.Server:
    """A provider on the ETH library's code: METS records, some deleted, in pages."""
    moment = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)

    class Store:
        def identify(self):
            return oaipmh.common.Identify(
                repositoryName="Foreign",
                baseURL="http://p.example/oai",
                protocolVersion="2.0",
                adminEmails=["a@p.example"],
                earliestDatestamp=moment,
                deletedRecord="persistent",
                granularity="YYYY-MM-DDThh:mm:ssZ",
                compression=["identity"],
                toolkit_description=False,
            )

        def listMetadataFormats(self, identifier=None):  # noqa: N802 - its interface
            return [("oai_mets_lmer", regbib.SCHEMA, regbib.METS)]

        def listRecords(self, metadataPrefix, set=None, from_=None, until=None, cursor=0, batch_size=batch):  # noqa: N802, N803
            names = sorted(documents)[cursor : cursor + batch_size]
            made = []
            for name in names:
                header = oaipmh.common.Header(None, f"oai:p.example:{name}", moment, [], name in deleted)
                made.append(
                    (header, None if name in deleted else oaipmh.common.Metadata(documents[name], {}), None)
                )
            return made

    registry = oaipmh.metadata.MetadataRegistry()
    registry.registerWriter("oai_mets_lmer", lambda element, metadata: element.append(metadata.element()))
    return oaipmh.server.BatchingServer(Store(), metadata_registry=registry, resumption_batch_size=batch)
