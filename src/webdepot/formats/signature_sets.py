"""Sets of PRONOM signatures that were installed by hand, newer than those in the program. They are kept
permanently, since results name them.

A set is one file in Siegfried's format (`.sig`, made by its tool `roy`). It is tested before it is installed:
a file that does not load is refused. The newest set is used; results of older ones stay.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, RowMapping, insert, select

from webdepot import durable
from webdepot.errors import InputError
from webdepot.formats.examine import FileExaminer
from webdepot.formats.tables import signature_sets

LARGEST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSet:
    sha256: str
    name: str
    engine: str
    """The engine's name in results: engine, signature files and resolver with their versions."""
    size_bytes: int
    installed_at: datetime
    installed_by: str

    @property
    def file_name(self) -> str:
        return f"{self.sha256[:16]}.sig"


def install(source: Path, folder: Path, *, at: datetime, by: str) -> SignatureSet:
    """Test a set and copy it into the folder, all or nothing. InputError if it does not work."""
    if not source.is_file() or not 0 < source.stat().st_size <= LARGEST_BYTES:
        raise InputError(
            f"{source} is not a signature file. "
            f"Give a .sig file made by Siegfried's roy, of at most {LARGEST_BYTES >> 20} MB."
        )
    data = source.read_bytes()
    signature_set = SignatureSet(
        sha256=hashlib.sha256(data).hexdigest(),
        name=source.name,
        engine=_test(source),
        size_bytes=len(data),
        installed_at=at,
        installed_by=by,
    )
    folder.mkdir(parents=True, exist_ok=True)
    durable.write_whole(folder / signature_set.file_name, data)
    return signature_set


def add(connection: Connection, signature_set: SignatureSet) -> bool:
    """Add a set to the table; False if it is there already."""
    if connection.execute(
        select(signature_sets.c.sha256).where(signature_sets.c.sha256 == signature_set.sha256)
    ).first():
        return False
    connection.execute(
        insert(signature_sets).values(
            sha256=signature_set.sha256,
            name=signature_set.name,
            engine=signature_set.engine,
            size_bytes=signature_set.size_bytes,
            installed_at=signature_set.installed_at,
            installed_by=signature_set.installed_by,
        )
    )
    return True


def find_newest(connection: Connection) -> SignatureSet | None:
    chosen = (
        select(signature_sets)
        .order_by(signature_sets.c.installed_at.desc(), signature_sets.c.sha256)
        .limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return _set(row) if row else None


def every(connection: Connection) -> list[SignatureSet]:
    """All sets, newest first."""
    return [
        _set(row)
        for row in connection.execute(
            select(signature_sets).order_by(signature_sets.c.installed_at.desc())
        ).mappings()
    ]


def _test(source: Path) -> str:
    """The name of the engine with that set. InputError unless it recognises a GIF, as every release does."""
    try:
        with FileExaminer(source.absolute()) as examiner:
            format = examiner.identify(b"GIF89a" + bytes(7) + b"\x3b", name="", mime="")
            engine = examiner.engine
    except ChildProcessError as error:
        raise InputError(
            f"{source} cannot be loaded as a signature file. "
            "Make one with Siegfried's roy, or use a published one."
        ) from error
    if not format.puid:
        raise InputError(
            f"{source} loads, but does not recognise a GIF. It is not a set of PRONOM signatures."
        )
    return engine


def _set(row: RowMapping) -> SignatureSet:
    return SignatureSet(
        **{
            name: row[name]
            for name in ("sha256", "name", "engine", "size_bytes", "installed_at", "installed_by")
        }
    )
