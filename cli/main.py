"""`onboard`: one Typer application with a file per command group. Commands import large packages only when they run."""

from __future__ import annotations

import sys
from inspect import getdoc
from typing import Annotated

import typer

from cli import (
    add,
    aliases,
    base,
    check,
    compare,
    compare_methods,
    database,
    doctor,
    drift,
    evaluate,
    export,
    fetch,
    hypernetwork,
    jobs,
    labels,
    mlflow,
    predict,
    prior,
    queue,
    serve,
    shelf,
    submit,
    tasks,
    token,
    upkeep,
    versions,
    worker,
    workers,
)
from cli.output import print_line, report_error, say
from cli.streams import open_standard_streams, unwritable
from onboard import __version__
from onboard.errors import OnboardError

app = typer.Typer(
    name="onboard",
    help="Learn one small text task after another on one frozen T5, cheaply and without forgetting.",
    no_args_is_help=True,
    rich_markup_mode=None,  # brackets in help texts are not markup
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print_line(f"onboard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


for command in (
    check.check,
    submit.submit,
    add.add,
    labels.labels,
    versions.versions,
    compare.compare,
    evaluate.evaluate,
    drift.drift,
    compare_methods.compare_methods,
    fetch.fetch,
    export.export,
    shelf.push,
    shelf.pull,
    predict.predict,
    worker.worker,
    serve.serve,
    doctor.doctor,
    aliases.promote,
    aliases.rollback,
    token.audit,
    upkeep.gc,
    upkeep.backup,
    upkeep.restore,
):
    app.command()(command)
for group, name in (
    (jobs.app, "jobs"),
    (mlflow.app, "mlflow"),
    (tasks.app, "tasks"),
    (queue.app, "queue"),
    (workers.app, "workers"),
    (base.app, "base"),
    (hypernetwork.app, "hypernetwork"),
    (prior.app, "prior"),
    (token.app, "token"),
    (database.app, "db"),
):
    app.add_typer(group, name=name)


def _shown_whole(group: typer.Typer) -> None:
    """Show the whole first paragraph of each command's help in lists of commands, instead of one line."""
    for command in group.registered_commands:
        command.short_help = (getdoc(command.callback) or "").partition("\n\n")[0].replace("\n", " ")
    for below in group.registered_groups:
        assert below.typer_instance is not None
        below.short_help = below.typer_instance.info.help
        _shown_whole(below.typer_instance)


_shown_whole(app)


def main() -> None:
    """Entry point. An error is printed as one message with its remedy, and sets the exit code."""
    as_json = "--json" in sys.argv
    open_standard_streams(as_json=as_json)
    try:
        app(standalone_mode=True)
    except OnboardError as error:
        sys.exit(report_error(error, as_json))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        failure = unwritable(error)
        if failure is None:
            raise
        sys.exit(report_error(failure, as_json=False))
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
