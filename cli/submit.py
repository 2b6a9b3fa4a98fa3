"""`onboard submit`: a dataset becomes a job, and with --wait a published version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.check import require_kind, require_order
from cli.connection import connected
from cli.output import AsJson, Document, emit
from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.domain.job import ProbeStrategy, TuneHypernetwork


def submit(
    dataset: Annotated[
        str, typer.Option(help="JSONL, CSV, TSV or Parquet file (.gz may follow), or hf://NAME[/CONFIG].")
    ],
    task: Annotated[str | None, typer.Option(help="Name of the task; default: the file's stem.")] = None,
    init: Annotated[str, typer.Option(help="auto (probes what fits), random, mean, fingerprint, TASK[@REF].")] = "auto",
    probe: Annotated[str, typer.Option(help="How auto chooses: race, or exhaustive (all on all rows).")] = "race",
    tune_hypernetwork: Annotated[
        str,
        typer.Option(
            help="Tune the shared hypernetwork too, if no earlier task loses: never, auto (where it pays), always."
        ),
    ] = "auto",
    method: Annotated[str, typer.Option(help="Fine-tuning method; the base's own if left out.")] = "",
    validation: Annotated[Path | None, typer.Option(help="File with the validation split.")] = None,
    test: Annotated[Path | None, typer.Option(help="File with the test split.")] = None,
    unlabelled: Annotated[
        Path | None, typer.Option(help="File of texts: the report names up to 20 to label next.")
    ] = None,
    kind: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    labels: Annotated[str, typer.Option(help="The label set, A,B,…; labels outside it are errors.")] = "",
    text_field: Annotated[list[str] | None, typer.Option(help="Field of the text; twice for pairs.")] = None,
    label_field: Annotated[str | None, typer.Option(help="Field of the label.")] = None,
    metric: Annotated[str, typer.Option(help="Metric that decides; default accuracy or spearman.")] = "",
    shots: Annotated[int | None, typer.Option(help="Training rows in total, drawn balanced.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random draw.")] = 0,
    base: Annotated[str | None, typer.Option(help="Name or folder of the base; default ONBOARD_BASE.")] = None,
    new_labels: Annotated[
        bool, typer.Option("--new-labels", help="Let an existing task have another label set.")
    ] = False,
    queue: Annotated[str, typer.Option(help="Queue that the job waits in.")] = "default",
    priority: Annotated[int, typer.Option(help="More urgent is higher.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="An attempt that takes longer fails.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key never makes a second job.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show the stages and wait for the version.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit a dataset: it is checked, queued, and learned by a worker."""
    from onboard.jobs.submission import Order

    order = Order(
        dataset=dataset, task=task, init=init, probe=_require_strategy(probe),
        tune_hypernetwork=_require_tuning(tune_hypernetwork), method=method,
        validation=validation, test=test, unlabelled=unlabelled, kind=require_kind(kind), labels=labels,
        text_field=text_field or [], label_field=label_field, metric=metric, shots=shots, seed=seed, base=base or "",
        new_labels=new_labels, queue=queue, priority=priority, time_limit=time_limit, key=key,
    )  # fmt: skip
    require_order(order)
    with connected(register=False) as service:
        job = service.submit(order)
        if wait:
            from cli.watch import wait_for

            wait_for(service, job["job"], as_json)
        else:
            _queued(job, as_json)


def _require_strategy(value: str) -> ProbeStrategy:
    match value:
        case "race" | "exhaustive":
            return value
    raise InputError(f"{value!r} is no strategy of the probe.", "use one of: race, exhaustive")


def _require_tuning(value: str) -> TuneHypernetwork:
    match value:
        case "never" | "auto" | "always":
            return value
    raise InputError(f"{value!r} is no choice of --tune-hypernetwork.", "use one of: never, auto, always")


def _queued(job: Document, as_json: bool) -> None:
    emit(
        job,
        as_json,
        lambda: f"job {job['job']} is {job['state']} for task {job['task']}\nonboard jobs watch {job['job']}",
    )
