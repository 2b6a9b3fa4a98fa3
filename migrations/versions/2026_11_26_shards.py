"""Shards of jobs that predict files: many workers claim, lease and fence them one by one.

Revision: 20261126c, after 20261126b.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261126c"
down_revision = "20261126b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_shards",
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("worker_pid", sa.Integer(), nullable=True),
        sa.Column("lease_expires_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_job_shards_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "number", name=op.f("pk_job_shards")),
    )
    op.create_index(
        "ix_job_shards_open", "job_shards", ["job", "number", "lease_expires_at", "attempt", "max_attempts"],
        postgresql_where=sa.text("finished_at IS NULL"), sqlite_where=sa.text("finished_at IS NULL"),
    )  # fmt: skip
    op.create_index(
        "ix_job_shards_held", "job_shards", ["worker"],
        postgresql_where=sa.text("lease_expires_at IS NOT NULL"), sqlite_where=sa.text("lease_expires_at IS NOT NULL"),
    )  # fmt: skip


def downgrade() -> None:
    op.drop_table("job_shards")
