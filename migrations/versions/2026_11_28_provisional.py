"""A job may publish a provisional version before its final one, so a job has at most one of each.

Revision: 20261128f, after 20261128u.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261128f"
down_revision = "20261128u"
branch_labels = None
depends_on = None

_TABLE = "embedding_versions"


def upgrade() -> None:
    with op.batch_alter_table(_TABLE, schema=None) as batch_op:
        batch_op.add_column(sa.Column("provisional", sa.Boolean(), server_default=sa.false(), nullable=False))
        batch_op.drop_constraint(batch_op.f("uq_embedding_versions_job"), type_="unique")
        batch_op.create_unique_constraint(batch_op.f("uq_embedding_versions_job_provisional"), ["job", "provisional"])


def downgrade() -> None:
    """If a job has two versions, the provisional one loses its job. Otherwise it does not change."""
    op.execute(
        f"UPDATE {_TABLE} SET job = NULL WHERE provisional AND job IN "
        f"(SELECT final.job FROM {_TABLE} AS final WHERE final.job IS NOT NULL AND NOT final.provisional)"
    )
    with op.batch_alter_table(_TABLE, schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f("uq_embedding_versions_job_provisional"), type_="unique")
        batch_op.create_unique_constraint(batch_op.f("uq_embedding_versions_job"), ["job"])
        batch_op.drop_column("provisional")
