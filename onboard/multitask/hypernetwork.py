"""The stage that every base has: hypernetwork, task embeddings and T5 norms on the frozen backbone (Eq. 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from onboard.curriculum.source import Source
from onboard.errors import InputError
from onboard.model.backbone import norm_parameters
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.weights import new_hypernetwork
from onboard.multitask.loop import Running, Stage, Validation, run_stage
from onboard.multitask.loss import Groups, Sampling, hypernetwork_scores, multitask_loss, precision_of
from onboard.multitask.recipe import HypernetworkStage
from onboard.multitask.validation import scorer


def new_engine(recipe: HypernetworkStage, backbone: Any, encoder: TextEncoder, seed: int) -> Engine:
    """The backbone with a hypernetwork of the recipe's shape and the authors' initialisation.

    Raises:
        InputError: the reduction factor leaves no bottleneck.
    """
    config = backbone.config
    bottleneck = config.d_model // recipe.reduction_factor
    if not bottleneck:
        raise InputError(
            f"hypernetwork.reduction_factor {recipe.reduction_factor} is more than d_model {config.d_model}.",
            f"Use at most {config.d_model}.", field="hypernetwork.reduction_factor",
        )  # fmt: skip
    torch.manual_seed(seed)
    sizes = {
        "d_model": config.d_model,
        "encoder_layers": config.num_layers,
        "decoder_layers": config.num_decoder_layers,
        "bottleneck": bottleneck,
        "task_embedding_size": recipe.embedding_size,
        "projector_width": recipe.projector_width,
    }
    return Engine(backbone, new_hypernetwork(recipe.method, sizes), encoder)


def train_hypernetwork(
    engine: Engine,
    groups: Groups,
    sources: Sequence[Source],
    metrics: Sequence[str],
    recipe: HypernetworkStage,
    seed: int,
    settings: Mapping[str, Any],
    running: Running,
    rounded: Callable[[nn.Module], None],
) -> nn.ParameterList:
    """Train on all tasks; the engine ends with the best weights, rounded as they will be stored.

    Args:
        engine: on its device; the backbone frozen and rounded.
        groups: the curriculum's tasks with shares; the sources come first, in their order.
        sources: with validation rows, which choose the checkpoint.
        metrics: which metric counts, by source.
        recipe: shape and schedule.
        seed: of embeddings and draws.
        settings: what the result depends on.
        running: work folder, progress, processes, signals.
        rounded: rounds every parameter of a module to what will be stored.

    Returns:
        One z (1, t) per task, in the order of the groups. Each is a parameter of its own: AdamW leaves one that is not
        in the batch alone, so no momentum moves it.
    """
    sampling = Sampling(groups, recipe.steps, recipe.batch, recipe.temperature, seed, recipe.tasks_per_batch)
    generator = torch.Generator().manual_seed(seed)
    embeddings = nn.ParameterList(
        nn.Parameter(torch.randn(1, recipe.embedding_size, generator=generator)) for _ in sampling.tasks
    ).to(engine.device)
    norms = nn.ParameterList(norm_parameters(engine.backbone) if recipe.train_norms else [])
    norms.requires_grad_(True)
    precision = precision_of(recipe.precision, engine.device)
    modules = {"hypernetwork": engine.hypernetwork, "embeddings": embeddings, "norms": norms}
    loss_of = multitask_loss(
        hypernetwork_scores(engine, embeddings), sampling, precision, running.processes, recipe.label_smoothing,
        {source.name for source in sources if source.kind == "regression"},
    )  # fmt: skip
    score = scorer(engine, embeddings, sources, metrics, recipe.validation_rows, precision, seed)
    rates = {"hypernetwork": 1.0, "embeddings": recipe.embedding_rate, "norms": 1.0}
    learning = [(list(module.parameters()), rates[name]) for name, module in modules.items()]
    stage = Stage(
        "hypernetwork",
        recipe,
        modules,
        learning,
        loss_of,
        settings,
        Validation(recipe.validate_every, score),
    )
    run_stage(stage, running)
    norms.requires_grad_(False)
    rounded(engine.hypernetwork)
    rounded(norms)
    return embeddings


@torch.no_grad()
def round_to_half(module: nn.Module) -> None:
    """Every parameter to the nearest float16, kept as float32: what is trained next is what will be shipped."""
    for parameter in module.parameters():
        parameter.copy_(parameter.half().float())
