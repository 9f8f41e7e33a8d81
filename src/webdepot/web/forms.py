"""Forms and parameters of the portal: bounded in size, and limited in number where anybody may send them.

`read_form` reads a form without files, `read_upload` one with a file. A `SubmissionLimit` counts what comes
from one address, and from all together, within an hour, so that a public form cannot be used to flood the
curators.
"""

import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import date
from threading import Lock
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from webdepot.errors import InputError
from webdepot.web.client_address import network_of

WINDOW_S = 3600.0
_MOST_REMEMBERED = 10_000
_EVERYBODY = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormLimits:
    """How large a form may be."""

    size_bytes: int
    fields: int


SHORT_FORM = FormLimits(size_bytes=16 << 10, fields=100)
PUBLIC_FORM = FormLimits(size_bytes=32 << 10, fields=500)
LONG_FORM = FormLimits(size_bytes=128 << 10, fields=500)
"""Forms of staff with long texts or many rows."""


class SubmissionLimit:
    """Limits how many forms may be sent in an hour, by one sender and by all together."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def allows(self, sender: str, *, most: int, most_in_all: int) -> bool:
        """Whether one more may be sent; if so it is counted."""
        now = time.monotonic()
        with self._lock:
            own, everybody = self._recent(sender, now), self._recent(_EVERYBODY, now)
            if len(own) >= most or len(everybody) >= most_in_all:
                return False
            own.append(now)
            everybody.append(now)
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
    """The network that a request comes from, for limits; the same for all unknown ones."""
    return network_of(request.client.host if request.client else "")


async def read_form(request: Request, *, limits: FormLimits = LONG_FORM) -> dict[str, str]:
    """The fields of a urlencoded form; of several values with one name, the last."""
    return dict(await read_fields(request, limits=limits))


async def read_fields(request: Request, *, limits: FormLimits = LONG_FORM) -> list[tuple[str, str]]:
    """The fields of a urlencoded form, all values in their order. Line ends are `\\n`."""
    body = b"".join([chunk async for chunk in _bounded(request, limits.size_bytes)])
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=limits.fields)
    except ValueError:
        raise HTTPException(400) from None
    # PostgreSQL cannot store NUL, and nobody types it.
    return [(name, value.replace("\r\n", "\n").replace("\0", "")) for name, value in pairs]


async def read_upload(request: Request, name: str, *, longest: int) -> tuple[bytes, dict[str, str]]:
    """The file of a form, empty when none was chosen, and its other fields."""
    stream = _bounded(request, longest)
    try:
        form = await MultiPartParser(
            request.headers, stream, max_files=1, max_fields=20, max_part_size=longest
        ).parse()
    except (MultiPartException, KeyError, ValueError, UnicodeError):
        raise HTTPException(400) from None
    try:
        upload = form.get(name)
        content = await upload.read() if isinstance(upload, UploadFile) else b""
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


def find_number(text: str) -> int | None:
    """A whole number of up to ten digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None


def get_number(text: str) -> int:
    """A whole number of up to ten digits; InputError for anything else."""
    number = find_number(text)
    if number is None:
        raise InputError(f"{text[:20]!r} is not a number.")
    return number


def page_number(request: Request) -> int:
    """The page that `?page=` asks for; 1 for anything that is not a page number."""
    return max(find_number(request.query_params.get("page", "")) or 1, 1)


def get_day(text: str) -> date | None:
    """A day as a form sends it, None for an empty field; InputError for anything else."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"{text[:30]!r} is not a day. Write it like 2026-01-31.") from None
