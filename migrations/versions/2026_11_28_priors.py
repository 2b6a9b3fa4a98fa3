"""Priors: their versions, the lessons of versions, and the prior that a version's readout was drawn towards.

Revision: 20261128p, after 20261128f.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261128p"
down_revision = "20261128f"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "prior_versions",
        sa.Column("base_digest", sa.String(), nullable=False),
        sa.Column("form", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("fitted", sa.String(), nullable=False),
        sa.Column("lessons", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("retired_at", sa.Double(), nullable=True),
        sa.Column("unlearning", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["base_digest"], ["bases.digest"], name=op.f("fk_prior_versions_base_digest")),
        sa.PrimaryKeyConstraint("base_digest", "form", "version", name=op.f("pk_prior_versions")),
    )
    op.create_table(
        "prior_lessons",
        sa.Column("base_digest", sa.String(), nullable=False),
        sa.Column("form", sa.String(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("since", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("until", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("lesson", sa.String(), nullable=False),
        sa.Column("shipped", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["base_digest"], ["bases.digest"], name=op.f("fk_prior_lessons_base_digest")),
        sa.PrimaryKeyConstraint("base_digest", "form", "task", "since", name=op.f("pk_prior_lessons")),
    )
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("lesson", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("prior_version", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("prior_digest", sa.String(), nullable=True))
        batch_op.create_foreign_key(batch_op.f("fk_embedding_versions_lesson"), "artifacts", ["lesson"], ["digest"])
        batch_op.create_index(batch_op.f("ix_embedding_versions_lesson"), ["lesson"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_embedding_versions_lesson"))
        batch_op.drop_constraint(batch_op.f("fk_embedding_versions_lesson"), type_="foreignkey")
        batch_op.drop_column("prior_digest")
        batch_op.drop_column("prior_version")
        batch_op.drop_column("lesson")
    op.drop_table("prior_lessons")
    op.drop_table("prior_versions")
