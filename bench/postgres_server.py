"""A PostgreSQL for tests and benchmarks that ends with the block."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.server_programs import WITHOUT_FSYNC
from bench.server_programs import running as running_programs

from webdepot.cluster.postgresql_server import PostgresqlServer


@contextmanager
def running(options: Sequence[str] = WITHOUT_FSYNC) -> Iterator[str]:
    """Run a server; yields the address of an empty database, for SQLAlchemy. The server has its own socket
    and does not sync to disk, unless other options are given.
    """
    # Not below pytest's own folders, which only root may enter where root runs the tests: PostgreSQL refuses
    # to run as root.
    folder = Path(tempfile.mkdtemp(prefix="webdepot-postgres-", dir="/tmp"))
    folder.chmod(0o755)  # tests in a namespace of their own are not its owner
    try:
        server = PostgresqlServer(folder=folder, options=options)
        server.prepare()
        with running_programs(folder, server.program()):
            yield server.url("postgres").replace("postgresql:", "postgresql+psycopg:")
    finally:
        shutil.rmtree(folder)
