"""`onboard predict` over files of any size: shards in a folder, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.connection import connected
from cli.output import Document, emit, say
from cli.services import opened, require_here
from cli.standard_input import STANDARD_INPUT
from onboard.domain.counting import counted
from onboard.errors import InputError

if TYPE_CHECKING:
    from cli.connection import Gateway
    from onboard.domain.names import Reference
    from onboard.domain.prediction import Prediction
    from onboard.serving.bulk.answering import BulkDone
    from onboard.serving.bulk.plan import Plan


def answered_in_bulk(
    references: Sequence[Reference],
    source: str | None,
    output: str | None,
    queue: str | None,
    as_json: bool,
    asked: Mapping[str, Any],
    unknown: bool,
) -> bool:
    """Answer, or queue, where the answers go to a folder. Returns whether that was so.

    Args:
        asked: fields of a `BulkQuestion`.
        unknown: whether answers are to say which texts are unlike the task's data, which a folder is not told.

    Raises:
        InputError: it is to be a job, and something is missing; or what `_predicted` and `submit_bulk` raise.
    """
    if queue is not None and (source is None or output is None):
        raise InputError("A job reads files, and writes into a folder.", "Name both: --input FOLDER --output FOLDER")
    if source is None or not (queue is not None or _is_bulk(source, output)):
        return False
    if unknown:
        raise InputError("--unknown is not told into a folder.", "--output a file: answers.jsonl or answers.csv")
    if source == STANDARD_INPUT:
        raise InputError("Standard input cannot be read again.", "Write it to a file, or --output a file.")
    if queue is None:
        _predict(references, source, str(output), as_json, asked)
    else:
        _queue(references, source, str(output), queue, as_json, asked)
    return True


def _is_bulk(source: str, output: str | None) -> bool:
    """Whether answers go to a folder: the source is more than one file of this machine, or the output is a folder.

    Raises:
        InputError: the source is a folder, a pattern or a URL, and no output is named.
    """
    from onboard.storage.objects import has_magic, is_url

    several = is_url(source) or Path(source).is_dir() or (has_magic(source) and not Path(source).exists())
    if output is None:
        if several:
            kind = "a URL" if is_url(source) else "a folder" if Path(source).is_dir() else "a pattern"
            raise InputError(f"{source} is {kind}.", "Say where the answers go: --output FOLDER/")
        return False
    return several or is_url(output) or Path(output).is_dir() or output.endswith("/")


def _predict(
    references: Sequence[Reference], source: str, output: str, as_json: bool, asked: Mapping[str, Any]
) -> None:
    """Answer every row of the source. Raises as `predict_files`."""
    with connected() as service:
        done = _predicted(service, references, source, output, asked)
    plan = done.plan
    if plan.bad_rows:
        say(f"warning: {plan.bad_rows:,} of {plan.rows:,} rows hold no text that can be answered, each says why")
    resumed = f", {done.found_shards:,} of them from before" if done.found_shards else ""
    written = f"{plan.rows:,} rows are in {output}, in {counted(len(plan.shards), 'file')}{resumed}."
    emit(done.to_json(), as_json, lambda: written)


def _queue(
    references: Sequence[Reference], source: str, output: str, queue: str, as_json: bool, asked: Mapping[str, Any]
) -> None:
    """The same as a job that the workers of a queue share. Raises as `onboard.serving.bulk.submit.submit_bulk`."""
    require_here("onboard predict --queue")
    with opened() as services:
        from cli.local import LocalGateway

        names = [str(reference) for reference in references]
        queued = LocalGateway(services).submit_bulk(names, source, output, queue, asked)
    emit(queued, as_json, lambda: f"job {queued['job']} is queued\nonboard jobs watch {queued['job']}")


def _predicted(
    service: Gateway, references: Sequence[Reference], source: str, output: str, asked: Mapping[str, Any]
) -> BulkDone:
    from onboard.serving.bulk.answering import predict_files
    from onboard.serving.bulk.asked import BulkQuestion

    versions = {str(reference): service.version(str(reference)) for reference in references}
    pinned = tuple(f"{version['task']}@v{version['version']}" for version in versions.values())
    question = BulkQuestion(tuple(versions), pinned, **asked)
    with _progress() as rows:

        def begin(plan: Plan) -> None:
            answering = {reference: service.version(reference) for reference in plan.question.pinned}
            _require_fitting(plan, answering)
            rows.begin(plan)

        def answer(inputs: Sequence[Mapping[str, Any]]) -> Sequence[Prediction]:
            return service.predict(inputs, probabilities=question.probabilities)

        return predict_files(source, output, question, answer, begin, rows.add)


def _require_fitting(plan: Plan, versions: Mapping[str, Document]) -> None:
    """Raise InputError where the rows are not what a version takes, or it has not the labels to choose from."""
    from onboard.serving.bulk.plan import require_form, require_labels

    require_form(plan.pairs, {reference: version["pairs"] for reference, version in versions.items()})
    for reference, version in versions.items():
        if version["weak"]:
            say(f"warning: {reference} is weak, see: onboard versions {version['task']}")
        require_labels(reference, plan.question.labels, version["labels"])


class _Rows:
    """Rows that are answered, of all: a bar where somebody looks."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None

    def begin(self, plan: Plan) -> None:
        """There are so many."""
        say(f"{plan.rows:,} rows of {counted(len(plan.files), 'file')}, by {', '.join(plan.question.pinned)}")
        if self._bar is not None:
            self._task = self._bar.add_task("rows", total=plan.rows)

    def add(self, rows: int) -> None:
        """So many more are answered."""
        if self._bar is not None:
            self._bar.advance(self._task, rows)


@contextmanager
def _progress() -> Iterator[_Rows]:
    if not sys.stderr.isatty():
        yield _Rows(None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cli.console import CleanConsole

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=CleanConsole(stderr=True)) as bar:
        yield _Rows(bar)


def require_references(task: str | None, tasks: str) -> list[Reference]:
    """The references of TASK or of --tasks. Raises InputError: both or none are given, or one twice."""
    from onboard.domain.names import Reference

    if (task is None) == (not tasks):
        raise InputError("Give a TASK, or several with --tasks.", "onboard predict --tasks a,b --text T")
    named = [task] if task is not None else [name.strip() for name in tasks.split(",")]
    references = [Reference.parse(name) for name in named]
    if len(set(references)) < len(references):
        raise InputError("--tasks names one of them twice.", "Name each once.")
    return references
