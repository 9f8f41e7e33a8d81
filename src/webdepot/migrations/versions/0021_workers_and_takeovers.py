"""processes that serve the archive, and work that was taken over from dead ones"""

import sqlalchemy as sa
from alembic import op

from webdepot.database import Moment

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("machine", sa.String(length=60), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("began_at", Moment(), nullable=False),
        sa.Column("seen_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_table(
        "takeovers",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("lost_by", sa.String(length=100), nullable=False),
        sa.Column("taken_by", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_takeovers")),
    )
    with op.batch_alter_table("takeovers", schema=None) as batch_op:
        batch_op.create_index("ix_takeovers_kind_subject", ["kind", "subject"], unique=False)
