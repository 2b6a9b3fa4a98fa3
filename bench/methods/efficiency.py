"""A training step of each method, on T5-small's shape on a CPU or T5-base's on a GPU: time, memory, what it trains.

As Compacter's Table 3 and HyperFormer's Tables 5 and 6, as ratios to full fine-tuning. Same batch, same loss (the stock
model's), AdamW included, steps taken in turn in a new order each round. Memory is the resident maximum of a process
that takes steps of this method alone. PEFT has a counterpart of prompt tuning only; its LoRA is there as a reference.
"""

from __future__ import annotations

import multiprocessing
import statistics
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from bench.harness.in_turn import Step, seconds_in_turn
from bench.step_time import (
    SETUPS,
    Setup,
    backbone,
    batch,
    full_fine_tuning,
    hypernetwork_step,
    lora,
    optimised,
    own_peak,
)
from onboard.domain.methods import COMPARED_ONLY, OWN_WEIGHTS

EMBEDDING, HYPERNETWORK, LORA, PEFT_PROMPT = "embedding", "hyperformer++", "LoRA, r = 8 (PEFT)", "prompt tuning (PEFT)"
COUNTERPARTS: Final = {"prompt-tuning-r": PEFT_PROMPT, "prompt-tuning-t": PEFT_PROMPT}
SMALL_SETTINGS: Final = {"reduction_factor": 8, "tokens": 3, "dimension": 64}  # of the tiny setup
_WARM_UP: Final = 1
_STEPS: Final = 2  # of a process whose memory is measured


def own_step(setup: Setup, method: str, settings: dict[str, Any]) -> Step:
    """A step of a task's own weights."""
    from onboard.model.attach import attach
    from onboard.model.methods import new_task

    model, inputs = backbone(setup), batch(setup)
    module = new_task(method, model, settings)
    attachment = attach(model)

    def loss() -> Any:
        with attachment.using(module.weights()):
            return model(**inputs).loss

    return optimised(setup, module.parameters(), loss)


def peft_prompt(setup: Setup, tokens: int) -> Step:
    """PEFT's prompt tuning, as long a prompt."""
    from peft import PromptTuningConfig, TaskType, get_peft_model

    config = PromptTuningConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, num_virtual_tokens=tokens, num_transformer_submodules=1
    )
    inputs = batch(setup)
    inputs["attention_mask"] = inputs["input_ids"].new_ones(inputs["input_ids"].shape)
    with warnings.catch_warnings():  # PEFT asks transformers by a name that goes with its next release
        warnings.simplefilter("ignore", FutureWarning)
        model = get_peft_model(backbone(setup), config)
    return optimised(setup, [p for p in model.parameters() if p.requires_grad], lambda: model(**inputs).loss)


def settings_of(name: str, method: str) -> dict[str, Any]:
    """The settings of a method; those of the papers, but in the tiny setup."""
    from onboard.model.methods import TASK_METHODS

    own = dict(TASK_METHODS[method].DEFAULTS)
    return own if name != "tiny" else {**own, **{key: size for key, size in SMALL_SETTINGS.items() if key in own}}


def variants(name: str) -> dict[str, Callable[[Setup], Step]]:
    """The measurements, by its name."""
    own = {method: partial(own_step, method=method, settings=settings_of(name, method)) for method in OWN_WEIGHTS}
    tokens = settings_of(name, "prompt-tuning-r")["tokens"]
    return {
        COMPARED_ONLY: full_fine_tuning, EMBEDDING: partial(hypernetwork_step, hypernetwork=False),
        HYPERNETWORK: partial(hypernetwork_step, norms=True), **own, LORA: lora,
        PEFT_PROMPT: partial(peft_prompt, tokens=tokens),
    }  # fmt: skip


def peak_memory(step_of: Callable[[Setup], Step], setup: Setup) -> int:
    """Bytes that a separate process takes at most, for a few steps."""
    context = multiprocessing.get_context("fork")  # the libraries are loaded once
    receiver, sender = context.Pipe(duplex=False)

    def measure() -> None:
        step = step_of(setup)
        for _ in range(_STEPS):
            step()
        sender.send(own_peak(setup))

    process = context.Process(target=measure)
    process.start()
    sender.close()  # so that a process that fails is an error here, and no wait
    process.join()
    return int(receiver.recv())


def sizes(setup: Setup, name: str) -> dict[str, tuple[int, int]]:
    """Numbers trained, and bytes that a task takes, of the methods that are ours."""
    from onboard.model.methods import new_hypernetwork, new_task

    model, methods = backbone(setup), (*OWN_WEIGHTS, COMPARED_ONLY)
    modules = {method: new_task(method, model, settings_of(name, method)) for method in methods}
    own = {method: (module.trained, module.stored_bytes) for method, module in modules.items()}
    own[COMPARED_ONLY] = (own[COMPARED_ONLY][0], 4 * own[COMPARED_ONLY][0])  # were it stored
    hypernetwork = new_hypernetwork("hyperformer++", setup.sizes)
    size = hypernetwork.sizes["task_embedding_size"]
    of_norms = sum(p.numel() for name, p in model.named_parameters() if "layer_norm" in name)
    whole = sum(p.numel() for p in hypernetwork.parameters()) + of_norms + size
    return {**own, EMBEDDING: (size, 4 * size), HYPERNETWORK: (whole, 4 * size)}


def measured(name: str, rounds: int) -> dict[str, Any]:
    """The rows of the table, by method.

    Args:
        name: of the setup.
        rounds: steps of each that are counted.
    """
    setup, builds = SETUPS[name], variants(name)
    memory = {method: peak_memory(build, setup) for method, build in builds.items()}  # before a model is built here
    steps = {method: build(setup) for method, build in builds.items()}
    seconds, of_size = seconds_in_turn(steps, rounds, _WARM_UP, setup.device), sizes(setup, name)
    full = seconds[COMPARED_ONLY]
    rows = {}
    for method, own in seconds.items():
        trained, stored = of_size.get(method, (None, None))
        rows[method] = {
            "milliseconds": round(1e3 * statistics.median(own), 1), "to_full": _ratio(own, full),
            "memory": memory[method], "memory_to_full": round(memory[method] / memory[COMPARED_ONLY], 3),
            "trained": trained, "stored_bytes": stored,
            "to_peft": _ratio(own, seconds[COUNTERPARTS[method]]) if method in COUNTERPARTS else None,
        }  # fmt: skip
    return rows


def _ratio(own: list[float], others: list[float]) -> float:
    """Median of the ratios of steps that were taken in the same round."""
    return round(statistics.median(one / other for one, other in zip(own, others, strict=True)), 3)
