"""Requests to the portal without a socket."""

import asyncio
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit


@dataclass(frozen=True)
class Reply:
    status_code: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()


class Portal:
    """Sends requests to the portal without a socket, and keeps its cookies."""

    def __init__(self, app) -> None:
        self.app = app
        self.cookies: dict[str, str] = {}

    def get(self, path: str, params: dict[str, str] | None = None) -> Reply:
        parts = urlsplit(path)
        return self.ask(
            "GET", parts.path, "&".join(filter(None, (parts.query, urlencode(params or {})))), b""
        )

    def post(self, path: str, form: dict[str, str]) -> Reply:
        return self.ask("POST", path, "", urlencode(form).encode())

    def ask(self, method: str, path: str, query: str, body: bytes) -> Reply:
        headers = {
            "host": "testserver",
            "origin": "http://testserver",
            "content-type": "application/x-www-form-urlencoded",
        }
        headers |= {
            "content-length": str(len(body)),
            "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path, safe="/:%").encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
        }
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        found = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        for name, value in found:
            if name == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content
        return Reply(
            sent[0]["status"], dict(found), b"".join(message.get("body", b"") for message in sent[1:])
        )


def ask(app, path: str) -> Reply:
    return Portal(app).get(path)
