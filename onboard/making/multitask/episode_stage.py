"""The stage `episodes`: train the encoder for readouts; decoder, hypernetwork and embeddings adapt to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from onboard.making.curriculum.source import Source
from onboard.making.multitask.episode_loss import EpisodeLosses, episode_losses, read_episodes
from onboard.making.multitask.episode_recipe import EpisodesStage
from onboard.making.multitask.episodes import Episode, EpisodeSizes, EpisodeSource
from onboard.making.multitask.loop import LossOf, Running, StepLoss, TrainingStage, run_stage
from onboard.making.multitask.loss import (
    Balance,
    Sampling,
    hypernetwork_scores,
    multitask_loss,
    own_embeddings,
    precision_of,
)
from onboard.making.multitask.tasks import SourceBatches
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine

FIRST_SHARPNESS = 4.0  # inverse temperature of a readout, as `onboard.statistics.readout.USUAL`
_SHARPNESS_RATE = 50.0  # multiple of the learning rate, large because only two numbers learn


@dataclass(frozen=True)
class TaughtRows:
    """Rows read by the second teacher: indices in a source's training rows (p,), and vectors (p, v)."""

    places: np.ndarray
    vectors: np.ndarray


class EpisodeDraws:
    """Draws the episodes of a step. The draws depend on the step alone.

    Args:
        taught: rows with the second teacher's vectors, by source; half of such a source's episodes use only these.
        shares: returns the share of episodes of each source (S,).
    """

    def __init__(
        self,
        sources: Sequence[Source],
        encoder: TextEncoder,
        sizes: EpisodeSizes,
        taught: Mapping[str, TaughtRows],
        shares: Callable[[Sequence[EpisodeSource]], np.ndarray],
        seed: int,
    ) -> None:
        self._all = [EpisodeSource(source, encoder, sizes) for source in sources]
        self._taught = {
            source.name: EpisodeSource(source, encoder, sizes, rows.places, rows.vectors)
            for source in sources
            if (rows := taught.get(source.name)) is not None
        }
        self._shares, self._seed = shares(self._all), seed

    def of_step(self, step: int, count: int) -> list[tuple[Episode, float]]:
        """Return episodes, each with a number from [0, 1) that decides whether label words are training rows."""
        rng = np.random.default_rng((self._seed, 7, step))
        drawn = []
        for _ in range(count):
            source = self._all[rng.choice(len(self._all), p=self._shares)]
            taught = self._taught.get(source.name)
            source = taught if taught is not None and rng.random() < 0.5 else source
            drawn.append((source.draw(rng), float(rng.random())))
        return drawn


class _Sharpness(nn.Module):
    """Logarithms of the inverse temperatures of readouts and of names (2,)."""

    def __init__(self) -> None:
        super().__init__()
        self.logarithms = nn.Parameter(torch.full((2,), float(np.log(FIRST_SHARPNESS))))


@dataclass(frozen=True)
class EpisodeTraining:
    """The training by episodes.

    Args:
        sources: with their training rows.
        taught: see `EpisodeDraws`.
        settings: everything that the result depends on.
    """

    recipe: EpisodesStage
    sources: Sequence[Source]
    taught: Mapping[str, TaughtRows]
    seed: int
    settings: Mapping[str, Any]

    @property
    def balance(self) -> Balance:
        """How often each source is drawn."""
        return Balance.of(self.sources, self.recipe.most_of_a_family)


def train_by_episodes(
    engine: Engine, embeddings: nn.ParameterList, training: EpisodeTraining, running: Running
) -> None:
    """Train encoder, decoder, hypernetwork and embeddings. Engine and embeddings end with the last weights.

    Args:
        engine: on its device.
        embeddings: one (1, t) per source, in order.
        running: work folder, progress, signals; single process only.
    """
    sharpness = _Sharpness().to(engine.device)
    modules = {
        "backbone": engine.backbone, "hypernetwork": engine.hypernetwork, "embeddings": embeddings,
        "sharpness": sharpness,
    }  # fmt: skip
    groups = _rates(engine, embeddings, sharpness, training.recipe)
    by_episodes = _loss_of_episodes(engine, training, sharpness.logarithms)
    under_adapters = _loss_under_adapters(engine, embeddings, training, running)

    def loss_of(step: int) -> StepLoss:
        drawn, adapted = by_episodes(step), under_adapters(step)
        value = drawn.value + training.recipe.adapted_weight * adapted.value
        return StepLoss(value, drawn.task, drawn.rows + adapted.rows, drawn.tokens + adapted.tokens)

    run_stage(TrainingStage("episodes", training.recipe, modules, groups, loss_of, training.settings), running)
    engine.backbone.requires_grad_(False)
    engine.hypernetwork.requires_grad_(False)


def _loss_of_episodes(engine: Engine, training: EpisodeTraining, sharpness: torch.Tensor) -> LossOf:
    """Return a function for the mean loss of a step's episodes."""
    recipe, balance = training.recipe, training.balance
    sizes = EpisodeSizes(recipe.labels, (recipe.fewest_support, recipe.most_support), recipe.queries, recipe.tokens)
    draws = EpisodeDraws(
        training.sources, engine.encoder, sizes, training.taught,
        lambda tasks: balance.shares(tasks, recipe.temperature), training.seed,
    )  # fmt: skip
    precision = precision_of(recipe.precision, engine.device)

    def loss_of(step: int) -> StepLoss:
        drawn = draws.of_step(step, recipe.batch)
        features = read_episodes(engine, [episode for episode, _ in drawn], precision)
        losses = [
            episode_losses(engine, episode, rows_read, sharpness, with_names=chance < recipe.named)
            for (episode, chance), rows_read in zip(drawn, features, strict=True)
        ]
        rows = [row for episode, _ in drawn for row in episode.ids]
        value = torch.stack([_weighted(of_one, recipe) for of_one in losses]).mean()
        return StepLoss(value, ", ".join(episode.task for episode, _ in drawn), len(rows), sum(map(len, rows)))

    return loss_of


def _weighted(losses: EpisodeLosses, recipe: EpisodesStage) -> torch.Tensor:
    return losses.queries + recipe.names_weight * losses.names + recipe.teacher_weight * losses.teacher


def _loss_under_adapters(
    engine: Engine, embeddings: nn.ParameterList, training: EpisodeTraining, running: Running
) -> LossOf:
    """Return the multi-task loss with each source's embedding, which keeps decoder and adapters consistent."""
    recipe, sources, seed = training.recipe, training.sources, training.seed
    tasks = tuple(SourceBatches(source, engine.encoder, seed + index) for index, source in enumerate(sources))
    sampling = Sampling(
        ((tasks, 1.0),), recipe.steps, recipe.adapted_rows, recipe.temperature, seed + 3, balance=training.balance
    )
    scores = hypernetwork_scores(engine, own_embeddings(embeddings))
    scales = {source.name for source in sources if source.kind == "regression"}
    precision = precision_of(recipe.precision, engine.device)
    return multitask_loss(scores, sampling, precision, running.processes, recipe.label_smoothing, scales)


def _rates(
    engine: Engine, embeddings: nn.ParameterList, sharpness: nn.Module, recipe: EpisodesStage
) -> list[tuple[list[nn.Parameter], float]]:
    """Return trained parameters with multiples of the learning rate.

    Token embeddings are frozen: episodes use few of them.
    """
    backbone = engine.backbone
    backbone.requires_grad_(True)
    engine.hypernetwork.requires_grad_(True)
    backbone.get_input_embeddings().weight.requires_grad_(False)
    encoder = [parameter for parameter in backbone.encoder.parameters() if parameter.requires_grad]
    encoder_ids = {id(parameter) for parameter in encoder}
    rest = [
        parameter for parameter in backbone.parameters() if parameter.requires_grad and id(parameter) not in encoder_ids
    ]
    return [
        (encoder, 1.0), (rest, recipe.decoder_rate), (list(engine.hypernetwork.parameters()), recipe.hypernetwork_rate),
        (list(embeddings), recipe.embedding_rate), (list(sharpness.parameters()), _SHARPNESS_RATE),
    ]  # fmt: skip
