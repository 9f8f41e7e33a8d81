"""Generate the next migration from the difference between the tables in the code and the last migration.

    .venv/bin/python scripts/migration.py "description of the change"

Review the generated file before you commit it.
"""

import importlib
import sys
import tempfile
from pathlib import Path

import alembic.command

import webdepot
from webdepot import database
from webdepot.accounts import accounts  # noqa: F401 - they register tables
from webdepot.database import Database


def import_all_tables() -> None:
    """Import the tables of every component, `webdepot/COMPONENT/tables.py`, and those of the foundation."""
    for name in ("leases", "provenance"):
        importlib.import_module(f"webdepot.{name}")
    for path in Path(webdepot.__file__).parent.glob("*/tables.py"):
        importlib.import_module(f"webdepot.{path.parent.name}.tables")


def main() -> None:
    import_all_tables()
    versions = Path(webdepot.__file__).parent / "migrations" / "versions"
    number = len(list(versions.glob("[0-9]*.py"))) + 1
    with tempfile.TemporaryDirectory() as folder:
        scratch = Database.in_file(Path(folder) / "scratch.db")
        scratch.upgrade()
        config = database._alembic(scratch.engine)
        alembic.command.revision(config, message=sys.argv[1], autogenerate=True, rev_id=f"{number:04d}")
        scratch.close()


if __name__ == "__main__":
    main()
