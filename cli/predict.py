"""`onboard predict`: answers of a task's version."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.bulk import answered_in_bulk, require_references
from cli.connection import connected
from cli.output import AsJson, Document, emit, say, table
from cli.prediction_files import read_inputs, require_output, write_answers
from onboard.data.texts import TextRow
from onboard.domain.names import LATEST
from onboard.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.domain.names import Reference
    from onboard.domain.prediction import Outcome

_INPUT: Final = "JSONL, CSV, TSV or Parquet with texts, a folder or s3:// of them, or a pattern; - is standard input."
_OUTPUT: Final = "Write the answers: as CSV to ….csv, into a folder (…/) or s3:// shard by shard, else as JSONL."
_QUEUE: Final = "Leave it to the workers of this queue: a job, which they share. Paths have to be theirs too."
_MOST_OTHERS: Final = 5  # labels that are shown with --probabilities, the answer among them


def predict(
    task: Annotated[str | None, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")] = None,
    tasks: Annotated[str, typer.Option(help="Several instead, A,B,…: each answers every text.")] = "",
    text: Annotated[str | None, typer.Option(help="A text.")] = None,
    text_a: Annotated[str | None, typer.Option(help="The first text of a pair.")] = None,
    text_b: Annotated[str | None, typer.Option(help="The second text of a pair.")] = None,
    source: Annotated[str | None, typer.Option("--input", metavar="FILE|FOLDER|URL", help=_INPUT)] = None,
    text_field: Annotated[list[str] | None, typer.Option(help="Its field of the text; twice for pairs.")] = None,
    labels: Annotated[str, typer.Option(help="Choose from these of its labels only: A,B,…")] = "",
    output: Annotated[str | None, typer.Option(metavar="FILE|FOLDER|URL", help=_OUTPUT)] = None,
    queue: Annotated[str | None, typer.Option(help=_QUEUE)] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Every label's probability too, and whether the version is weak.")
    ] = False,
    unknown: Annotated[bool, typer.Option("--unknown", help="Say whether a text is unlike the task's data.")] = False,
    as_json: AsJson = False,
) -> None:
    """Predict the labels of texts.

    Into a folder any number of rows: the same command goes on where it was stopped.
    """
    from onboard.jobs.submission import split_labels

    references = require_references(task, tasks)
    chosen = split_labels(labels)
    texts = {"text": text, "text_a": text_a, "text_b": text_b}
    given = {name: value for name, value in texts.items() if value is not None}
    fields = tuple(text_field or ())
    _require_one_source(given, source, fields)
    asked = {"text_fields": fields, "labels": chosen, "probabilities": probabilities}
    if answered_in_bulk(references, source, output, queue, as_json, asked, unknown):
        return
    input_file, target = (None if place is None else Path(place) for place in (source, output))
    rows = [TextRow(given, dict(given))] if input_file is None else read_inputs(input_file, fields)
    asked_rows = [(row, reference) for row in rows for reference in references]
    more = {**({"labels": list(chosen)} if chosen else {}), **({"unknown": True} if unknown else {})}
    outcomes = _outcomes(asked_rows, more, probabilities, input_file, target)
    _show(asked_rows, outcomes, target, probabilities, as_json)


AskedRow = tuple[TextRow, "Reference"]


def _outcomes(
    rows: Sequence[AskedRow],
    more: Mapping[str, object],
    probabilities: bool,
    source: Path | None,
    target: Path | None,
) -> Sequence[Outcome]:
    from onboard.serving.requests import parse_requests

    inputs = [{**row.texts, "task": named.task, "ref": named.ref, **more} for row, named in rows]
    parse_requests(inputs)  # what is wrong is told before anything is opened
    if target is not None:
        require_output(target, source)
    several = len({named for _, named in rows}) > 1
    with connected() as service:
        try:
            if several:
                return service.outcomes(inputs, probabilities=probabilities)
            return service.predict(inputs, probabilities=probabilities)
        except InputError as error:
            named = rows[0][1]
            error.remedy = _remedy(error, named.task if named.ref == LATEST else str(named), source, several)
            raise


def _show(
    rows: Sequence[AskedRow], outcomes: Sequence[Outcome], target: Path | None, probabilities: bool, as_json: bool
) -> None:
    """Raises typer.Exit where a task could not answer: the others have."""
    from onboard.domain.prediction import Unanswered

    answered = [outcome for outcome in outcomes if not isinstance(outcome, Unanswered)]
    for named in dict.fromkeys(answer.task for answer in answered if answer.weak):
        say(f"warning: {named} is weak, see: onboard versions {named}")
    errors = {(gone.task, gone.ref): gone.error for gone in outcomes if isinstance(gone, Unanswered)}
    for error in errors.values():
        say(f"error: {error.message}\n  → {error.remedy}")
    documents = [outcome.to_json(probabilities=probabilities) for outcome in outcomes]
    if target is not None:
        write_answers(documents, target, [row.given for row, _ in rows])
    written = f"{len(documents):,} answers are in {target}."
    emit({"predictions": documents}, as_json, lambda: written if target is not None else _table(rows, documents))
    if errors:
        raise typer.Exit(next(iter(errors.values())).exit_code)


def _require_one_source(given: Mapping[str, str], path: str | None, text_fields: tuple[str, ...]) -> None:
    sources = ["text" in given, "text_a" in given or "text_b" in given, path is not None]
    if sum(sources) != 1:
        raise InputError("Give one of --text, --text-a with --text-b, or --input.", "onboard predict --help")
    if path is None and text_fields:
        raise InputError("--text-field names fields of a file.", "Give the file: --input FILE")


def _remedy(error: InputError, task: str, path: Path | None, several: bool) -> str:
    """Of an error about the number of texts the options that mend it; of any other what it says itself."""
    fields = error.data.get("fields")
    if not isinstance(fields, list) or several:
        return error.remedy
    if path is None:
        options = "--text-a A --text-b B" if len(fields) > 1 else "--text T"
    else:
        options = " ".join([f"--input {shlex.quote(str(path))}", *("--text-field FIELD" for _ in fields)])
    return f"onboard predict {task} {options}"


def _table(rows: Sequence[AskedRow], documents: Sequence[Document]) -> RenderableType:
    from onboard.data.previews import preview_texts

    more = ("next likeliest",) if any("probabilities" in answer for answer in documents) else ()
    strange = ("unknown",) if any("unknown" in answer for answer in documents) else ()
    answers: list[tuple[str, ...]] = []
    for (row, named), answer in zip(rows, documents, strict=True):
        if "error" in answer:
            answers.append(
                ("–", "–", *["–"] * len(more + strange), str(named), preview_texts(list(row.texts.values())))
            )
            continue
        listed = sorted(answer.get("probabilities", ()), key=lambda share: -share["probability"])
        others = ", ".join(f"{_shown(share['label'])} {share['probability']:.3f}" for share in listed[1:_MOST_OTHERS])
        answers.append((
            _shown(answer["label"]), f"{answer['probability']:.3f}", *([others] if listed else []),
            *(("yes" if answer.get("unknown") else "no") for _ in strange),
            f"{answer['task']}@v{answer['version']}", preview_texts(list(row.texts.values())),
        ))  # fmt: skip
    return table(("label", "probability", *more, *strange, "version", "text"), answers, folded=(*more, "text"))


def _shown(label: Any) -> str:
    from onboard.domain.dataset import label_text
    from onboard.domain.printable import printable

    return printable(f"{label:.6g}" if isinstance(label, float) else label_text(label))
