"""`onboard db`: the schema of the database."""

from __future__ import annotations

import typer

from cli.output import AsJson, emit
from cli.services import local_only

app = typer.Typer(help="Manage the database schema.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@local_only("db upgrade")
def upgrade(as_json: AsJson = False) -> None:
    """Upgrade the schema to this version's. Embedded mode does this automatically."""
    import migrations
    from onboard.registry import schema
    from onboard.settings import Settings

    settings = Settings()
    if not settings.database_url:
        schema.make_home(settings.resolved_home)
    schema.upgrade(settings.resolved_database_url)
    emit({"revision": migrations.HEAD}, as_json, lambda: f"the schema is at {migrations.HEAD}")


@app.command()
@local_only("db check")
def check(as_json: AsJson = False) -> None:
    """Check that the schema is this version's; exit 4 if it is not."""
    import migrations
    from onboard.registry import schema
    from onboard.settings import Settings

    schema.check(Settings().resolved_database_url)
    emit({"revision": migrations.HEAD}, as_json, lambda: f"the schema is at {migrations.HEAD}, as expected")
