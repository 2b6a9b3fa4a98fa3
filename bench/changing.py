"""How long a change of a task takes on a warm worker: 10 rows added to 200, a label renamed, an annotation learned.

    python -m bench.changing --output bench/results/changing.json --table bench/results/changing.md

Each draw begins with an empty home. 200 rows of examples/tickets.jsonl are learned, which starts the worker. Then ten
more rows are added, several times over, and a label is renamed. Seconds of an addition count from the start of the
command, and from the moment at which the job was queued, until the provisional version is published; those of a
renaming from the start of the command to its end, when the version is there. Both include the start of the program.
A label is also renamed through a running service: seconds of the request.

Then another task is labeled through the same service as Label Studio does it: 100 texts wait, and each of 30
annotations is sent as a webhook. The refit after each is timed by the service. No Label Studio runs.

The load average of the machine stands with every measurement. Wanted: a version 2 s after the job was queued, a
renaming in 1 s, and a refit in 1 s at the 95th percentile.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.first_version import workers_ended
from bench.harness.command import command_line
from bench.harness.page import VERDICTS, made_on, met, table
from bench.harness.programs import PROGRAM, answer, inherited
from bench.harness.report import made_by, report
from bench.harness.rows import Row
from bench.harness.server import Asker, serving
from bench.harness.services import wait_until
from onboard.domain.access import ALL_SCOPES
from onboard.domain.moment import from_iso
from onboard.operations.access import create_token
from onboard.registry.services import open_services
from onboard.settings import Settings

ROOT: Final = Path(__file__).parent.parent
ROWS: Final = 200
MORE: Final = 10
WANTED_ADD_SECONDS: Final = 2.0
WANTED_RENAME_SECONDS: Final = 1.0
WANTED_REFIT_SECONDS: Final = 1.0
TEXTS: Final = 100  # that wait for a label
ANNOTATIONS: Final = 30
ADD, RENAME, REQUEST, REFIT = "add", "rename", "request", "refit"
_KINDS: Final = {
    ADD: "10 rows added", RENAME: "a label renamed, command", REQUEST: "a label renamed, request",
    REFIT: "an annotation learned",
}  # fmt: skip
_REFIT_TIMEOUT_SECONDS: Final = 120


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
    renamed, request = (
        statistics.median(run["command"] for run in runs if run["what"] == what) for what in (RENAME, REQUEST)
    )
    refit = float(np.percentile([run["command"] for run in runs if run["what"] == REFIT], 95))
    return [
        (f"a version {WANTED_ADD_SECONDS:.0f} s after 10 rows were queued", f"{added:.1f} s",
         added <= WANTED_ADD_SECONDS),
        (f"a label renamed in {WANTED_RENAME_SECONDS:.0f} s by a command", f"{renamed:.1f} s",
         renamed <= WANTED_RENAME_SECONDS),
        (f"a label renamed in {WANTED_RENAME_SECONDS:.0f} s by a request", f"{request:.2f} s",
         request <= WANTED_RENAME_SECONDS),
        (f"an annotation learned in {WANTED_REFIT_SECONDS:.0f} s, 95 times in 100", f"{refit:.2f} s",
         refit <= WANTED_REFIT_SECONDS),
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
        settings = Settings(home=folder / ".onboard", database_url="", broker_url="", artifact_url="")
        with closing(open_services(settings)) as services:
            _, token = create_token(services.database, "bench", [scope.value for scope in ALL_SCOPES])
        with serving(settings, folder / "serve.log") as server, closing(Asker(server.url, token)) as asker:
            asker.size("/v1/tasks/tickets/labels")  # the service has started
            others = [label, *(f"{label} {change}" for change in range(count))]
            answer(["labels", "tickets", "rename", f"{label}-{count - 1}", label], environment)
            for change, (name, to) in enumerate(pairwise(others)):
                runs.append({**_requested(asker, name, to), "draw": draw, "change": change})
            runs += [{**run, "draw": draw} for run in _annotated(asker)]
    return runs


def _measured(what: str, seconds: float, **more: Any) -> Row:
    return {"what": what, "command": round(seconds, 3), "load": round(os.getloadavg()[0], 1), **more}


def _post(asker: Asker, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
    return asker.post(path, headers={"Content-Type": "application/json"}, body=[json.dumps(document).encode()])


def _requested(asker: Asker, label: str, to: str) -> Row:
    begun = time.monotonic()
    _post(asker, "/v1/tasks/tickets/labels", {"action": "rename", "labels": [label], "to": to})
    return _measured(REQUEST, time.monotonic() - begun)


def _annotated(asker: Asker) -> list[Row]:
    """The refits after annotations, of which each is sent when the one before has been learned."""
    url, rows = "/v1/label-studio/labelled", _rows("tickets")[:TEXTS]
    choices = "".join(f'<Choice value="{label}"/>' for label in sorted({str(row["label"]) for row in rows}))
    config = (
        '<View><Text name="text" value="$text"/>'
        f'<Choices name="topic" toName="text" choice="single">{choices}</Choices></View>'
    )
    tasks = [{"id": number, "data": {"text": row["text"]}} for number, row in enumerate(rows, 1)]
    _post(asker, f"{url}/setup", {"project": "1", "schema": config})
    _post(asker, f"{url}/predict", {"tasks": tasks, "label_config": config, "project": "1"})
    runs = []
    for change, (task, row) in enumerate(zip(tasks[:ANNOTATIONS], rows, strict=False)):
        value = {"from_name": "topic", "to_name": "text", "type": "choices", "value": {"choices": [row["label"]]}}
        annotation = {
            "id": 1000 + change, "task": task["id"], "result": [value], "created_at": "2026-11-28T12:00:00Z",
            "updated_at": "2026-11-28T12:00:00Z",
        }  # fmt: skip
        project = {"id": 1, "label_config": config}
        event = {"action": "ANNOTATION_CREATED", "annotation": annotation, "task": task, "project": project}
        before = _state(asker, url)["refit_seconds"]
        _post(asker, f"{url}/webhook", event)
        wait_until(partial(_learned, asker, url, before), _REFIT_TIMEOUT_SECONDS, "the refit")
        runs.append(_measured(REFIT, _state(asker, url)["refit_seconds"], change=change))
    return runs


def _learned(asker: Asker, url: str, before: float | None) -> bool:
    """Whether there was a refit since the one that took so long."""
    return bool(_state(asker, url)["refit_seconds"] != before)


def _state(asker: Asker, url: str) -> dict[str, Any]:
    return asker.document(url)


def _added(more: Path, environment: Mapping[str, str]) -> Row:
    begun_at = time.time()
    words = ["add", "tickets", str(more), "--fast", "--wait"]
    job = answer(["jobs", "show", answer(words, environment)["job"]], environment)
    version = next(event for event in job["events"] if event["numbers"].get("provisional"))
    there_at = from_iso(version["at"])
    stages = {stage: round(seconds, 2) for stage, seconds in job["seconds"].items()}
    queued = round(there_at - from_iso(job["created_at"]), 2)
    return _measured(ADD, there_at - begun_at, queued=queued, stages=stages)


def _renamed(names: Sequence[str], environment: Mapping[str, str]) -> Row:
    begun = time.monotonic()
    answer(["labels", "tickets", "rename", *names], environment)
    return _measured(RENAME, time.monotonic() - begun)


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
        "there, and a label is renamed by a command and by a request to a running service. An addition is over when "
        "its provisional version is published, a renaming when the command or the request ends. Then "
        f"{ANNOTATIONS} annotations of another task arrive one after the other as Label Studio sends them; the refit "
        f"after each, with {TEXTS} texts to suggest labels for, is timed by the service. Medians, in brackets the 95th "
        "percentile. Load is the machine's load average over a minute.", "",
        *table(
            "change | from the start | from the queue | times | load",
            [_cells(what, title, runs) for what, title in _KINDS.items()],
        ), "",
        *table(VERDICTS, [(wish, figure, met(holds)) for wish, figure, holds in document["verdicts"]]), "",
    ])  # fmt: skip


def _cells(what: str, title: str, runs: Sequence[Row]) -> tuple[str, ...]:
    own = [run for run in runs if run["what"] == what]
    cells = [
        f"{statistics.median(spent):.2f} s ({np.percentile(spent, 95):.2f})" if spent else "–"
        for spent in ([run[part] for run in own if part in run] for part in ("command", "queued"))
    ]
    loads = [run["load"] for run in own]
    return title, *cells, str(len(own)), f"{min(loads):.1f} to {max(loads):.1f}"


if __name__ == "__main__":
    sys.exit(main())
