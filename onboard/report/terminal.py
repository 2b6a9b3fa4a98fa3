"""The output of `onboard jobs show ID`: the facts of the HTML page in one screen; plain columns without a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onboard.data.previews import both_ends, preview_texts
from onboard.domain.printable import printable
from onboard.report.charts import moving_average
from onboard.report.page import Page, page_of
from onboard.report.reading import numbers, within

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text


SPARKS = "▁▂▃▄▅▆▇█"
SPARKLINE_CHARACTERS = 40
NAME_CHARACTERS = 34  # of a starting point in the table: two lines of 80 columns; names differ at the end
STYLES = {"bad": "bold red", "warn": "bold yellow", "info": "bold blue"}


def render_text(document: Mapping[str, Any]) -> RenderableType:
    """Return a rich renderable of a job's document; every key may be absent or null."""
    return _TerminalReport(page_of(document), numbers(within(document, "training", "loss")))


@dataclass(frozen=True, slots=True)
class _TerminalReport:
    page: Page
    loss: list[float]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        page, plain = self.page, not console.is_terminal
        yield _text(page.headline, "bold")
        for callout in page.callouts:
            yield _text(f"\n{callout.title}", STYLES[callout.tone])
            yield from (
                _text(line) for line in (callout.sentence, *_bulleted(map(_command_below, callout.steps))) if line
            )
        for result in page.results:
            yield _heading(f"{result.title}: {result.explanation}")
            yield _table(result.head, result.rows, plain)
            if result.label_rows:
                yield _text("By label", "bold")
                yield _table(result.label_head, result.label_rows, plain)
            yield from (_text(line, "dim") for line in _bulleted(result.notes))
        yield from self._warnings()
        yield from self._mistakes(plain)
        yield from self._more_labels(plain)
        yield from self._start(plain)
        yield from self._earlier_tasks()
        yield from self._training(options)
        if page.tried:
            yield _heading("Methods tried")
            if page.tried.rows:
                yield _table(page.tried.head, page.tried.rows, plain)
            yield from (_text(line, "dim") for line in _bulleted(page.tried.notes))
        if page.guard:
            yield _heading("Earlier tasks under the tuned hypernetwork")
            yield _table(page.guard_head, page.guard, plain)
            yield from (_text(line, "dim") for line in _bulleted(page.guard_notes))
        yield from self._facts(plain)

    def _warnings(self) -> Iterator[RenderableType]:
        warnings = self.page.warnings
        if warnings:
            yield _heading("Warnings about the dataset", STYLES["warn"])
        for warning in warnings:
            yield from map(_text, _bulleted([f"{warning.message} {warning.remedy}"]))
            if warning.to_look_at:  # the message contains the first
                yield from (_text(f"  {line}") for line in _bulleted(warning.examples[1:]))

    def _mistakes(self, plain: bool) -> Iterator[RenderableType]:
        mistakes = self.page.mistakes
        if mistakes and mistakes.worst:
            yield _heading("Confusions")
            rows = [[mistake.true, mistake.predicted, f"{mistake.count} of {mistake.of}"] for mistake in mistakes.worst]
            yield _table(["true", "answered", "rows"], rows, plain)

    def _more_labels(self, plain: bool) -> Iterator[RenderableType]:
        more = self.page.more_labels
        if more is None:
            return
        yield _heading("More labels")
        yield from (_text(sentence) for sentence in more.sentences)
        if more.rows:
            rows = [[row.answer, preview_texts(row.texts)] for row in more.rows]
            yield _table(["answered now", "text"], rows, plain)

    def _start(self, plain: bool) -> Iterator[RenderableType]:
        page = self.page
        if not page.chosen and not page.candidates:
            return
        yield _heading("Where training started")
        if page.chosen:
            yield _text(f"Chosen: {page.chosen}{f' – {page.chosen_is}' if page.chosen_is else ''}")
        yield from (_text(line) for line in _bulleted([*page.start_notes, *page.word_notes]))
        if page.candidates:
            rows = [[both_ends(name, NAME_CHARACTERS), *cells] for name, *cells in page.candidate_rows]
            yield _table(page.candidate_head, rows, plain)
            yield _text(page.candidates.caption, "dim")

    def _earlier_tasks(self) -> Iterator[RenderableType]:
        if self.page.earlier_tasks:
            yield _heading("Contribution of earlier tasks")
            yield from (_text(line) for line in _bulleted(self.page.earlier_tasks))

    def _training(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        if not self.page.training and not self.loss:
            return
        yield _heading("Training")
        if self.page.training:
            yield from (_text(line) for line in _bulleted([f"{name}: {value}" for name, value in self.page.training]))
        if len(self.loss) > 1:
            line = "" if options.ascii_only else f" {sparkline(self.loss)} "
            yield _text(f"loss {self.loss[0]:.3g}{line or ' to '}{self.loss[-1]:.3g}")

    def _facts(self, plain: bool) -> Iterator[RenderableType]:
        page = self.page
        if page.dataset:
            yield _heading("Dataset")
            yield _text(", ".join(f"{name} {value}" for name, value in page.dataset if name != "digest"))
        if page.times:
            yield _heading("Time")
            yield _text(page.times.title)
            yield _text(", ".join(f"{track.label} {track.shown}" for track in page.times.tracks))
        if page.facts:
            yield _heading("Facts and pins")
            yield _table([], [[name, value] for name, value in page.facts], plain)
        if page.commands:
            yield _heading("Use it")
            yield from (_text(command) for command in page.commands)


def sparkline(values: Sequence[float]) -> str:
    """Draw the values with at most `SPARKLINE_CHARACTERS` block characters."""
    width = min(len(values), SPARKLINE_CHARACTERS)
    smooth = moving_average(values, len(values) // (2 * width))
    columns = [smooth[index * (len(values) - 1) // max(1, width - 1)] for index in range(width)]
    low, span = min(columns), max(columns) - min(columns)
    return "".join(SPARKS[round((value - low) / span * (len(SPARKS) - 1)) if span else 0] for value in columns)


def _bulleted(lines: Iterable[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def _command_below(step: str) -> str:
    """Move a command at the end of a step to a separate line, where it can be copied."""
    sentence, marked, command = step.partition(": `")
    return f"{sentence}:\n    {command.removesuffix('`')}" if marked else step


def _heading(title: str, style: str = "bold") -> Text:
    return _text(f"\n{title}", style)


def _text(content: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(printable(content), style)  # Text ignores markup: [red] in a label is printed as it is


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], plain: bool) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=None if plain else SIMPLE_HEAD, show_header=bool(head), pad_edge=False, padding=(0, 2, 0, 0))
    for number in range(len(rows[0]) if rows else len(head)):
        title = _text(head[number].replace("\n", " ")) if head else ""
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell.replace("\n", " ")) for cell in row))
    return table
