"""Versions have a temperature for calibrated confidence. The answers of earlier versions do not change.

Revision: 20261126d, after 20261126c.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261126d"
down_revision = "20261126c"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("temperature", sa.Double(), server_default="1", nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("temperature")
