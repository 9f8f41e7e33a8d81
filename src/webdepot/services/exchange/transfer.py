"""The transfer object of a partner: its ZIP fetched from the Transfer-URL, verified and unpacked.

1. `fetch` brings the ZIP into `partners/NAME/`, going on where it broke; its checksum is compared.
2. `unpacked` looks at its members before anything is written, unpacks them and compares each file with what
   the record says.

What is not as the record says is refused with every reason, and nothing of it stays.
"""

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot.bundle import zipped
from webdepot.errors import RemoteError
from webdepot.exchange import incoming
from webdepot.exchange.client import Got, TooLarge
from webdepot.exchange.incoming import CheckedFile, Refused
from webdepot.exchange.metadata.regbib import Delivered
from webdepot.exchange.partners import Partner
from webdepot.services.exchange import oai_harvest
from webdepot.services.progress import Phase, Progress, Watch

TRIES = 4


class Gone(Exception):
    """The partner has withdrawn the object."""


def fetch(
    archive: Archive, partner: Partner, delivered: Delivered, watch: Watch, wait: Callable[[float], None]
) -> Path:
    """The whole ZIP, verified; what came before of it is not asked for again."""
    url = delivered.object.transfer_url
    if not re.match(r"https?://[^/\s]+/", url):
        raise Refused(f"the Transfer-URL {url[:200]!r} is no address on the web")
    folder = oai_harvest.folder_of(archive, partner.name)
    path = folder / f"{hashlib.sha256(f'{delivered.urn} {url}'.encode()).hexdigest()[:32]}.zip"
    for attempt in range(1, TRIES + 1):
        try:
            _download(archive, partner, url, path, incoming.largest_bytes(delivered), watch)
            break
        except TooLarge as error:
            discard(path)
            raise Refused("the ZIP is larger than the files that the record tells of") from error
        except RemoteError as error:
            if not error.retry or attempt == TRIES:
                if path.exists() and path.stat().st_size == 0:
                    discard(path)
                raise
            wait(float(2**attempt))
    reasons = list(incoming.check_zip(path, delivered))
    if reasons:
        discard(path)
        raise Refused(*reasons)
    return path


def discard(path: Path) -> None:
    """A download that is of no use any more, with the mark beside it."""
    path.unlink(missing_ok=True)
    path.with_suffix(".etag").unlink(missing_ok=True)


def _download(
    archive: Archive, partner: Partner, url: str, path: Path, limit_bytes: int, watch: Watch
) -> None:
    marks = path.with_suffix(".etag")
    offset = path.stat().st_size if path.exists() and marks.exists() else 0
    etag = marks.read_text() if offset else ""
    is_same_host = _origin(url) == _origin(partner.url)
    client = oai_harvest.client_for(archive, partner)
    with path.open("r+b" if offset else "wb") as sink:
        sink.seek(offset)
        started = False

        def taken(got: Got, piece: bytes) -> None:
            nonlocal started
            if got.status not in (200, 206):
                return
            if not started:
                started = True
                if got.status == 200:
                    sink.seek(0)
                    sink.truncate()
                marks.write_text(got.headers.get("ETag") or "")
            sink.write(piece)
            watch(Progress(phase=Phase.FETCH, done=0, size_bytes=sink.tell(), note=url[:200]))

        got = client.get(
            url, taken, limit_bytes=limit_bytes, offset=offset, etag=etag, with_token=is_same_host
        )
    if got.status == 416:  # what is here is whole, or of another object: the checksum tells
        return
    if got.status in (404, 410):
        discard(path)
    if got.status == 410:
        raise Gone(f"{url[:200]} answers 410: the object was withdrawn")
    if got.status not in (200, 206):
        words = {401: " It wants a token: webdepot partner add --token", 403: " We may not have it."}.get(
            got.status, ""
        )
        raise RemoteError(
            f"The Transfer-URL {url[:200]} answers {got.status}.{words}",
            retry=got.status in (429, 500, 502, 503, 504),
        )


def _origin(url: str) -> str:
    found = re.match(r"https?://[^/?#]+", url)
    return found[0].lower() if found else ""


def unpacked(packed: Path, delivered: Delivered, folder: Path) -> list[CheckedFile]:
    checked: list[CheckedFile] = []
    try:
        with zipfile.ZipFile(packed) as archive:
            reasons = [*zipped.check_members(archive), *incoming.check_members(archive, delivered)]
            if not reasons:
                zipped.unpack(archive, folder)
                reasons = list(incoming.check_files(folder, delivered, checked))
    except (*zipped.BROKEN, OSError) as error:
        discard(packed)
        raise Refused(f"the ZIP cannot be unpacked: {error}") from error
    if reasons:
        discard(packed)
        raise Refused(*reasons[:50])
    return checked
