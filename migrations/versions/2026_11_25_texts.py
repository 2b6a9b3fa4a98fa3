"""Versions record whether they take pairs of texts; for earlier ones, from their jobs' datasets or the shipped base.

Revision: 20261125a, after 20261124c.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "20261125a"
down_revision = "20261124c"
branch_labels = None
depends_on = None

_SHIPPED: Final = {  # the tasks of `mini`; its base.json does not have this fact
    "cola": False, "sst2": False, "mnli": True, "mrpc": True, "qnli": True, "qqp": True, "rte": True, "stsb": True,
}  # fmt: skip
_VERSIONS: Final = sa.table(
    "embedding_versions",
    *(sa.column(name) for name in ("task", "version", "kind", "job", "base_digest", "dataset_digest")),
    sa.column("pairs", sa.Boolean()),
)
_JOBS: Final = sa.table("jobs", sa.column("id"), sa.column("spec", sa.JSON()))
_BASES: Final = sa.table("bases", sa.column("digest"), sa.column("document", sa.JSON()))


def upgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("pairs", sa.Boolean(), nullable=True))
    _fill_by_datasets()
    _fill_shipped()


def downgrade() -> None:
    with op.batch_alter_table("embedding_versions", schema=None) as batch_op:
        batch_op.drop_column("pairs")


def _fill_by_datasets() -> None:
    """Set the value from the columns that a job read as texts.

    Carried versions have the dataset of the original one.
    """
    connection, columns = op.get_bind(), _VERSIONS.c
    learned = sa.select(columns.dataset_digest, _JOBS.c.spec).join(_JOBS, _JOBS.c.id == columns.job)
    for digest, spec in connection.execute(learned).all():
        texts = spec.get("options", {}).get("dataset_report", {}).get("fields", {}).get("text", ())
        if len(texts) in (1, 2):
            same = sa.update(_VERSIONS).where(columns.dataset_digest == digest, columns.kind != "source")
            connection.execute(same.values(pairs=len(texts) == 2))


def _fill_shipped() -> None:
    connection, columns = op.get_bind(), _VERSIONS.c
    for digest, document in connection.execute(sa.select(_BASES.c.digest, _BASES.c.document)).all():
        if document.get("name") == "mini" and document.get("sources", {}).keys() == _SHIPPED.keys():
            for task, pairs in _SHIPPED.items():
                shipped = (columns.task == task, columns.base_digest == digest, columns.dataset_digest == "")
                connection.execute(sa.update(_VERSIONS).where(*shipped).values(pairs=pairs))
