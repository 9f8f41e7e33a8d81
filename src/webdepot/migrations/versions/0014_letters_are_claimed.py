"""letters are claimed before they are sent"""

import sqlalchemy as sa
from alembic import op

from webdepot.database import Moment

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("letters") as batch:
        batch.add_column(sa.Column("claimed_until", Moment(), nullable=True))
