"""Versions record the rows that were held out of their training.

Revision: 20261124c, after 20261124b.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261124c"
down_revision = "20261124b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("held_out", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("held_out")
