"""Any number of tasks answered from one frozen base, beside what else serves many tasks.

    python -m bench.serve                                    the base `mini` on the CPU
    python -m bench.serve --base BASE --device cuda:0        another one, on a GPU
    python -m bench.serve --tasks 1 --tasks 1024 --rounds 200

Every round answers one batch of the same texts by each arm, in turn and in a new order, so that a disturbance of the
machine meets all alike; what counts are ratios. Whose task each row is, is drawn anew every round, evenly or by Zipf's
law, and alike for all arms.

    ours      64 numbers a task; the batch's adapters are made by the hypernetwork, then rows of all tasks go together
    one task  the same with adapters of one task that were made before
    peft      LoRA (rank 8, query and value) a task, mixed in one batch by PEFT's `adapter_names`
    merged    LoRA of one task merged into the weights: what one model a task costs at best
    base      the T5 without any adapter

All read the same token ids and score the same label words with one decoder pass. Then a service of so many tasks is
asked: how long the first answer of a task takes beside a later one, and what a task takes in memory.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.harness.command import command_line, command_of
from bench.harness.in_turn import Step, seconds_in_turn
from bench.harness.page import NONE, made_on, table
from bench.harness.report import made_by, report
from bench.harness.served_tasks import services_of, store_tasks

TASKS: Final = (1, 32, 1024, 10_000)
DRAWS: Final = ("uniform", "zipf")
ZIPF: Final = 1.1  # exponent
WARM_UP: Final = 3
WORDS: Final = (("bad", "good"), ("no", "yes"), ("other", "same"), ("sad", "happy"))  # of the tasks, in turn
ARMS: Final = ("ours", "one task", "peft", "merged", "base")
LORA_RANK: Final = 8


@dataclass(frozen=True)
class Load:
    """What is asked in a round.

    Args:
        rows: of a batch.
        tokens: of each text.
        rounds: that are counted.
        peft_gib: memory that PEFT's adapters may take; where they take more that arm is left out.
    """

    rows: int
    tokens: int
    rounds: int
    peft_gib: float


def drawn(kind: str, tasks: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """The task of each row (rows,)."""
    if kind == "uniform":
        return rng.integers(tasks, size=rows)
    weights = 1.0 / np.arange(1, tasks + 1) ** ZIPF
    return rng.choice(tasks, size=rows, p=weights / weights.sum())


def draws(kind: str, tasks: int, rows: int) -> Iterator[np.ndarray]:
    """One draw a round: an iterator each arm, all of the same."""
    rng = np.random.default_rng(tasks)
    while True:
        yield drawn(kind, tasks, rows, rng)


@dataclass(frozen=True)
class Arms:
    """What answers a batch of one base.

    Args:
        engine: of the base.
        ids: token ids of the batch (rows, tokens).
        fresh: another copy of the base's T5.
    """

    engine: Any
    ids: Sequence[Sequence[int]]
    fresh: Callable[[], Any]

    def ours(self, tasks: int, kind: str) -> Step:
        """Adapters of the batch's own tasks made each time."""
        from onboard.domain.task import FIRST_HYPERNETWORK
        from onboard.model.batched import mixed_log_probabilities
        from onboard.model.on_demand import OnDemand

        z = _embeddings(self.engine, tasks)
        adapters = OnDemand(z, np.full(tasks, FIRST_HYPERNETWORK), {FIRST_HYPERNETWORK: self.engine.hypernetwork})
        tries = [self.engine.trie(WORDS[task % len(WORDS)]) for task in range(tasks)]
        rows = draws(kind, tasks, len(self.ids))
        return lambda: mixed_log_probabilities(self.engine, self.ids, adapters, tries, next(rows))

    def one_task(self) -> Step:
        """Adapters of one task, made before."""
        import torch

        from onboard.model.batched import mixed_log_probabilities

        with torch.inference_mode():
            adapters = self.engine.hypernetwork(torch.from_numpy(_embeddings(self.engine, 1)).to(self.engine.device))
        tries, rows = [self.engine.trie(WORDS[0])], np.zeros(len(self.ids), dtype=np.int64)
        return lambda: mixed_log_probabilities(self.engine, self.ids, adapters, tries, rows)

    def peft(self, model: Any, tasks: int, kind: str) -> Step:
        """LoRA of T tasks, mixed by their names."""
        rows = draws(kind, tasks, len(self.ids))
        score = self._scoring(model.get_base_model())

        def step() -> Any:
            names = [_name(task) for task in next(rows)]
            with model.base_model._enable_peft_forward_hooks(adapter_names=names):  # what its `forward` opens
                return score()

        return step

    def merged(self) -> Step:
        """LoRA of one task as a part of the weights."""
        return self._scoring(lora(self.fresh(), 1).merge_and_unload())

    def base(self) -> Step:
        """The T5 alone."""
        return self._scoring(self.fresh())

    def _scoring(self, backbone: Any) -> Step:
        """One encoder pass and one decoder pass of a T5, and the label words' log-probabilities."""
        import torch

        from onboard.model.encoding import pad
        from onboard.model.scoring import PackedTries, label_log_probabilities

        start = backbone.config.decoder_start_token_id
        tries = PackedTries.pack([self.engine.trie(WORDS[0])], start, self.engine.device)
        input_ids, _ = pad(self.ids, self.engine.encoder.pad_id)
        input_ids = input_ids.to(self.engine.device)

        def step() -> Any:
            with torch.inference_mode():
                states = backbone.encoder(input_ids=input_ids).last_hidden_state
                return label_log_probabilities(backbone, states, None, tries, None).cpu()

        return step


def lora(backbone: Any, tasks: int) -> Any:
    """A T5 with LoRA of so many tasks, whose two matrices are both random."""
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, r=LORA_RANK, lora_alpha=16, target_modules=["q", "v"], init_lora_weights=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT asks for a name that transformers is about to change
        model = get_peft_model(backbone, config, adapter_name=_name(0))
    for task in range(1, tasks):
        model.add_adapter(_name(task), config)
    return model.eval().requires_grad_(False)


def lora_bytes(backbone: Any) -> int:
    """Of the LoRA of one task, float32."""
    shapes = (module.weight.shape for name, module in backbone.named_modules() if name.rpartition(".")[2] in ("q", "v"))
    return sum(4 * LORA_RANK * sum(shape) for shape in shapes)


def _name(task: int) -> str:
    return f"task{task}"


def _embeddings(engine: Any, tasks: int) -> np.ndarray:
    size = engine.hypernetwork.sizes["task_embedding_size"]
    return np.random.default_rng(0).standard_normal((tasks, size)).astype(np.float32)


def measure(arms: Arms, tasks: int, load: Load) -> dict[str, Any]:
    """Every arm at so many tasks, evenly drawn and by Zipf's law."""
    import torch

    fits = lora_bytes(arms.engine.backbone) * tasks <= load.peft_gib * 2**30
    model = lora(arms.fresh(), tasks).to(arms.engine.device) if fits else None
    finish = torch.cuda.synchronize if arms.engine.device.type == "cuda" else lambda: None
    single = {"one task": arms.one_task(), "merged": arms.merged(), "base": arms.base()}
    kinds: dict[str, Any] = {}
    for kind in DRAWS:
        steps = {"ours": arms.ours(tasks, kind), **single}
        if model is not None:
            steps["peft"] = arms.peft(model, tasks, kind)
        seconds = seconds_in_turn(steps, load.rounds, WARM_UP, finish)
        kinds[kind] = {arm: _figures(seconds[arm], seconds["merged"], load.rows) for arm in ARMS if arm in seconds}
    return kinds


def _figures(seconds: Sequence[float], merged: Sequence[float], rows: int) -> dict[str, float]:
    ratios = [other / own for own, other in zip(seconds, merged, strict=True)]
    return {
        "rows_per_second": round(rows / statistics.median(seconds), 1),
        "p50_milliseconds": round(1e3 * statistics.median(seconds), 3),
        "p99_milliseconds": round(1e3 * float(np.quantile(seconds, 0.99)), 3),
        "of_merged": round(statistics.median(ratios), 3),
    }


def asked_service(base: Any, tasks: int, rounds: int, folder: Path, device: str) -> dict[str, Any]:
    """A service of so many tasks: the first answer of a task beside a later one, and what is kept of each."""
    from onboard.serving import Predictor

    services = services_of(base, folder, device)
    try:
        names = store_tasks(services, base, tasks, WORDS)
        predictor = Predictor(services)
        predictor.predict([{"task": names[0], "text": "a fine day"}])  # what every first answer waits for
        cold, warm = [], []
        for name in names[1 : 1 + rounds] or names:
            asked = [{"task": name, "text": "a fine day"}]
            cold.append(_seconds(partial(predictor.predict, asked)))
            warm.append(_seconds(partial(predictor.predict, asked)))
        for start in range(0, tasks, 256):
            predictor.predict([{"task": name, "text": "a fine day"} for name in names[start : start + 256]])
        return {
            "cold_milliseconds": round(1e3 * statistics.median(cold), 3),
            "warm_milliseconds": round(1e3 * statistics.median(warm), 3),
            "cold_to_warm": round(statistics.median(c / w for c, w in zip(cold, warm, strict=True)), 3),
            "bytes_a_task": round(predictor.kept_bytes / tasks),
        }
    finally:
        services.close()


def _seconds(step: Step) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def page(document: Mapping[str, Any]) -> str:
    """The page of the results."""
    rows = [
        (f"{row['tasks']:,}", kind, arm, *_cells(row[kind].get(arm)))
        for row in document["rows"]
        for kind in DRAWS
        for arm in ARMS
    ]
    head = "tasks | drawn | arm | rows/s | p50, ms | p99, ms | of merged"
    services = [
        (f"{row['tasks']:,}", *(row["service"][name] for name in _SERVICE), f"{row['lora_bytes_a_task']:,}")
        for row in document["rows"]
    ]
    costs = "tasks | first answer, ms | later, ms | first / later | bytes a task | bytes of its LoRA"
    lines = ["# Serving many tasks", "", f"{made_on(document)}, base `{document['base']}`.", "", *table(head, rows), ""]
    lines += [
        *table(costs, services),
        "",
        "Medians. `of merged`: rows a second beside those of one task's merged weights,",
    ]
    lines += [
        f"the median of the ratios of batches that were taken in turn. {NONE}: its adapters take more memory than is"
    ]
    return "\n".join([*lines, "given to them.", ""])


_SERVICE: Final = ("cold_milliseconds", "warm_milliseconds", "cold_to_warm", "bytes_a_task")


def _cells(figures: Mapping[str, float] | None) -> list[object]:
    return [NONE] * 4 if figures is None else list(figures.values())


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    parser = command_line(__doc__, "serve")
    parser.add_argument("--base", default="mini", help="name or folder")
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

    from onboard.bases import find_base
    from onboard.bases.load import load_engine
    from onboard.model.backbone import load_backbone

    torch.set_num_threads(asked.threads)
    base = find_base(asked.base)
    engine = load_engine(base, asked.device)
    load = Load(asked.rows, asked.tokens, asked.rounds, asked.peft_gib)
    rng = np.random.default_rng(0)
    ids = rng.integers(3, engine.backbone.config.vocab_size, (load.rows, load.tokens)).tolist()
    arms = Arms(engine, ids, lambda: load_backbone(base.folder / "backbone").to(engine.device))
    rows = []
    for tasks in asked.tasks or TASKS:
        with tempfile.TemporaryDirectory() as folder:
            service = asked_service(base, tasks, min(asked.rounds, 30), Path(folder), asked.device)
        lora_size = lora_bytes(engine.backbone)
        rows.append({"tasks": tasks, **measure(arms, tasks, load), "service": service, "lora_bytes_a_task": lora_size})
    return report({**made_by(command_of("serve", words)), "base": base.name, "rows": rows}, asked, page)


if __name__ == "__main__":
    sys.exit(main())
