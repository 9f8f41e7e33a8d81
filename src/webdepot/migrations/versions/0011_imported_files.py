"""imported files"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "imported_files",
        sa.Column("place", sa.String(length=1000), nullable=False),
        sa.Column("identity", sa.String(length=100), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_imported_files")),
    )
