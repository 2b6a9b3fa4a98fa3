"""Indexes for listing jobs by task, waiting time and running time.

Revision: 20261126b, after 20261126a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261126b"
down_revision = "20261126a"
branch_labels = None
depends_on = None

WAIT = (
    "(COALESCE(started_at, finished_at, 1e12) - "
    "CASE WHEN not_before_at > started_at THEN created_at ELSE not_before_at END)"
)
RUN = "(COALESCE(COALESCE(finished_at, 1e12) - started_at, -1.0))"


def upgrade() -> None:
    op.drop_index("ix_jobs_task", "jobs")
    op.create_index("ix_jobs_task", "jobs", ["task", "number"], unique=False)
    op.create_index("ix_jobs_wait", "jobs", [sa.text(WAIT), "number"], unique=False)
    op.create_index("ix_jobs_run", "jobs", [sa.text(RUN), "number"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_jobs_run", "jobs")
    op.drop_index("ix_jobs_wait", "jobs")
    op.drop_index("ix_jobs_task", "jobs")
    op.create_index("ix_jobs_task", "jobs", ["task"], unique=False)
