"""The stage of every base: train hypernetwork, task embeddings and T5 norms on the frozen backbone (Eq. 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from onboard.bases.fingerprints import Fingerprints
from onboard.errors import InputError
from onboard.making.curriculum.batch import TrainingTask
from onboard.making.curriculum.source import Source
from onboard.making.multitask.loop import LossOf, Running, StageValidation, TrainingStage, run_stage
from onboard.making.multitask.loss import (
    Balance,
    EmbeddingsOf,
    Groups,
    Sampling,
    hypernetwork_scores,
    multitask_loss,
    own_embeddings,
    precision_of,
)
from onboard.making.multitask.recipe import HypernetworkStage
from onboard.making.multitask.validation import scorer
from onboard.model.backbone import norm_parameters
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.fingerprint import raw_fingerprint
from onboard.model.initialisation import is_projector, scale_projectors
from onboard.model.methods import new_hypernetwork
from onboard.model.methods.open_start import open_to_embeddings
from onboard.model.projections import Projections

_FINGERPRINTED: Final = (4, 8)  # batches and rows per batch for a fingerprint; few, as for a new task
_STARTS: Final = {"scaled": scale_projectors, "open": open_to_embeddings}
_UNSEEN: Final = 10**6  # a step number that no stage reaches


def new_engine(recipe: HypernetworkStage, backbone: Any, encoder: TextEncoder, seed: int) -> Engine:
    """Return the backbone with a hypernetwork of the recipe's shape and the authors' initialization.

    Raises:
        InputError: the reduction factor leaves no bottleneck.
    """
    config = backbone.config
    bottleneck = config.d_model // recipe.reduction_factor
    if not bottleneck:
        raise InputError(
            "reduction-factor-too-large",
            field="hypernetwork.reduction_factor",
            reduction_factor=recipe.reduction_factor,
            d_model=config.d_model,
        )
    torch.manual_seed(seed)
    sizes = {
        "d_model": config.d_model,
        "encoder_layers": config.num_layers,
        "decoder_layers": config.num_decoder_layers,
        "bottleneck": bottleneck,
        "task_embedding_size": recipe.embedding_size,
        "projector_width": recipe.projector_width,
    }
    hypernetwork = new_hypernetwork(recipe.method, sizes)
    if start := _STARTS.get(recipe.projector_start):
        start(hypernetwork)
    return Engine(backbone, hypernetwork, encoder)


@dataclass(frozen=True)
class TaskEmbeddings:
    """The embeddings learned for the tasks, in the order of the groups.

    Args:
        z: one (1, t) per task. They are separate parameters, so that AdamW does not move those outside a batch.
        fingerprints: of each task, if the embeddings started from them.
    """

    z: nn.ParameterList
    fingerprints: Fingerprints | None = None

    def table(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return `z` (t,) float32 of the first tasks, by name."""
        return {name: self.z[index].detach()[0].float().cpu().numpy() for index, name in enumerate(names)}


class Fingerprinter:
    """Computes fingerprints of training tasks from rows that are drawn separately from training rows.

    Args:
        engine: the model in training; only its bare backbone is used.
        tasks: in the order of the embeddings.
        size: t.
    """

    def __init__(self, engine: Engine, tasks: Sequence[TrainingTask], size: int, seed: int) -> None:
        self._engine, self._tasks = engine, tasks
        self._projections = Projections.drawn(engine.backbone.config.d_model, size, seed)
        self.present = Fingerprints.from_raw(self._projections, self._all())

    def taken_again(self) -> Fingerprints:
        """Return fingerprints of all tasks with the current weights, on the scale of the first ones."""
        return self.present.again(self._all())

    def fresh(self, task: int, turn: int) -> np.ndarray:
        """Return a fingerprint (t,) of other rows of a task, on the scale of the first ones."""
        return self.present.scaled(self._raw(self._tasks[task], turn))

    def _all(self) -> dict[str, np.ndarray]:
        return {task.name: self._raw(task, 0) for task in self._tasks}

    def _raw(self, task: TrainingTask, turn: int) -> np.ndarray:
        count, rows = _FINGERPRINTED
        batches = [task.batch(_UNSEEN + turn * count + place, rows) for place in range(count)]
        return raw_fingerprint(self._engine, batches, self._projections)


@dataclass(frozen=True)
class FurtherModules:
    """Modules that are trained, and rounded, together with hypernetwork and embeddings.

    Args:
        modules: by name in the checkpoint.
        groups: their parameters, with multiples of the stage's learning rate.
    """

    modules: Mapping[str, nn.Module]
    groups: Sequence[tuple[Sequence[nn.Parameter], float]]


def norms_beside(engine: Engine, recipe: HypernetworkStage) -> FurtherModules:
    """Return the T5 norms (as the authors train), unless the recipe freezes them."""
    norms = nn.ParameterList(norm_parameters(engine.backbone) if recipe.train_norms else [])
    return FurtherModules({"norms": norms}, [(list(norms), 1.0)])


@dataclass(frozen=True)
class HypernetworkTraining:
    """The training of a base's hypernetwork.

    Args:
        recipe: shape and schedule.
        seed: of embeddings and draws.
        settings: everything that the result depends on.
        beside: other trained modules, usually the T5 norms.
        rounded: rounds every parameter of a module to its stored format.
        around: wraps the loss of a step, for dropout.
        most_of_a_family: largest share of the sources' steps for one family.
    """

    recipe: HypernetworkStage
    seed: int
    settings: Mapping[str, Any]
    beside: FurtherModules
    rounded: Callable[[nn.Module], None]
    around: Callable[[LossOf], LossOf] = lambda loss_of: loss_of
    most_of_a_family: float = 1.0


def train_hypernetwork(
    engine: Engine, groups: Groups, sources: Sequence[Source], training: HypernetworkTraining, running: Running
) -> TaskEmbeddings:
    """Train on all tasks. The engine ends with the best weights, rounded to their stored format.

    Args:
        engine: on its device; the backbone frozen and rounded.
        groups: the curriculum's tasks with shares; the sources come first, in order.
        sources: with validation rows, which choose the checkpoint.
        running: work folder, progress, processes, signals.
    """
    recipe, beside = training.recipe, training.beside.modules.values()
    balance = Balance.of(sources, training.most_of_a_family)
    sampling = Sampling(
        groups, recipe.steps, recipe.batch, recipe.temperature, training.seed, recipe.tasks_per_batch, balance
    )
    taker = None
    if recipe.embedding_start == "fingerprint":
        taker = Fingerprinter(engine, sampling.tasks, recipe.embedding_size, training.seed)
    started = _started(len(sampling.tasks), recipe.embedding_size, training.seed, taker)
    embeddings = nn.ParameterList(nn.Parameter(z[None].clone()) for z in started).to(engine.device)
    for module in beside:
        module.requires_grad_(True)
    embeddings_of = fresh_embeddings_of(embeddings, taker, recipe.fingerprint_share, training.seed)
    precision = precision_of(recipe.precision, engine.device)
    loss_of = multitask_loss(
        hypernetwork_scores(engine, embeddings_of), sampling, precision, running.processes, recipe.label_smoothing,
        {source.name for source in sources if source.kind == "regression"},
    )  # fmt: skip
    score = scorer(engine, embeddings, sources, recipe.validation_rows, precision, training.seed)
    run_stage(_stage(engine, embeddings, training, loss_of, StageValidation(recipe.validate_every, score)), running)
    for module in (engine.hypernetwork, *(module.requires_grad_(False) for module in beside)):
        training.rounded(module)
    return TaskEmbeddings(embeddings, None if taker is None else taker.taken_again())


def _started(tasks: int, size: int, seed: int, taker: Fingerprinter | None) -> torch.Tensor:
    """Return the initial embeddings (T, t): the tasks' fingerprints, or draws from N(0, 1)."""
    if taker is not None:
        return torch.from_numpy(np.stack(list(taker.present.of.values())))
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([torch.randn(1, size, generator=generator) for _ in range(tasks)])


def _stage(
    engine: Engine,
    embeddings: nn.ParameterList,
    training: HypernetworkTraining,
    loss_of: LossOf,
    validation: StageValidation,
) -> TrainingStage:
    """Return the stage with all trained parameters, each part with its learning rate."""
    named, recipe = list(engine.hypernetwork.named_parameters()), training.recipe
    projectors = [parameter for name, parameter in named if is_projector(name)]
    other_parameters = [parameter for name, parameter in named if not is_projector(name)]
    learning = [
        (other_parameters, 1.0), (projectors, recipe.projector_rate), (list(embeddings), recipe.embedding_rate),
        *training.beside.groups,
    ]  # fmt: skip
    modules = {"hypernetwork": engine.hypernetwork, "embeddings": embeddings, **training.beside.modules}
    return TrainingStage(
        "hypernetwork", recipe, modules, learning, training.around(loss_of), training.settings, validation
    )


def fresh_embeddings_of(
    embeddings: nn.ParameterList, taker: Fingerprinter | None, share: float, seed: int
) -> EmbeddingsOf:
    """Return task embeddings per step; a given share is replaced by fingerprints of other rows, as for a new task."""
    if taker is None or not share:
        return own_embeddings(embeddings)

    def embeddings_of(tasks: Sequence[int], step: int) -> torch.Tensor:
        rng = np.random.default_rng((seed, 6, step))
        rows = []
        for task in tasks:  # an unused z gets no gradient at all; a zero gradient would let momentum move it
            z = embeddings[task]  # (1, t)
            fresh = rng.random() < share
            rows.append(torch.from_numpy(taker.fresh(task, step + 1))[None].to(z) if fresh else z)
        return torch.cat(rows)  # (m, t)

    return embeddings_of


@torch.no_grad()
def round_to_half(module: nn.Module) -> None:
    """Round every parameter to the nearest float16 and keep it as float32, so that training continues from stored
    values.
    """
    for parameter in module.parameters():
        parameter.copy_(parameter.half().float())
