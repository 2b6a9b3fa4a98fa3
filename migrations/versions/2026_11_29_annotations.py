"""Annotations that labeling tools send while people label.

Revision: 20261129l, after 20261129r.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129l"
down_revision = "20261129r"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "annotations",
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("number", sa.String(), nullable=False),
        sa.Column("text_a", sa.Text(), nullable=True),
        sa.Column("text_b", sa.Text(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("revision", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("task", "project", "number", name=op.f("pk_annotations")),
    )
    op.create_index("ix_annotations_task_revision", "annotations", ["task", "revision"], unique=False)


def downgrade() -> None:
    """Annotations that no version learned are lost."""
    op.drop_index("ix_annotations_task_revision", "annotations")
    op.drop_table("annotations")
