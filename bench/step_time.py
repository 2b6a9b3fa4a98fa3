"""Time and peak memory of one training step: what we train, and what it is measured against.

    python -m bench.step_time --rounds 30            T5-small's shape on the CPU, float32, batch 16
    python -m bench.step_time --gpu --rounds 100     T5-base's shape on a CUDA GPU, bfloat16, batch 32

All variants see the same batch and the same loss (the stock model's cross entropy), dropout off, AdamW included. The
limit trains nothing: a frozen backbone, forward, and backward to the encoder's input embeddings; no method that puts
something trainable into the first block can do with less. Steps are taken in turn, in a new order each round, so that
a disturbance of the machine meets all variants alike; minima and medians are reported. Peak memory is that of a process
that runs this variant alone: its resident maximum, on a GPU what PyTorch allocated there.

The hypernetwork's share of a step: its own forward and backward for one task (one task a batch), with the embeddings of
8, 100 and 1,000 tasks in the optimiser.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.harness.command import CHECKOUT, RESULTS
from bench.harness.in_turn import Step, seconds_in_turn
from bench.harness.report import describe, device_name

THREADS = 2
LEARNING_RATE = 3e-4
TASKS = 8  # whose adapters lie in the table of Adapters†
IN_MEMORY = (8, 100, 1000)


@dataclass(frozen=True)
class Setup:
    """Shapes and the machine's part. `bottleneck` is d_model / 32, the paper's reduction factor."""

    d_model: int
    d_kv: int
    d_ff: int
    layers: int
    heads: int
    vocabulary: int
    batch: int
    source: int
    target: int
    bottleneck: int
    device: str
    dtype: str

    def computing(self) -> Any:
        """The autocast that the steps compute under; weights are float32 in any case, as in base training."""
        import torch

        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.dtype == "bfloat16")

    @property
    def sizes(self) -> dict[str, int]:
        """Arguments that every method's module takes."""
        return {
            "d_model": self.d_model, "encoder_layers": self.layers, "decoder_layers": self.layers,
            "bottleneck": self.bottleneck,
        }  # fmt: skip


SETUPS = {
    "cpu": Setup(512, 64, 2048, 6, 8, 32128, 16, 64, 4, 16, "cpu", "float32"),
    "gpu": Setup(768, 64, 3072, 12, 12, 32128, 32, 128, 4, 24, "cuda", "bfloat16"),
    "tiny": Setup(32, 8, 64, 2, 4, 100, 2, 5, 2, 2, "cpu", "float32"),  # for the test of this file
}


def batch(setup: Setup) -> dict[str, Any]:
    """Random tokens: input_ids (batch, source) and labels (batch, target)."""
    import torch

    generator = torch.Generator().manual_seed(1)
    shapes = {"input_ids": (setup.batch, setup.source), "labels": (setup.batch, setup.target)}
    return {
        name: torch.randint(2, setup.vocabulary, shape, generator=generator).to(setup.device)
        for name, shape in shapes.items()
    }


def backbone(setup: Setup) -> Any:
    """A stock T5 with random weights, frozen, dropout off."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    from onboard.model.backbone import freeze

    torch.manual_seed(0)
    config = T5Config(
        d_model=setup.d_model, d_kv=setup.d_kv, d_ff=setup.d_ff, num_layers=setup.layers, num_heads=setup.heads,
        vocab_size=setup.vocabulary, dropout_rate=0.0, decoder_start_token_id=0,
    )  # fmt: skip
    with torch.device(setup.device):
        return freeze(T5ForConditionalGeneration(config))


def optimised(setup: Setup, parameters: Any, loss: Callable[[], Any]) -> Step:
    """A step that computes the loss, its gradients, and updates the parameters with AdamW."""
    import torch

    optimiser = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0, fused=True)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with setup.computing():
            value = loss()
        value.backward()
        optimiser.step()

    return step


def hypernetwork_step(
    setup: Setup, method: str = "hyperformer++", *, tasks: int = 1, hypernetwork: bool = True, norms: bool = False
) -> Step:
    """Adapters from a hypernetwork, one task a step in turn; trained are the embeddings and the requested runs."""
    import torch

    from onboard.model.attach import attach
    from onboard.model.backbone import norm_parameters
    from onboard.model.methods import new_hypernetwork

    model, inputs = backbone(setup), batch(setup)
    module = new_hypernetwork(method, setup.sizes).to(setup.device).requires_grad_(hypernetwork)
    size = (1, module.sizes["task_embedding_size"])
    embeddings = [torch.randn(size, device=setup.device, requires_grad=True) for _ in range(tasks)]
    trained = [*embeddings, *(module.parameters() if hypernetwork else [])]
    trained += [parameter.requires_grad_(True) for parameter in norm_parameters(model) if norms]
    attachment, turn = attach(model), itertools.cycle(embeddings)

    def loss() -> Any:
        with attachment.using(module(next(turn))):
            return model(**inputs).loss

    return optimised(setup, trained, loss)


def hypernetwork_alone(setup: Setup, *, tasks: int) -> Step:
    """The hypernetwork's forward, and backward from gradients that are given; nothing is updated."""
    import torch

    from onboard.model.methods import new_hypernetwork

    module = new_hypernetwork("hyperformer++", setup.sizes).to(setup.device)
    size = (1, module.sizes["task_embedding_size"])
    embeddings = [torch.randn(size, device=setup.device, requires_grad=True) for _ in range(tasks)]
    turn = itertools.cycle(embeddings)
    given = [torch.randn_like(weights) for stack in module(embeddings[0]) for weights in stack]

    def step() -> None:
        z = next(turn)
        z.grad = None
        module.zero_grad(set_to_none=True)
        with setup.computing():
            generated = [weights for stack in module(z) for weights in stack]
        torch.autograd.backward(generated, [g.to(w.dtype) for g, w in zip(given, generated, strict=True)])

    return step


def adapters(setup: Setup) -> Step:
    """Adapters†: a set of adapters for each of eight tasks as plain parameters, one task a step, T5 norms trained."""
    import torch

    from bench.harness.adapter_table import AdapterTable
    from onboard.model.attach import attach
    from onboard.model.backbone import norm_parameters

    model, inputs = backbone(setup), batch(setup)
    table = AdapterTable(**setup.sizes, tasks=TASKS).to(setup.device)
    norms = [parameter.requires_grad_(True) for parameter in norm_parameters(model)]
    attachment, turn = attach(model), itertools.cycle(torch.tensor([task]) for task in range(TASKS))

    def loss() -> Any:
        with attachment.using(table(next(turn))):
            return model(**inputs).loss

    return optimised(setup, [*table.parameters(), *norms], loss)


def full_fine_tuning(setup: Setup) -> Step:
    """Every weight of the backbone is trained."""
    model, inputs = backbone(setup).requires_grad_(True), batch(setup)
    return optimised(setup, model.parameters(), lambda: model(**inputs).loss)


def limit(setup: Setup) -> Step:
    """Frozen backbone, forward, and backward to the encoder's input embeddings; nothing is updated."""
    model, inputs = backbone(setup), batch(setup)

    def step() -> None:
        embeds = model.shared(inputs["input_ids"]).requires_grad_(True)  # (batch, source, h)
        with setup.computing():
            loss = model(inputs_embeds=embeds, labels=inputs["labels"]).loss
        loss.backward()

    return step


def lora(setup: Setup) -> Step:
    """PEFT's LoRA of rank 8 on the query and value projections."""
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["q", "v"]
    )
    model, inputs = get_peft_model(backbone(setup), config), batch(setup)
    return optimised(setup, [p for p in model.parameters() if p.requires_grad], lambda: model(**inputs).loss)


VARIANTS: dict[str, Callable[[Setup], Step]] = {
    "embedding_only": partial(hypernetwork_step, hypernetwork=False),  # onboarding a task
    "hypernetwork_and_embedding": hypernetwork_step,  # tuning the hypernetwork
    "hyperformer_pp": partial(hypernetwork_step, tasks=TASKS, norms=True),  # training a base
    "hyperformer": partial(hypernetwork_step, method="hyperformer", tasks=TASKS, norms=True),
    "adapters": adapters,
    "full_fine_tuning": full_fine_tuning,
    "limit": limit,
    "lora_r8": lora,
}
OURS = ("embedding_only", "hypernetwork_and_embedding", "hyperformer_pp")
AGAINST = ("full_fine_tuning", "limit", "lora_r8", "hyperformer", "adapters")
SHARES: dict[str, Callable[[Setup], Step]] = {
    **{f"step of {tasks} tasks": partial(hypernetwork_step, tasks=tasks, norms=True) for tasks in IN_MEMORY},
    **{f"hypernetwork of {tasks} tasks": partial(hypernetwork_alone, tasks=tasks) for tasks in IN_MEMORY},
}


def peak_memory(name: str, setup: str) -> int:
    """Maximum in bytes of a fresh process that takes a few steps of one variant.

    Called before this process builds a model: a child starts with its parent's maximum on Linux.
    """
    command = [sys.executable, "-m", "bench.step_time", "--memory-of", name, "--setup", setup]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT)
    return int(done.stdout.strip().splitlines()[-1])


def print_own_peak(name: str, setup: Setup, steps: int = 3) -> None:
    """The child's side of `peak_memory`."""
    step = VARIANTS[name](setup)
    for _ in range(steps):
        step()
    print(own_peak(setup))


def own_peak(setup: Setup) -> int:
    """Bytes that this process took at most, on the GPU where it steps there."""
    import torch

    if setup.device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def times(setup: Setup, rounds: int, warm_up: int) -> dict[str, list[float]]:
    """Seconds of every step, the variants taken in turn."""
    steps = {name: build(setup) for name, build in {**VARIANTS, **SHARES}.items()}
    return seconds_in_turn(steps, rounds, warm_up, setup.device)


def report(setup: Setup, seconds: dict[str, list[float]], memory: dict[str, int], command: str) -> dict[str, Any]:
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
    shares = {
        str(tasks): {
            which: summary[f"hypernetwork of {tasks} tasks"][which] / summary[f"step of {tasks} tasks"][which]
            for which in ("minimum", "median")
        }
        for tasks in IN_MEMORY
    }
    return {
        "command": command,
        "machine": {
            **describe(),
            "device": device_name(setup.device),
            "threads": THREADS,
            "peft": version("peft"),
        },
        "setup": asdict(setup),
        "seconds": summary,
        "peak_memory_bytes": memory,
        "ratios": ratios,
        "hypernetwork_share_by_tasks_in_memory": shares,
    }


def print_table(document: dict[str, Any]) -> None:
    """The same for eyes."""
    print(f"{'step':<48}{'minimum':>11}{'median':>11}{'peak memory':>14}")
    for name, row in document["seconds"].items():
        memory = document["peak_memory_bytes"].get(name)
        shown = f"{memory / 2**20:>10.0f} MiB" if memory else ""
        print(f"{name:<48}{row['minimum'] * 1e3:>8.1f} ms{row['median'] * 1e3:>8.1f} ms{shown}")
    print(f"\n{'ratio':<48}{'minimum':>10}{'median':>10}{'peak memory':>14}")
    for name, row in document["ratios"].items():
        print(f"{name:<48}{row['minimum']:>10.3f}{row['median']:>10.3f}{row['peak_memory']:>14.3f}")
    print("\nthe hypernetwork's share of a step, tasks in memory")
    for tasks, row in document["hypernetwork_share_by_tasks_in_memory"].items():
        print(f"{tasks:<48}{row['minimum']:>10.3f}{row['median']:>10.3f}")


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(setup="cpu")
    parser.add_argument("--gpu", dest="setup", action="store_const", const="gpu", help="T5-base in bfloat16 on CUDA")
    parser.add_argument("--setup", choices=SETUPS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=30, help="steps of each variant that are counted")
    parser.add_argument("--warm-up", type=int, default=3, help="steps of each variant before that")
    parser.add_argument("--output", type=Path, help="where the numbers are written")
    parser.add_argument("--memory-of", choices=VARIANTS, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    setup = SETUPS[asked.setup]
    memory = {} if asked.memory_of or asked.setup == "gpu" else _memory(asked.setup)

    import torch

    if setup.device == "cuda" and not torch.cuda.is_available():
        print("skipped: there is no CUDA GPU here")
        return 0
    torch.set_num_threads(THREADS)
    if asked.memory_of:
        print_own_peak(asked.memory_of, setup)
        return 0
    memory = memory or _memory(asked.setup)
    output = asked.output or RESULTS / ("step_time_gpu.json" if asked.setup == "gpu" else "step_time.json")
    flag = " --gpu" if asked.setup == "gpu" else ""
    command = f"python -m bench.step_time{flag} --rounds {asked.rounds} --warm-up {asked.warm_up}"
    document = report(setup, times(setup, asked.rounds, asked.warm_up), memory, command)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print_table(document)
    return 0


def _memory(setup: str) -> dict[str, int]:
    return {name: peak_memory(name, setup) for name in VARIANTS}


if __name__ == "__main__":
    sys.exit(main())
