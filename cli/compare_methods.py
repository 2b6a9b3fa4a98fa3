"""`onboard compare-methods`: the same rows and seed learned once with each method, and what each came to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.check import require_names
from cli.connection import connected
from cli.options import submit_options
from cli.output import AsJson, Document, emit, say, say_warnings, table, write_file
from cli.standard_input import STANDARD_INPUT, readable
from onboard.contract.methods import MethodResult
from onboard.domain.methods import AUTO, WITHOUT_EMBEDDING
from onboard.domain.names import MOST_LETTERS
from onboard.domain.submission import Submission
from onboard.domain.submission import asked as asked_of
from onboard.errors import DatasetError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onboard.client.protocol import Service
    from onboard.report.methods import MethodsCompared

DEFAULT: Final = "default"  # the base's own: an embedding
_ROWS: Final = 32
_ENDING: Final = ".svg"


@submit_options()
def compare_methods(
    submission: Submission,
    methods: Annotated[
        str,
        typer.Option(metavar="A,B,…", help="Methods to compare. Defaults to all; `default` is the base's own method."),
    ] = "",
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Plot score against stored bytes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn the same rows with several methods, and compare score, size, parameters, time and memory.

    Each method is a job and makes a version of one task, FILE's name with -methods unless --task names it; --rows
    is 32 unless it is given.
    """
    require_names(submission)
    if submission.method or submission.method_setting:
        raise InputError("methods-too-few")
    if str(submission.dataset) == STANDARD_INPUT and submission.task is None:
        raise InputError("standard-input-without-name")
    if plot is not None and plot.suffix.lower() != _ENDING:
        raise InputError("plot-not-svg", plot=plot.name)
    names = _named(methods)
    with connected(register=False) as service, readable(_of_all(submission)) as read:
        compared = _compared(service, read, names)
    if plot is not None:
        write_file(plot, compared.plot().encode(), "plot", "--plot another file")
    emit(compared.to_json(), as_json, lambda: table(compared.heads(), compared.rows(), folded=("version",)))
    if all(result.version is None for result in compared.results):
        raise typer.Exit(1)


def _named(methods: str) -> list[str]:
    """The methods of --methods, each once; all where none is named. Raises InputError: one is empty."""
    if not methods:
        return [DEFAULT, *WITHOUT_EMBEDDING]
    names = [name.strip() for name in methods.split(",")]
    if not all(names):
        raise InputError("method-name-empty")
    return list(dict.fromkeys(names))


def _of_all(submission: Submission) -> Submission:
    """The same submission for all methods, with a separate task, so that no other alias moves, and few rows."""
    from onboard.jobs.submission import task_name

    ending = "-methods"
    name = submission.task or f"{task_name(submission)[: MOST_LETTERS - len(ending)]}{ending}"
    return replace(submission, task=name, rows=submission.training_rows or _ROWS, shots=None)


def _compared(service: Service, submission: Submission, names: Sequence[str]) -> MethodsCompared:
    """Queue a job for each method, follow them one after the other, and read what they came to."""
    queued: list[tuple[str, str | MethodResult]] = []
    for name in names:
        key = None if submission.key is None else f"{submission.key}-{name}"
        asked = replace(submission, method="" if name == DEFAULT else name, key=key)
        if name not in (DEFAULT, AUTO):
            asked = replace(asked, init="auto", tune_hypernetwork="never", probe="race", readout="auto")
        try:
            queued.append((name, _submitted(service, asked)))
        except DatasetError:  # which no method can learn from
            raise
        except InputError as error:
            say(f"{name}: {error.message} {error.remedy}")
            queued.append((name, MethodResult(method=name, state="refused", error=error.message)))
    try:
        return _followed(service, str(submission.task), queued)
    except KeyboardInterrupt:
        jobs = [job for _, job in queued if isinstance(job, str)]
        say(f"the jobs continue: {' '.join(jobs)}")
        say(
            f"onboard jobs list --task {submission.task}, or: onboard jobs cancel JOB; "
            f"results: onboard versions {submission.task}"
        )
        raise typer.Exit(130) from None


def _submitted(service: Service, submission: Submission) -> str:
    """The id of the queued job."""
    status = service.submit(**asked_of(submission))
    say_warnings(status.document)
    return status.id


def _followed(service: Service, task: str, queued: Sequence[tuple[str, str | MethodResult]]) -> MethodsCompared:
    """Follow the jobs of methods one after the other, and read what they came to."""
    from cli.watch import follow
    from onboard.report.methods import MethodsCompared, method_result

    documents: list[Document] = []
    results: list[MethodResult] = []
    for name, job in queued:
        if isinstance(job, MethodResult):
            results.append(job)
            continue
        say(f"{name}: job {job}")
        documents.append(follow(service, job))
        number = documents[-1].get("version")
        version = None if number is None else service.version_document(f"{task}@v{number}")
        results.append(method_result(name, documents[-1], version))
    return MethodsCompared.of_jobs(task, documents, results)
