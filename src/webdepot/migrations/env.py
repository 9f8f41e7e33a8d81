"""Run by Alembic: the engine comes from `database.upgrade`, never from a file."""

from alembic import context

from webdepot.database import metadata

engine = context.config.attributes["engine"]
with engine.connect() as connection:
    # SQLite cannot alter most things in place: batch mode copies the table instead.
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
