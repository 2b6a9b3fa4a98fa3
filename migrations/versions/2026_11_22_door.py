"""Tables for the HTTP API: tokens, the sessions of browsers, the log of every change, and the outbox of webhooks.

Revision: 20261122a, after 20261121d.
"""

import sqlalchemy as sa
from alembic import op

revision = "20261122a"
down_revision = "20261121d"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("token", sa.String(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["token"], ["tokens.id"], name=op.f("fk_sessions_token"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )
    op.create_table(
        "sign_in_codes",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sign_in_codes")),
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "audit_log",
        sa.Column("id", number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    _make_outbox()


def _make_outbox() -> None:
    op.create_table(
        "webhook_events",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("addressed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_events")),
    )
    op.create_index("ix_webhook_events_at", "webhook_events", ["at"], unique=False)
    new = sa.text("addressed_at IS NULL")
    op.create_index("ix_webhook_events_new", "webhook_events", ["at"], postgresql_where=new, sqlite_where=new)
    op.create_table(
        "webhook_deliveries",
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("tried_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'delivered', 'given_up')", name=op.f("ck_webhook_deliveries_known_state")
        ),
        sa.ForeignKeyConstraint(
            ["event"], ["webhook_events.id"], name=op.f("fk_webhook_deliveries_event"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("event", "endpoint", name=op.f("pk_webhook_deliveries")),
    )
    still_open = sa.text("state <> 'delivered'")
    op.create_index(
        "ix_webhook_deliveries_open",
        "webhook_deliveries",
        ["state", "endpoint", "next_at"],
        postgresql_where=still_open,
        sqlite_where=still_open,
    )


def downgrade() -> None:
    op.drop_table("webhook_deliveries")
    op.drop_table("webhook_events")
    for table in ("audit_log", "sign_in_codes", "sessions", "tokens"):
        op.drop_table(table)
