"""How sure answers sound: calibration error without a temperature, with one that rows alone chose, and with the prior.

    python -m bench.calibration [--part held-out|default|targets] [--report]

Held-out tasks choose the prior (every third of them, the readout alone, which costs little; and a few with embedding
and readout as a job learns them, before any tuning); the seven targets are only measured. Finished runs stand in
--output: the same command goes on where it was stopped. The tasks are next to the checkout (../shared/data) or in
--data; where they are missing it says so and stops.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
import torch

from bench.harness.as_if_new import drawn_tests
from bench.harness.command import DATA, command_line, command_of, datasets_there
from bench.harness.missing_runs import measure_missing
from bench.harness.page import NONE, met, table
from bench.harness.report import write
from bench.harness.rows import Row, finished
from bench.heldout.families import held_out
from bench.heldout.learned import claimed, trained_of
from bench.heldout.material import Cell, LoadedBase, opened
from bench.heldout.plan import DEFAULT, READOUT, ArmRun
from bench.heldout.settings import READOUT_SETTINGS, SHARE_SETTINGS, digest
from bench.transfer.material import read
from onboard.data.splits import is_folded
from onboard.domain.counting import counted
from onboard.evaluate.metrics import calibration_error, row_log_loss
from onboard.pipeline.evaluate import Judged
from onboard.pipeline.evidence import held_rows
from onboard.pipeline.readout import fit
from onboard.registry.services import open_services
from onboard.settings import Settings
from onboard.statistics.temperature import DEVIATION, fit_temperature, tempered
from onboard.testing import RecordedProgress
from onboard.train.crossvalidation import fold_of, part_rows, rows_in_folds

TARGETS: Final = ("boolq", "cb", "imdb", "paws", "scitail", "trec", "yelp_polarity")
WITH_EMBEDDING: Final = ("airline_complaint", "asset_simpler", "epitome_exploration", "suggestion_mining")
TESTS: Final[Mapping[str, int]] = {"wide": 300, "target": 1000}  # test rows at most
DEVIATIONS: Final = (0.1, 0.2, DEVIATION, 0.5, inf)  # of the prior, ln T; infinite: the rows alone
BEST: Final = "best"  # the temperature that the test rows would choose
_DRAWS: Final = 50
BARS: Final = {  # by part: of what, of how many rows, the error at most
    "held-out": ("held-out tasks at n = 32, readout alone", 32, 0.06),
    "default": ("held-out tasks at n = 32, embedding and readout", 32, 0.06),
    "targets": ("the seven targets at n = 100", 100, 0.05),
}


@dataclass(frozen=True)
class CalibrationRun:
    """A draw of a task's rows. suite: "wide" or "target"; rows: labelled ones in all; arm: what learns them."""

    suite: str
    task: str
    rows: int
    draw: int
    arm: str


@dataclass(frozen=True)
class Said:
    """Probabilities and targets (m, K) of rows that trained nothing of it, and probabilities of the test rows."""

    evidence: np.ndarray
    targets: np.ndarray
    test: np.ndarray


def plan(folder: Path) -> dict[str, list[CalibrationRun]]:
    """The runs of each part."""
    third = [task for task in held_out(folder / "wide") if read(folder / "wide" / task).kind != "regression"][1::3]
    return {
        "held-out": [
            CalibrationRun("wide", task, n, draw, READOUT) for task in third for n in (32, 100) for draw in (0, 1)
        ],
        "default": [CalibrationRun("wide", task, n, 0, DEFAULT) for n in (32, 100) for task in WITH_EMBEDDING],
        "targets": [CalibrationRun("target", task, 100, 0, DEFAULT) for task in TARGETS],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data", ("wide", "target")):
        return 0
    torch.set_num_threads(1)
    parts, place = plan(asked.data), opened("mini")
    settings = {"base": place.base_digest, "readout": digest([READOUT_SETTINGS, SHARE_SETTINGS])}
    runs = [run for part, of_part in parts.items() if asked.part in (None, part) for run in of_part]
    if not asked.report:
        row_of = partial(_row, place, asked.data, settings)
        measure_missing(runs, _there(asked.output, settings), row_of, _line, asked.output)
    # what was measured under earlier settings is shown, and marked, until it is measured again
    measured = _there(asked.output, None) | _there(asked.output, settings)
    text = page({part: [measured[run] for run in of_part if run in measured] for part, of_part in parts.items()}, words)
    write({}, None, text, asked.table)
    print(text)
    return 0


def _asked(words: Sequence[str]) -> Namespace:
    parser = command_line(__doc__, "calibration", "jsonl")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the suites")
    parser.add_argument("--part", choices=("held-out", "default", "targets"), help="only this part")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page")
    return parser.parse_args(words)


def _there(work: Path, settings: Row | None) -> dict[CalibrationRun, Row]:
    """The measurements with these settings; None is any."""
    rows = [row for row in finished(work) if "settings" in row and settings in (None, row["settings"])]
    return {CalibrationRun(**{name: row[name] for name in CalibrationRun.__annotations__}): row for row in rows}


def _line(run: CalibrationRun, row: Row) -> str:
    return f"{run.task} n={run.rows} draw {run.draw} {run.arm}: {row['temperature'][str(DEVIATION)]}"


def _row(place: LoadedBase, folder: Path, settings: Row, run: CalibrationRun) -> Row:
    cell = Cell(place, read(folder / run.suite / run.task), ArmRun(run.task, run.rows, run.draw, run.arm))
    cell.test = drawn_tests(read(folder / run.suite / run.task), TESTS[run.suite])
    said = _read_out(cell) if run.arm == READOUT else _learned(cell)
    return {**asdict(run), **errors(said, cell.truth, cell.columns, len(cell.labels)), "settings": settings}


def errors(said: Said, truth: np.ndarray, columns: Sequence[int], labels: int) -> Row:
    """Temperature, calibration error and loss of the test rows without a temperature and by deviation of the prior.

    Args:
        truth: index of the true label (m,).
        columns: which of the task's labels each label of the draw is.
        labels: how many the task has.
    """
    chosen = {str(width): fit_temperature(said.evidence, said.targets, width) for width in DEVIATIONS}
    known = np.isin(truth, columns)
    one_hot = (truth[known][:, None] == np.asarray(columns)).astype(float)
    temperatures = {"none": 1.0, **chosen, BEST: fit_temperature(said.test[known], one_hot, inf)}
    error, loss = {}, {}
    for name, temperature in temperatures.items():
        probabilities = np.zeros((len(truth), labels))
        probabilities[:, columns] = tempered(said.test, temperature)
        error[name] = round(calibration_error(truth, probabilities), 4)
        loss[name] = round(float(row_log_loss(truth[known], probabilities[known]).mean()), 4)
        if name == str(DEVIATION):
            chance = chance_error(probabilities)
    return {
        "tests": len(truth),
        "evidence": len(said.evidence),
        "temperature": temperatures,
        "error": error,
        "loss": loss,
        "chance": round(chance, 4),
    }


def chance_error(probabilities: np.ndarray) -> float:
    """The calibration error of probabilities (m, K) whose labels are drawn from them: perfect, on so few rows."""
    rng, below = np.random.default_rng(0), probabilities.cumsum(1)
    drawn = (rng.random((_DRAWS, len(probabilities), 1)) * below[:, -1:] > below).sum(2)  # (draws, m)
    return float(np.mean([calibration_error(truth, probabilities) for truth in drawn]))


def _read_out(cell: Cell) -> Said:
    """A readout alone: folds, or held-out rows that it does not know."""
    bench, dataset = cell.bench, cell.bench.dataset
    parted = part_rows(dataset, cell.draw) if is_folded(dataset) else []
    fitted = fit(bench, fold_of(len(dataset.train), parted) if parted else None, lambda: None)
    test = fitted.readout.probabilities(bench.features(cell.test, lambda: None))
    if parted:
        rows = [dataset.train[row] for row in fitted.judged]
        return Said(fitted.probabilities, bench.targets(rows), test)
    held = held_rows(bench)
    return Said(fitted.readout.probabilities(bench.features(held, lambda: None)), bench.targets(held), test)


def _learned(cell: Cell) -> Said:
    """Embedding and readout of a job, before any tuning."""
    with tempfile.TemporaryDirectory() as folder:
        services = open_services(Settings(home=Path(folder), base=str(cell.place.base.folder), device="cpu"))
        try:
            job = claimed(services, cell)
            attempt, probed, trained = trained_of(services, job)
            judged, bench = Judged(attempt.bench, job.spec, probed, trained, RecordedProgress()), attempt.bench
            folds = judged.together.folds
            rows = held_rows(bench) if folds is None else rows_in_folds(bench.dataset, folds.fold)
            evidence = judged.predict(rows) if folds is None else folds.probabilities
            return Said(evidence, bench.targets(rows), judged.predict(cell.test))
        finally:
            services.close()


def page(parts: Mapping[str, Sequence[Row]], words: Sequence[str]) -> str:
    """bench/results/calibration.md"""
    lines = [
        "# How sure answers sound", "",
        f"`{command_of('calibration', words)}` measures the runs in [calibration.jsonl](calibration.jsonl). The table "
        "has the calibration error in 15 bins ([Guo et al. 2017](https://arxiv.org/abs/1706.04599)), followed by the "
        "loss in nats: means over tasks and draws.", "",
        "- \"none\" is temperature 1. The others are chosen on rows that did not train the readout, under a prior on "
        "ln T with that standard deviation; \"inf\" uses the rows alone.",
        "- The service uses the bold one. It was chosen on the test rows of the held-out tasks, so its figures there "
        "are slightly too good. The targets were measured once, afterwards.",
        "- \"best\" is the temperature that the test rows themselves would choose. No rule can know it.",
        "- \"chance\" is the error that remains if every label is drawn from the service's probabilities.", "",
    ]  # fmt: skip
    names = ("none", *map(str, DEVIATIONS))
    head = [f"**{name}**" if name == str(DEVIATION) else name for name in (*names, BEST, "chance")]
    rows = []
    for part, of_part in parts.items():
        for n in sorted({row["rows"] for row in of_part}):
            at = [row for row in of_part if row["rows"] == n]
            cells = [_both(at, name) for name in names]
            whole = all("chance" in row for row in at)  # earlier runs lack the last two columns
            cells += [_both(at, BEST), f"{np.mean([row['chance'] for row in at]):.3f}"] if whole else [NONE, NONE]
            tasks = len({row["task"] for row in at})
            earlier = "" if whole else ", earlier settings of the readout"
            measured = f"{counted(tasks, 'task')}, {counted(len(at), 'run')}{earlier}"
            rows.append([_TITLES[part], n, measured, *cells])
    lines += table(["what", "rows", "measured", *head], rows)
    lines += ["", *table("what was wanted | found | verdict", _verdicts(parts)), ""]
    targets = parts.get("targets") or ()
    lines += table(
        "target | test rows | temperature | error without | error with",
        ([row["task"], row["tests"], row["temperature"][str(DEVIATION)], row["error"]["none"],
          row["error"][str(DEVIATION)]] for row in targets),
    )  # fmt: skip
    return "\n".join(lines) + "\n"


_TITLES: Final = {
    "held-out": "held-out tasks, readout alone", "default": "held-out tasks, embedding and readout",
    "targets": "the seven targets, embedding and readout",
}  # fmt: skip


def _both(rows: Sequence[Row], name: str) -> str:
    return f"{_mean(rows, 'error', name):.3f} / {_mean(rows, 'loss', name):.3f}"


def _mean(rows: Iterable[Row], what: str, name: str) -> float:
    return float(np.mean([row[what][name] for row in rows]))


def _verdicts(parts: Mapping[str, Sequence[Row]]) -> Iterable[list[object]]:
    for part, (what, n, bar) in BARS.items():
        rows = [row for row in parts.get(part) or () if row["rows"] == n]
        if part == "targets" and len(rows) < len(TARGETS):
            yield [what, NONE, f"not measured yet ({len(rows)} of {len(TARGETS)})"]
        elif rows:
            error = _mean(rows, "error", str(DEVIATION))
            yield [f"{what}: error at most {bar}", f"{error:.3f}", met(error <= bar)]


if __name__ == "__main__":
    sys.exit(main())
