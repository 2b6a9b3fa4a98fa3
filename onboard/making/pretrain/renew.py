"""Train a new hypernetwork on the backbone of an existing base.

The backbone is unchanged, so that measurements on it stay valid, or it is trained further (and grown first, if the
recipe says so).
"""

from __future__ import annotations

from pathlib import Path

from onboard.bases import find_base
from onboard.bases.load import fresh_backbone
from onboard.errors import InputError
from onboard.making.multitask.hypernetwork import round_to_half, train_hypernetwork
from onboard.making.multitask.make import rows_digests
from onboard.making.multitask.sources import read_sources
from onboard.making.pretrain.grow import grown
from onboard.making.pretrain.ingredients import Ingredients, load_teaching, load_texts
from onboard.making.pretrain.recipe import RenewedRecipe
from onboard.making.pretrain.run import begin, joint_training, train_backbone, write
from onboard.making.pretrain.teacher import Teacher
from onboard.model.quantised import round_to_stored


def renew_base(made_from: Ingredients[RenewedRecipe], output: Path) -> None:
    """Train hypernetwork and embeddings on the whole curriculum, and the backbone first if the recipe says so.

    Args:
        made_from: recipe, corpus, work folder.

    Raises:
        NotFoundError: the base does not exist, or the teacher is not installed.
        InputError: the output is the folder of that base, or the backbone would shrink.
    """
    recipe, running = made_from.recipe, made_from.running
    base = find_base(recipe.backbone.of)
    if output.resolve() == base.folder.resolve():
        raise InputError("output-is-backbone-base", output=output)
    backbone, encoder = fresh_backbone(base)
    growth = recipe.backbone.grow
    if growth is not None:
        backbone = grown(backbone, growth, recipe.seed)
    rows = read_sources(recipe.sources, recipe.seed)
    material = load_teaching(made_from, load_texts(made_from, rows), Teacher.load)
    engine, made, sources = begin(made_from, rows, backbone, encoder, material)
    facts = {"backbone_digest": base.backbone_digest} | rows_digests(sources)
    if growth is not None:
        facts["grow"] = growth.model_dump()
    learns_on, sections = recipe.multitask, ["sentences", "curriculum"]
    if learns_on is not None:
        sections.append("multitask")
        depends_on = made_from.settings(*sections) | facts
        train_backbone(made_from, learns_on, engine, made, sources, material, depends_on)
    in_int8 = learns_on is not None or base.document.get("weights") == "int8"
    settings = made_from.settings(*sections, "hypernetwork") | facts
    rounded = round_to_stored if in_int8 else round_to_half
    training = joint_training(made_from, engine, material, settings, rounded)
    learned = train_hypernetwork(engine, made.groups, sources, training, running)
    if running.processes.first:
        write(made_from, engine, learned, made, sources, output, base)
