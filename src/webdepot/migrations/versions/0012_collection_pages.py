"""pages of collections, screenshots by address, subjects of the catalogue"""

import json

import sqlalchemy as sa
from alembic import op

from webdepot.exchange import catalogue_words

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "collection_pages",
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("picture_url", sa.Text(), nullable=False),
        sa.Column("picture_timestamp", sa.String(length=14), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_collection_pages")),
    )
    with op.batch_alter_table("screenshots", schema=None) as batch_op:
        batch_op.create_index("ix_screenshots_harvest_url", ["harvest", "url"], unique=False)
        batch_op.drop_index("ix_screenshots_harvest")
    _fill()


def _fill() -> None:
    """Works of older homes: their subjects."""
    connection = op.get_bind()
    works = connection.exec_driver_sql(
        "SELECT key, keywords FROM catalogue WHERE withdrawn_at IS NULL "
        "AND level IN ('site', 'journal', 'monograph', 'thesis')"
    )
    for key, keywords in works.all():
        read = json.loads(keywords) if isinstance(keywords, str) else keywords
        catalogue_words.put_subjects(connection, key, read)
