"""Versions record the size of their files. Earlier versions get it from the artifacts.

Revision: 20261126a, after 20261125b.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261126a"
down_revision = "20261125b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
        batch_op.add_column(sa.Column("stored_bytes", number, nullable=True))
    op.execute(
        "UPDATE embedding_versions SET stored_bytes = (SELECT SUM(artifacts.size_bytes) FROM artifacts "
        "WHERE artifacts.digest IN (embedding_versions.artifact, embedding_versions.readout))"
    )


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("stored_bytes")
