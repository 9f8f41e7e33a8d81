"""findings have no index by severity: no query could use it"""

from alembic import op

revision = "0020"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_findings_harvest_severity_id", table_name="findings")
