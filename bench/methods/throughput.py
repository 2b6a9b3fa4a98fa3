"""A batch of 64 rows of 64 tasks: of one method, and of four methods mixed, on the shipped base."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any, Final

from bench.harness.in_turn import seconds_in_turn
from bench.heldout.material import LoadedBase

METHODS: Final = ("compacter", "pfeiffer-adapter", "bitfit")
GENERATED: Final = "hyperformer++"
TASKS: Final = 64
TOKENS: Final = 32
_WARM_UP: Final = 2


def measured(place: LoadedBase, rounds: int, tasks: int = TASKS) -> dict[str, Any]:
    """Seconds of a batch by method and of the mixed one, taken in turn, and how fast the mixed one is next to them.

    The weights of the tasks are there beforehand, as in a server that has answered them lately.
    """
    import torch

    from onboard.model.methods import new_task
    from onboard.model.task_weights import TaskWeights, Weights

    engine = place.engine
    torch.manual_seed(0)
    ids = torch.randint(3, engine.backbone.config.vocab_size, (tasks, TOKENS)).tolist()
    tries = [engine.trie(("yes", "no"))] * tasks
    rows = torch.arange(tasks)
    with torch.inference_mode():
        of_method: dict[str, list[Weights]] = {
            method: [new_task(method, engine.backbone).weights() for _ in range(tasks)] for method in METHODS
        }
        size = len(next(iter(place.base.embeddings.values())))
        of_method[GENERATED] = [engine.hypernetwork(torch.randn(1, size)) for _ in range(tasks)]
        mixed = [of_method[method][task] for task in range(tasks) for method in [[*of_method][task % len(of_method)]]]
        joined = {name: TaskWeights.joined(parts) for name, parts in {**of_method, "mixed": mixed}.items()}

        def answer(weights: TaskWeights) -> Any:
            return engine.score(ids, weights, tries, rows)

        seconds = seconds_in_turn({name: partial(answer, own) for name, own in joined.items()}, rounds, _WARM_UP)
    alone = [statistics.fmean(of_round) for of_round in zip(*(seconds[name] for name in of_method), strict=True)]
    ratios = [mean / own for mean, own in zip(alone, seconds["mixed"], strict=True)]
    return {
        "tasks": tasks, "tokens": TOKENS, "methods": [*of_method],
        "milliseconds": {name: round(1e3 * statistics.median(own), 1) for name, own in seconds.items()},
        "mixed_throughput": round(statistics.median(ratios), 3),
    }  # fmt: skip
