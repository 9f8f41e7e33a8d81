"""Profiles from the files of other crawlers: jobs of Heritrix, lists of seeds and SURT prefixes.

A job is a folder with `crawler-beans.cxml`, or that file. Files that it names are read only inside its
folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError
from webdepot.harvest import profile as profiles
from webdepot.harvest.heritrix import job
from webdepot.harvest.heritrix.job import ImportedJob
from webdepot.services.harvest import profiles as profiles_service

JOB_FILE = "crawler-beans.cxml"
LONGEST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileImport:
    name: str
    text: str
    """The profile, as TOML."""
    seeds: int
    rules: int
    unmapped: Sequence[str]
    """What the profile does not contain, with the reason."""


def import_(archive: Archive, name: str, path: Path, *, dry_run: bool = False) -> ProfileImport:
    """Save a job or a list of seeds and SURT prefixes as a new profile; with `dry_run`, only show it.

    InputError if the file is neither, Conflict if there is a profile of that name.
    """
    if profiles.path_of(archive.home, name).exists() or name in archive.config.profiles:
        raise Conflict(f"There is a profile {name} already. Choose another name.")
    imported = _read(path.expanduser())
    text = imported.text()
    if len(text.encode()) > profiles.MOST_BYTES:
        raise InputError(
            f"The profile would have more than {profiles.MOST_BYTES >> 10} KB. "
            "Nominate the seeds as sites instead: webdepot target import"
        )
    checked = profiles.from_text(name, text, origin=str(path))
    if not dry_run:
        profiles_service.save(archive, name, text)
    return ProfileImport(
        name=name,
        text=text,
        seeds=len(checked.seeds),
        rules=len(checked.rules),
        unmapped=imported.unmapped,
    )


def _read(path: Path) -> ImportedJob:
    if path.is_dir():
        path = path / JOB_FILE
    raw = _bytes_of(path)
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        folder = path.parent.resolve()

        def read_file(stated: str) -> bytes | None:
            file = (folder / stated).resolve()
            return _bytes_of(file) if file.is_relative_to(folder) and file.is_file() else None

        return job.from_beans(raw, read_file)
    return job.from_seeds(raw, description=f"Seeds and SURT prefixes of {path.name}")


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(raw) > LONGEST_BYTES:
        raise InputError(f"{path} is larger than {LONGEST_BYTES >> 20} MB.")
    return raw
