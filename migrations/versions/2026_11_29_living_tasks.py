"""Versions record their change from an earlier one, aliases may keep old label names, tasks keep their features.

Revision: 20261129a, after 20261128p.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129a"
down_revision = "20261128p"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "task_features",
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("base_digest", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.digest"], name=op.f("fk_task_features_artifact")),
        sa.ForeignKeyConstraint(["base_digest"], ["bases.digest"], name=op.f("fk_task_features_base_digest")),
        sa.ForeignKeyConstraint(["task"], ["tasks.name"], name=op.f("fk_task_features_task")),
        sa.PrimaryKeyConstraint("task", "base_digest", name=op.f("pk_task_features")),
    )
    op.create_index(op.f("ix_task_features_artifact"), "task_features", ["artifact"], unique=False)
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("change", sa.JSON(), nullable=True))
    with op.batch_alter_table("aliases", schema=None) as batch_op:
        batch_op.add_column(sa.Column("names", sa.JSON(), nullable=True))
    with op.batch_alter_table("alias_history", schema=None) as batch_op:
        batch_op.add_column(sa.Column("names", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Aliases answer with the labels of the versions that they name."""
    with op.batch_alter_table("alias_history", schema=None) as batch_op:
        batch_op.drop_column("names")
    with op.batch_alter_table("aliases", schema=None) as batch_op:
        batch_op.drop_column("names")
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("change")
    op.drop_index(op.f("ix_task_features_artifact"), "task_features")
    op.drop_table("task_features")
