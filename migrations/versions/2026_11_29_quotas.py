"""Owners have quotas of open jobs and of stored bytes, and browsers sign in by OpenID Connect.

Revision: 20261129f, after 20261129l.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129f"
down_revision = "20261129l"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OPEN = sa.text("state IN ('queued', 'running')")
_JOBS = sa.table("jobs", sa.column("id"), sa.column("owner"), sa.column("spec", sa.JSON()))
_SNAPSHOTS = sa.table("snapshots", sa.column("digest"), sa.column("artifact"), sa.column("row_hashes"))
_VERSIONS = sa.table(
    "embedding_versions", sa.column("job"), sa.column("artifact"), sa.column("readout"), sa.column("lesson")
)
_ARTIFACTS = sa.table("artifacts", sa.column("digest"), sa.column("size_bytes"))
_OWNED = sa.table("owned_artifacts", sa.column("owner"), sa.column("artifact"), sa.column("size_bytes"))
_DATASETS = (
    _JOBS.c.spec["dataset"].as_string(),
    _JOBS.c.spec[("options", "unlabelled", "digest")].as_string(),
    _JOBS.c.spec[("options", "change", "rows")].as_string(),
)


def upgrade() -> None:
    """Datasets and versions of earlier jobs count for the owners of these jobs."""
    op.create_table(
        "quotas",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("max_jobs", _NUMBER, nullable=True),
        sa.Column("max_bytes", _NUMBER, nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_quotas")),
    )
    op.create_table(
        "owned_artifacts",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("size_bytes", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("owner", "artifact", name=op.f("pk_owned_artifacts")),
    )
    op.create_index(op.f("ix_owned_artifacts_artifact"), "owned_artifacts", ["artifact"], unique=False)
    op.create_index(
        "ix_jobs_owner", "jobs", ["owner", "state"], postgresql_where=_OPEN, sqlite_where=_OPEN,
    )  # fmt: skip
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("name", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("scopes", sa.JSON(), nullable=True))
    used = [
        sa.select(_JOBS.c.owner, column.label("artifact")).join_from(_JOBS, _SNAPSHOTS, _SNAPSHOTS.c.digest == dataset)
        for dataset in _DATASETS
        for column in (_SNAPSHOTS.c.artifact, _SNAPSHOTS.c.row_hashes)
    ]
    used += [
        sa.select(_JOBS.c.owner, column.label("artifact")).join_from(_JOBS, _VERSIONS, _VERSIONS.c.job == _JOBS.c.id)
        for column in (_VERSIONS.c.artifact, _VERSIONS.c.readout, _VERSIONS.c.lesson)
    ]
    each = sa.union(*used).subquery()  # each of them once
    sizes = sa.select(each.c.owner, _ARTIFACTS.c.digest, _ARTIFACTS.c.size_bytes)
    sizes = sizes.join_from(each, _ARTIFACTS, _ARTIFACTS.c.digest == each.c.artifact)
    op.execute(sa.insert(_OWNED).from_select(["owner", "artifact", "size_bytes"], sizes.where(each.c.owner.is_not(None))))


def downgrade() -> None:
    """Quotas are lost, and whoever signed in by OpenID Connect has to sign in again."""
    op.execute("DELETE FROM sessions WHERE name IS NOT NULL")  # they would be sessions of the link, with every scope
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.drop_column("scopes")
        batch_op.drop_column("name")
    op.drop_index("ix_jobs_owner", "jobs")
    op.drop_index(op.f("ix_owned_artifacts_artifact"), "owned_artifacts")
    op.drop_table("owned_artifacts")
    op.drop_table("quotas")
