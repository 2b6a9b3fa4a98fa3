"""`onboard predict`: answers of a task's version."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.bulk import REFUSE, Apart, answered_in_bulk, is_bulk, require_references, skipped_rows
from cli.connection import connected
from cli.label_tools import answered_row, require_label_tool
from cli.output import AsJson, Document, emit, say, table
from cli.prediction_files import read_inputs, require_output, write_answers, write_suggestions
from cli.row_progress import row_progress
from cli.standard_input import STANDARD_INPUT
from cli.text_fields import fields_of
from onboard.data.text_stream import BadRow
from onboard.data.texts import TextRow
from onboard.domain.counting import counted
from onboard.domain.names import LATEST
from onboard.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.client.protocol import Service
    from onboard.domain.names import Reference
    from onboard.domain.prediction import Outcome

_INPUT: Final = "JSONL, CSV, TSV or Parquet file with texts, a folder, an s3:// URL, or a pattern; - is standard input."
_OUTPUT: Final = "Write the answers to a CSV or JSONL file, or in shards to a folder (…/) or an s3:// URL."
_QUEUE: Final = "Let the workers of this queue share the work as a job. They must be able to access the paths."
_ROWS_AT_ONCE: Final = 1_024  # of many that are answered between two lines of progress
_MOST_OTHERS: Final = 5  # labels that are shown with --probabilities, the answer among them


def predict(
    task: Annotated[str | None, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")] = None,
    tasks: Annotated[
        str, typer.Option(help="Several tasks A,B,… that each answer every text, instead of one task.")
    ] = "",
    text: Annotated[str | None, typer.Option(help="A text.")] = None,
    text_a: Annotated[str | None, typer.Option(help="The first text of a pair.")] = None,
    text_b: Annotated[str | None, typer.Option(help="The second text of a pair.")] = None,
    source: Annotated[str | None, typer.Option("--input", metavar="FILE|FOLDER|URL", help=_INPUT)] = None,
    text_field: Annotated[
        list[str] | None, typer.Option(help="Field of the text in the input; twice for pairs.")
    ] = None,
    labels: Annotated[str, typer.Option(help="Restrict answers to these labels: A,B,…")] = "",
    output: Annotated[str | None, typer.Option(metavar="FILE|FOLDER|URL", help=_OUTPUT)] = None,
    queue: Annotated[str | None, typer.Option(help=_QUEUE)] = None,
    on_error: Annotated[
        str,
        typer.Option(
            metavar="[skip|refuse]", help="Rows that cannot be answered: skip them, or refuse the whole file."
        ),
    ] = "skip",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add every label's probability, and whether the version is weak.")
    ] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Report whether a text is unlike the task's data.")
    ] = False,
    label_tool: Annotated[
        str | None,
        typer.Option(
            metavar="[label-studio|argilla|doccano]",
            help="Write --output as suggestions that this labeling tool imports, instead of answers.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the labels of texts.

    With a folder as output, the number of rows is unlimited; repeat the command to resume.
    """
    from onboard.jobs.submission import split_labels

    references = require_references(task, tasks)
    chosen = split_labels(labels)
    texts = {"text": text, "text_a": text_a, "text_b": text_b}
    given = {name: value for name, value in texts.items() if value is not None}
    fields = tuple(text_field or ())
    _require_one_source(given, source, fields)
    require_label_tool(label_tool)
    if label_tool is not None and (
        len(references) != 1 or output is None or queue is not None or is_bulk(source, output)
    ):
        raise InputError("suggestions-without-file")
    asked = {"text_fields": fields, "labels": chosen, "probabilities": probabilities}
    if answered_in_bulk(references, source, output, queue, as_json, asked, Apart(unknown, _on_error(on_error))):
        return
    target = None if output is None else Path(output)
    rows = [TextRow(given, dict(given))] if source is None else _read(source, references, fields, on_error)
    asked_rows = [(row, reference) for row in rows for reference in references]
    more = {**({"labels": list(chosen)} if chosen else {}), **({"unknown": True} if unknown else {})}
    outcomes = _outcomes(asked_rows, more, probabilities or label_tool is not None, source, target)
    if label_tool is not None:
        assert target is not None
        _suggest(asked_rows, outcomes, target, label_tool, as_json)
        return
    _show(asked_rows, outcomes, target, probabilities, as_json)


AskedRow = tuple[TextRow | BadRow, "Reference"]


def _read(
    source: str, references: Sequence[Reference], fields: tuple[str, ...], on_error: str
) -> Sequence[TextRow | BadRow]:
    """The rows of a file, by the columns that the task was trained with where none are named."""
    if not fields and source != STANDARD_INPUT:
        with connected() as service:
            fields = fields_of(service, references, source, fields)
    return read_inputs(Path(source), fields, skip=on_error != REFUSE)


def _on_error(choice: str) -> str:
    if choice not in ("skip", REFUSE):
        raise InputError("unknown-on-error", on_error=choice)
    return choice


def _outcomes(
    rows: Sequence[AskedRow],
    more: Mapping[str, object],
    probabilities: bool,
    source: str | None,
    target: Path | None,
) -> Iterator[Outcome]:
    """Answers of the rows that can be answered, in their order."""
    from onboard.contract.requests import parse_requests

    good = [(row, named) for row, named in rows if isinstance(row, TextRow)]
    inputs = [{**row.texts, "task": named.task, "ref": named.ref, **more} for row, named in good]
    parse_requests(inputs)  # report errors before anything is opened
    if target is not None:
        require_output(target, None if source is None else Path(source))
    several = len({named for _, named in rows}) > 1
    with connected() as service:
        try:
            return iter(_answered(service, inputs, several, probabilities))
        except InputError as error:
            named = rows[0][1]
            error.remedy = _remedy(error, named.task if named.ref == LATEST else str(named), source, several)
            raise


def _answered(service: Service, inputs: list[dict[str, Any]], several: bool, probabilities: bool) -> Sequence[Outcome]:
    """Few inputs are asked at once; many in parts, so that one can see how far it is.

    An alias may move meanwhile: of many inputs the versions that it means now answer all.
    """
    ask = service.outcomes if several else service.predict
    if len(inputs) <= _ROWS_AT_ONCE:
        return ask(inputs, probabilities=probabilities)
    if not several:
        version = service.version_document(f"{inputs[0]['task']}@{inputs[0]['ref']}")
        inputs = [{**asked, "ref": f"v{version['version']}"} for asked in inputs]
    outcomes: list[Outcome] = []
    with row_progress() as progress:
        progress.begin(len(inputs))
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            outcomes += ask(inputs[start : start + _ROWS_AT_ONCE], probabilities=probabilities)
            progress.add(len(inputs[start : start + _ROWS_AT_ONCE]))
    return outcomes


def _show(
    rows: Sequence[AskedRow], answers: Iterator[Outcome], target: Path | None, probabilities: bool, as_json: bool
) -> None:
    """Raises typer.Exit where a task could not answer: the others have."""
    from onboard.domain.prediction import Unanswered

    outcomes = [row if isinstance(row, BadRow) else next(answers) for row, _ in rows]
    _say_skipped([row for row in outcomes if isinstance(row, BadRow)], len(rows))
    answered = [outcome for outcome in outcomes if not isinstance(outcome, Unanswered | BadRow)]
    for named in dict.fromkeys(answer.task for answer in answered if answer.weak):
        say(f"warning: {named} is weak, see: onboard versions {named}")
    for named in dict.fromkeys(answer.task for answer in answered if answer.unmeasured):
        say(f"warning: {named} is unmeasured: no rows show how good it is. See: onboard versions {named}")
    errors = {(gone.task, gone.ref): gone.error for gone in outcomes if isinstance(gone, Unanswered)}
    for error in errors.values():
        say(f"error: {error.message}\n  → {error.remedy}")
    documents = [
        {"error": outcome.to_json()} if isinstance(outcome, BadRow) else outcome.to_json(probabilities=probabilities)
        for outcome in outcomes
    ]
    if target is not None:
        write_answers(documents, target, [row.given if isinstance(row, TextRow) else {} for row, _ in rows])
    written = f"{counted(len(documents), 'answer')}: {target}"
    emit({"predictions": documents}, as_json, lambda: written if target is not None else _table(rows, documents))
    if errors:
        raise typer.Exit(next(iter(errors.values())).exit_code)


def _suggest(rows: Sequence[AskedRow], answers: Iterator[Outcome], target: Path, tool: str, as_json: bool) -> None:
    """Write the answers as suggestions for a labeling tool. Raises the error of a task that cannot answer."""
    from onboard.domain.prediction import all_answered

    good = [row for row, _ in rows if isinstance(row, TextRow)]
    _say_skipped([row for row, _ in rows if isinstance(row, BadRow)], len(rows))
    predicted = all_answered(answers)
    with connected() as service:
        version = service.version_document(f"{predicted[0].task}@v{predicted[0].version}")
    numbers = version["task_kind"] == "regression"
    suggested = [
        answered_row(row.texts, answer.to_json(probabilities=True), row.given.get("id"), numbers=numbers)
        for row, answer in zip(good, predicted, strict=True)
    ]
    write_suggestions(version, suggested, target, tool)
    document = {"suggestions": len(suggested), "output": str(target)}
    emit(document, as_json, lambda: f"{counted(len(suggested), 'suggestion')}: {target}")


def _say_skipped(skipped: Sequence[BadRow], rows: int) -> None:
    if skipped:
        first = skipped[0]
        say(f"warning: {skipped_rows(len(skipped), rows)}, first row {first.row}: {first.message}")


def _require_one_source(given: Mapping[str, str], path: str | None, text_fields: tuple[str, ...]) -> None:
    sources = ["text" in given, "text_a" in given or "text_b" in given, path is not None]
    if sum(sources) != 1:
        raise InputError("predict-without-text")
    if path is None and text_fields:
        raise InputError("text-field-without-file")


def _remedy(error: InputError, task: str, path: str | None, several: bool) -> str:
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
        if "error" in answer or isinstance(row, BadRow):
            text = row.message if isinstance(row, BadRow) else preview_texts(list(row.texts.values()))
            answers.append(("–", "–", *["–"] * len(more + strange), str(named), text))
            continue
        listed = sorted(answer.get("probabilities", ()), key=lambda share: -share["probability"])
        listed = listed if "labels" in answer else listed[1:]  # a score by itself may be of a label of the answer
        others = ", ".join(
            f"{_shown(share['label'])} {share['probability']:.3f}" for share in listed[: _MOST_OTHERS - 1]
        )
        answers.append((
            _set_shown(answer["labels"]) if "labels" in answer else _shown(answer["label"]),
            f"{answer['probability']:.3f}", *([others] if more else []),
            *(("yes" if answer.get("unknown") else "no") for _ in strange),
            f"{answer['task']}@v{answer['version']}", preview_texts(list(row.texts.values())),
        ))  # fmt: skip
    return table(("label", "probability", *more, *strange, "version", "text"), answers, folded=(*more, "text"))


def _set_shown(labels: Sequence[Any]) -> str:
    return ", ".join(map(_shown, labels)) or "none"


def _shown(label: Any) -> str:
    from onboard.domain.dataset import label_text
    from onboard.domain.printable import printable

    return printable(f"{label:.6g}" if isinstance(label, float) else label_text(label))
