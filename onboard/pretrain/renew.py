"""A new hypernetwork on the backbone of a base that exists: what is measured on the backbone alone stays true."""

from __future__ import annotations

from pathlib import Path

from onboard.bases import find_base
from onboard.bases.load import fresh_backbone
from onboard.curriculum import build_curriculum
from onboard.model.quantised import round_to_stored
from onboard.multitask.hypernetwork import Beside, new_engine, round_to_half, train_hypernetwork
from onboard.multitask.make import rows_digests
from onboard.multitask.sources import read_sources
from onboard.pretrain.recipe import RenewedRecipe
from onboard.pretrain.run import Ingredients, load_teaching, load_texts, write
from onboard.pretrain.teacher import Teacher


def renew_base(made_from: Ingredients[RenewedRecipe], output: Path) -> None:
    """Train hypernetwork and embeddings on the whole curriculum, and write a base with the other one's backbone.

    Args:
        made_from: recipe, corpus, work folder.
        output: the new base's folder.

    Raises:
        NotFoundError: there is no such base, or the teacher is not installed.
    """
    recipe, running = made_from.recipe, made_from.running
    rows, given = read_sources(recipe.sources, recipe.seed), find_base(recipe.backbone.of)
    backbone, encoder = fresh_backbone(given)
    material = load_teaching(made_from, load_texts(made_from, rows), Teacher.load())
    sources = [each.worded(encoder) for each in rows]
    made = build_curriculum(sources, material, recipe.curriculum, encoder, recipe.seed)
    running.say(f"curriculum: {len(made.tasks)} tasks")
    engine = new_engine(recipe.hypernetwork, backbone, encoder, recipe.seed + 1)
    engine.to(running.processes.device)
    settings = made_from.settings("sentences", "curriculum", "hypernetwork") | rows_digests(rows)
    learned = train_hypernetwork(
        engine, made.groups, sources, [each.metric for each in rows], recipe.hypernetwork, Beside({}, []),
        recipe.seed + 2, settings | {"backbone_digest": given.backbone_digest}, running,
        round_to_stored if given.document["weights"] == "int8" else round_to_half,
    )  # fmt: skip
    if running.processes.first:
        write(made_from, engine, learned, made, rows, sources, output, given.document, given.trained_rows)
