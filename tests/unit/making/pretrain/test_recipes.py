"""Recipes: every number that makes a base, checked before hours are spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from onboard.errors import InputError
from onboard.making.curriculum import KINDS
from onboard.making.multitask.recipe import read_recipe, read_toml
from onboard.making.pretrain import recipe as sections
from onboard.making.pretrain.recipe import OwnRecipe, RenewedRecipe, recipe_of

MINI = Path(__file__).parents[4] / "recipes" / "mini.toml"
TEACHERS_WIDTH = 384


def test_the_shipped_recipe_is_whole() -> None:
    recipe = recipe_of(read_toml(MINI), MINI)
    assert isinstance(recipe, OwnRecipe)
    assert recipe.name == "mini"
    assert recipe.hypernetwork.task_embedding_size == 64
    assert TEACHERS_WIDTH % recipe.hypernetwork.reduction_factor == 0
    assert all(size >= 2 for size in recipe.curriculum.topic_levels)
    assert all(recipe.curriculum.of(kind).share for kind in recipe.multitask.shares)
    assert sum(recipe.curriculum.of(kind).share for kind in KINDS) == pytest.approx(1.0)
    assert sum(recipe.multitask.shares.values()) == pytest.approx(1.0)
    assert recipe.licence


def test_the_recipe_of_many_tasks_lets_the_backbone_learn_on_and_says_what_its_sources_are() -> None:
    path = MINI.with_name("mini-wide.toml")
    recipe = wide_recipe(read_toml(path))
    assert (recipe.name, recipe.backbone.of, recipe.hypernetwork.train_norms) == ("mini", "mini", False)
    assert recipe.multitask is not None
    assert recipe.multitask.teacher_share > 0
    assert all(recipe.curriculum.of(kind).share for kind in recipe.multitask.shares)
    assert sum(recipe.curriculum.of(kind).share for kind in KINDS) == pytest.approx(1.0)
    assert (len(recipe.sources), len(recipe.held_out)) == (127, 49)
    assert all(source.title and source.family and source.licence for source in recipe.sources.values())
    assert all(source.publisher for source in recipe.sources.values())


def test_its_backbone_stays_as_it_is_where_the_recipe_has_no_stage_for_it() -> None:
    document = read_toml(MINI.with_name("mini-wide.toml"))
    del document["multitask"]
    with refused("recipe-field-wrong", field="hypernetwork"):
        wide_recipe(document)
    del document["hypernetwork"]["backbone_rate"]
    assert wide_recipe(document).multitask is None


def wide_recipe(document: dict[str, Any]) -> RenewedRecipe:
    """As --sources DIR completes it."""
    for name, source in document["sources"].items():
        source["from"] = name
    recipe = recipe_of(document, "mini-wide.toml")
    assert isinstance(recipe, RenewedRecipe)
    return recipe


def test_the_recipe_of_the_larger_base_is_that_of_the_one_that_ships_on_a_backbone_that_grows() -> None:
    path = MINI.with_name("small.toml")
    recipe, wide = wide_recipe(read_recipe(path)), wide_recipe(read_toml(MINI.with_name("mini-wide.toml")))
    assert (recipe.name, recipe.backbone.of) == ("small", "mini")
    assert (recipe.sources, recipe.held_out, recipe.curriculum) == (wide.sources, wide.held_out, wide.curriculum)
    assert recipe.backbone.grow is not None
    assert recipe.backbone.grow.d_model == 512
    assert recipe.multitask is not None
    assert wide.multitask is not None
    assert recipe.multitask.shares == wide.multitask.shares
    assert recipe.hypernetwork.projector_start == wide.hypernetwork.projector_start == "open"


def test_a_backbone_that_grows_has_to_learn_on() -> None:
    document = read_toml(MINI.with_name("mini-hypernetwork.toml"))
    document["backbone"]["grow"] = {"d_model": 512}
    with refused("recipe-field-wrong", field="multitask"):
        recipe_of(document, "mini-hypernetwork.toml")


def test_a_recipe_says_what_is_other_than_in_the_one_that_it_is_like(tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text('name = "a"\nseed = 1\n[curriculum]\nx = 1\ny = { share = 1 }\n')
    (tmp_path / "second.toml").write_text('like = "first.toml"\nname = "b"\n[curriculum]\ny = 2\n[backbone]\nz = 3\n')
    document = read_recipe(tmp_path / "second.toml")
    assert document == {"name": "b", "seed": 1, "curriculum": {"x": 1, "y": 2}, "backbone": {"z": 3}}


@pytest.mark.parametrize("like", ['"third.toml"', '"./third.toml"', '"deep/none.toml"', '""', "7", '"round.toml"'])
def test_a_recipe_that_is_like_none_is_refused_by_name(tmp_path: Path, like: str) -> None:
    (tmp_path / "round.toml").write_text('like = "third.toml"\n')
    (tmp_path / "third.toml").write_text(f"like = {like}\n")
    with refused("recipe-like-unknown") as caught:
        read_recipe(tmp_path / "third.toml")
    assert caught.value.data["field"] == "like"


def test_the_recipe_of_its_hypernetwork_takes_the_backbone_of_a_base_and_trains_nothing_of_it() -> None:
    path = MINI.with_name("mini-hypernetwork.toml")
    recipe = recipe_of(read_toml(path), path)
    assert isinstance(recipe, RenewedRecipe)
    assert (recipe.name, recipe.backbone.of, recipe.hypernetwork.train_norms) == ("mini", "mini", False)
    assert recipe.curriculum == OwnRecipe.model_validate(read_toml(MINI)).curriculum
    assert recipe.licence == OwnRecipe.model_validate(read_toml(MINI)).licence
    for section, change, field in (
        ("hypernetwork", {"train_norms": True}, "hypernetwork.train_norms"),
        ("hypernetwork", {"backbone_rate": 1e-3}, "hypernetwork"),
        ("hypernetwork", {"projector_width": 64}, "hypernetwork.projector_start"),
        ("hypernetwork", {"method": "hyperformer"}, "hypernetwork.projector_start"),
        ("backbone", {"max_tokens": 64}, "backbone.max_tokens"),
    ):
        document = read_toml(path)
        document[section] |= change
        with pytest.raises(InputError) as caught:
            recipe_of(document, path)
        assert caught.value.data["field"] == field


@pytest.mark.parametrize(
    "name", ["mini.toml", "mini-hypernetwork.toml", "mini-wide.toml", "small.toml", "t5-small-glue.toml"]
)
def test_a_recipe_that_names_a_held_out_task_is_refused_by_name(name: str) -> None:
    document = read_recipe(MINI.with_name(name))
    document |= {"held_out": ["puns"], "sources": {"puns": {"from": "puns"}}}
    with refused("recipe-field-wrong") as caught:
        recipe_of(document, name)
    assert caught.value.data["reason"].startswith("puns ")


def test_every_field_of_a_stage_says_what_it_is() -> None:
    stages = (
        sections.BackboneShape, sections.SentenceCounts, sections.Inheritance, sections.DistillStage,
        sections.BackboneStage, sections.JointStage, sections.TextCounts, sections.BackboneOfBase,
        sections.Growth, sections.RenewedStage,
    )  # fmt: skip
    for stage in stages:
        assert all(field.description for field in stage.model_fields.values()), stage


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("seed = 0", "", "seed"),
        ("seed = 0", 'seed = "zero"', "seed"),
        ("seed = 0", "seed = 0\nsurprise = 1", "surprise"),
        ("d_ff = 1024", "d_ff = 0", "backbone.d_ff"),
        ("d_ff = 1024", "d_ff = 1024\nd_model = 384", "backbone.d_model"),
        ("texts = 2400", "texts = 0", "inherit.texts"),
        ("learning_rate = 4e-3", "learning_rate = -1", "distill.learning_rate"),
        ("topic_levels = [12, 40, 150, 400]", 'topic_levels = ["many"]', "curriculum.topic_levels.0"),
        ("shares = { sources", "shares = { source", "multitask.shares"),
        ("projector_width = 128", "projector_width = 0", "hypernetwork.projector_width"),
        ("projector_width = 128", "tasks_per_batch = 5", "hypernetwork.tasks_per_batch"),
    ],
)
def test_a_field_that_is_missing_unknown_or_out_of_range_is_named(
    tmp_path: Path, old: str, new: str, field: str
) -> None:
    text = MINI.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        recipe_of(read_toml(path), path)
    assert caught.value.data["field"] == field
    assert field in caught.value.message
    assert str(path) in caught.value.remedy


@pytest.mark.parametrize(
    ("section", "change", "field"),
    [
        ("multitask", {"dropout": 1.0}, "multitask.dropout"),
        ("multitask", {"shares": {"sources": 0.0}}, "multitask.shares.sources"),
        ("multitask", {"shares": {}}, "multitask.shares"),
        ("hypernetwork", {"embedding_start": "random", "fingerprint_share": 0.5}, "hypernetwork.fingerprint_share"),
        ("hypernetwork", {"backbone_rate": -1e-4}, "hypernetwork.backbone_rate"),
        ("hypernetwork", {"dropout": 1.0}, "hypernetwork.dropout"),
    ],
)
def test_a_wrong_field_of_the_multi_task_stages_is_named_too(section: str, change: dict[str, Any], field: str) -> None:
    document = read_toml(MINI)
    document[section] |= change
    with pytest.raises(InputError) as caught:
        recipe_of(document, MINI)
    assert caught.value.data["field"] == field


def test_a_t5_that_exists_is_never_trained_with_its_hypernetwork() -> None:
    path = MINI.with_name("t5-small-glue.toml")
    document = read_toml(path)
    document["hypernetwork"] |= {"backbone_rate": 1e-4}
    with pytest.raises(InputError) as caught:
        recipe_of(document, path)
    assert caught.value.data["field"] == "hypernetwork.backbone_rate"


def test_what_is_no_recipe_is_refused(tmp_path: Path) -> None:
    with refused("recipe-unreadable"):
        read_toml(tmp_path / "missing.toml")
    with refused("recipe-unreadable"):
        read_toml(tmp_path)
    (tmp_path / "broken.toml").write_text("name = ", encoding="utf-8")
    with refused("recipe-not-toml"):
        read_toml(tmp_path / "broken.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with refused("recipe-not-utf8"):
        read_toml(tmp_path / "latin.toml")
