"""Forms and parameters of the portal: bounded in size.

`read_form` reads a form without files, `read_upload` one with a small file. `receive_files` reads one with
large files (multipart/form-data, RFC 7578), which are written to a folder while they come in.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from webdepot.errors import InputError
from webdepot.reasons import said
from webdepot.web.client_address import network_of
from webdepot.web.language.language import read_date

LONGEST_FIELD_BYTES = 4096
MOST_FIELDS = 20
MOST_FILES = 100
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FormLimits:
    """How large a form may be."""

    size_bytes: int
    fields: int


SHORT_FORM = FormLimits(size_bytes=16 << 10, fields=100)
PUBLIC_FORM = FormLimits(size_bytes=32 << 10, fields=500)
LONG_FORM = FormLimits(size_bytes=128 << 10, fields=500)
"""Forms of staff with long texts or many rows."""


def sender_of(request: Request) -> str:
    """The network that a request comes from, for limits; the same for all unknown ones."""
    return network_of(request.client.host if request.client else "")


async def read_form(request: Request, *, limits: FormLimits = LONG_FORM) -> dict[str, str]:
    """The fields of a urlencoded form; if a name has several values, the last one."""
    return dict(await read_fields(request, limits=limits))


async def read_fields(request: Request, *, limits: FormLimits = LONG_FORM) -> list[tuple[str, str]]:
    """The fields of a urlencoded form, all values in their order. Line ends are `\\n`."""
    body = await read_body(request, longest=limits.size_bytes)
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=limits.fields)
    except ValueError:
        raise HTTPException(400) from None
    # PostgreSQL cannot store NUL, and nobody types it.
    return [(name, value.replace("\r\n", "\n").replace("\0", "")) for name, value in pairs]


async def read_body(request: Request, *, longest: int) -> bytes:
    """The body of a request; 413 if it has more bytes than `longest`."""
    return b"".join([chunk async for chunk in _bounded(request, longest)])


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
        raise InputError(f"{text[:30]!r} is not a date. Write it like 2026-01-31.") from None


def date_typed(text: str) -> str:
    """A year, month or day as people write it (`read_date`) in the form 2019-03-04; other text as it is, for
    the error.
    """
    try:
        digits = read_date(text)
    except ValueError:
        return text.strip()
    return "-".join(part for part in (digits[:4], digits[4:6], digits[6:]) if part)


# --- large files ---


class FileReceiver:
    """Takes the parts of a form: fields into `fields`, files into the folder."""

    def __init__(
        self,
        folder: Path,
        boundary: bytes,
        *,
        checked_name: Callable[[str], str],
        before_files: Callable[[dict[str, str]], None],
    ) -> None:
        self.fields: dict[str, str] = {}
        self.files: list[Path] = []
        self._folder = folder
        self._checked_name = checked_name
        self._before_files = before_files
        self._header = self._value = b""
        self._headers: dict[bytes, bytes] = {}
        self._name = ""
        self._text = b""
        self._file: BinaryIO | None = None
        callbacks = {
            "on_part_begin": self._begin,
            "on_header_field": self._add_header,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._start_part,
            "on_part_data": self._add_data,
            "on_part_end": self._end_part,
        }
        self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        try:
            self._parser.write(data)
        except MultipartParseError:
            raise HTTPException(400) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _begin(self) -> None:
        self._headers, self._text, self._name = {}, b"", ""
        self._header = self._value = b""

    def _add_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        if len(self._value) > LONGEST_FIELD_BYTES:
            raise HTTPException(400)

    def _end_header(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header = self._value = b""

    def _start_part(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        file_name = options.get(b"filename", b"").decode("utf-8", "replace")
        if not file_name:
            return
        if not self.files:
            self._before_files(self.fields)
        path = self._folder / self._checked_name(file_name)
        if path in self.files or len(self.files) >= MOST_FILES:
            text = "A form can have at most {most} files with different names."
            raise InputError(said("too_many_files", text, most=MOST_FILES))
        self.files.append(path)
        self._file = path.open("xb")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > LONGEST_FIELD_BYTES:
            raise HTTPException(413)

    def _end_part(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        elif len(self.fields) < MOST_FIELDS:
            self.fields[self._name] = self._text.decode("utf-8", "replace").replace("\0", "")


async def receive_files(
    request: Request,
    folder: Path,
    *,
    most_bytes: int,
    checked_name: Callable[[str], str],
    before_files: Callable[[dict[str, str]], None],
) -> FileReceiver:
    """The fields of a form and its files in `folder`; InputError says what is wrong with them.

    Fields that come before the files are checked before a byte of a file is written. After an error the rest
    is read and thrown away: browsers show an answer only when they have sent everything.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise HTTPException(400)
    receiver = FileReceiver(
        folder, options[b"boundary"], checked_name=checked_name, before_files=before_files
    )
    wrong: InputError | None = None
    size_bytes, waiting = 0, b""
    try:
        async for chunk in request.stream():
            size_bytes += len(chunk)
            if size_bytes > most_bytes:
                raise too_large(most_bytes)
            waiting = waiting + chunk if wrong is None else b""
            if len(waiting) >= _CHUNK_BYTES:
                wrong, waiting = await run_in_threadpool(_try_write, receiver, waiting), b""
        wrong = wrong or await run_in_threadpool(_try_write, receiver, waiting)
    finally:
        receiver.close()
    if wrong is not None:
        raise wrong
    return receiver


def too_large(most_bytes: int) -> InputError:
    text = "An upload can have at most {most} MB. Larger files are imported with: webdepot import"
    return InputError(said("upload_too_large", text, most=most_bytes // 1_000_000))


def _try_write(receiver: FileReceiver, data: bytes) -> InputError | None:
    try:
        receiver.write(data)
    except InputError as error:
        return error
    return None
