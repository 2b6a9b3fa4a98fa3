"""Permanent deletion: version numbers are never reused, and versions that have to be unlearned are marked.

Revision: 20261124b, after 20261124a.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261124b"
down_revision = "20261124a"
branch_labels = None
depends_on = None

_MARKED = ("embedding_versions", "hypernetwork_versions")


def upgrade() -> None:
    for table in _MARKED:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("unlearning", sa.String(), nullable=True))
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.add_column(sa.Column("last_version", sa.Integer(), nullable=True))
    op.execute(
        "UPDATE tasks SET last_version = (SELECT coalesce(max(embedding_versions.version), 0)"
        " FROM embedding_versions WHERE embedding_versions.task = tasks.name)"
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.alter_column("last_version", existing_type=sa.Integer(), nullable=False)


def downgrade() -> None:
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.drop_column("last_version")
    for table in reversed(_MARKED):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column("unlearning")
