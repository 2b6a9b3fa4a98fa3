"""Recipes: every number that makes a base, checked before hours are spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from onboard.errors import InputError
from onboard.pretrain.recipe import Schedule, load_recipe

MINI = Path(__file__).parents[3] / "recipes" / "mini.toml"


def test_the_shipped_recipe_is_whole() -> None:
    recipe = load_recipe(MINI)
    assert recipe.name == "mini"
    assert recipe.hypernetwork.task_embedding_size == 64
    assert recipe.backbone.d_model % recipe.hypernetwork.reduction_factor == 0
    assert recipe.backbone.heads * recipe.backbone.d_kv == recipe.backbone.d_model
    assert all(size >= 2 for size in recipe.curriculum.topic_levels)
    assert recipe.licence


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("seed = 0", "", "seed"),
        ("seed = 0", 'seed = "zero"', "seed"),
        ("seed = 0", "seed = 0\nsurprise = 1", "surprise"),
        ("d_ff = 1024", "d_ff = 0", "backbone.d_ff"),
        ("d_ff = 1024", "d_ff = 1024\nwidth = 3", "backbone.width"),
        ("learning_rate = 1e-3       # linear", "learning_rate = -1  #", "distill.learning_rate"),
        ("topic_levels = [12, 40, 150]", 'topic_levels = ["many"]', "curriculum.topic_levels.0"),
        ("projector_width = 128", "", "hypernetwork.projector_width"),
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
        load_recipe(path)
    assert caught.value.data["field"] == field
    assert field in caught.value.message
    assert str(path) in caught.value.remedy


def test_what_is_no_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path / "missing.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path)
    (tmp_path / "broken.toml").write_text("name = ", encoding="utf-8")
    with pytest.raises(InputError, match="no TOML"):
        load_recipe(tmp_path / "broken.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(InputError, match="UTF-8"):
        load_recipe(tmp_path / "latin.toml")


def test_the_learning_rate_warms_up_and_decays_to_zero() -> None:
    schedule = Schedule(steps=10, batch=1, learning_rate=1.0, warmup_steps=4)
    factors = [schedule.factor(step) for step in range(11)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4:] == pytest.approx([1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0.0])
    assert Schedule(steps=2, batch=1, learning_rate=1.0, warmup_steps=0).factor(0) == 1.0
    assert 0 < Schedule(steps=2, batch=1, learning_rate=1.0, warmup_steps=9).factor(1) < 1.0
