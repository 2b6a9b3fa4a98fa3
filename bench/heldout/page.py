"""The page of a suite: the measurements, how, and whether the targets were reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness.page import VERDICTS, Facts, table, were
from bench.heldout.figures import Results
from bench.heldout.plan import ARMS, ENCODER, MANY_ROWS, MINILM, ArmRun
from bench.heldout.setfit_process import RELEASE
from bench.heldout.suites import HELD_OUT, SUITES
from bench.heldout.tables import (
    ASCENDING,
    by_group,
    of_calibration,
    of_deficits,
    of_imbalance,
    of_probe,
    of_regression,
    of_rows,
    of_tuning,
)
from bench.heldout.verdicts import BARS
from onboard.domain.counting import counted


@dataclass(frozen=True)
class HeldOutFacts(Facts):
    """How the page was made.

    Args:
        suite: its name.
        tasks: how many there are with classes.
    """

    suite: str
    tasks: int


def markdown(results: Results, facts: HeldOutFacts) -> str:
    """The page."""
    suite = SUITES[facts.suite]
    parts = [
        _head(results, facts),
        _verdicts(suite.verdicts(results), facts.tasks),
        *(of_rows(results, rows) for rows in ASCENDING),
        *(by_group(results, suite, rows) for rows in suite.rows),
        of_imbalance(results),
        of_calibration(results),
        of_deficits(results),
        of_probe(results, suite),
        of_tuning(results),
        of_regression(results),
    ]
    return "\n".join(line for part in parts for line in part)


def encoder_lines(results: Results) -> list[str]:
    """The output of --encoder: the encoder next to MiniLM, and whatever else was measured."""
    (encoder, *_), suite = BARS, SUITES[HELD_OUT]
    return [
        *table(VERDICTS),
        *(encoder.line(results, results.part(rows)) for rows in encoder.rows), "",
        *(line for rows in ASCENDING for line in of_rows(results, rows)),
        *(line for rows in suite.rows for line in by_group(results, suite, rows, ENCODER, (MINILM,))),
    ]  # fmt: skip


def _head(results: Results, facts: HeldOutFacts) -> list[str]:
    unread = sum("reason" in row for row in results.rows.values())
    none = f" {counted(unread, 'run')} made no readout and has none of its figures." if unread else ""
    on_gpu = sum("device" in row for row in results.rows.values())
    gpu = f" {were(on_gpu, 'run')} made on a GPU, and have no seconds here." if on_gpu else ""
    return [
        f"# {SUITES[facts.suite].title}", "",
        f"Made by `{facts.command}` on `{facts.base}`; one row a run stands in "
        f"[{facts.suite}.jsonl]({facts.suite}.jsonl).",
        f"n labelled rows in all, {counted(facts.draws, 'draw')}, labels balanced as far as there are rows; the same "
        f"rows and the same test rows (at most {facts.test_rows}) for all arms. A job gets the rows as a file, so its "
        "labels are those that rows have; a test row of another label counts as wrong. Figures are means over tasks of "
        "means over draws, in points; in brackets the 95% interval over tasks (Student's t) of paired differences. "
        f"Log-loss is of test rows whose label has a training row. Seconds are the processor's, for learning.{gpu}", "",
        "The default is a job with nothing chosen: probe, embedding, readout, tuning under the guard where it pays. "
        "Its embedding alone is that of the same job before readout and tuning. The readout alone is fitted as the job "
        "fits it. LoRA and full fine-tuning start from the same backbone, by the recipes of "
        "[transfer](transfer.md#how-each-was-trained). Logistic regression has one penalty everywhere, on centred "
        "features; MiniLM reads the texts of a pair apart (both vectors, difference, product), our encoder as one. "
        f"SetFit is its release ({RELEASE}) as it comes, on the same MiniLM; it learns no numbers. For our readout "
        "MiniLM's states are read as our encoder's are: three layers, signed roots. Both get a pair as one text. "
        f"Labels without an answer are those of more than {MANY_ROWS} training rows that no test row gets.{none}", "",
        *_left(facts.missing),
    ]  # fmt: skip


def _verdicts(lines: Sequence[str], tasks: int) -> list[str]:
    """The table of targets; `tasks`: how many there are."""
    return [
        "## Targets", "",
        "Verdicts go by the value that was reached: where its interval holds the bound, so many tasks cannot tell. "
        f"A value of fewer than {counted(tasks, 'task')} is of those that both have.", "",
        *table(VERDICTS), *lines, "",
    ]  # fmt: skip


def _left(missing: Sequence[ArmRun]) -> list[str]:
    """How many runs are missing, by arm."""
    if not missing:
        return []
    counts = Counter(run.arm for run in missing)
    which = "; ".join(f"{ARMS[arm]} {counts[arm]}" for arm in ARMS if counts[arm])
    return [f"**{were(len(missing), 'run')} not made ({which}).** Figures are of the others.", ""]
