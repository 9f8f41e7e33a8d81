"""Forms of the portal: bounded, and slowed down where anybody may send them.

`read_form` takes what a form without files sends; `read_upload` one with a file. A `Gate` counts what comes
from one address, and from everybody together, within an hour: a public form cannot be used to flood the
curators.
"""

import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from threading import Lock
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

LONGEST_FORM_BYTES = 128 << 10
MOST_FIELDS = 500
WINDOW_S = 3600.0
_MOST_REMEMBERED = 10_000
_WHOLE = ""


class Gate:
    """Lets so many through in an hour, from one sender and from all."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def lets(self, sender: str, *, most: int, most_in_all: int) -> bool:
        """Whether one more may come; if so it is counted."""
        now = time.monotonic()
        with self._lock:
            own, whole = self._recent(sender, now), self._recent(_WHOLE, now)
            if len(own) >= most or len(whole) >= most_in_all:
                return False
            own.append(now)
            whole.append(now)
            while len(self._seen) > _MOST_REMEMBERED:
                self._seen.popitem(last=False)
        return True

    def _recent(self, sender: str, now: float) -> deque[float]:
        times = self._seen.setdefault(sender, deque())
        self._seen.move_to_end(sender)
        while times and times[0] <= now - WINDOW_S:
            times.popleft()
        return times


def sender_of(request: Request) -> str:
    """Who sends, for the gate: an IPv4 address, or the network of an IPv6 address, of which one household has
    very many.
    """
    host = request.client.host if request.client else "unknown"
    return ":".join(host.split(":")[:4]) + "::" if ":" in host else host


async def read_form(request: Request, *, longest: int = LONGEST_FORM_BYTES) -> dict[str, str]:
    """An urlencoded form; the last of several values with one name counts."""
    return dict(await read_fields(request, longest=longest))


async def read_fields(request: Request, *, longest: int = LONGEST_FORM_BYTES) -> list[tuple[str, str]]:
    """An urlencoded form, with every value in its order. Line ends are those of the machine, not of the wire."""
    body = b"".join([chunk async for chunk in _bounded(request, longest)])
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(400) from None
    # PostgreSQL keeps no NUL, and nobody types one.
    return [(name, value.replace("\r\n", "\n").replace("\0", "")) for name, value in pairs]


async def read_upload(request: Request, name: str, *, longest: int) -> tuple[bytes, dict[str, str]]:
    """The file of a form, and its other fields; empty where none was chosen."""
    stream = _bounded(request, longest)
    try:
        form = await MultiPartParser(
            request.headers, stream, max_files=1, max_fields=20, max_part_size=longest
        ).parse()
    except (MultiPartException, KeyError, ValueError, UnicodeError):
        raise HTTPException(400) from None
    try:
        found = form.get(name)
        content = await found.read() if isinstance(found, UploadFile) else b""
        fields = {key: value.replace("\r\n", "\n") for key, value in form.items() if isinstance(value, str)}
    finally:
        await form.close()
    return content, fields


async def _bounded(request: Request, longest: int) -> AsyncGenerator[bytes, None]:
    length = 0
    async for chunk in request.stream():
        length += len(chunk)
        if length > longest:
            raise HTTPException(413)
        yield chunk
