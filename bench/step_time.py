"""Time and peak memory of one training step: an embedding, a hypernetwork, and what they are measured against.

    python -m bench.step_time --rounds 30

All variants see the same batch and the same loss (the stock model's cross entropy), dropout off, AdamW included. The
limit trains nothing: a frozen backbone, forward, and backward to the encoder's input embeddings; no method that puts
something trainable into the first block can do with less. Steps are taken in turn, in a new order each round, so that
a disturbance of the machine meets all variants alike; minima and medians are reported. Peak memory is the resident
maximum of a process that runs this variant alone.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.machine import describe

Step = Callable[[], None]

THREADS = 2
SHAPE = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "vocab_size": 32128}  # T5-small
BATCH, SOURCE, TARGET = 16, 64, 4
BOTTLENECK = 16  # reduction factor 32
LEARNING_RATE = 3e-4
RESULTS = Path(__file__).parent / "results" / "step_time.json"


def batch() -> dict[str, Any]:
    """Random tokens: input_ids (16, 64) and labels (16, 4)."""
    import torch

    generator = torch.Generator().manual_seed(1)
    return {
        "input_ids": torch.randint(2, SHAPE["vocab_size"], (BATCH, SOURCE), generator=generator),
        "labels": torch.randint(2, SHAPE["vocab_size"], (BATCH, TARGET), generator=generator),
    }


def backbone() -> Any:
    """A stock T5 of T5-small's shape with random weights, frozen, dropout off."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    from onboard.model.backbone import freeze

    torch.manual_seed(0)
    return freeze(T5ForConditionalGeneration(T5Config(**SHAPE, dropout_rate=0.0, decoder_start_token_id=0)))


def optimised(parameters: Any, loss: Callable[[], Any]) -> Step:
    """A step that computes the loss, its gradients, and updates the parameters with AdamW."""
    import torch

    optimiser = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        optimiser.step()

    return step


def adapted(train_hypernetwork: bool) -> Step:
    """Adapters from a hypernetwork; trained are the task embedding, and the hypernetwork where asked."""
    import torch

    from onboard.model.attach import attach
    from onboard.model.hypernetwork import Hypernetwork

    model, inputs = backbone(), batch()
    hypernetwork = Hypernetwork(
        d_model=SHAPE["d_model"],
        encoder_layers=SHAPE["num_layers"],
        decoder_layers=SHAPE["num_layers"],
        bottleneck=BOTTLENECK,
    ).requires_grad_(train_hypernetwork)
    z = torch.randn(1, 64, requires_grad=True)
    attachment = attach(model)

    def loss() -> Any:
        with attachment.using(hypernetwork(z)):
            return model(**inputs).loss

    return optimised([z, *(hypernetwork.parameters() if train_hypernetwork else [])], loss)


def embedding_only() -> Step:
    """What onboarding a task does by default: 64 numbers are trained."""
    return adapted(train_hypernetwork=False)


def hypernetwork_and_embedding() -> Step:
    """What tuning the hypernetwork does."""
    return adapted(train_hypernetwork=True)


def full_fine_tuning() -> Step:
    """(a) Every weight of the backbone is trained."""
    model, inputs = backbone().requires_grad_(True), batch()
    return optimised(model.parameters(), lambda: model(**inputs).loss)


def limit() -> Step:
    """(b) Frozen backbone, forward, and backward to the encoder's input embeddings; nothing is updated."""
    model, inputs = backbone(), batch()

    def step() -> None:
        embeds = model.shared(inputs["input_ids"]).requires_grad_(True)  # (16, 64, h)
        model(inputs_embeds=embeds, labels=inputs["labels"]).loss.backward()

    return step


def lora() -> Step:
    """(c) PEFT's LoRA of rank 8 on the query and value projections."""
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["q", "v"]
    )
    model, inputs = get_peft_model(backbone(), config), batch()
    return optimised([p for p in model.parameters() if p.requires_grad], lambda: model(**inputs).loss)


VARIANTS: dict[str, Callable[[], Step]] = {
    "embedding_only": embedding_only,
    "hypernetwork_and_embedding": hypernetwork_and_embedding,
    "full_fine_tuning": full_fine_tuning,
    "limit": limit,
    "lora_r8": lora,
}
OURS, AGAINST = ("embedding_only", "hypernetwork_and_embedding"), ("full_fine_tuning", "limit", "lora_r8")


def peak_memory(name: str, steps: int) -> int:
    """Resident maximum in bytes of a fresh process that takes a few steps of one variant.

    Called before this process builds a model: a child starts with its parent's maximum on Linux.
    """
    command = [sys.executable, "-m", "bench.step_time", "--memory-of", name, "--rounds", str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return int(done.stdout.strip().splitlines()[-1])


def print_own_peak(name: str, steps: int) -> None:
    """The child's side of `peak_memory`."""
    step = VARIANTS[name]()
    for _ in range(steps):
        step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def times(rounds: int, warm_up: int) -> dict[str, list[float]]:
    """Seconds of every step, the variants taken in turn."""
    steps = {name: build() for name, build in VARIANTS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    order, shuffle = list(steps), random.Random(0).shuffle
    for turn in range(warm_up + rounds):
        shuffle(order)
        for name in order:
            started = time.perf_counter()
            steps[name]()
            if turn >= warm_up:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def report(seconds: dict[str, list[float]], memory: dict[str, int], command: str) -> dict[str, Any]:
    """The document that is kept."""
    summary = {
        name: {"minimum": min(values), "median": statistics.median(values), "steps": len(values)}
        for name, values in seconds.items()
    }
    ratios = {
        f"{ours} / {other}": {
            "minimum": summary[ours]["minimum"] / summary[other]["minimum"],
            "median": summary[ours]["median"] / summary[other]["median"],
            "peak_memory": memory[ours] / memory[other],
        }
        for ours in OURS
        for other in AGAINST
    }
    shape = {**SHAPE, "batch": BATCH, "source": SOURCE, "target": TARGET, "bottleneck": BOTTLENECK, "dtype": "float32"}
    return {
        "command": command,
        "machine": {**describe(), "threads": THREADS, "peft": version("peft")},
        "shape": shape,
        "seconds": summary,
        "peak_memory_bytes": memory,
        "ratios": ratios,
    }


def print_table(document: dict[str, Any]) -> None:
    """The same for eyes."""
    print(f"{'step':<48}{'minimum':>11}{'median':>11}{'peak memory':>14}")
    for name, row in document["seconds"].items():
        memory = document["peak_memory_bytes"][name] / 2**20
        print(f"{name:<48}{row['minimum'] * 1e3:>8.0f} ms{row['median'] * 1e3:>8.0f} ms{memory:>10.0f} MiB")
    print(f"\n{'ratio':<48}{'minimum':>10}{'median':>10}{'peak memory':>14}")
    for name, row in document["ratios"].items():
        print(f"{name:<48}{row['minimum']:>10.3f}{row['median']:>10.3f}{row['peak_memory']:>14.3f}")


def main() -> None:
    """Measure, print, and write the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="steps of each variant that are counted")
    parser.add_argument("--warm-up", type=int, default=3, help="steps of each variant before that")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the numbers are written")
    parser.add_argument("--memory-of", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    memory = {} if arguments.memory_of else {name: peak_memory(name, steps=3) for name in VARIANTS}

    import torch

    torch.set_num_threads(THREADS)
    if arguments.memory_of:
        print_own_peak(arguments.memory_of, arguments.rounds)
        return
    command = f"python -m bench.step_time --rounds {arguments.rounds} --warm-up {arguments.warm_up}"
    document = report(times(arguments.rounds, arguments.warm_up), memory, command)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print_table(document)


if __name__ == "__main__":
    main()
