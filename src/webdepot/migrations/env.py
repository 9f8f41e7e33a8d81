"""Run by Alembic: the engine comes from `database.upgrade`, never from a file."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext

from webdepot.database import Moment, metadata


def render_item(kind: str, item: Any, _context: AutogenContext) -> str | Literal[False]:
    return "Moment()" if kind == "type" and isinstance(item, Moment) else False


engine = context.config.attributes["engine"]
with engine.connect() as connection:
    # SQLite cannot alter most things in place: batch mode copies the table instead.
    context.configure(
        connection=connection, target_metadata=metadata, render_as_batch=True, render_item=render_item
    )
    with context.begin_transaction():
        context.run_migrations()
