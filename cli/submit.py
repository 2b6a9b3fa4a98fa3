"""`onboard submit`: a dataset becomes a job, and with --wait a published version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.check import require_kind, split_labels
from cli.output import AsJson, emit, say
from cli.services import opened
from cli.waking import doorbell, start_worker
from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.domain.job import Job, TuneHypernetwork


def submit(
    dataset: Annotated[
        str, typer.Option(help="JSONL, CSV, TSV or Parquet file (.gz may follow), or hf://NAME[/CONFIG].")
    ],
    task: Annotated[str | None, typer.Option(help="Name of the task; default: the file's stem.")] = None,
    init: Annotated[str, typer.Option(help="auto (probes all that fit), random, fingerprint, TASK[@REF].")] = "auto",
    tune_hypernetwork: Annotated[str, typer.Option(help="never, auto or always.")] = "never",
    method: Annotated[str, typer.Option(help="Fine-tuning method; the base's own if left out.")] = "",
    validation: Annotated[Path | None, typer.Option(help="File with the validation split.")] = None,
    test: Annotated[Path | None, typer.Option(help="File with the test split.")] = None,
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
    from onboard.bases import find_base
    from onboard.bases.tokens import token_counter
    from onboard.data.read import ReadOptions, read_dataset
    from onboard.data.task_name import check_task_name, task_name_of
    from onboard.domain.job import JobSpec
    from onboard.submit import Request
    from onboard.submit import submit as enqueue

    name = check_task_name(task) if task is not None else task_name_of(dataset)
    tuning = _require_tuning(tune_hypernetwork)
    with opened(register=False) as services:
        found = find_base(base or services.settings.base)
        chosen_base = str(found.folder) if base and "/" in base else base or services.settings.base
        options = ReadOptions(
            validation=validation, test=test, kind=require_kind(kind), labels=split_labels(labels),
            text_fields=tuple(text_field or ()), label_field=label_field, shots=shots, seed=seed,
            count_tokens=token_counter(found), max_tokens=int(found.document["max_tokens"]),
        )  # fmt: skip
        checked = read_dataset(dataset, options)
        for finding in checked.report.warnings:
            say(f"warning: {finding.message} {finding.remedy}")
        spec = JobSpec(
            task=name, dataset="", init=init, tune_hypernetwork=tuning, method=method, kind=require_kind(kind),
            metric=metric, shots=shots, seed=seed, base=chosen_base, new_labels=new_labels,
        )  # fmt: skip
        job, warning = enqueue(services, doorbell(services), Request(checked, spec, queue, priority, key, time_limit))
        if warning:
            say(f"warning: {warning}")
        start_worker(services, queue)
        if wait:
            from cli.watch import wait_for

            wait_for(services, job.id, as_json)
        else:
            _queued(job, as_json)


def _require_tuning(value: str) -> TuneHypernetwork:
    match value:
        case "never":
            return value
        case "auto" | "always":
            raise InputError(
                f"--tune-hypernetwork {value} is not available yet: the hypernetwork stays frozen in this version.",
                "--tune-hypernetwork never",
            )
    raise InputError(f"{value!r} is no choice of --tune-hypernetwork.", "use one of: never, auto, always")


def _queued(job: Job, as_json: bool) -> None:
    document = {"job": job.id, "state": job.state.value, "task": job.spec.task}
    emit(
        document,
        as_json,
        lambda: f"job {job.id} is {job.state.value} for task {job.spec.task}\nonboard jobs watch {job.id}",
    )
