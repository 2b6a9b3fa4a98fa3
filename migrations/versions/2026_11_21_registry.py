"""The registry: jobs, versions, aliases, artifacts, workers.

Revision: 20261121a, the first.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261121a"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alias_history",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("previous", sa.Integer(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alias_history")),
    )
    with op.batch_alter_table("alias_history", schema=None) as batch_op:
        batch_op.create_index("ix_alias_history_alias", ["task", "alias", "id"], unique=False)

    op.create_table(
        "artifacts",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "bases",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("backbone_digest", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("head", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_bases")),
    )
    with op.batch_alter_table("bases", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_bases_name"), ["name"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("worker_pid", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("not_before_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("lease_expires_at", sa.Double(), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')",
            name=op.f("ck_jobs_known_state"),
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_jobs_id")),
        sa.UniqueConstraint("key", name=op.f("uq_jobs_key")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            "ix_jobs_open",
            ["queue", "priority", "number"],
            unique=False,
            postgresql_where=sa.text("state IN ('queued', 'running')"),
            sqlite_where=sa.text("state IN ('queued', 'running')"),
        )
        batch_op.create_index(batch_op.f("ix_jobs_task"), ["task"], unique=False)

    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "queues",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_queues")),
    )
    op.create_table(
        "tasks",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("words", sa.JSON(), nullable=False),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("source", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_tasks")),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("queues", sa.JSON(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("heartbeat_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_table(
        "hypernetwork_versions",
        sa.Column("base_digest", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("job", sa.String(), nullable=True),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.digest"], name=op.f("fk_hypernetwork_versions_artifact")),
        sa.ForeignKeyConstraint(["base_digest"], ["bases.digest"], name=op.f("fk_hypernetwork_versions_base_digest")),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_hypernetwork_versions_job")),
        sa.PrimaryKeyConstraint("base_digest", "version", name=op.f("pk_hypernetwork_versions")),
        sa.UniqueConstraint("job", name=op.f("uq_hypernetwork_versions_job")),
    )
    with op.batch_alter_table("hypernetwork_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_hypernetwork_versions_artifact"), ["artifact"], unique=False)

    op.create_table(
        "job_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("numbers", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_job_events_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_events")),
    )
    with op.batch_alter_table("job_events", schema=None) as batch_op:
        batch_op.create_index("ix_job_events_job_id", ["job", "id"], unique=False)

    op.create_table(
        "snapshots",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("row_hashes", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("rows", sa.JSON(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.digest"], name=op.f("fk_snapshots_artifact")),
        sa.ForeignKeyConstraint(["row_hashes"], ["artifacts.digest"], name=op.f("fk_snapshots_row_hashes")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_snapshots")),
    )
    with op.batch_alter_table("snapshots", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_snapshots_artifact"), ["artifact"], unique=False)
        batch_op.create_index(batch_op.f("ix_snapshots_row_hashes"), ["row_hashes"], unique=False)

    op.create_table(
        "stage_outputs",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.digest"], name=op.f("fk_stage_outputs_artifact")),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_stage_outputs_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_stage_outputs")),
    )
    with op.batch_alter_table("stage_outputs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_stage_outputs_artifact"), ["artifact"], unique=False)
        batch_op.create_index(batch_op.f("ix_stage_outputs_job"), ["job"], unique=False)

    op.create_table(
        "embedding_versions",
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("job", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("embedding_digest", sa.String(), nullable=False),
        sa.Column("backbone_digest", sa.String(), nullable=False),
        sa.Column("base_digest", sa.String(), nullable=False),
        sa.Column("hypernetwork_version", sa.Integer(), nullable=False),
        sa.Column("dataset_digest", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=False),
        sa.Column("task_kind", sa.String(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("words", sa.JSON(), nullable=False),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("seeds", sa.JSON(), nullable=False),
        sa.Column("code_version", sa.String(), nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("weak", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.digest"], name=op.f("fk_embedding_versions_artifact")),
        sa.ForeignKeyConstraint(
            ["base_digest", "hypernetwork_version"],
            ["hypernetwork_versions.base_digest", "hypernetwork_versions.version"],
            name=op.f("fk_embedding_versions_base_digest_hypernetwork_version"),
        ),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_embedding_versions_job")),
        sa.ForeignKeyConstraint(["task"], ["tasks.name"], name=op.f("fk_embedding_versions_task")),
        sa.PrimaryKeyConstraint("task", "version", name=op.f("pk_embedding_versions")),
        sa.UniqueConstraint("job", name=op.f("uq_embedding_versions_job")),
    )
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_embedding_versions_artifact"), ["artifact"], unique=False)
        batch_op.create_index("ix_embedding_versions_base", ["base_digest", "hypernetwork_version"], unique=False)

    op.create_table(
        "aliases",
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["task", "version"],
            ["embedding_versions.task", "embedding_versions.version"],
            name=op.f("fk_aliases_task_version"),
        ),
        sa.PrimaryKeyConstraint("task", "alias", name=op.f("pk_aliases")),
    )


def downgrade() -> None:
    op.drop_table("aliases")
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_index("ix_embedding_versions_base")
        batch_op.drop_index(batch_op.f("ix_embedding_versions_artifact"))

    op.drop_table("embedding_versions")
    with op.batch_alter_table("stage_outputs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_stage_outputs_job"))
        batch_op.drop_index(batch_op.f("ix_stage_outputs_artifact"))

    op.drop_table("stage_outputs")
    with op.batch_alter_table("snapshots", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_snapshots_row_hashes"))
        batch_op.drop_index(batch_op.f("ix_snapshots_artifact"))

    op.drop_table("snapshots")
    with op.batch_alter_table("job_events", schema=None) as batch_op:
        batch_op.drop_index("ix_job_events_job_id")

    op.drop_table("job_events")
    with op.batch_alter_table("hypernetwork_versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_hypernetwork_versions_artifact"))

    op.drop_table("hypernetwork_versions")
    op.drop_table("workers")
    op.drop_table("tasks")
    op.drop_table("queues")
    op.drop_table("leases")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_task"))
        batch_op.drop_index(
            "ix_jobs_open",
            postgresql_where=sa.text("state IN ('queued', 'running')"),
            sqlite_where=sa.text("state IN ('queued', 'running')"),
        )

    op.drop_table("jobs")
    with op.batch_alter_table("bases", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_bases_name"))

    op.drop_table("bases")
    op.drop_table("artifacts")
    with op.batch_alter_table("alias_history", schema=None) as batch_op:
        batch_op.drop_index("ix_alias_history_alias")

    op.drop_table("alias_history")
