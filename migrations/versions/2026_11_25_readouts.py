"""Versions may have a readout, which complements the embedding; those from before have none.

Revision: 20261125b, after 20261125a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261125b"
down_revision = "20261125a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("readout", sa.String(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_embedding_versions_readout"), "artifacts", ["readout"], ["digest"]
        )
        batch_op.create_index(batch_op.f("ix_embedding_versions_readout"), ["readout"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_embedding_versions_readout"))
        batch_op.drop_constraint(batch_op.f("fk_embedding_versions_readout"), type_="foreignkey")
        batch_op.drop_column("readout")
