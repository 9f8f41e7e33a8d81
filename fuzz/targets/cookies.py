"""Set-Cookie lines, and forms of log-in pages."""

from datetime import UTC, datetime

from webdepot.harvest.fetch import login
from webdepot.harvest.fetch.cookies import CookieJar

TOKENS = (
    b"a=b", b"; Path=/", b"; Domain=.a.example", b"; Domain=example", b"; Max-Age=",
    b"; Expires=Sun, 15-Nov-2026 09:02:51 GMT", b"; Secure", b"; HttpOnly", b"; SameSite=None", b"\n", b"=",
    b"--5", b"\xb2", b"<form action='/x'>", b"<input name=user>", b"<input type=hidden name=t value=1>",
    b"Expires=",
)  # fmt: skip
_NOW = datetime(2020, 1, 1, tzinfo=UTC)
_URL = "https://www.a.example/dir/page"


def one_input(data: bytes) -> None:
    text = data.decode("latin-1")
    jar = CookieJar()
    jar.take(text.split("\n"), _URL, _NOW)
    sent, shown = jar.header(_URL, _NOW)
    assert sent == shown
    assert sent.isascii() and "\n" not in sent and "\r" not in sent
    jar.take(text.split("\n"), _URL, _NOW, origins=frozenset({"https://www.a.example"}))
    jar.header(_URL, _NOW)
    login.fill_form(text, _URL, {"user": "x"})
