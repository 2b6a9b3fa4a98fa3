"""How long a change of a task takes on a warm worker: 10 rows added to 200, and a label renamed.

    python -m bench.changing --output bench/results/changing.json --table bench/results/changing.md

Each draw begins with an empty home. 200 rows of examples/tickets.jsonl are learned, which starts the worker. Then ten
more rows are added, several times over, and a label is renamed. Seconds of an addition count from the start of the
command, and from the moment at which the job was queued, until the provisional version is published; those of a
renaming from the start of the command to its end, when the version is there. Both include the start of the program.
Wanted: a version 2 s after the job was queued, and a renaming in 1 s.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.first_version import workers_ended
from bench.harness.command import command_line
from bench.harness.page import VERDICTS, made_on, met, table
from bench.harness.programs import PROGRAM, answer, inherited
from bench.harness.report import made_by, report
from bench.harness.rows import Row
from onboard.domain.moment import from_iso

ROOT: Final = Path(__file__).parent.parent
ROWS: Final = 200
MORE: Final = 10
WANTED_ADD_SECONDS: Final = 2.0
WANTED_RENAME_SECONDS: Final = 1.0
ADD, RENAME = "add", "rename"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results; 1 where a wish was not kept."""
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="homes")
    parser.add_argument("--changes", type=int, default=3, help="additions, and renamings, in each")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="onboard-changing-") as made:
        runs = [run for draw in range(asked.repeats) for run in changes(Path(made) / str(draw), draw, asked.changes)]
    verdicts = _verdicts(runs)
    document = {
        **made_by(f"python -m bench.changing --repeats {asked.repeats} --changes {asked.changes}"), "runs": runs,
        "verdicts": verdicts, "kept": all(verdict[2] for verdict in verdicts),
    }  # fmt: skip
    return report(document, asked, page)


def _verdicts(runs: Sequence[Row]) -> list[tuple[str, str, bool]]:
    added = statistics.median(run["queued"] for run in runs if run["what"] == ADD)
    renamed = statistics.median(run["command"] for run in runs if run["what"] == RENAME)
    return [
        (f"a version {WANTED_ADD_SECONDS:.0f} s after 10 rows were queued", f"{added:.1f} s",
         added <= WANTED_ADD_SECONDS),
        (f"a label renamed in {WANTED_RENAME_SECONDS:.0f} s", f"{renamed:.1f} s", renamed <= WANTED_RENAME_SECONDS),
    ]  # fmt: skip


def changes(folder: Path, draw: int, count: int) -> list[Row]:
    """The duration of each change of one home."""
    folder.mkdir(parents=True)
    environment = {**inherited(), "HOME": str(folder), "ONBOARD_HOME": str(folder / ".onboard")}
    first = _written(folder / "tickets.jsonl", _rows("tickets")[:ROWS])
    spare, runs = _rows("tickets-test"), list[Row]()
    with workers_ended(environment, PROGRAM):
        answer(["submit", str(first), "--fast", "--seed", str(draw), "--wait"], environment)
        for change in range(count):
            more = _written(folder / "more.jsonl", spare[MORE * change : MORE * (change + 1)])
            runs.append({**_added(more, environment), "draw": draw, "change": change})
        label = str(answer(["labels", "tickets"], environment)["labels"][0]["label"])
        for change in range(count):
            names = [f"{label}-{change - 1}" if change else label, f"{label}-{change}"]
            runs.append({**_renamed(names, environment), "draw": draw, "change": change})
    return runs


def _added(more: Path, environment: Mapping[str, str]) -> Row:
    begun_at = time.time()
    words = ["add", "tickets", str(more), "--fast", "--wait"]
    job = answer(["jobs", "show", answer(words, environment)["job"]], environment)
    version = next(event for event in job["events"] if event["numbers"].get("provisional"))
    there_at = from_iso(version["at"])
    return {
        "what": ADD, "command": round(there_at - begun_at, 2),
        "queued": round(there_at - from_iso(job["created_at"]), 2),
        "stages": {stage: round(seconds, 2) for stage, seconds in job["seconds"].items()},
    }  # fmt: skip


def _renamed(names: Sequence[str], environment: Mapping[str, str]) -> Row:
    begun = time.monotonic()
    answer(["labels", "tickets", "rename", *names], environment)
    return {"what": RENAME, "command": round(time.monotonic() - begun, 2)}


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (ROOT / "examples" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _written(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def page(document: Row) -> str:
    """The figures for people, in Markdown."""
    runs = document["runs"]
    return "\n".join([
        "# How long a change takes", "",
        f"{made_on(document)}. [The run](changing.json).", "",
        f"{ROWS} rows of `examples/tickets.jsonl` are learned, then {MORE} rows are added to them on a worker that is "
        "there, and a label is renamed. Medians, in brackets the slowest. An addition is over when its provisional "
        "version is published, a renaming when the command ends.", "",
        *table(
            "change | from the start of the command | from the queue | times",
            [_cells(what, title, runs) for what, title in ((ADD, "10 rows added"), (RENAME, "a label renamed"))],
        ), "",
        *table(VERDICTS, [(wish, figure, met(holds)) for wish, figure, holds in document["verdicts"]]), "",
    ])  # fmt: skip


def _cells(what: str, title: str, runs: Sequence[Row]) -> tuple[str, ...]:
    own = [run for run in runs if run["what"] == what]
    cells = [
        f"{statistics.median(spent):.1f} s ({max(spent):.1f})" if spent else "–"
        for spent in ([run[part] for run in own if part in run] for part in ("command", "queued"))
    ]
    return title, *cells, str(len(own))


if __name__ == "__main__":
    sys.exit(main())
