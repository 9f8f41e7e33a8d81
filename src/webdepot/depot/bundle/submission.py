"""Submissions (SIP): packages from others, recognised by their content and checked before they are taken in.

    bag               a folder with bagit.txt
    wacz              datapackage.json and archive/, or a collection of WACZ files
    package           a package of Webdepot: as a bag or as files
    ocfl              an OCFL object, of Webdepot or of others, alone or in its storage root
    uof               mets.xml (METS with a list of files, and LMER) at the top; files of any kind
    zip, tar, folder  WARC and ARC files, or the files of one object: a thesis, a picture, a copied disc
    container         one WARC or ARC file
    file              one file of any other kind

Each can be a folder, a ZIP file or a tar file.

The identity of a submission is the SHA-256 of the digests of its files, independent of their names and of how
they are packed. One that is refused for its form is identified by its names too, so that no two share a place
in the quarantine.
"""

import hashlib
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot import digest
from webdepot.config.sections.storage import MOST_MEMBERS
from webdepot.depot.bundle import bag, bag_check, unpacking, zipped
from webdepot.depot.ocfl import validation
from webdepot.depot.package_content import FACTS
from webdepot.depot.package_json import FORMAT
from webdepot.depot.store.keys import is_key
from webdepot.depot.tables import submissions
from webdepot.guard import environment
from webdepot.model import Finding, Severity
from webdepot.text import untrusted_json

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
LONGEST_DESCRIPTION_BYTES = 16 << 20
LONGEST_UOF_BYTES = 64 << 20
SCANNER_LIMIT_S = 24 * 3600
UOF_METS = "mets.xml"
MOST_FINDINGS = 1000
_DOCUMENTS = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".odg", ".epub", ".cbz", ".kmz", ".jar")
"""Endings of files that are ZIP files inside, but one document."""
_PACKED = (".zip", ".wacz", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
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
    FILE = "file"


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
    warnings: tuple[str, ...] = ()
    """What its sender should know; it is taken in anyway."""


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


def open_up(path: Path, folder: Path, *, most_members: int = MOST_MEMBERS) -> Submission:
    """Recognise a submission and unpack it to `folder`; the file itself is not changed."""
    if path.is_dir():
        kind, root = _kind_of_folder(path)
        return _checked(path, kind, root)
    if path.name.lower().endswith(_DOCUMENTS):
        return _checked(path, SubmissionKind.FILE, path)
    packed = unpacking.unpack(path, folder, most_members=most_members)
    if not packed.kind:
        name = path.name.lower()
        if name.endswith(_PACKED):
            reason = "it is named like a ZIP or tar file, but cannot be opened as one"
            return Submission(path=path, kind=SubmissionKind.FILE, root=path, reasons=(reason,))
        is_container = name.endswith(SUFFIXES)
        return _checked(path, SubmissionKind.CONTAINER if is_container else SubmissionKind.FILE, path)
    packing = SubmissionKind(packed.kind)
    if packed.reasons:
        return Submission(path=path, kind=packing, root=folder, reasons=packed.reasons)
    kind, root = _kind_of_folder(folder)
    return _checked(path, packing if kind is SubmissionKind.FOLDER else kind, root)


def containers_of(submission: Submission) -> list[Path]:
    """Its WARC and ARC files, sorted by path."""
    if submission.root.is_file():
        return [submission.root] if submission.kind is SubmissionKind.CONTAINER else []
    return sorted(
        path for path in submission.root.rglob("*") if path.name.lower().endswith(SUFFIXES) and path.is_file()
    )


def parts_of(submission: Submission) -> list[Path]:
    """The folders of the objects in an OCFL storage root with several, or the WACZ files in a collection,
    each a submission by itself; empty if it is one submission, or if something is wrong with the whole.
    """
    if submission.kind is SubmissionKind.WACZ:
        packages = zipped.packages_in(submission.root)
        return packages if not any(zipped.check_wacz(submission.root)) else []
    if submission.kind is not SubmissionKind.OCFL or validation.is_object(submission.root):
        return []
    objects = validation.find_objects(submission.root)
    is_valid = all(each.severity is not Severity.ERROR for each in validation.check_root(submission.root))
    return objects if len(objects) > 1 and is_valid else []


def payload_of(submission: Submission) -> dict[str, Path]:
    """The files that its sender wants to be kept, by their paths: without the manifests of a bag, and of an
    OCFL object those of the newest version. All files if it is neither.
    """
    if submission.root.is_file():
        return {submission.root.name: submission.root}
    if submission.kind is SubmissionKind.OCFL:
        return validation.head_files(validation.find_objects(submission.root)[0])
    root = submission.root / "data" if submission.kind is SubmissionKind.BAG else submission.root
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}


def contents_of(submission: Submission) -> list[Path]:
    """The files that define its identity: its containers, or else its payload; for UOF all files except the
    description.
    """
    if submission.kind is not SubmissionKind.UOF:
        return containers_of(submission) or list(payload_of(submission).values())
    described = submission.root / UOF_METS
    return sorted(path for path in submission.root.rglob("*") if path.is_file() and path != described)


def is_own_package(submission: Submission) -> bool:
    """Whether it is a package of Webdepot, in any form."""
    if submission.kind is not SubmissionKind.OCFL:
        return submission.kind is SubmissionKind.PACKAGE
    facts = payload_of(submission).get(FACTS)
    return facts is not None and _are_facts(facts)


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
    """The identity of a submission: equal for equal files. One that has reasons to be refused is identified
    by its names too.
    """
    if submission.reasons:
        return _id_of_refused(submission)
    digests = sorted(digest.of_file(path).value.hex() for path in contents_of(submission))
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _id_of_refused(submission: Submission) -> str:
    top = submission.path
    paths = [top] if top.is_file() else sorted(top.rglob("*"))
    lines = [top.name] + [
        f"{path.relative_to(top).as_posix()} {digest.of_file(path).value.hex()}"
        for path in paths
        if path.is_file() and not path.is_symlink()
    ]
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


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
    if (folder / bag.DECLARATION).is_file() or _is_bag_without_declaration(folder):
        is_package = _is_package(folder / "data")
        return (SubmissionKind.PACKAGE if is_package else SubmissionKind.BAG), folder
    if validation.is_root(folder) or validation.is_object(folder):
        return SubmissionKind.OCFL, folder
    has_containers = (folder / "archive").is_dir() or zipped.packages_in(folder)
    if (folder / zipped.DATAPACKAGE).is_file() and has_containers:
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
    return _are_facts(folder / FACTS)


def _are_facts(path: Path) -> bool:
    """Whether a file is `package.json` of a package of Webdepot."""
    try:
        if not path.is_file() or path.stat().st_size > LONGEST_DESCRIPTION_BYTES:
            return False
        facts = untrusted_json.loads(path.read_bytes())
        return bool(facts["format"] == FORMAT)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _is_bag_without_declaration(folder: Path) -> bool:
    return (folder / "data").is_dir() and any(folder.glob("manifest-*.txt"))


def _checked(path: Path, kind: SubmissionKind, root: Path) -> Submission:
    findings = list(islice(_check(kind, root), MOST_FINDINGS))
    return Submission(
        path=path,
        kind=kind,
        root=root,
        reasons=tuple(each.message for each in findings if each.severity is Severity.ERROR),
        warnings=tuple(each.message for each in findings if each.severity is not Severity.ERROR),
    )


def _check(kind: SubmissionKind, root: Path) -> Iterator[Finding]:
    """What is wrong with the form of a submission, before anything of it is used."""
    if root.is_file():
        return
    paths = list(root.rglob("*"))
    if any(path.is_symlink() for path in paths):
        yield _wrong("it contains symbolic links")
        return
    names = [path.relative_to(root).as_posix() for path in paths]
    yield from (_wrong(f"{name[:200]!r} is not a usable file name") for name in names if not is_key(name))
    if kind is SubmissionKind.BAG or (root / bag.DECLARATION).is_file():
        yield from bag_check.check(root)
    elif kind is SubmissionKind.WACZ:
        yield from _check_wacz(root)
    elif kind is SubmissionKind.OCFL:
        yield from _check_ocfl(root)
    is_web = kind in (SubmissionKind.WACZ, SubmissionKind.PACKAGE) and not zipped.packages_in(root)
    if is_web and not any(name.lower().endswith(SUFFIXES) for name in names):
        yield _wrong(f"it contains no WARC or ARC file ({', '.join(SUFFIXES)})")
    if not any(path.is_file() for path in paths):
        yield _wrong("it contains no files: there is nothing to keep, and nothing that says what it is")


def _check_wacz(root: Path) -> Iterator[Finding]:
    faults = list(zipped.check_wacz(root))
    yield from map(_wrong, faults)
    packages = zipped.packages_in(root)
    if packages and not faults:
        yield _wrong(f"it contains {len(packages)} WACZ files; a submission is one. Submit each of them")


def _check_ocfl(root: Path) -> Iterator[Finding]:
    """The one object of a submission, and its storage root if it came in one."""
    if not validation.is_object(root):
        yield from validation.check_root(root)
    objects = validation.find_objects(root)
    if len(objects) != 1:
        yield _wrong(
            f"it contains {len(objects)} OCFL objects; a submission is one. Submit the folder of each object"
        )
        return
    findings = list(islice(validation.check(objects[0]), MOST_FINDINGS))
    yield from findings
    is_valid = all(each.severity is not Severity.ERROR for each in findings)
    if is_valid and not validation.head_files(objects[0]):
        yield _wrong("the object is valid, but its newest version has no files: there is nothing to keep")


def _wrong(message: str) -> Finding:
    return Finding(code="submission.wrong", severity=Severity.ERROR, subject="", message=message)


def _receipt(row: RowMapping) -> Receipt:
    values = dict(row) | {
        "kind": SubmissionKind(row["kind"]),
        "state": SubmissionState(row["state"]),
        "reasons": tuple(row["reasons"]),
    }
    return Receipt(**values)
