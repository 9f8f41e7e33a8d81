"""TLS and HTTP/2: certificates are checked, and answers are kept in the form of HTTP/1."""

import asyncio
import ssl
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from harvest_fetch import certificate

from webdepot import event_loop
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Candidate, Failure
from webdepot.url import Url


def test_tls_is_checked_and_its_failures_named(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "secure.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        mapping = {"secure.example": f"127.0.0.1:{port}", "other.example": f"127.0.0.1:{port}"}
        for ca_file, host, failure in (
            (cert, "secure.example", None),
            (None, "secure.example", Failure.TLS),
            (cert, "other.example", Failure.TLS),
        ):
            fetcher = CurlFetcher(user_agent="Test/1", router=Router(connect_to=mapping), ca_file=ca_file)
            visit = await fetcher.fetch(Candidate(url=Url(f"https://{host}/")))
            visit.body.close()
            assert visit.failure is failure
            assert bool(visit.failure_detail) == (failure is not None)
            await fetcher.close()
        server.close()
        await server.wait_closed()

    event_loop.run(main())


def test_http2_is_written_in_the_form_of_http1(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "two.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])
    asked: list[dict[bytes, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        connection.initiate_connection()
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    asked.append(dict(event.headers))
                    connection.send_headers(
                        event.stream_id, [(":status", "404"), ("content-type", "text/html"), ("x-a", "b")]
                    )
                    connection.send_data(event.stream_id, b"not here", end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        router = Router(connect_to={"two.example": f"127.0.0.1:{server.sockets[0].getsockname()[1]}"})
        fetcher = CurlFetcher(user_agent="Test/1", router=router, ca_file=cert)
        visit = await fetcher.fetch(Candidate(url=Url("https://two.example/x?y")))
        with visit.body:
            assert visit.body.read() == b"not here"
        assert visit.head == b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nx-a: b\r\n\r\n"
        assert (visit.status, visit.protocol, visit.failure, visit.truncated) == (404, "h2", None, "")
        assert visit.request.startswith(b"GET /x?y HTTP/1.1\r\nHost: two.example\r\nUser-Agent: Test/1\r\n")
        await fetcher.close()
        server.close()
        await server.wait_closed()

    event_loop.run(main())
    assert asked[0][b":path"] == b"/x?y"
    assert asked[0][b"user-agent"] == b"Test/1"
