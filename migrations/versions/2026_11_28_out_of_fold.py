"""Versions keep their cross-validated answers, so that two versions can be compared without held-out rows.

Revision: 20261128u, after 20261128i.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261128u"
down_revision = "20261128i"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("out_of_fold", sa.String(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("out_of_fold")
