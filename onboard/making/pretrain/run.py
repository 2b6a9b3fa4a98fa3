"""The stages of a base with a new backbone. A stage is skipped if its result is in the work folder.

Stages after the backbone are the same for every base: `onboard.making.multitask`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from onboard.bases import Base
from onboard.errors import InputError
from onboard.making.curriculum import Curriculum, PlainTexts, Source, build_curriculum
from onboard.making.multitask.assemble import Description, TrainedBase, write_base
from onboard.making.multitask.hypernetwork import (
    FurtherModules,
    HypernetworkTraining,
    TaskEmbeddings,
    new_engine,
    norms_beside,
    train_hypernetwork,
)
from onboard.making.multitask.loop import LossOf, StepLoss, TrainingStage, run_stage
from onboard.making.multitask.loss import Balance, Groups, Sampling, bare_scores, multitask_loss, precision_of
from onboard.making.multitask.make import PAIR_SEPARATOR, rows_digests
from onboard.making.multitask.recipe import as_told
from onboard.making.multitask.sources import SourceRows, read_sources
from onboard.making.pretrain import sentences
from onboard.making.pretrain.distill import Distillation, Keeping, relative_groups
from onboard.making.pretrain.ingredients import Ingredients, RecipeT, load_teaching, load_texts
from onboard.making.pretrain.inherit import inherit_encoder, inherit_reader, new_backbone
from onboard.making.pretrain.recipe import BackboneStage, JointStage, OwnRecipe, RenewedRecipe
from onboard.making.pretrain.teacher import Teacher
from onboard.making.pretrain.tokenizer import EOS_ID, inherit_tokenizer, teacher_pieces
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.quantised import round_to_stored
from onboard.model.weights import read_tensors, write_tensors

_ANCHORS = "topics-any-"  # name prefix of derived tasks that stay candidates if there are no fingerprints


def make_base(made_from: Ingredients[OwnRecipe], output: Path) -> None:
    """Run all stages, from text and sources to the folder of a base.

    Args:
        made_from: recipe, corpus, work folder.
    """
    recipe = made_from.recipe
    rows = read_sources(recipe.sources, recipe.seed)
    backbone, encoder, material = pretrain(made_from, rows)
    engine, made, sources = begin(made_from, rows, backbone, encoder, material)
    digests = rows_digests(sources)
    depends_on = made_from.settings("backbone", "curriculum", "multitask") | digests
    train_backbone(made_from, recipe.multitask, engine, made, sources, material, depends_on)
    settings = made_from.settings("backbone", "curriculum", "multitask", "hypernetwork") | digests
    training = joint_training(made_from, engine, material, settings)
    learned = train_hypernetwork(engine, made.groups, sources, training, made_from.running)
    if made_from.running.processes.first:
        write(made_from, engine, learned, made, sources, output)


def begin(
    made_from: Ingredients[RecipeT],
    rows: Sequence[SourceRows],
    backbone: Any,
    encoder: TextEncoder,
    material: PlainTexts,
) -> tuple[Engine, Curriculum, list[Source]]:
    """Return the backbone with a new hypernetwork, the curriculum, and its sources."""
    recipe, running = made_from.recipe, made_from.running
    sources = [source.worded(encoder) for source in rows]
    made = build_curriculum(sources, material, recipe.curriculum, encoder, recipe.seed)
    running.say(f"curriculum: {len(made.tasks)} tasks")
    engine = new_engine(recipe.hypernetwork, backbone, encoder, recipe.seed + 1)
    engine.to(running.processes.device)
    return engine, made, sources


def _plain_groups(made: Curriculum, shares: Mapping[str, float]) -> Groups:
    """Return the tasks for the bare backbone by kind, with the recipe's shares of the steps.

    Raises:
        InputError: no kind with a share has such tasks.
    """
    plain = made.plain
    groups = tuple(
        (tasks, shares[kind]) for kind, (tasks, _) in zip(plain.kinds, plain.groups, strict=True) if kind in shares
    )
    if not groups:
        raise InputError(
            "shares-of-unknown-tasks", field="multitask.shares", shares=list(shares), kinds=list(plain.kinds)
        )
    return groups


def train_backbone(
    made_from: Ingredients[RecipeT],
    schedule: BackboneStage,
    engine: Engine,
    made: Curriculum,
    sources: Sequence[Source],
    material: PlainTexts,
    depends_on: Mapping[str, Any],
) -> None:
    """Train all weights of the bare backbone on tasks that label words define, like the original T5; then round them.

    Args:
        made_from: provides seed and curriculum settings.
        engine: contains the backbone.
        made: the curriculum.
        sources: of the curriculum.
        material: the teacher's vectors, for a schedule that keeps the teacher.
        depends_on: settings and facts that a checkpoint must match.
    """
    recipe, running, backbone = made_from.recipe, made_from.running, engine.backbone
    backbone.requires_grad_(True)
    balance = Balance.of(sources, recipe.curriculum.most_of_a_family)
    groups = _plain_groups(made, schedule.shares)
    sampling = Sampling(groups, schedule.steps, schedule.batch, schedule.temperature, recipe.seed + 1, balance=balance)
    precision = precision_of(recipe.hypernetwork.precision, engine.device)
    scales = {source.name for source in sources if source.kind == "regression"}
    loss_of = multitask_loss(
        bare_scores(engine), sampling, precision, running.processes, schedule.label_smoothing, scales
    )
    around = _around(made_from, schedule, engine, material)
    relative = relative_groups(dict(backbone.named_parameters()), schedule.decoder_rate)
    run_stage(
        TrainingStage("multitask", schedule, {"backbone": backbone}, relative, around(loss_of), depends_on), running
    )
    backbone.requires_grad_(False)
    round_to_stored(backbone)


def joint_training(
    made_from: Ingredients[RecipeT],
    engine: Engine,
    material: PlainTexts,
    settings: Mapping[str, Any],
    rounded: Callable[[nn.Module], None] = round_to_stored,
) -> HypernetworkTraining:
    """Return the joint training of hypernetwork, embeddings and the backbone or its norms, by the recipe.

    Args:
        made_from: provides the section [hypernetwork].
        engine: backbone and new hypernetwork.
        material: the teacher's vectors, for a stage that keeps the teacher.
        settings: everything that the result depends on.
        rounded: rounds a module to its stored format.
    """
    recipe = made_from.recipe
    stage = recipe.hypernetwork
    return HypernetworkTraining(
        stage, recipe.seed + 2, settings, _beside(engine, recipe), rounded,
        _around(made_from, stage, engine, material), recipe.curriculum.most_of_a_family,
    )  # fmt: skip


def _beside(engine: Engine, recipe: OwnRecipe | RenewedRecipe) -> FurtherModules:
    """Return the further modules that the stage `hypernetwork` trains: the whole backbone, or its norms."""
    stage, backbone = recipe.hypernetwork, engine.backbone
    if not stage.backbone_rate or recipe.multitask is None:
        return norms_beside(engine, stage)
    share = stage.backbone_rate / stage.learning_rate
    relative = relative_groups(dict(backbone.named_parameters()), recipe.multitask.decoder_rate)
    return FurtherModules({"backbone": backbone}, [(parameters, multiple * share) for parameters, multiple in relative])


def _around(
    made_from: Ingredients[RecipeT], stage: BackboneStage | JointStage, engine: Engine, material: PlainTexts
) -> Callable[[LossOf], LossOf]:
    """Return a wrapper of a loss: with the stage's dropout, and the distance to the teacher if configured."""
    recipe, backbone = made_from.recipe, engine.backbone
    dropping = _dropping(backbone, stage.dropout, recipe.seed, made_from.running.processes.rank)
    if not stage.teacher_share:
        return dropping
    sequences = engine.encoder.encode([(text, None) for text in material.texts])
    keeping = Keeping(sequences, material.vectors, stage.teacher_tokens, recipe.seed, stage.teacher_share)
    precision = precision_of(recipe.hypernetwork.precision, engine.device)
    return lambda loss_of: keeping.beside(dropping(loss_of), backbone.encoder, precision)


def _dropping(backbone: Any, share: float, seed: int, rank: int) -> Callable[[LossOf], LossOf]:
    """Return a wrapper of a loss with dropout in the backbone. The dropped states depend on the step alone."""
    places = [module for module in backbone.modules() if isinstance(module, nn.Dropout)]

    def dropped(loss_of: LossOf, step: int) -> StepLoss:
        torch.manual_seed(int(np.random.SeedSequence((seed, 3, rank, step)).generate_state(1)[0]))
        for place in places:
            place.p = share
        backbone.train()
        try:
            return loss_of(step)
        finally:
            backbone.eval()
            for place in places:
                place.p = 0.0

    return lambda loss_of: partial(dropped, loss_of)


def write(
    made_from: Ingredients[RecipeT],
    engine: Engine,
    learned: TaskEmbeddings,
    made: Curriculum,
    sources: Sequence[Source],
    output: Path,
    given: Base | None = None,
) -> None:
    """Write the folder of the base, with measured sources and derived tasks as anchors.

    Args:
        made_from: the recipe, which is stored in the base.
        engine: rounded, with the best weights.
        learned: the embeddings.
        made: the curriculum; its tasks become anchors.
        sources: the shipped tasks.
        given: the base that the backbone is from; it is copied if the recipe does not train it.
    """
    recipe, prints = made_from.recipe, learned.fingerprints
    table = learned.table([task.name for task in made.tasks])
    source_names = {source.name for source in sources}
    candidates = [task for task in made.tasks if prints is not None or task.name.startswith(_ANCHORS)]
    anchors = {task.name: task.words for task in candidates if task.name not in source_names}
    shipped = {name: table[name] for name in (*source_names, *anchors)}
    facts: Mapping[str, Any] = {} if given is None else given.document
    copied = given if recipe.multitask is None else None
    description = Description(
        recipe.name, recipe.licence, facts.get("backbone", {}), recipe.hypernetwork.reduction_factor, as_told(recipe),
        "int8" if copied is None else facts.get("weights", "float16"),
    )  # fmt: skip
    earlier_rows = {} if given is None else given.trained_rows
    trained = TrainedBase(engine, sources, shipped, anchors, prints, copied, earlier_rows)
    write_base(trained, description, output, made_from.running.say)


def pretrain(made_from: Ingredients[OwnRecipe], rows: Sequence[SourceRows]) -> tuple[Any, TextEncoder, PlainTexts]:
    """Inherit, distill and train the decoder. Returns backbone, encoder and material for the multi-task stages."""
    recipe, running = made_from.recipe, made_from.running
    teacher = Teacher.load()
    texts = load_texts(made_from, rows)
    tokenizer = load_tokenizer(made_from, texts, teacher)
    material = load_teaching(made_from, texts, lambda: teacher)
    to_teacher = teacher.ids_of(teacher_pieces(tokenizer, teacher.tokenizer))
    limit = recipe.backbone.max_tokens - 1
    sequences = [[*ids[:limit], EOS_ID] for ids in _ids(tokenizer, [*texts, *_more_texts(made_from, texts, rows)])]
    backbone = load_inherited(made_from, teacher, to_teacher, sequences[: len(texts)])
    learning = Distillation(sequences, material.vectors, to_teacher, recipe.distill.batch, recipe.seed)
    encoder = backbone.encoder
    on_cpu = replace(running, processes=replace(running.processes, device=torch.device("cpu")))
    relative = relative_groups(dict(encoder.named_parameters()))
    settings = made_from.settings("backbone", "sentences", "inherit", "distill")
    run_stage(
        TrainingStage(
            "distill", recipe.distill, {"encoder": encoder}, relative, learning.loss(backbone, teacher), settings
        ),
        on_cpu,
    )
    inherit_reader(backbone, _whole_words(tokenizer), recipe.seed)
    return backbone, TextEncoder(tokenizer, PAIR_SEPARATOR, recipe.backbone.max_tokens), material


def _more_texts(made_from: Ingredients[OwnRecipe], texts: Sequence[str], rows: Sequence[SourceRows]) -> list[str]:
    """Return texts for distillation only: more of the corpus, and the sources' texts and pairs as encoded."""
    counts, known_texts = made_from.recipe.sentences, set(texts)
    short, long = sentences.corpus_texts(
        made_from.corpus, counts.more_from_corpus, counts.more_paragraphs, made_from.recipe.seed + 1
    )
    of_sources = (
        f"{row.text_a} {PAIR_SEPARATOR} {row.text_b}" if row.text_b else row.text_a
        for source in rows
        for row in source.dataset.train
    )
    return [text for text in dict.fromkeys((*short, *long, *of_sources)) if text not in known_texts]


def _whole_words(tokenizer: Any) -> list[int]:
    """Return the token ids of words with at least three letters that are a single token."""
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return [index for index, piece in enumerate(pieces) if len(piece) > 2 and piece.isalpha()]


def load_inherited(
    made_from: Ingredients[OwnRecipe], teacher: Teacher, to_teacher: torch.Tensor, sequences: Sequence[Sequence[int]]
) -> Any:
    """Return the backbone with the inherited encoder, from the work folder or computed."""
    recipe = made_from.recipe
    torch.manual_seed(recipe.seed)
    backbone = new_backbone(recipe.backbone, teacher)
    path = made_from.work / "inherited.safetensors"
    if not path.is_file():
        drawn = np.random.default_rng((recipe.seed, 2)).permutation(len(sequences))[: recipe.inherit.texts]
        most = recipe.inherit.most_tokens
        shortened = [[*sequences[index][:-1][: most - 1], EOS_ID] for index in drawn.tolist()]
        inherit_encoder(backbone, teacher, to_teacher, shortened, made_from.running.say)
        write_tensors(backbone.encoder.state_dict(), path, {})
    state, _ = read_tensors(path)
    backbone.encoder.load_state_dict(state)
    return backbone


def load_tokenizer(made_from: Ingredients[OwnRecipe], texts: Sequence[str], teacher: Teacher) -> Any:
    """Return the base's tokenizer, from the work folder or created.

    Raises:
        InputError: the texts contain fewer pieces than the recipe requires.
    """
    from transformers import AutoTokenizer

    folder, size = made_from.work / "tokenizer", made_from.recipe.backbone.vocabulary_size
    if not (folder / "tokenizer.json").is_file():
        inherit_tokenizer(texts, teacher.tokenizer, size, folder)
        made_from.running.say(f"tokenizer: {size} pieces")
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    if len(tokenizer) != size:
        raise InputError("vocabulary-size-differs", folder=folder, pieces=len(tokenizer), size=size)
    return tokenizer


def _ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    # the library has no type stubs
    ids: list[list[int]] = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    return ids
