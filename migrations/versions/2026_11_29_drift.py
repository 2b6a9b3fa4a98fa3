"""Daily numbers about the texts that versions answered.

Revision: 20261129d, after 20261129a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129d"
down_revision = "20261129a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "drift_days",
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("texts", big, nullable=False),
        sa.Column("sums", sa.JSON(), nullable=False),
        sa.Column("looked", big, nullable=False),
        sa.Column("alarm", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["task", "version"],
            ["embedding_versions.task", "embedding_versions.version"],
            name=op.f("fk_drift_days_task_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("task", "version", "day", name=op.f("pk_drift_days")),
    )
    op.create_index(op.f("ix_drift_days_day"), "drift_days", ["day"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_drift_days_day"), "drift_days")
    op.drop_table("drift_days")
