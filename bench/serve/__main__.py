"""Any number of tasks answered from one frozen base, compared with other ways to serve many tasks.

    python -m bench.serve                                    the base `mini` on the CPU
    python -m bench.serve --base t5-small --rounds 20        random weights of T5-small's shape
    python -m bench.serve --base BASE --device cuda:0        another one, on a GPU

Every round answers one batch of the same texts by each arm, in turn and in a new order, so that a disturbance of the
machine meets all alike; what counts are ratios. Whose task each row is, is drawn again every round, evenly or by Zipf's
law, and alike for all arms. Then a service of so many tasks is asked: how long the first answer of a task takes beside
a later one, and what a task takes in memory. The figures of other bases in --output stay.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.harness.command import command_line, command_of
from bench.harness.report import made_by, report
from bench.serve.arms import Arms
from bench.serve.loras import lora_bytes
from bench.serve.measure import Load, asked_service, measure
from bench.serve.page import page, picture

TASKS: Final = (1, 32, 1024, 10_000)
T5_SMALL: Final = "t5-small"
GPU: Final = "-gpu"  # behind the name of a base whose figures come from one


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the results."""
    parser = command_line(__doc__, "serve")
    parser.add_argument("--base", default="mini", help=f"name or folder, or {T5_SMALL} for random weights of its shape")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tasks", type=int, action="append", help=f"how many; may be repeated; default {TASKS}")
    parser.add_argument("--rows", type=int, default=64, help="of a batch")
    parser.add_argument("--tokens", type=int, default=24, help="of a text")
    parser.add_argument("--rounds", type=int, default=100, help="batches of each arm that are counted")
    parser.add_argument("--peft-gib", type=float, default=4.0, help="memory that PEFT's adapters may take")
    parser.add_argument("--threads", type=int, default=2)
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = parser.parse_args(words)

    import torch

    torch.set_num_threads(asked.threads)
    load = Load(asked.rows, asked.tokens, asked.rounds, asked.peft_gib)
    with _base(asked.base) as base:
        rows = list(measured(base, asked.device, asked.tasks or TASKS, load))
    place = Path(asked.base).name + ("" if asked.device == "cpu" else GPU)
    part = {
        "base": place, **made_by(command_of("serve", words), asked.device), "batch": load.rows, "tokens": load.tokens,
        "rounds": load.rounds, "rows": rows,
    }  # fmt: skip
    others = _others(asked.output, part["base"])
    document = {"bases": sorted([*others, part], key=lambda one: one["base"])}
    if asked.table:
        asked.table.with_name(f"{asked.table.stem}-{part['base']}.svg").write_text(picture(part), encoding="utf-8")
    return report(document, asked, page)


@contextmanager
def _base(name: str) -> Iterator[Any]:
    from bench.harness.tiny_base import T5_SMALL_SHAPE, make_tiny_base
    from onboard.bases import find_base

    mini = find_base("mini")
    if name == T5_SMALL:
        with tempfile.TemporaryDirectory() as folder:
            yield make_tiny_base(Path(folder), tokenizer_of=mini.folder / "backbone", shape=T5_SMALL_SHAPE)
    else:
        yield find_base(name)


def _others(output: Path | None, base: str) -> list[dict[str, Any]]:
    if output is None or not output.is_file():
        return []
    return [part for part in json.loads(output.read_text(encoding="utf-8"))["bases"] if part["base"] != base]


def measured(base: Any, device: str, counts: Sequence[int], load: Load) -> Iterator[dict[str, Any]]:
    """The figures of so many tasks, for each of the counts."""
    from onboard.bases.load import load_engine
    from onboard.model.backbone import load_backbone

    engine = load_engine(base, device)
    rng = np.random.default_rng(0)
    ids = rng.integers(3, engine.backbone.config.vocab_size, (load.rows, load.tokens)).tolist()
    arms = Arms(engine, ids, lambda: load_backbone(base.folder / "backbone").to(engine.device))
    for tasks in counts:
        with tempfile.TemporaryDirectory() as folder:
            service = asked_service(base, tasks, min(load.rounds, 30), Path(folder), device)
        size = lora_bytes(engine.backbone)
        yield {"tasks": tasks, **measure(arms, tasks, load), "service": service, "lora_bytes_a_task": size}


if __name__ == "__main__":
    sys.exit(main())
