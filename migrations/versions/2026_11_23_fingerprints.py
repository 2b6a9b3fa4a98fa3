"""Fingerprints of datasets, which the probe needs before it reads the bytes of a version; and the parts of mixtures.

Revision: 20261123a, after 20261122a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261123a"
down_revision = "20261122a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("fingerprint", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("mixed_from", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("mixed_from")
        batch_op.drop_column("fingerprint")
