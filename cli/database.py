"""`onboard db`: the schema of the database."""

from __future__ import annotations

import typer

from cli.output import AsJson, emit
from cli.services import local_only

app = typer.Typer(help="Manage the database schema.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@local_only("db upgrade")
def upgrade(as_json: AsJson = False) -> None:
    """Upgrade the schema to this version's. Embedded mode does this automatically.

    A newer schema on which this version works is left as it is.
    """
    from onboard.registry import schema
    from onboard.settings import Settings

    settings = Settings()
    if not settings.database_url:
        schema.make_home(settings.resolved_home)
    revision = schema.upgrade(settings.resolved_database_url)
    emit({"revision": revision}, as_json, lambda: f"the schema is at {revision}{_newer(revision)}")


@app.command()
@local_only("db check")
def check(as_json: AsJson = False) -> None:
    """Check that this version works on the schema; exit 4 if it does not."""
    from onboard.registry import schema
    from onboard.settings import Settings

    revision = schema.check(Settings().resolved_database_url)
    emit({"revision": revision}, as_json, lambda: f"the schema is at {revision}{_newer(revision) or ', as expected'}")


def _newer(revision: str) -> str:
    import migrations

    return "" if revision == migrations.HEAD else f", newer than {migrations.HEAD}; this version works on it"
