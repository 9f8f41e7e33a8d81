"""An identity provider that does not answer delays one page for those who sign in with it, and nobody else."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from museum import ask, serving

from webdepot.config.sections.portal import OidcConfig
from webdepot.errors import RemoteError
from webdepot.services.admin import setup
from webdepot.services.admin.oidc import IdentityProvider

Answering = Callable[[socket.socket], None]


class Provider:
    """A server that treats each connection as the test wants."""

    def __init__(self, answer: Answering) -> None:
        self.asked = 0
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.issuer = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.asked += 1
            self._open.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            connection.close()


@contextmanager
def provider_that(answer: Answering) -> Iterator[Provider]:
    provider = Provider(answer)
    try:
        yield provider
    finally:
        provider.close()


def stay_silent(_: socket.socket) -> None:
    pass


def dribble(connection: socket.socket) -> None:
    """A byte of an endless head every tenth of a second."""
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            connection.sendall(b"x")
            time.sleep(0.1)
    except OSError:
        pass


def redirect(connection: socket.socket) -> None:
    connection.recv(65_536)
    head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    connection.sendall(head)


@pytest.mark.parametrize("answer", [stay_silent, dribble])
def test_pages_are_answered_while_the_provider_is_not(tmp_path: Path, answer: Answering) -> None:
    with provider_that(answer) as provider:
        settings = f'[oidc]\nissuer = "{provider.issuer}"\nclient_id = "portal"\ntimeout_s = 8.0\n'
        setup.create(tmp_path / "home", settings=settings)
        with serving(tmp_path / "home") as served, ThreadPoolExecutor(20) as readers:
            signing_in = [readers.submit(ask, f"{served.portal}/sign-in/oidc") for _ in range(20)]
            while not provider.asked:
                time.sleep(0.01)
            # The provider has eight seconds, and holds none of the threads that pages are made in.
            assert all(ask(f"{served.portal}/about").status == 200 for _ in range(3))
            assert not all(each.done() for each in signing_in)
            assert {each.result().status for each in signing_in} == {502}
            assert ask(f"{served.portal}/sign-in/oidc").status == 502
        assert provider.asked == 1, "asked again although it had not answered"


def test_no_redirect_of_the_provider_is_followed() -> None:
    with provider_that(redirect) as provider:
        config = OidcConfig(issuer=provider.issuer, client_id="portal", timeout_s=3.0)
        with pytest.raises(RemoteError, match="sent no JSON"):
            IdentityProvider(config).begin("http://127.0.0.1:9/back")


def test_a_failure_is_forgotten_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    with provider_that(lambda connection: connection.close()) as provider:
        identities = IdentityProvider(OidcConfig(issuer=provider.issuer, client_id="portal", timeout_s=3.0))
        for _ in range(3):
            with pytest.raises(RemoteError):
                identities.begin("http://127.0.0.1:9/back")
        assert provider.asked == 1
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 61)
        with pytest.raises(RemoteError):
            identities.begin("http://127.0.0.1:9/back")
        assert provider.asked == 2
