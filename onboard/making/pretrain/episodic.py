"""Train an existing base further by episodes, with its backbone, hypernetwork and embeddings, and a second teacher."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from torch import nn

from onboard.bases import Base, find_base
from onboard.bases.fingerprints import Fingerprints
from onboard.bases.load import fresh_engine
from onboard.errors import InputError
from onboard.making.curriculum.source import Source
from onboard.making.multitask.assemble import Description, TrainedBase, write_base
from onboard.making.multitask.episode_stage import EpisodeTraining, TaughtRows, train_by_episodes
from onboard.making.multitask.loop import Running
from onboard.making.multitask.make import rows_digests
from onboard.making.multitask.recipe import as_told
from onboard.making.multitask.sources import read_sources
from onboard.making.multitask.tasks import SourceBatches
from onboard.making.pretrain.recipe import EpisodicRecipe
from onboard.making.pretrain.teacher import Teacher
from onboard.model.engine import Engine
from onboard.model.fingerprint import raw_fingerprint
from onboard.model.quantised import round_to_stored

_FINGERPRINTED = (4, 8)  # batches of a source, and rows of each, for its fingerprint


def learn_by_episodes(recipe: EpisodicRecipe, running: Running, output: Path) -> None:
    """Train the base of the recipe by episodes, round it to int8, measure it, and write it.

    Args:
        running: work folder (the same one resumes), progress, signals.

    Raises:
        NotFoundError: the base does not exist, or the second teacher is not installed.
        InputError: the output is the folder of that base, a source does not belong to it, or there are several
            processes.
    """
    base = find_base(recipe.backbone.of)
    if output.resolve() == base.folder.resolve():
        raise InputError("output-is-input-base", output=output)
    if running.processes.count > 1:
        raise InputError("episodes-one-process")
    engine = fresh_engine(base).to(running.processes.device)
    sources = [source.worded(engine.encoder) for source in read_sources(recipe.sources, recipe.seed)]
    _require_own(base, sources)
    taught = _taught(recipe, running, sources) if recipe.episodes.teacher_weight else {}
    starts = (torch.from_numpy(np.array(base.embeddings[source.name]))[None] for source in sources)
    embeddings = nn.ParameterList(nn.Parameter(z.clone()) for z in starts).to(engine.device)
    settings = recipe.model_dump(mode="json", by_alias=True, include={"seed", "episodes"})
    settings |= {"base": base.digest} | rows_digests(sources)
    training = EpisodeTraining(recipe.episodes, sources, taught, recipe.seed, settings)
    modules = (engine.backbone, engine.hypernetwork, embeddings)
    started = [copy.deepcopy(module.state_dict()) for module in modules]
    train_by_episodes(engine, embeddings, training, running)
    for module, start in zip(modules, started, strict=True):
        go_part_of_the_way(module, start, recipe.episodes.way)
    for module in (engine.backbone, engine.hypernetwork):
        round_to_stored(module)
    table = dict(base.embeddings) | {
        source.name: z.detach()[0].float().cpu().numpy() for source, z in zip(sources, embeddings, strict=True)
    }
    anchors = {anchor.name: anchor.words for anchor in base.anchors}  # anchors keep their embeddings
    prints = None if base.fingerprints is None else _taken_again(base.fingerprints, engine, sources, recipe.seed)
    trained = TrainedBase(engine, sources, table, anchors, prints, None, base.trained_rows)
    write_base(trained, _description(recipe, base), output, running.say)


def go_part_of_the_way(module: nn.Module, start: Mapping[str, torch.Tensor], way: float) -> None:
    """Replace every number of a module by start + way · (number − start).

    Halfway, an encoder keeps its earlier abilities and most of what it learned (WiSE-FT: Wortsman et al. 2022, arXiv
    2109.01903): docs/decisions/0032.
    """
    ended = module.state_dict()
    module.load_state_dict({
        name: torch.lerp(start[name], number, way) if number.is_floating_point() else number
        for name, number in ended.items()
    })  # fmt: skip


def _require_own(given: Base, sources: Sequence[Source]) -> None:
    unknown = [source.name for source in sources if source.name not in given.embeddings]
    if unknown:
        raise InputError("base-lacks-source", given=given.name, unknown=unknown[0])


def _taught(recipe: EpisodicRecipe, running: Running, sources: Sequence[Source]) -> dict[str, TaughtRows]:
    """Return single texts with vectors of the second teacher, from the work folder or computed."""
    path = running.work / "second-teacher.safetensors"
    if not path.is_file():
        teacher, arrays = Teacher.second(running.work), {}
        single = [source for source in sources if not source.pairs]
        for done, source in enumerate(single, start=1):
            rng = np.random.default_rng((recipe.seed, 8))
            places = np.sort(rng.permutation(len(source.train))[: recipe.episodes.teacher_rows])
            arrays[f"{source.name}.places"] = places
            arrays[f"{source.name}.vectors"] = teacher.vectors([source.train[place].text_a for place in places])
            running.say(f"second teacher: {done} of {len(single)} sources")
        path.parent.mkdir(parents=True, exist_ok=True)
        save_arrays(arrays, path)
    stored = load_arrays(path)
    names = [key.removesuffix(".places") for key in stored if key.endswith(".places")]
    return {name: TaughtRows(stored[f"{name}.places"], stored[f"{name}.vectors"].astype(np.float32)) for name in names}


def _description(recipe: EpisodicRecipe, given: Base) -> Description:
    return Description(
        recipe.name, recipe.licence, given.document.get("backbone", {}), given.document["reduction_factor"],
        as_told(recipe), "int8",
    )  # fmt: skip


def _taken_again(known: Fingerprints, engine: Engine, sources: Sequence[Source], seed: int) -> Fingerprints:
    """Return fingerprints of the sources with the new weights, on the earlier scale. Those of anchors are kept."""
    count, rows = _FINGERPRINTED
    again = dict(known.of)
    for index, source in enumerate(sources):
        task = SourceBatches(source, engine.encoder, seed + index)
        raw = raw_fingerprint(engine, [task.batch(place, rows) for place in range(count)], known.projections)
        again[source.name] = known.scaled(raw)
    return Fingerprints(known.projections, known.mean, known.deviation, again)
