"""Tables for a fleet of workers and the people who watch it: time limits, releases, GPUs, figures and counters.

Revision: 20261121d, after 20261121a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261121d"
down_revision = "20261121a"
branch_labels = None
depends_on = None

_OPEN = sa.text("state IN ('queued', 'running')")
_RUNNING = sa.text("state = 'running'")
_ENDED = sa.text("finished_at IS NOT NULL")


def upgrade() -> None:
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("time_limit_seconds", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("claimed_at", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("deadline_at", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("needs_release", sa.Integer(), nullable=True))
        batch_op.drop_index("ix_jobs_open")
        batch_op.create_index(
            "ix_jobs_open",
            ["queue", sa.text("priority DESC"), "number", "state", "not_before_at", "started_at"],
            unique=False,
            postgresql_where=_OPEN,
            sqlite_where=_OPEN,
        )
        batch_op.create_index(
            "ix_jobs_ended",
            ["finished_at", "queue", "state", "attempt", "created_at", "not_before_at", "started_at"],
            unique=False,
            postgresql_where=_ENDED,
            sqlite_where=_ENDED,
        )
        batch_op.create_index(
            "ix_jobs_running", ["worker"], unique=False, postgresql_where=_RUNNING, sqlite_where=_RUNNING
        )
        batch_op.create_index("ix_jobs_queue_state", ["queue", "state"], unique=False)

    with op.batch_alter_table("workers", schema=None) as batch_op:
        batch_op.add_column(sa.Column("gpu_uuid", sa.String(), nullable=True))

    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "job_transitions",
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("up_to_seconds", sa.Double(), nullable=False),
        sa.Column("count", number, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("newest", number, nullable=False),
        sa.PrimaryKeyConstraint("previous", "state", "queue", "up_to_seconds", name=op.f("pk_job_transitions")),
    )
    _rebuild_events(autoincrement=True)


def downgrade() -> None:
    _rebuild_events(autoincrement=False)
    op.drop_table("job_transitions")

    with op.batch_alter_table("workers", schema=None) as batch_op:
        batch_op.drop_column("gpu_uuid")

    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index("ix_jobs_queue_state")
        batch_op.drop_index("ix_jobs_running")
        batch_op.drop_index("ix_jobs_ended")
        batch_op.drop_index("ix_jobs_open")
        batch_op.create_index(
            "ix_jobs_open",
            ["queue", "priority", "number"],
            unique=False,
            postgresql_where=_OPEN,
            sqlite_where=_OPEN,
        )
        batch_op.drop_column("needs_release")
        batch_op.drop_column("deadline_at")
        batch_op.drop_column("claimed_at")
        batch_op.drop_column("time_limit_seconds")


def _rebuild_events(autoincrement: bool) -> None:
    """SQLite gives the ids of deleted newest rows out again, unless the table was made with AUTOINCREMENT."""
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table(
            "job_events", recreate="always", table_kwargs={"sqlite_autoincrement": autoincrement}
        ):
            pass
