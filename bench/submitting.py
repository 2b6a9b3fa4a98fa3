"""How long a user waits: from `onboard submit` to the published version, on 32 rows of each target, by stage.

    python -m bench.submitting --output bench/results/submitting.json --table bench/results/submitting.md

The command is timed as a user sees it, with its own start, on the embedded default. Each draw of rows begins with an
empty ONBOARD_HOME, so that the first submission also waits for the worker to start; the same rows are then submitted
once more, as another task, to the worker that is there. In these two the hypernetwork is not tuned
(`--tune-hypernetwork never`); a third submission leaves that to `auto`, the default. Wanted: at most 45 s with a worker
that has to start, 30 s with one that is there, 60 s where it tries to tune; a third of them for the probe at most.
The datasets are next to the checkout (../shared/data); where they are missing it says so and stops.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.harness.command import DATA, command_line, datasets_there
from bench.harness.page import made_on, table, table_row
from bench.harness.programs import answer
from bench.harness.report import made_by, report
from bench.harness.rows import Row
from bench.transfer.cells import HAND_PICKED, TITLES
from bench.transfer.material import read
from onboard.data.limits import PROBE_TOKENS
from onboard.data.splits import shots
from onboard.domain.dataset import Example

WANTED_SHARE: Final = 1 / 3  # of the probe
STARTED, RUNNING = "started", "running"  # what the worker was when the rows were submitted
BY_DEFAULT: Final = "running, by default"  # the same, and whether to tune is left to `auto`
WANTED_SECONDS: Final[Mapping[str, float]] = {STARTED: 45.0, RUNNING: 30.0, BY_DEFAULT: 30.0}
WANTED_TUNED: Final = 60.0  # where tuning was tried


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results; 1 where a wish was not kept."""
    parser = command_line(__doc__)
    parser.add_argument("--tasks", nargs="*", default=list(HAND_PICKED["target"]))
    parser.add_argument("--shots", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(arguments)
    if not datasets_there():
        return 0
    runs: list[Row] = []
    for draw in range(asked.repeats):
        for task in asked.tasks:
            runs += submitted(task, asked.shots, draw)
            print(*map(json.dumps, runs[-3:]), sep="\n", flush=True)
    document = {
        **made_by(f"python -m bench.submitting --shots {asked.shots} --repeats {asked.repeats}"),
        "shots": asked.shots,
        "wanted": {**WANTED_SECONDS, "where tuning is tried": WANTED_TUNED, "probe's share": WANTED_SHARE},
        "kept": all(map(kept, runs)), "runs": runs,
    }  # fmt: skip
    return report(document, asked, page)


def submitted(task: str, rows: int, draw: int) -> list[Row]:
    """Submit rows of a task three times from an empty home; what each submission took."""
    drawn = shots(read(DATA / "target" / task), rows, draw).train
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environment = {**os.environ, "ONBOARD_HOME": str(folder / "home")}
        try:
            return [
                _timed(folder / f"{name}.jsonl", drawn, worker, environment) | {"task": task, "draw": draw}
                for name, worker in (("first", STARTED), ("second", RUNNING), ("third", BY_DEFAULT))
            ]
        finally:
            for present in answer(["workers", "list"], environment)["workers"]:
                answer(["workers", "drain", present["worker"]], environment)


def _timed(dataset: Path, rows: Sequence[Example], worker: str, environment: Mapping[str, str]) -> Row:
    dataset.write_text("".join(json.dumps(_told(row)) + "\n" for row in rows), encoding="utf-8")
    begun = time.monotonic()
    tuning = [] if worker == BY_DEFAULT else ["--tune-hypernetwork", "never"]
    submission = answer(["submit", "--dataset", str(dataset), *tuning, "--wait"], environment)
    seconds = time.monotonic() - begun
    job = answer(["jobs", "show", submission["job"]], environment)
    return {
        "worker": worker, "seconds": round(seconds, 1),
        "stages": {stage: round(spent, 1) for stage, spent in job["seconds"].items()},
        "chosen": job["init"]["chosen"], "truncated": _truncated(job),
        "tried": bool((job["tuning"] or {}).get("tried")), "tuned": bool((job["tuning"] or {}).get("kept")),
    }  # fmt: skip


def _told(row: Example) -> Row:
    texts = {"text": row.text_a} if row.text_b is None else {"text_a": row.text_a, "text_b": row.text_b}
    return {**texts, "label": row.label}


def _truncated(job: Row) -> int:
    """How many rows are longer than what the base reads."""
    return sum(warning["count"] or 0 for warning in job["dataset"]["warnings"] if warning["code"] == "cut_texts")


def kept(run: Row) -> bool:
    """Whether a run was as fast as wanted."""
    most = WANTED_TUNED if run["tried"] else WANTED_SECONDS[run["worker"]]
    return bool(run["seconds"] <= most and run["stages"]["probe"] <= WANTED_SHARE * run["seconds"])


def page(document: Row) -> str:
    """The figures for people, in Markdown."""
    runs = document["runs"]
    lines = [
        "# From `onboard submit` to the published version", "",
        f"{document['shots']} rows of each target task, on `mini` and the embedded default: seconds of the command "
        "`onboard submit --tune-hypernetwork never --wait`, the median of the draws and in brackets the slowest. The "
        "worker was started by the submission, or was there. By default: without `--tune-hypernetwork`, to the worker "
        "that is there, how many of these runs tried to tune the hypernetwork, and how many kept it. Wanted: at most "
        f"{WANTED_SECONDS[STARTED]:.0f} s with a worker that starts, {WANTED_SECONDS[RUNNING]:.0f} s with one that is "
        f"there, {WANTED_TUNED:.0f} s where tuning is tried; the probe a third of them.", "",
        f"{made_on(document)}. "
        "[Every run](submitting.json).", "",
        *table("task | rows cut | worker started | worker there | by default | tuning tried | kept | probe | training "
               "| probe's share | as fast as wanted"),
    ]  # fmt: skip
    for task in dict.fromkeys(run["task"] for run in runs):
        every = [run for run in runs if run["task"] == task]
        fresh, warm, default = ([run for run in every if run["worker"] == worker] for worker in WANTED_SECONDS)
        share = max(run["stages"]["probe"] / run["seconds"] for run in every)
        cells = [
            TITLES.get(task, task), f"{max(run['truncated'] for run in every)}",
            *(_spread([run["seconds"] for run in some]) for some in (fresh, warm, default)),
            *(f"{sum(run[what] for run in default)} of {len(default)}" for what in ("tried", "tuned")),
            *(_spread([run["stages"][stage] for run in every]) for stage in ("probe", "train")),
            f"{100 * share:.0f}%", f"{sum(map(kept, every))} of {len(every)}",
        ]  # fmt: skip
        lines.append(table_row(*cells))
    return "\n".join([
        *lines, "",
        f"The probe reads {PROBE_TOKENS} tokens of a row at most, the training 128; longer rows are cut. The rest of "
        "the time is the command's own start, the worker's, and the evaluation.", "",
    ])  # fmt: skip


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.0f} ({max(seconds):.0f})"


if __name__ == "__main__":
    sys.exit(main())
