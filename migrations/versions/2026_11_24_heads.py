"""Several hypernetworks: the one that an embedding was learned under, and hypernetworks removed by garbage collection.

Revision: 20261124a, after 20261123a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261124a"
down_revision = "20261123a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("learned_under", sa.Integer(), nullable=True))
    with op.batch_alter_table("hypernetwork_versions", schema=None) as batch_op:
        batch_op.alter_column("artifact", existing_type=sa.String(), nullable=True)
        batch_op.add_column(sa.Column("retired_at", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("collected_at", sa.Double(), nullable=True))


def downgrade() -> None:
    # earlier code needs an artifact for every version, and only serves the first one
    op.execute(
        "UPDATE hypernetwork_versions SET artifact = (SELECT first.artifact FROM hypernetwork_versions AS first"
        " WHERE first.base_digest = hypernetwork_versions.base_digest AND first.version = 1) WHERE artifact IS NULL"
    )
    with op.batch_alter_table("hypernetwork_versions", schema=None) as batch_op:
        batch_op.drop_column("collected_at")
        batch_op.drop_column("retired_at")
        batch_op.alter_column("artifact", existing_type=sa.String(), nullable=False)
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("learned_under")
