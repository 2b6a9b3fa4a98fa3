"""An alias may share its texts with a second version, its canary.

Revision: 20261129i, after 20261129f.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129i"
down_revision = "20261129f"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("aliases", schema=None) as batch_op:
        batch_op.add_column(sa.Column("canary", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("share", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("canary_at", sa.Double(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_aliases_task_canary"), "embedding_versions", ["task", "canary"], ["task", "version"]
        )
    with op.batch_alter_table("alias_history", schema=None) as batch_op:
        batch_op.add_column(sa.Column("canary", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("share", sa.Double(), nullable=True))


def downgrade() -> None:
    """Every canary ends; the version of its alias answers all texts."""
    with op.batch_alter_table("alias_history", schema=None) as batch_op:
        batch_op.drop_column("share")
        batch_op.drop_column("canary")
    with op.batch_alter_table("aliases", schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f("fk_aliases_task_canary"), type_="foreignkey")
        batch_op.drop_column("canary_at")
        batch_op.drop_column("share")
        batch_op.drop_column("canary")
