"""parts of harvests, servers and harvesters, for harvests on several machines"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "parts",
        sa.Column("harvest", sa.String(length=100), nullable=False),
        sa.Column("part", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("needs_browser", sa.Boolean(), nullable=False),
        sa.Column("offered_at_s", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("holder", sa.String(length=100), nullable=False),
        sa.Column("machine", sa.String(length=60), nullable=False),
        sa.Column("until_s", sa.Float(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("checkpoint", sa.Integer(), nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("obeyed", sa.Integer(), nullable=False),
        sa.Column("idle", sa.Boolean(), nullable=False),
        sa.Column("stopping", sa.Boolean(), nullable=False),
        sa.Column("fetched", sa.BigInteger(), nullable=False),
        sa.Column("pages", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("live", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("watcher", sa.String(length=100), nullable=False),
        sa.Column("watched_until_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("harvest", "part", name=op.f("pk_parts")),
    )
    with op.batch_alter_table("parts", schema=None) as batch_op:
        batch_op.create_index("ix_parts_holder", ["holder"], unique=False)
        batch_op.create_index("ix_parts_state", ["state"], unique=False)
    op.create_table(
        "handed_links",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("harvest", sa.String(length=100), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_handed_links")),
    )
    with op.batch_alter_table("handed_links", schema=None) as batch_op:
        batch_op.create_index("ix_handed_links_harvest_part", ["harvest", "part"], unique=False)
    op.create_table(
        "harvest_orders",
        sa.Column("harvest", sa.String(length=100), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("harvest", "number", name=op.f("pk_harvest_orders")),
    )
    op.create_table(
        "servers",
        sa.Column("address", sa.String(length=300), nullable=False),
        sa.Column("holder", sa.String(length=100), nullable=False),
        sa.Column("free_at_s", sa.Float(), nullable=False),
        sa.Column("pause_s", sa.Float(), nullable=False),
        sa.Column("wanted", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_servers")),
    )
    with op.batch_alter_table("servers", schema=None) as batch_op:
        batch_op.create_index("ix_servers_holder", ["holder"], unique=False)
    op.create_table(
        "harvesters",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("machine", sa.String(length=60), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("browser", sa.Boolean(), nullable=False),
        sa.Column("began_at_s", sa.Float(), nullable=False),
        sa.Column("seen_at_s", sa.Float(), nullable=False),
        sa.Column("free_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_harvesters")),
    )
