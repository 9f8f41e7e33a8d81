"""web hooks and their messages"""

import sqlalchemy as sa
from alembic import op

from webdepot.database import Moment

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("salt", sa.String(length=64), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("name", name=op.f("uq_webhooks_name")),
    )
    op.create_table(
        "webhook_messages",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("hook", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(length=30), nullable=False),
        sa.Column("key", sa.String(length=300), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("queued_at", Moment(), nullable=False),
        sa.Column("next_at", Moment(), nullable=False),
        sa.Column("claimed_until", Moment(), nullable=True),
        sa.Column("sent_at", Moment(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["hook"], ["webhooks.id"], name=op.f("fk_webhook_messages_hook_webhooks")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_messages")),
    )
    with op.batch_alter_table("webhook_messages", schema=None) as batch_op:
        batch_op.create_index("ix_webhook_messages_hook_key", ["hook", "key"], unique=True)
        batch_op.create_index("ix_webhook_messages_state_next_at", ["state", "next_at", "id"], unique=False)
