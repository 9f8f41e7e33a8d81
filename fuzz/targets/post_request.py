"""Bodies of archived POST requests folded into keys; forms that people send to the portal."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request

from webdepot.index import post_requests
from webdepot.web import forms

TOKENS = (
    b"application/json\n", b"multipart/form-data; boundary=b\n", b"application/x-www-form-urlencoded\n",
    b"text/plain\n", b"--b\r\n", b"--b--\r\n", b'Content-Disposition: form-data; name="a"', b'; filename="x"',
    b"\r\n\r\n", b'{"a": ', b"[", b"NaN", b"1e400", b"a=b&", b"%", b"filename*=UTF-8''%e4", b'"\\ud800"',
    b"Content-Type: ", b"charset=x",
)  # fmt: skip


def one_input(data: bytes) -> None:
    content_type, _, body = data.partition(b"\n")
    kind = content_type.decode("latin-1")
    folded = post_requests.folded("http://a.example/x?y=z", "POST", kind, body)
    assert folded.startswith("http://a.example/x?y=z")
    for read in (
        forms.read_upload(_request(content_type, body), "a", longest=1 << 20),
        forms.read_fields(_request(content_type, body)),
    ):
        try:
            asyncio.run(read)
        except HTTPException as error:
            assert error.status_code in (400, 413)


def _request(content_type: bytes, body: bytes) -> Request:
    sent = False

    async def receive() -> dict[str, object]:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": [(b"content-type", content_type)]}, receive)
