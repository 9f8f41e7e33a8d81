"""Submissions (SIP): packages from others, recognised by their content and checked before they are taken in.

    bag               a folder with bagit.txt
    wacz              datapackage.json and archive/
    package           a package of Webdepot: as a bag, as files, or as an OCFL object
    uof               mets.xml (METS with a list of files, and LMER) at the top; files of any kind
    zip, tar, folder  WARC and ARC files
    container         one WARC or ARC file

Each can be a folder, a ZIP file or a tar file.

The identity of a submission is the SHA-256 of the digests of its files, independent of their names and of how
they are packed.
"""

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot import digest
from webdepot.depot.bundle import bag, unpacking, zipped
from webdepot.depot.ocfl import layout
from webdepot.depot.package import FACTS, FORMAT
from webdepot.depot.store.keys import is_key
from webdepot.depot.tables import submissions
from webdepot.guard import environment

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
LONGEST_DESCRIPTION_BYTES = 16 << 20
LONGEST_UOF_BYTES = 64 << 20
SCANNER_LIMIT_S = 24 * 3600
UOF_METS = "mets.xml"
_UOF_MARKS = (b"http://www.loc.gov/METS/", b"fileSec", b"http://www.ddb.de/LMER")


class SubmissionKind(StrEnum):
    BAG = "bag"
    WACZ = "wacz"
    PACKAGE = "package"
    OCFL = "ocfl"
    UOF = "uof"
    ZIP = "zip"
    TAR = "tar"
    FOLDER = "folder"
    CONTAINER = "container"


class SubmissionState(StrEnum):
    TAKEN = "taken"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A submission, unpacked."""

    path: Path
    kind: SubmissionKind
    root: Path
    """The folder of its files, or its only file."""
    reasons: tuple[str, ...] = ()
    """Why it may not be taken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The decision about a submission."""

    id: str
    name: str
    kind: SubmissionKind
    state: SubmissionState
    received_at: datetime
    agent: str
    harvest: str = ""
    place: str = ""
    """Where a refused submission is kept."""
    reasons: tuple[str, ...] = field(default=())


def open_up(path: Path, folder: Path) -> Submission:
    """Recognise a submission and unpack it to `folder`; the file itself is not touched."""
    if path.is_dir():
        kind, root = _kind_of_folder(path)
        return Submission(path=path, kind=kind, root=root, reasons=tuple(_check(kind, root)))
    packed = unpacking.unpack(path, folder)
    if not packed.kind:
        return Submission(path=path, kind=SubmissionKind.CONTAINER, root=path)
    packing = SubmissionKind(packed.kind)
    if packed.reasons:
        return Submission(path=path, kind=packing, root=folder, reasons=packed.reasons)
    kind, root = _kind_of_folder(folder)
    kind = packing if kind is SubmissionKind.FOLDER else kind
    return Submission(path=path, kind=kind, root=root, reasons=tuple(_check(kind, root)))


def containers_of(submission: Submission) -> list[Path]:
    """Its WARC and ARC files, sorted by path."""
    if submission.root.is_file():
        return [submission.root]
    return sorted(
        path for path in submission.root.rglob("*") if path.name.lower().endswith(SUFFIXES) and path.is_file()
    )


def contents_of(submission: Submission) -> list[Path]:
    """The files that define its identity: its containers, but for UOF all files except the description."""
    if submission.kind is not SubmissionKind.UOF:
        return containers_of(submission)
    described = submission.root / UOF_METS
    return sorted(path for path in submission.root.rglob("*") if path.is_file() and path != described)


def others_of(submission: Submission) -> dict[str, Path]:
    """Everything that is not a container, by its path in the submission: descriptions, lists, logs,
    signatures. To be kept with the package.
    """
    if submission.root.is_file():
        return {}
    containers = frozenset(containers_of(submission))
    return {
        path.relative_to(submission.root).as_posix(): path
        for path in sorted(submission.root.rglob("*"))
        if path.is_file() and path not in containers
    }


def read_description(submission: Submission, name: str) -> bytes:
    """The first description with this file name; empty if there is none, or if it is too large."""
    for path in others_of(submission).values():
        if path.name == name and path.stat().st_size <= LONGEST_DESCRIPTION_BYTES:
            return path.read_bytes()
    return b""


def id_of(submission: Submission) -> str:
    """The identity of a submission: equal for equal files. If it has no containers, all its files count, and
    if it cannot be unpacked, the file itself.
    """
    paths = contents_of(submission) or [*others_of(submission).values()]
    if not paths and submission.path.is_file():
        paths = [submission.path]
    digests = sorted(digest.of_file(path).value.hex() for path in paths) or [submission.path.name]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def scan(command: str, path: Path) -> Iterator[str]:
    """Run the virus scanner of the configuration; a reason if it does not report the path as clean."""
    if not command:
        return
    try:
        arguments = [*shlex.split(command), str(path)]
        done = subprocess.run(  # noqa: S603 - the operator's command
            arguments,
            capture_output=True,
            timeout=SCANNER_LIMIT_S,
            check=False,
            env=environment.of_command(),
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        yield f"the virus scanner could not be run: {error}"
        return
    output = (done.stdout + done.stderr)[-500:].decode(errors="replace").strip()
    if done.returncode == 1:
        yield f"the virus scanner found something: {output}"
    elif done.returncode != 0:
        yield f"the virus scanner failed with exit status {done.returncode}: {output}"


def record(connection: Connection, receipt: Receipt) -> None:
    connection.execute(delete(submissions).where(submissions.c.id == receipt.id))
    values = asdict(receipt) | {
        "kind": receipt.kind.value,
        "state": receipt.state.value,
        "reasons": list(receipt.reasons),
    }
    connection.execute(insert(submissions).values(**values))


def find(connection: Connection, identifier: str) -> Receipt | None:
    row = (
        connection.execute(select(submissions).where(submissions.c.id == identifier)).mappings().one_or_none()
    )
    return _receipt(row) if row else None


def latest(connection: Connection, limit: int) -> list[Receipt]:
    rows = connection.execute(
        select(submissions).order_by(submissions.c.received_at.desc(), submissions.c.id).limit(limit)
    )
    return [_receipt(row) for row in rows.mappings()]


def _kind_of_folder(folder: Path) -> tuple[SubmissionKind, Path]:
    """The kind of a folder by the files at its top, and its root: many ZIP files contain everything in one
    folder.
    """
    entries = [entry for entry in folder.iterdir() if entry.name not in ("__MACOSX", ".DS_Store")]
    if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink():
        kind, root = _kind_of_folder(entries[0])
        if kind is not SubmissionKind.FOLDER:
            return kind, root
    if (folder / bag.DECLARATION).is_file():
        is_package = _is_package(folder / "data")
        return (SubmissionKind.PACKAGE if is_package else SubmissionKind.BAG), folder
    if (folder / layout.ROOT_DECLARATION).is_file():
        return SubmissionKind.OCFL, folder
    if (folder / zipped.DATAPACKAGE).is_file() and (folder / "archive").is_dir():
        return SubmissionKind.WACZ, folder
    if _is_package(folder):
        return SubmissionKind.PACKAGE, folder
    return (SubmissionKind.UOF if _is_uof(folder / UOF_METS) else SubmissionKind.FOLDER), folder


def _is_uof(described: Path) -> bool:
    """Whether `mets.xml` contains what every UOF has; it is validated later."""
    if not described.is_file() or described.is_symlink() or described.stat().st_size > LONGEST_UOF_BYTES:
        return False
    data = described.read_bytes()
    return all(mark in data for mark in _UOF_MARKS)


def _is_package(folder: Path) -> bool:
    path = folder / FACTS
    try:
        if not path.is_file() or path.stat().st_size > LONGEST_DESCRIPTION_BYTES:
            return False
        facts = json.loads(path.read_bytes())
        return bool(facts["format"] == FORMAT)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _check(kind: SubmissionKind, root: Path) -> Iterator[str]:
    if any(path.is_symlink() for path in root.rglob("*")):
        yield "it contains symbolic links"
        return
    if (root / bag.DECLARATION).is_file():
        yield from bag.check(root)
    elif kind is SubmissionKind.WACZ:
        yield from zipped.check_wacz(root)
    names = (path.relative_to(root).as_posix() for path in root.rglob("*"))
    yield from (f"{name[:200]!r} is not a usable file name" for name in names if not is_key(name))
    if kind not in (SubmissionKind.OCFL, SubmissionKind.UOF) and not any(
        name.lower().endswith(SUFFIXES) for _, _, names in os.walk(root) for name in names
    ):
        yield f"it contains no WARC or ARC file ({', '.join(SUFFIXES)})"


def _receipt(row: RowMapping) -> Receipt:
    values = dict(row) | {
        "kind": SubmissionKind(row["kind"]),
        "state": SubmissionState(row["state"]),
        "reasons": tuple(row["reasons"]),
    }
    return Receipt(**values)
