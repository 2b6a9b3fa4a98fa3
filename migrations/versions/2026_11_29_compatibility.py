"""The database records the oldest code that works on it, so that two releases can share it during an upgrade.

Revision: 20261129k, after 20261129i.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261129k"
down_revision = "20261129i"
branch_labels = None
depends_on = None
kind = "contract"  # earlier code does not read the record and refuses this schema


def upgrade() -> None:
    op.create_table(
        "schema_compatibility",
        sa.Column("oldest_code", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("oldest_code", name=op.f("pk_schema_compatibility")),
    )


def downgrade() -> None:
    op.drop_table("schema_compatibility")
