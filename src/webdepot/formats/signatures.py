"""Sets of PRONOM signatures put in by hand: newer than the program, kept for ever, since results name them.

A set is one file in Siegfried's form (`.sig`, made by its tool `roy`). It is tried before it is taken: a file
that does not load is refused. The newest is used from then on; results of older ones stay.
"""

import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, RowMapping, insert, select

from webdepot.errors import InputError
from webdepot.formats.examine import Examiner
from webdepot.formats.tables import signature_sets

LARGEST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSet:
    sha256: str
    name: str
    engine: str
    """As results name it: engine, signature files and resolver with their versions."""
    size_bytes: int
    installed_at: datetime
    installed_by: str

    @property
    def file_name(self) -> str:
        return f"{self.sha256[:16]}.sig"


def take(source: Path, folder: Path, *, at: datetime, by: str) -> SignatureSet:
    """Copy a set into the folder, whole or not at all, once it has shown that it works. InputError when it
    does not.
    """
    if not source.is_file() or not 0 < source.stat().st_size <= LARGEST_BYTES:
        raise InputError(
            f"{source} is no file of signatures (a .sig file made by Siegfried's roy, of at most {LARGEST_BYTES >> 20} MB)."
        )
    data = source.read_bytes()
    found = SignatureSet(
        sha256=hashlib.sha256(data).hexdigest(),
        name=source.name,
        engine=_tried(source),
        size_bytes=len(data),
        installed_at=at,
        installed_by=by,
    )
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{found.file_name}.part"
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / found.file_name)
    return found


def add(connection: Connection, found: SignatureSet) -> bool:
    """Note a set; False when it is known already."""
    if connection.execute(
        select(signature_sets.c.sha256).where(signature_sets.c.sha256 == found.sha256)
    ).first():
        return False
    connection.execute(
        insert(signature_sets).values(
            sha256=found.sha256,
            name=found.name,
            engine=found.engine,
            size_bytes=found.size_bytes,
            installed_at=found.installed_at,
            installed_by=found.installed_by,
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
    """Newest first."""
    return [
        _set(row)
        for row in connection.execute(
            select(signature_sets).order_by(signature_sets.c.installed_at.desc())
        ).mappings()
    ]


def _tried(source: Path) -> str:
    """The name of the engine with that set, after it has recognised something that every release knows."""
    try:
        with Examiner(source.absolute()) as examiner:
            found = examiner.identify(b"GIF89a" + bytes(7) + b"\x3b", name="", mime="")
            engine = examiner.engine
    except ChildProcessError as error:
        raise InputError(
            f"{source} does not load as a set of signatures. Make one with Siegfried's roy, or take a published one."
        ) from error
    if not found.puid:
        raise InputError(f"{source} loads, but does not recognise a GIF. It is no set of PRONOM signatures.")
    return engine


def _set(row: RowMapping) -> SignatureSet:
    return SignatureSet(
        **{
            name: row[name]
            for name in ("sha256", "name", "engine", "size_bytes", "installed_at", "installed_by")
        }
    )
