"""Jobs record the workers that could not run them, so that other workers run them first.

Revision: 20261128i, after 20261126d.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261128i"
down_revision = "20261126d"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("passed_by", sa.String(), nullable=True))
    op.create_index(
        "ix_jobs_passed", "jobs", ["queue"],
        postgresql_where=sa.text("passed_by IS NOT NULL"), sqlite_where=sa.text("passed_by IS NOT NULL"),
    )  # fmt: skip


def downgrade() -> None:
    op.drop_index("ix_jobs_passed", "jobs")
    op.drop_column("jobs", "passed_by")
