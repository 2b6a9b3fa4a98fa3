"""`onboard predict` over files of any size: shards in a folder, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cli.connection import connected
from cli.output import Document, emit, say
from cli.row_progress import row_progress
from cli.services import require_here
from cli.standard_input import STANDARD_INPUT
from cli.text_fields import fields_of
from onboard.domain.counting import counted
from onboard.domain.task import labels_called
from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.client.protocol import Service
    from onboard.domain.names import Reference
    from onboard.domain.prediction import Prediction
    from onboard.serving.bulk.answering import BulkDone
    from onboard.serving.bulk.plan import Plan


REFUSE: Final = "refuse"
_SUFFIXES: Final = frozenset({".jsonl", ".json", ".csv", ".tsv", ".txt"})


@dataclass(frozen=True, slots=True)
class Apart:
    """Options of `onboard predict` besides the question.

    Args:
        unknown: whether answers report texts unlike the task's data; not supported for folders.
        on_error: skip or refuse rows that cannot be answered.
    """

    unknown: bool = False
    on_error: str = "skip"


def skipped_rows(skipped: int, rows: int) -> str:
    """ "1 of 7 rows was skipped"."""
    return f"{skipped:,} of {counted(rows, 'row')} {'was' if skipped == 1 else 'were'} skipped"


def answered_in_bulk(
    references: Sequence[Reference],
    source: str | None,
    output: str | None,
    queue: str | None,
    as_json: bool,
    asked: Mapping[str, Any],
    apart: Apart,
) -> bool:
    """Predict or queue, if the answers go to a folder. Returns whether they do.

    Args:
        asked: fields of a `BulkQuestion`.

    Raises:
        InputError: it is to be a job, and something is missing; or what `_predicted` and `submit_bulk` raise.
    """
    if queue is not None and (source is None or output is None):
        raise InputError("bulk-needs-folders")
    if source is None or not (queue is not None or is_bulk(source, output)):
        return False
    if apart.unknown:
        raise InputError("unknown-into-folder")
    if source == STANDARD_INPUT:
        raise InputError("standard-input-once")
    if queue is None:
        _predict(references, source, str(output), as_json, asked, apart.on_error)
    else:
        _queue(references, source, str(output), queue, as_json, asked, apart.on_error == REFUSE)
    return True


def is_bulk(source: str | None, output: str | None) -> bool:
    """Return whether answers go to a folder: an existing path decides; a new one is a file if it has a file's suffix.

    Args:
        source: file, folder, pattern or URL; None if the text is an option.
        output: None prints the answers.

    Raises:
        InputError: the source is a folder, a pattern or a URL, and the output is missing, or a file.
    """
    from onboard.storage.objects import has_magic, is_url

    kind = None  # of a source with several files
    if source is not None:
        if is_url(source):
            kind = "a URL"
        elif Path(source).is_dir():
            kind = "a folder"
        elif has_magic(source) and not Path(source).exists():
            kind = "a pattern"
    if output is None:
        if kind is not None:
            raise InputError("output-missing-for-source", source=source, kind=kind)
        return False
    if is_url(output) or Path(output).is_dir():
        return True
    if Path(output).exists() or Path(output).suffix.lower() in _SUFFIXES:
        if kind is not None:
            raise InputError("output-is-file-for-source", source=source, kind=kind, output=output)
        if output.endswith("/"):
            raise InputError("output-is-file", output=output, file=output.rstrip("/"))
        return False
    return kind is not None or output.endswith("/")


def _predict(
    references: Sequence[Reference], source: str, output: str, as_json: bool, asked: Mapping[str, Any], on_error: str
) -> None:
    """Answer every row of the source. Raises as `predict_files`."""
    with connected() as service:
        fields = fields_of(service, references, source, tuple(asked["text_fields"]))
        done = _predicted(service, references, source, output, {**asked, "text_fields": fields}, on_error)
    plan = done.plan
    if plan.bad_rows:
        say(f"warning: {skipped_rows(plan.bad_rows, plan.rows)}; each has an error instead of an answer")
    resumed = f", {done.found_shards:,} of them from before" if done.found_shards else ""
    written = f"{plan.rows:,} rows are in {output}, in {counted(len(plan.shards), 'file')}{resumed}."
    emit(done.to_document().to_json(), as_json, lambda: written)


def _queue(
    references: Sequence[Reference],
    source: str,
    output: str,
    queue: str,
    as_json: bool,
    asked: Mapping[str, Any],
    refuses_bad_rows: bool,
) -> None:
    """The same as a job that the workers of a queue share. Raises as `onboard.serving.bulk.submit.submit_bulk`."""
    require_here("onboard predict --queue")
    from onboard import local

    with local.Onboard(notify=say) as here:
        fields = fields_of(here, references, source, tuple(asked["text_fields"]))
        names = [str(reference) for reference in references]
        document = here.submit_bulk(
            names, source, output, queue, {**asked, "text_fields": fields}, refuses_bad_rows=refuses_bad_rows
        ).document
    queued = {name: document[name] for name in ("job", "state", "task")}
    emit(queued, as_json, lambda: f"job {queued['job']} is queued\nonboard jobs watch {queued['job']}")


def _predicted(
    service: Service,
    references: Sequence[Reference],
    source: str,
    output: str,
    asked: Mapping[str, Any],
    on_error: str,
) -> BulkDone:
    from onboard.serving.bulk.answering import predict_files
    from onboard.serving.bulk.asked import BulkQuestion
    from onboard.serving.bulk.plan import require_all_answerable

    versions = {str(reference): service.version_document(str(reference)) for reference in references}
    pinned = tuple(f"{version['task']}@v{version['version']}" for version in versions.values())
    names = [service.alias_names(reference) for reference in versions]
    question = BulkQuestion(tuple(versions), pinned, **asked, names=tuple(names) if any(names) else ())
    with row_progress() as rows:

        def begin(plan: Plan) -> None:
            if on_error == REFUSE:
                require_all_answerable(plan)
            answering = {reference: service.version_document(reference) for reference in plan.question.pinned}
            for reference, called in zip(plan.question.pinned, plan.question.names, strict=False):
                labels = labels_called(answering[reference]["labels"], called)
                answering[reference]["labels"] = list(labels)
            _require_fitting(plan, answering)
            say(f"{plan.rows:,} rows of {counted(len(plan.files), 'file')}, by {', '.join(plan.question.pinned)}")
            rows.begin(plan.rows)

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


def require_references(task: str | None, tasks: str) -> list[Reference]:
    """The references of TASK or of --tasks. Raises InputError: both or none are given, or one twice."""
    from onboard.domain.names import Reference

    if (task is None) == (not tasks):
        raise InputError("predict-without-task")
    named = [task] if task is not None else [name.strip() for name in tasks.split(",")]
    references = [Reference.parse(name) for name in named]
    if len(set(references)) < len(references):
        raise InputError("tasks-repeated")
    return references
