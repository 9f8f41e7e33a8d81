"""A HAR file (HTTP Archive 1.2, as browsers and proxies save it) as a WARC file: each entry becomes a request
and a response of its date.

HAR contains decoded bodies, so some headers must be changed:

* `Content-Encoding` and `Transfer-Encoding` are left out, `Content-Length` is that of the body here; the
  former values are in `X-Archive-Orig-*`;
* text is written in the charset of its `Content-Type`, or in UTF-8, which is then added to the type;
* a 304 whose body the browser had in its cache becomes a 200;
* cookies and passwords are left out: a HAR file is made in somebody's browser.

Entries that are not answers from the web (blocked requests, `data:`, web sockets) and answers whose body was
not saved are left out, each with a finding. http://www.softwareishard.com/blog/har-12-spec/
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from webdepot import times
from webdepot.container import new_records
from webdepot.container.conversion.har_entries import iter_entries
from webdepot.container.members import packed
from webdepot.container.new_records import NewRecord
from webdepot.digest import sha1_label
from webdepot.durable import whole_file
from webdepot.errors import InputError
from webdepot.model import Candidate, Finding, Severity, Visit
from webdepot.text import encoding
from webdepot.url import find_canonical

SUFFIX = ".har"
ENTRY_LEFT_OUT = "har-entry"
"""The code of findings about entries."""
_END = b"\r\n\r\n"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}\Z")
_BREAKS = re.compile(r"[\r\n\0]+")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_TEXT = re.compile(r"text/|application/(?:[\w.+-]*\+)?(?:xml|json|javascript)|application/x-javascript")
_DECODED = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_SECRET = {"cookie": "Cookie", "authorization": "Authorization", "set-cookie": "Set-Cookie"}
_NO_BODY = frozenset({204, 205})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedHar:
    records: int
    sha256: str
    """Hexadecimal, of the new file."""


def to_warc(
    source: BinaryIO, target: Path, *, name: str, now: datetime, note: Callable[[Finding], None]
) -> ConvertedHar:
    """Write the entries of a HAR file to `target`, all or nothing. InputError if it is not a HAR file, or if
    no entry of it is an answer from the web.
    """
    hasher, count = hashlib.sha256(), 0
    with whole_file(target) as stream:

        def write(record: NewRecord) -> None:
            data = _record_bytes(record)
            stream.write(data)
            hasher.update(data)

        write(new_records.warcinfo(target.name, {"description": f"converted from {name} (HAR)"}, now))
        for number, entry in enumerate(iter_entries(source), start=1):
            try:
                visit = _visit(entry)
            except InputError as error:
                note(_finding(name, number, str(error)))
                continue
            for record in new_records.from_visit(visit, payload_digest=new_records.payload_digest(visit)):
                write(record)
                count += 1
        if not count:
            raise InputError("it contains no response with a body.")
    return ConvertedHar(records=count + 1, sha256=hasher.hexdigest())


def _finding(name: str, number: int, message: str) -> Finding:
    return Finding(
        code=ENTRY_LEFT_OUT,
        severity=Severity.WARNING,
        subject=name,
        message=message,
        place=f"entry {number}",
    )


def _record_bytes(record: NewRecord) -> bytes:
    body = b""
    if record.body is not None:
        record.body.seek(0)
        body = record.body.read(record.body_bytes)
    block = record.head + body
    digest = sha1_label(hashlib.sha1(block, usedforsecurity=False).digest())
    return packed(new_records.header(record, digest) + block + _END)


def _visit(entry: object) -> Visit:
    """One request and its answer; InputError says why it is left out."""
    request, response = _table(_table(entry).get("request")), _table(_table(entry).get("response"))
    url = find_canonical(str(request.get("url", "")))
    if url is None or not url.startswith(("http://", "https://")):
        raise InputError(f"{str(request.get('url', ''))[:100]!r} is not a web address.")
    try:
        at = times.from_iso(str(_table(entry).get("startedDateTime", "")))
    except ValueError:
        raise InputError(f"the entry of {url[:200]} has no valid date.") from None
    status = response.get("status")
    if type(status) is not int or not 100 <= status <= 599:
        raise InputError(f"{url[:200]} has no response.")
    body, mime = _body(response, status, url)
    removed: list[str] = []
    head = _head(response, status, body, mime, removed)
    return Visit(
        candidate=Candidate(url=url),
        at=at,
        duration_s=0.0,
        request=_request(request, url, removed),
        head=head,
        body=BytesIO(body),
        body_bytes=len(body),
        status=status,
        server_address=str(_table(entry).get("serverIPAddress", "")).strip("[]"),
        protocol=_protocol(response),
        removed=tuple(dict.fromkeys(removed)),
    )


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _body(response: Mapping[str, Any], status: int, url: str) -> tuple[bytes, str]:
    """The body, and the type to state if the text had to be written in another charset than it says."""
    content = _table(response.get("content"))
    text = content.get("text")
    if not isinstance(text, str):
        if status == HTTPStatus.NOT_MODIFIED:
            raise InputError(f"{url[:200]} was not modified, and its body is not in the file.")
        if status in _NO_BODY or 300 <= status < 400 or content.get("size") in (0, None, -1):
            return b"", ""
        raise InputError(f"the body of {url[:200]} was not saved. Export the file with content.")
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=True), ""
        except (binascii.Error, ValueError):
            raise InputError(f"the body of {url[:200]} is not valid base64.") from None
    mime = _value(response, "content-type") or str(content.get("mimeType", ""))
    stated = _CHARSET.search(mime)
    if stated:
        try:
            return text.encode(encoding.python_name(stated[1]) or "ascii"), ""
        except UnicodeError:
            mime = mime[: stated.start()].rstrip(" ;")
    if not _TEXT.match(mime.lower()):
        return text.encode("utf-8", "replace"), ""
    return text.encode("utf-8", "replace"), f"{mime.rstrip(' ;')}; charset=utf-8"


def _head(response: Mapping[str, Any], status: int, body: bytes, mime: str, removed: list[str]) -> bytes:
    original: list[tuple[str, str]] = []
    if status == HTTPStatus.NOT_MODIFIED:
        original.append(("Status", str(status)))
        status = HTTPStatus.OK
    reason = _BREAKS.sub(" ", str(response.get("statusText", "")))[:200]
    lines = [f"HTTP/1.1 {status:d} {reason}"]
    for name, value in _headers(response):
        if name.lower() in _DECODED or (mime and name.lower() == "content-type"):
            original.append((name, value))
        elif name.lower() in _SECRET:
            removed.append(_SECRET[name.lower()])
        else:
            lines.append(f"{name}: {value}")
    stated = mime or ("" if _value(response, "content-type") else _mime_of(response))
    if stated:
        lines.append(f"Content-Type: {_BREAKS.sub(' ', stated)}")
    lines += [f"X-Archive-Orig-{name}: {value}" for name, value in original]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("utf-8", "replace")


def _mime_of(response: Mapping[str, Any]) -> str:
    mime = str(_table(response.get("content")).get("mimeType", ""))[:200]
    return "" if mime in ("", "x-unknown") else mime


def _request(request: Mapping[str, Any], url: str, removed: list[str]) -> bytes:
    method = str(request.get("method", "GET"))
    path = url.partition("://")[2].partition("/")[2]
    lines = [f"{method if _TOKEN.match(method) else 'GET'} /{path} HTTP/1.1"]
    names = set()
    text = _table(request.get("postData")).get("text")
    body = text.encode("utf-8", "replace") if isinstance(text, str) else b""
    for name, value in _headers(request):
        names.add(name.lower())
        if name.lower() in _SECRET:
            removed.append(_SECRET[name.lower()])
        elif name.lower() not in _DECODED:
            lines.append(f"{name}: {value}")
    if "host" not in names:
        lines.insert(1, f"Host: {url.partition('://')[2].partition('/')[0].rpartition('@')[2]}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + body


def _headers(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and value of each header; those of HTTP/2 that begin with a colon are not headers."""
    pairs = message.get("headers")
    for pair in pairs if isinstance(pairs, list) else ():
        name, value = _table(pair).get("name"), _table(pair).get("value")
        if isinstance(name, str) and isinstance(value, str) and _TOKEN.match(name):
            yield name, _BREAKS.sub(" ", value)


def _value(message: Mapping[str, Any], name: str) -> str:
    return next((value for key, value in _headers(message) if key.lower() == name), "")


def _protocol(response: Mapping[str, Any]) -> str:
    stated = str(response.get("httpVersion", "")).lower()
    return next((name for mark, name in (("2", "h2"), ("3", "h3")) if mark in stated), "http/1.1")
