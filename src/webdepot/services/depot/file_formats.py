"""The formats of files in transfer objects, as LMER states them: PRONOM identifier and short name."""

import re
from bisect import bisect
from collections.abc import Iterable
from dataclasses import replace

from webdepot.archive import Archive
from webdepot.exchange.transfer_zip import UNKNOWN_FORMAT, Transfer, TransferFile
from webdepot.formats import results
from webdepot.model import Capture

_BATCH = 500
_VERSION = re.compile(r"(?<![0-9.])[0-9]++(?:\.[0-9]++)*\Z")


def of_digests(archive: Archive, digests: Iterable[str]) -> dict[str, tuple[str, str]]:
    """PRONOM identifier and name of the payloads that were identified, by digest."""
    formats: dict[str, tuple[str, str]] = {}
    wanted = sorted(set(filter(None, digests)))
    for start in range(0, len(wanted), _BATCH):
        with archive.database.reading() as connection:
            puids = results.puids(connection, wanted[start : start + _BATCH])
            names = results.names(connection, sorted(set(puids.values())))
        formats |= {digest: (puid, names.get(puid, "")) for digest, puid in puids.items()}
    return formats


def label_of(mime: str, name: str) -> str:
    """The usual abbreviation in capitals, with the version if it is known: `HTML 4.01`."""
    short = mime.partition(";")[0].partition("/")[2].removeprefix("x-").partition("+")[0].upper()
    version = _VERSION.search(name)
    return f"{short} {version[0]}" if version else short


def fill_in(archive: Archive, transfer: Transfer, captures: Iterable[Capture]) -> Transfer:
    """The transfer object of a harvest with these captures, where files whose format their sender did not
    state have the one that we identified.
    """
    if not any(map(_is_open, transfer.files)):
        return transfer
    records: dict[str, list[tuple[int, int, str]]] = {}
    for capture in captures:
        place = capture.location
        records.setdefault(place.container, []).append((place.offset, place.length, capture.digest))
    for each in records.values():
        each.sort()
    digests = [_digest_of(file, records.get(file.container, [])) for file in transfer.files]
    formats = of_digests(archive, digests)
    files = (
        _identified(file, *formats[digest]) if _is_open(file) and digest in formats else file
        for file, digest in zip(transfer.files, digests, strict=True)
    )
    return replace(transfer, files=tuple(files))


def _is_open(file: TransferFile) -> bool:
    return not file.puid and file.format in ("", UNKNOWN_FORMAT)


def _digest_of(file: TransferFile, records: list[tuple[int, int, str]]) -> str:
    """The digest of the record that has the bytes of a file; empty if there is none."""
    number = bisect(records, file.offset, key=lambda record: record[0]) - 1
    if number < 0:
        return ""
    offset, length, digest = records[number]
    return digest if file.offset < offset + length else ""


def _identified(file: TransferFile, puid: str, name: str) -> TransferFile:
    return replace(file, puid=puid, format=label_of(file.mime, name) or UNKNOWN_FORMAT)
