"""How often the guard refuses what harms nobody, how often it lets a loss through, and what it costs.

    python -m bench.guard [--rows 150] [--report]

Changes of the hypernetwork of planted size are measured on tasks with many labelled rows that nobody has trained on;
from these it is drawn what the guard would have seen. Finished changes stand in a work file: the same command goes on
where it was stopped. The embeddings and the changes are made from the source tasks, never from the targets.
Needs the datasets next to the checkout (../shared/data); says so and stops where they are missing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bench.guard.changes import TUNINGS, directions
from bench.guard.material import LEARNED, MOST_TOKENS, SHIPPED, SHOTS, SINGLES, tasks
from bench.guard.measured import SIZES, measure_all
from bench.guard.page import page
from bench.guard.rates import accepted, passed, quantiles, spread
from bench.guard.steps import judged, summary
from bench.guard.timing import timed
from bench.harness.command import DATA, WORK, command_line, command_of, datasets_there
from bench.harness.report import made_by, report
from onboard.bases import find_base
from onboard.bases.load import load_engine
from onboard.guard.settings import GuardSettings

QUANTILE_EDGES = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements, and write numbers and page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = command_line(__doc__, "guard")
    parser.add_argument("--base", default="mini")
    parser.add_argument("--sources", type=Path, default=DATA / "source")
    parser.add_argument("--rows", type=int, default=150, help="most labelled test rows of a task")
    parser.add_argument("--work", type=Path, default=WORK / "guard.jsonl")
    asked = parser.parse_args(words)
    if not datasets_there(asked.sources):
        return 0
    torch.set_num_threads(1)
    base = find_base(asked.base)
    engine = load_engine(base, "cpu")
    made = {
        "base": base.digest, "rows": asked.rows, "singles": SINGLES, "shots": SHOTS, "learned": list(LEARNED),
        "shipped": list(SHIPPED), "most_tokens": MOST_TOKENS, "sizes": list(SIZES),
        "tunings": {name: asdict(tuning) for name, tuning in TUNINGS.items()},
    }  # fmt: skip
    prepare = partial(tasks, base, engine, asked.sources, asked.rows)
    leading = directions(base, engine, asked.sources)
    changes = measure_all(engine, prepare, leading, asked.work, made)
    settings = GuardSettings()
    steps = judged(engine, prepare, leading, changes, asked.work, settings, made)
    document = {
        **made_by(command_of("guard", words)), "base_name": base.name, **made,
        "guard": asdict(settings), "directions": list(leading), "changes": len(changes),
        "tasks": [effect.task for effect in changes[0].effects],
        "pairs": sum(len(change.effects) for change in changes),
        "passed": [asdict(row) for row in passed(changes, settings, np.random.default_rng(1))],
        "accepted": asdict(accepted(changes, settings, np.random.default_rng(2))),
        "steps": list(map(asdict, steps)), "steps_summary": summary(steps, settings.margin),
        "spread": asdict(spread(changes, settings.spread, settings.texts // 2, np.random.default_rng(3))),
        "quantiles": quantiles(changes, QUANTILE_EDGES),
        "timing": timed(base, engine, asked.work, made),
    }  # fmt: skip
    return report(document, asked, page)


if __name__ == "__main__":
    sys.exit(main())
