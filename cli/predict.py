"""`onboard predict`: answers of a task's version."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.connection import connected
from cli.output import AsJson, Document, emit, say, table
from cli.prediction_files import read_inputs, require_output, write_answers
from onboard.data.texts import TextRow
from onboard.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST_OTHERS: Final = 5  # labels that are shown with --probabilities, the answer among them


def predict(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    text: Annotated[str | None, typer.Option(help="A text.")] = None,
    text_a: Annotated[str | None, typer.Option(help="The first text of a pair.")] = None,
    text_b: Annotated[str | None, typer.Option(help="The second text of a pair.")] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="JSONL, CSV, TSV or Parquet with texts; - is standard input (JSONL).")
    ] = None,
    text_field: Annotated[list[str] | None, typer.Option(help="Its field of the text; twice for pairs.")] = None,
    labels: Annotated[str, typer.Option(help="Choose from these of its labels only: A,B,…")] = "",
    output: Annotated[Path | None, typer.Option(help="Write the answers: as CSV to ….csv, else as JSONL.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Every label's probability too, and whether the version is weak.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Predict the labels of texts."""
    from onboard.domain.names import Reference
    from onboard.jobs.submission import split_labels
    from onboard.serving.requests import parse_requests

    reference = Reference.parse(task)
    chosen = {"labels": list(split_labels(labels))} if labels else {}
    rows = _rows(text, text_a, text_b, input_file, tuple(text_field or ()))
    inputs = [{**row.texts, "task": reference.task, "ref": reference.ref, **chosen} for row in rows]
    parse_requests(inputs)  # what is wrong is told before anything is opened
    if output is not None:
        require_output(output, input_file)
    with connected() as service:
        try:
            answers = service.predict(inputs, probabilities=probabilities)
        except InputError as error:
            error.remedy = _remedy(error, task, input_file)
            raise
    if any(answer.weak for answer in answers):
        say(f"warning: {task} is weak, see: onboard versions {reference.task}")
    documents = [answer.to_json(probabilities=probabilities) for answer in answers]
    if output is not None:
        write_answers(documents, output, [row.given for row in rows])
    written = f"{len(documents):,} answers are in {output}."
    emit({"predictions": documents}, as_json, lambda: written if output is not None else _table(rows, documents))


def _rows(
    text: str | None, text_a: str | None, text_b: str | None, path: Path | None, text_fields: tuple[str, ...]
) -> list[TextRow]:
    given = [text is not None, text_a is not None or text_b is not None, path is not None]
    if sum(given) != 1:
        raise InputError("Give one of --text, --text-a with --text-b, or --input.", "onboard predict --help")
    if path is not None:
        return read_inputs(path, text_fields)
    if text_fields:
        raise InputError("--text-field names fields of a file.", "Give the file: --input FILE")
    pair = {name: value for name, value in (("text_a", text_a), ("text_b", text_b)) if value is not None}
    texts = {"text": text} if text is not None else pair
    return [TextRow(texts, dict(texts))]


def _remedy(error: InputError, task: str, path: Path | None) -> str:
    """Of an error about the number of texts the options that mend it; of any other what it says itself."""
    fields = error.data.get("fields")
    if not isinstance(fields, list):
        return error.remedy
    if path is None:
        options = "--text-a A --text-b B" if len(fields) > 1 else "--text T"
    else:
        options = " ".join([f"--input {shlex.quote(str(path))}", *("--text-field FIELD" for _ in fields)])
    return f"onboard predict {task} {options}"


def _table(rows: list[TextRow], documents: list[Document]) -> RenderableType:
    from onboard.data.previews import preview_texts

    answers = []
    for row, answer in zip(rows, documents, strict=True):
        listed = sorted(answer.get("probabilities", ()), key=lambda share: -share["probability"])
        others = ", ".join(f"{_shown(share['label'])} {share['probability']:.3f}" for share in listed[1:_MOST_OTHERS])
        answers.append((
            _shown(answer["label"]), f"{answer['probability']:.3f}", *([others] if listed else []),
            f"{answer['task']}@v{answer['version']}", preview_texts(list(row.texts.values())),
        ))  # fmt: skip
    more = ("next likeliest",) if any("probabilities" in answer for answer in documents) else ()
    return table(("label", "probability", *more, "version", "text"), answers, folded=(*more, "text"))


def _shown(label: Any) -> str:
    from onboard.domain.dataset import label_text
    from onboard.domain.printable import printable

    return printable(f"{label:.6g}" if isinstance(label, float) else label_text(label))
