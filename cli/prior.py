"""`onboard prior`: the versions of a base's prior, which earlier tasks provide for the words of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit, table
from cli.services import local_only
from onboard.domain.prior import require_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from onboard.contract.priors import PriorDetail, PriorDocument

_MOST_SHOWN = 20  # number of tasks of a version that are listed
app = typer.Typer(
    help="Manage the prior of a base, which earlier tasks teach.", no_args_is_help=True, rich_markup_mode=None
)
OfBase = Annotated[str | None, typer.Option(help="Name or digest of a base. Defaults to ONBOARD_BASE.")]


@app.command("list")
def list_versions(base: OfBase = None, as_json: AsJson = False) -> None:
    """List the versions of a base's prior, for single texts and for pairs; new tasks are learned with the heads."""
    from onboard.contract.priors import PriorList

    with connected() as service:
        document = service.priors(base).parsed(PriorList)
    heads = ("texts", "version", "", "lessons", "left out", "reason", "digest", "created")
    emit(document, as_json, lambda: table(heads, map(_row, document.priors)))


@app.command()
def show(
    form: Annotated[
        str, typer.Argument(help="single or pairs: prior for tasks with single texts, or with pairs.")
    ] = "single",
    version: Annotated[
        int | None, typer.Option(min=1, max=999_999_999, help="Number of a version. Defaults to the head.")
    ] = None,
    base: OfBase = None,
    as_json: AsJson = False,
) -> None:
    """Show a version: the tasks that taught it, and those left out because their lessons cannot be used."""
    from onboard.contract.priors import PriorDetail

    with connected() as service:
        document = service.prior(require_form(form), version, base).parsed(PriorDetail)
    emit(document, as_json, lambda: _card(document))


@app.command()
@local_only("prior refit")
def refit(as_json: AsJson = False) -> None:
    """Refit the priors of all bases after tasks were published or deleted. Workers also do this automatically."""
    from cli.services import opened
    from onboard.contract.priors import PriorDocument
    from onboard.hypernetworks.prior.refit import refit_all

    with opened() as services:
        added = [PriorDocument.of(version) for version in refit_all(services, "onboard prior refit")]
    document = {"priors": [version.to_json() for version in added]}
    emit(document, as_json, lambda: "\n".join(map(_told, added)) or "Every prior is up to date.")


def _row(version: PriorDocument) -> tuple[str, ...]:
    return (
        version.form, f"v{version.version}", "head" if version.head else "", str(version.lessons),
        " ".join(version.left_out), version.reason, version.digest[:19], version.created_at or "",
    )  # fmt: skip


def _card(document: PriorDetail) -> RenderableType:
    from rich.console import Group

    return Group(*_facts(document))


def _facts(document: PriorDetail) -> Iterator[str]:
    head = ", the head" if document.head else ""
    yield f"prior v{document.version} ({document.form}) of base {document.base}{head}"
    yield f"digest  {document.digest}"
    yield f"fitted  {document.created_at}: {document.reason}"
    if document.left_out:
        yield f"left out, because their lessons cannot be used: {' '.join(document.left_out)}"
    if document.unlearning:
        yield f"it was fitted to the deleted task {document.unlearning}; nothing new is learned with it"
    left_out = set(document.left_out)
    taught = [f"{lesson.task}@v{lesson.version}" for lesson in document.taught if lesson.task not in left_out]
    more = f" and {len(taught) - _MOST_SHOWN} more (--json)" if len(taught) > _MOST_SHOWN else ""
    yield f"lessons of {len(taught)} tasks: {' '.join(taught[:_MOST_SHOWN])}{more}"


def _told(version: PriorDocument) -> str:
    left_out = f"; left out: {' '.join(version.left_out)}" if version.left_out else ""
    return f"prior v{version.version} ({version.form}): {version.lessons} lessons{left_out}"
