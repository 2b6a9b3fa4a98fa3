"""Jobs of one priority are claimed alternately by owner, so that many jobs of one owner do not delay another's.

Revision: 20261129r, after 20261129d.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129r"
down_revision = "20261129d"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OPEN = sa.text("state IN ('queued', 'running')")
_QUEUED = sa.text("state = 'queued'")


def upgrade() -> None:
    """Waiting jobs keep the order in which they were submitted."""
    op.add_column("jobs", sa.Column("turn", _NUMBER, nullable=False, server_default="0"))
    op.execute("UPDATE jobs SET turn = number")
    _open_jobs("turn", "number")
    op.create_index(
        "ix_jobs_turn", "jobs", ["queue", "owner", "priority", "turn"],
        postgresql_where=_QUEUED, sqlite_where=_QUEUED,
    )  # fmt: skip


def downgrade() -> None:
    op.drop_index("ix_jobs_turn", "jobs")
    _open_jobs("number")
    op.drop_column("jobs", "turn")


def _open_jobs(*order: str) -> None:
    """Make the index that claims use."""
    op.drop_index("ix_jobs_open", "jobs")
    op.create_index(
        "ix_jobs_open", "jobs",
        ["queue", sa.text("priority DESC"), *order, "state", "not_before_at", "started_at"],
        postgresql_where=_OPEN, sqlite_where=_OPEN,
    )  # fmt: skip
