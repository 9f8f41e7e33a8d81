"""Fetch a partner's transfer object from its Transfer-URL, verify and unpack it.

1. `fetch` downloads the ZIP into `partners/NAME/`, resuming an interrupted download, and verifies its
   checksum.
2. `unpack` checks the member list before anything is written, unpacks the members and compares each file with
   the record.

An object that differs from its record is refused with all reasons, and its download is removed.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from webdepot import durable
from webdepot.archive import Archive
from webdepot.depot.bundle import unpacking
from webdepot.errors import RemoteError
from webdepot.exchange import incoming
from webdepot.exchange.client import PartnerResponse, TooLarge
from webdepot.exchange.incoming import CheckedFile, RefusedObject
from webdepot.exchange.metadata.regbib import DeliveredObject
from webdepot.exchange.partners import Partner
from webdepot.services.exchange import oai_harvest
from webdepot.services.progress import Phase, Progress, Watch

TRIES = 4
MARK_EVERY_BYTES = 16 << 20


class Gone(Exception):
    """The partner has withdrawn the object."""


def fetch(
    archive: Archive,
    partner: Partner,
    delivered: DeliveredObject,
    watch: Watch,
    wait: Callable[[float], None],
) -> Path:
    """The complete and verified ZIP; an earlier partial download is resumed."""
    url = delivered.object.transfer_url
    if not re.match(r"https?://[^/\s]+/", url):
        raise RefusedObject(f"the Transfer-URL {url[:200]!r} is not a web address")
    folder = oai_harvest.folder_of(archive, partner.name)
    path = folder / f"{hashlib.sha256(f'{delivered.urn} {url}'.encode()).hexdigest()[:32]}.zip"
    for attempt in range(1, TRIES + 1):
        try:
            _download(archive, partner, url, path, incoming.largest_bytes(delivered), watch)
            break
        except TooLarge as error:
            discard(path)
            raise RefusedObject("the ZIP is larger than the files that the record describes") from error
        except RemoteError as error:
            if not error.retry or attempt == TRIES:
                if path.exists() and path.stat().st_size == 0:
                    discard(path)
                raise
            wait(float(2**attempt))
    reasons = list(incoming.check_zip(path, delivered))
    if reasons:
        discard(path)
        raise RefusedObject(*reasons)
    return path


def discard(path: Path) -> None:
    """Remove a download and its mark."""
    path.unlink(missing_ok=True)
    path.with_suffix(".etag").unlink(missing_ok=True)


def _download(
    archive: Archive, partner: Partner, url: str, path: Path, limit_bytes: int, watch: Watch
) -> None:
    offset, etag = _read_mark(path)
    is_same_host = _origin(url) == _origin(partner.url)
    client = oai_harvest.client_for(archive, partner)
    with path.open("r+b" if offset else "wb") as sink:
        sink.seek(offset)
        sink.truncate()  # what came after the mark may be lost in part
        marked = -1

        def write(response: PartnerResponse, piece: bytes) -> None:
            nonlocal marked, etag
            if response.status not in (200, 206):
                return
            if marked < 0:
                etag = response.headers.get("ETag") or ""
                if response.status == 200:
                    sink.seek(0)
                    sink.truncate()
            if marked < 0 or sink.tell() - marked >= MARK_EVERY_BYTES:
                marked = _mark(sink, path, etag)
            sink.write(piece)
            watch(Progress(phase=Phase.FETCH, done=0, size_bytes=sink.tell(), note=url[:200]))

        try:
            response = client.get(
                url, write, limit_bytes=limit_bytes, offset=offset, etag=etag, with_token=is_same_host
            )
        finally:
            if marked >= 0:
                _mark(sink, path, etag)
    _check_status(response.status, url, path)


def _mark(sink: BinaryIO, path: Path, etag: str) -> int:
    """Make a download durable and note its size with its ETag: from there it can be resumed, also after a
    power cut.
    """
    durable.sync_file(sink)
    size_bytes = sink.tell()
    durable.write_whole(path.with_suffix(".etag"), f"{size_bytes} {etag}".encode())
    return size_bytes


def _read_mark(path: Path) -> tuple[int, str]:
    """Size and ETag of a download that can be resumed; 0 if there is none."""
    mark = path.with_suffix(".etag")
    if not path.exists() or not mark.exists():
        return 0, ""
    size, _, etag = mark.read_text().partition(" ")
    if not size.isdigit() or path.stat().st_size < int(size):
        return 0, ""
    return int(size), etag if int(size) else ""


def _check_status(status: int, url: str, path: Path) -> None:
    if status == 416:  # the file is complete, or another object's: the checksum will show
        return
    if status in (404, 410):
        discard(path)
    if status == 410:
        raise Gone(f"{url[:200]} returned status 410: the object was withdrawn")
    if status not in (200, 206):
        advice = {
            401: " It requires a token: webdepot partner add --token",
            403: " Access was denied.",
        }.get(status, "")
        raise RemoteError(
            f"The Transfer-URL {url[:200]} returned status {status}.{advice}",
            retry=status in (429, 500, 502, 503, 504),
        )


def _origin(url: str) -> str:
    origin = re.match(r"https?://[^/?#]+", url)
    return origin[0].lower() if origin else ""


def unpack(packed: Path, delivered: DeliveredObject, folder: Path, *, most_members: int) -> list[CheckedFile]:
    """Unpack the ZIP into the folder; return its files, all equal to the record. RefusedObject if one
    differs.
    """
    checked: list[CheckedFile] = []
    contents = unpacking.look(packed, folder, most_members=most_members)
    reasons = (
        list(contents.reasons) if contents.kind == "zip" else ["the ZIP cannot be unpacked: it is not a ZIP"]
    )
    reasons += incoming.check_members(contents.members, delivered) if not reasons else []
    if not reasons:
        reasons += unpacking.unpack(packed, folder, most_members=most_members).reasons
    if not reasons:
        reasons += incoming.check_files(folder, delivered, checked)
    if reasons:
        discard(packed)
        raise RefusedObject(*reasons[:50])
    return checked
