"""The methods of the papers side by side on the shipped base, and what they cost.

    python -m bench.methods [--suite target|wide|source] [--rows 32] [--draws 0] [--arms A,B] [--hours 1] [--report]
    python -m bench.methods --efficiency [--gpu] [--rounds 10]
    python -m bench.methods --throughput [--rounds 10]

Finished trainings stand in --output: repeat the command to resume; several processes may share the work,
each with its own --part. The rule of `--method auto` is chosen on held-out tasks (--suite wide), never on the
targets. Low-resource curves are those of three tasks of GLUE (--suite source --rows 100,500,1000,2000,4000). The page
is written from what the files hold, whatever is missing. The datasets are next to the checkout (../shared/data) or in
--data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bench.harness.command import DATA, add_shared, command_line, command_of, datasets_there
from bench.harness.report import as_json, made_by, write
from bench.heldout.material import TEST_ROWS, Cells, LoadedBase, opened
from bench.heldout.plan import ArmRun, listed, numbers, part_of
from bench.heldout.settings import READOUT_SETTINGS, SHARE_SETTINGS, digest
from bench.heldout.sharing import Settings, run_missing, runs_of
from bench.methods.lessons import Lessons
from bench.methods.page import Facts, markdown, picture
from bench.methods.plan import ARMS, CURVE_ROWS, DEFAULT, LINEAR, SOURCE, SUITES, TFIDF, plan
from onboard.probe.settings import ProbeSettings
from onboard.statistics.share import PRIOR_BESIDE_WEIGHTS
from onboard.statistics.temperature import DEVIATION
from onboard.train.settings import FEW_STEPS_RATES, FewShotSettings, OwnWeightsSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    torch.set_num_threads(asked.threads)
    if asked.efficiency or asked.throughput:
        return _measure_costs(asked, command_of("methods", words))
    if not datasets_there(asked.data / asked.suite, "--data"):
        return 0
    place = opened(asked.base)
    settings = {arm: settings_of(place, arm) for arm in ARMS}
    runs = plan(asked.suite, asked.rows, asked.draws, asked.tasks, asked.arms)
    runs = [run for run in runs if (asked.data / asked.suite / run.task).is_dir()]
    if not asked.report:
        measure(place, asked.data / asked.suite, part_of(runs, *asked.part), settings, asked)
    print(f"{len(runs_of(runs, settings, asked.output))} of {len(runs)} runs")
    _write(place, settings, asked)
    return 0


def _measure_costs(asked: argparse.Namespace, command: str) -> int:
    """Step times or mixed batches, into the file next to --output; the other's numbers stay."""
    from bench.methods import efficiency, throughput

    path, rounds = asked.output.with_suffix(".json"), asked.rounds
    if asked.efficiency:
        setup = "tiny" if asked.tiny else "gpu" if asked.gpu else "cpu"
        rows = efficiency.measured(setup, rounds)  # first: no process that it starts may find CUDA in use
        device = "cuda" if asked.gpu else "cpu"
        key = "efficiency_gpu" if asked.gpu else "efficiency"
        own = {key: {**made_by(command, device), "rounds": rounds, "rows": rows}}
    else:
        mixed = throughput.measured(opened(asked.base), rounds, 4 if asked.tiny else throughput.TASKS)
        own = {"throughput": {**made_by(command), **mixed}}
    write({**_costs(asked.output), **own}, path)
    print(as_json(own))
    return 0


def _costs(output: Path) -> dict[str, Any]:
    path = output.with_suffix(".json")
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _write(place: LoadedBase, settings: Settings, asked: argparse.Namespace) -> None:
    """The page and its picture, of all that the file holds."""
    counts = {suite: CURVE_ROWS if suite == SOURCE else asked.rows for suite in SUITES}
    wholes = {suite: plan(suite, counts[suite], asked.draws, (), ()) for suite in SUITES}
    rows = {suite: runs_of(whole, settings, asked.output) for suite, whole in wholes.items()}
    shared = (place.base.folder / "hypernetwork.safetensors").stat().st_size
    missing = [run for run in wholes["target"] if run not in rows["target"]]
    parts = (",".join(map(str, part)) for part in (asked.rows, asked.draws))
    command = "python -m bench.methods --rows {} --draws {}".format(*parts)
    facts = Facts(command, rows["target"], rows["wide"], rows[SOURCE], missing, shared, _costs(asked.output))
    write({}, None, markdown(facts), asked.table)
    asked.table.with_suffix(".svg").write_text(picture(facts), encoding="utf-8")


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "methods", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with target/, wide/ and source/")
    parser.add_argument("--suite", choices=tuple(SUITES), default="target")
    parser.add_argument("--tasks", type=listed, default=(), metavar="A,B", help="only these; likewise the next three")
    parser.add_argument("--arms", type=listed, default=(), metavar="A,B", help=", ".join(ARMS))
    parser.add_argument("--rows", type=numbers, default=(32,), metavar="32,100", help="labelled rows in all")
    parser.add_argument("--draws", type=numbers, default=(0,), metavar="0,1", help="seeds of the draws")
    parser.add_argument("--efficiency", action="store_true", help="step time, memory and bytes of each method")
    parser.add_argument("--gpu", action="store_true", help="with --efficiency: T5-base's shape in bfloat16 on CUDA")
    parser.add_argument("--throughput", action="store_true", help="many tasks in a batch, of one method and of four")
    parser.add_argument("--rounds", type=int, default=10, help="steps or batches of each that are counted")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    asked = parser.parse_args(words)
    if unknown := [arm for arm in asked.arms if arm not in ARMS]:
        parser.error(f"there is no arm {unknown[0]}; there are {', '.join(ARMS)}")
    return asked


def settings_of(place: LoadedBase, arm: str) -> dict[str, Any]:
    """The settings that the numbers of an arm depend on, in addition to task and rows."""
    shared: dict[str, Any] = {"test_rows": TEST_ROWS}
    if arm == TFIDF:
        return shared
    shared |= {"temperature": DEVIATION}
    if arm in (DEFAULT, LINEAR):
        alone = {**shared, "base": place.base_digest, "readout": digest(READOUT_SETTINGS)}
        job = {"few_shot": asdict(FewShotSettings()), "probe": asdict(ProbeSettings()), "share": digest(SHARE_SETTINGS)}
        return {**alone, **(job if arm == DEFAULT else {})}
    own = {**asdict(OwnWeightsSettings()), "rate": FEW_STEPS_RATES.get(arm)}
    beside = digest([READOUT_SETTINGS, SHARE_SETTINGS, PRIOR_BESIDE_WEIGHTS])
    return {**shared, "backbone": place.digest, **own, "readout": beside}


def measure(
    place: LoadedBase, folder: Path, runs: Sequence[ArmRun], settings: Settings, asked: argparse.Namespace
) -> None:
    """Measure the runs that the file lacks."""
    cells, lessons = Cells(place, folder), Lessons()
    run_missing(runs, lambda run: lessons.of(cells.of(run), run), settings, asked.output, asked.hours)


if __name__ == "__main__":
    sys.exit(main())
