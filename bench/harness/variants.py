"""The methods and ablations of the HyperFormer paper (arXiv 2106.04489) as variants of one training run.

Those that nobody would train a base with live here and not in the package: without a projector, without conditional
layer norms, norms alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bench.harness.adapter_table import AdapterTable
from bench.harness.budgeted import Method
from onboard.making.curriculum import Batch
from onboard.making.multitask.loss import ScoresOf, bare_scores, hypernetwork_scores, own_embeddings
from onboard.model.backbone import norm_parameters
from onboard.model.engine import Engine
from onboard.model.hypernetwork import POSITIONS, Hypernetwork
from onboard.model.initialisation import scale_projectors
from onboard.model.methods.hyperformer import PlainHyperFormer
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus

PAPERS_REDUCTION = 32
MINIS_PROJECTOR_RATE = 0.2  # recipes/mini.toml

Build = Callable[[Engine, Sequence[str]], Method]  # a separate engine and the names of the tasks


class WithoutProjector(PlainHyperFormer):
    """I = z, of 64 numbers."""

    def __init__(self, **sizes: int) -> None:
        super().__init__(**{**sizes, "task_embedding_size": 64, "conditioning_size": 64})
        del self.projector_in, self.projector_out

    def shared(self, z: Tensor) -> Tensor:
        """z itself: (T, t)."""
        return z


class Unconditional(nn.Module):
    """In place of a linear layer of I: the same numbers for all tasks, (T, c) → (T, n)."""

    def __init__(self, start: float, size: int) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.full((size,), start))

    def forward(self, conditioning: Tensor) -> Tensor:
        """The row, once per task."""
        return self.row.expand(conditioning.shape[0], -1)


class WithoutConditionalNorm(PlainHyperFormer):
    """γ and β of every place are parameters, shared by all tasks; they start at 1 and 0."""

    gamma_start = 1.0

    def stack(self, layers: int) -> nn.Module:
        """The hypernetworks of a stack, those of γ and β replaced."""
        stack = super().stack(layers)
        for name, start in (("gamma", self.gamma_start), ("beta", 0.0)):
            stack.add_module(name, Unconditional(start, layers * POSITIONS * self.sizes["d_model"]))
        return stack


class WithoutConditionalNormFromZero(WithoutConditionalNorm):
    """γ starts at 0: at first the adapters add nothing, as where γ is generated."""

    gamma_start = 0.0


def hypernetwork(
    kind: type[Hypernetwork] = PlainHyperFormer,
    reduction: int = PAPERS_REDUCTION,
    norms: bool = True,
    authors_projector: bool = True,
) -> Build:
    """Hypernetwork and embeddings, and the T5 norms.

    Args:
        kind: HyperFormer or HyperFormer++.
        reduction: r of the bottleneck d_model / r.
        norms: whether the T5 norms are trained.
        authors_projector: starts at N(0, 0.01) and learns as fast as the rest; else as `mini` does (decision 7).
    """

    def build(engine: Engine, tasks: Sequence[str]) -> Method:
        engine.hypernetwork = kind(**_sizes(engine, reduction))
        if not authors_projector:
            scale_projectors(engine.hypernetwork)
        size = engine.hypernetwork.sizes["task_embedding_size"]
        embeddings = nn.ParameterList(nn.Parameter(torch.randn(1, size)) for _ in tasks)
        modules = {"hypernetwork": engine.hypernetwork, "embeddings": embeddings} | (_norms(engine) if norms else {})
        rate = 1.0 if authors_projector else MINIS_PROJECTOR_RATE
        return Method(modules, hypernetwork_scores(engine, own_embeddings(embeddings)), rate)

    return build


def adapters(reduction: int = PAPERS_REDUCTION, gamma_start: float = 1.0) -> Build:
    """A set of adapters per task as plain parameters, and the T5 norms."""

    def build(engine: Engine, tasks: Sequence[str]) -> Method:
        table = AdapterTable(**_sizes(engine, reduction), tasks=len(tasks))
        for stack in (table.encoder, table.decoder):
            nn.init.constant_(stack.gamma, gamma_start)

        def scores_of(drawn: Sequence[Batch], tasks: Sequence[int], _: int) -> list[Tensor]:
            return [
                engine.score(batch.ids, table(torch.tensor([task])), [batch.trie])
                for batch, task in zip(drawn, tasks, strict=True)
            ]

        return Method({"table": table, **_norms(engine)}, scores_of)

    return build


def norms_alone(engine: Engine, tasks: Sequence[str]) -> Method:
    """No adapters: the T5 norms are all that is trained, and nothing tells the tasks apart but their label words."""
    del tasks
    return Method(_norms(engine), bare_scores(engine))


def full_fine_tuning(engine: Engine, tasks: Sequence[str]) -> Method:
    """Every weight of the backbone; of several tasks, the name stands before the text, as the authors do here only."""
    engine.backbone.requires_grad_(True)
    bare = bare_scores(engine)
    return Method({"backbone": engine.backbone}, bare if len(tasks) == 1 else _prefixed(bare, engine, tasks))


def _prefixed(scores_of: ScoresOf, engine: Engine, tasks: Sequence[str]) -> ScoresOf:
    prefixes = [engine.encoder.label_ids(f"{task}:")[:-1] for task in tasks]

    def prefixed(drawn: Sequence[Batch], tasks: Sequence[int], step: int) -> Sequence[Tensor]:
        named = [
            Batch([[*prefixes[task], *ids] for ids in batch.ids], batch.trie, batch.targets)
            for batch, task in zip(drawn, tasks, strict=True)
        ]
        return scores_of(named, tasks, step)

    return prefixed


def _norms(engine: Engine) -> dict[str, nn.Module]:
    return {"norms": nn.ParameterList(norm_parameters(engine.backbone)).requires_grad_(True)}


def _sizes(engine: Engine, reduction: int) -> dict[str, int]:
    config = engine.backbone.config
    return {
        "d_model": config.d_model, "encoder_layers": config.num_layers, "decoder_layers": config.num_decoder_layers,
        "bottleneck": max(1, config.d_model // reduction),
    }  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """How a variant is built and trained.

    Args:
        title: in tables.
        build: the trained parts.
        learning_rate: of AdamW. Weights that were trained before want less than those that start from noise.
        single: one model per task, each with an equal share of the steps.
        augmented: the sources renamed, restricted, merged and joined stand next to the sources.
    """

    title: str
    build: Build
    learning_rate: float = 1e-3
    single: bool = False
    augmented: bool = False


VARIANTS = {
    "hyperformer": Variant("HyperFormer", hypernetwork()),
    "hyperformer++": Variant("HyperFormer++", hypernetwork(HyperFormerPlusPlus)),
    "hyperformer++-scaled": Variant(
        "HyperFormer++, projector as in mini", hypernetwork(HyperFormerPlusPlus, authors_projector=False)
    ),
    "adapters": Variant("Adapters†", adapters()),
    "adapters-single": Variant("Adapters, one task each", adapters(), single=True),
    "full": Variant("full fine-tuning, multi-task", full_fine_tuning, 3e-4),
    "full-single": Variant("full fine-tuning, one task each", full_fine_tuning, 3e-4, single=True),
    "without-adapters": Variant("without adapters (T5 norms alone)", norms_alone),
    "without-conditional-norm": Variant("without conditional layer norm", hypernetwork(WithoutConditionalNorm)),
    "without-projector": Variant("without task projector", hypernetwork(WithoutProjector)),
    "without-t5-norms": Variant("without training the T5 norms", hypernetwork(norms=False)),
    "without-both-norms": Variant("without both norms", hypernetwork(WithoutConditionalNorm, norms=False)),
    "adapters-gamma-0": Variant("Adapters†, γ from 0", adapters(gamma_start=0.0)),
    "without-conditional-norm-gamma-0": Variant(
        "without conditional layer norm, γ from 0", hypernetwork(WithoutConditionalNormFromZero)
    ),
    "adapters-r2": Variant("Adapters†, r = 2", adapters(2)),
    "adapters-r4": Variant("Adapters†, r = 4", adapters(4)),
    "hyperformer++-r8": Variant("HyperFormer++, r = 8", hypernetwork(HyperFormerPlusPlus, 8)),
    "hyperformer++-r16": Variant("HyperFormer++, r = 16", hypernetwork(HyperFormerPlusPlus, 16)),
    "hyperformer++-augmented": Variant(
        "HyperFormer++, sources augmented", hypernetwork(HyperFormerPlusPlus), augmented=True
    ),
}
