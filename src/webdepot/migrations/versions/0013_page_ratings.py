"""ratings of pages by reviewers"""

import sqlalchemy as sa
from alembic import op

from webdepot.database import Moment

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "page_ratings",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("harvest", sa.String(length=100), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("rating", sa.String(length=10), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("by", sa.String(length=200), nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["harvest"], ["harvests.id"], name=op.f("fk_page_ratings_harvest_harvests")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_page_ratings")),
    )
    with op.batch_alter_table("page_ratings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_page_ratings_harvest"), ["harvest"], unique=False)
