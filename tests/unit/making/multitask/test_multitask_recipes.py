"""Recipes of bases on a T5 that exists: the paper's defaults, and every wrong field named."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from onboard.errors import InputError
from onboard.making.multitask.recipe import HypernetworkStage, Recipe, read_toml, validated
from onboard.making.pretrain.recipe import recipe_of

RECIPES = Path(__file__).parents[4] / "recipes"


def test_without_a_word_the_recipe_is_the_paper_s() -> None:
    stage = HypernetworkStage()
    assert (stage.method, stage.embedding_size, stage.projector_width, stage.reduction_factor) == (
        "hyperformer++", 64, 128, 32,
    )  # fmt: skip
    assert (stage.learning_rate, stage.warmup_steps, stage.schedule, stage.clip) == (3e-4, 500, "linear", 1.0)
    assert (stage.weight_decay, stage.label_smoothing, stage.temperature) == (0.0, 0.1, 10.0)
    assert stage.train_norms
    assert (stage.embedding_rate, stage.tasks_per_batch) == (1.0, 1)
    assert (stage.embedding_start, stage.fingerprint_share) == ("random", 0.0)
    assert HypernetworkStage(method="hyperformer").embedding_size == 512
    assert HypernetworkStage(method="hyperformer", task_embedding_size=32).embedding_size == 32


def test_every_field_says_what_it_is() -> None:
    for name, field in {**HypernetworkStage.model_fields, **Recipe.model_fields}.items():
        assert field.description or name in ("backbone", "hypernetwork"), name


@pytest.mark.parametrize(
    ("section", "change", "field", "words"),
    [
        ("hypernetwork", {"precision": "fp16"}, "hypernetwork.precision", "overflows"),
        ("hypernetwork", {"precision": "int8"}, "hypernetwork.precision", "bf16"),
        ("hypernetwork", {"method": "lora"}, "hypernetwork.method", "hyperformer"),
        ("hypernetwork", {"schedule": "cosine"}, "hypernetwork.schedule", "linear"),
        ("hypernetwork", {"label_smoothing": 1.0}, "hypernetwork.label_smoothing", "less than 1"),
        ("hypernetwork", {"learning_rates": 1.0}, "hypernetwork.learning_rates", "not permitted"),
        ("hypernetwork", {"embedding_rate": 0.0}, "hypernetwork.embedding_rate", "greater than 0"),
        ("hypernetwork", {"embedding_start": "zero"}, "hypernetwork.embedding_start", "fingerprint"),
        ("hypernetwork", {"fingerprint_share": 0.5}, "hypernetwork.fingerprint_share", "embedding_start"),
        (
            "hypernetwork",
            {"embedding_start": "fingerprint", "fingerprint_share": 1.1},
            "hypernetwork.fingerprint_share",
            "less than or equal to 1",
        ),
        ("hypernetwork", {"tasks_per_batch": 0}, "hypernetwork.tasks_per_batch", "greater than or equal to 1"),
        ("hypernetwork", {"batch": 48, "tasks_per_batch": 5}, "hypernetwork.tasks_per_batch", "48 rows"),
        ("sources", {"moods": {"from": "x", "metric": "bleu"}}, "sources.moods.metric", "accuracy"),
        ("sources", {"moods": {"from": "x", "metric": "log_loss"}}, "sources.moods.metric", "accuracy"),
        ("sources", {"moods": {"from": "x", "fields": "y"}}, "sources.moods.fields", "not permitted"),
        ("sources", {"moods": {}}, "sources.moods.from", "required"),
        ("sources", {"Moods!": {"from": "x"}}, "name", "lower-case"),
        ("backbone", {"max_tokens": 2}, "backbone.max_tokens", "8"),
    ],
)
def test_a_wrong_field_is_named(
    document: dict[str, Any], section: str, change: dict[str, Any], field: str, words: str
) -> None:
    document[section] |= change
    with pytest.raises(InputError) as caught:
        validated(Recipe, document, "r.toml")
    assert caught.value.data["field"] == field
    assert words in caught.value.message
    assert field in caught.value.remedy


@pytest.mark.parametrize("path", sorted(RECIPES.glob("t5-*.toml")), ids=lambda path: path.stem)
def test_the_shipped_recipes_are_those_of_the_paper(path: Path) -> None:
    recipe = recipe_of(read_toml(path), path)
    assert isinstance(recipe, Recipe)
    assert recipe.name == path.stem
    assert set(recipe.sources) == {"cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte"}
    assert all(entry.source.startswith("hf://nyu-mll/glue/") for entry in recipe.sources.values())
    assert {entry.splits for entry in recipe.sources.values()} == {"hold-out", "halve"}  # GLUE's test has no labels
    assert recipe.sources["cola"].metric == "mcc"
    stage = recipe.hypernetwork
    assert (stage.method, stage.embedding_size, stage.learning_rate) == ("hyperformer++", 64, 3e-4)
    assert "unmeasured" in path.read_text(encoding="utf-8")
    if "hour" not in path.stem:
        assert (stage.steps, stage.batch, stage.schedule) == (65536, 4 * 32, "linear")


def test_the_recipes_have_a_variant_of_an_hour() -> None:
    assert {path.stem for path in RECIPES.glob("t5-*.toml")} == {
        "t5-base-glue", "t5-base-glue-hour", "t5-small-glue", "t5-small-glue-hour",
    }  # fmt: skip
    for size in ("base", "small"):
        full, hour = (
            tomllib.loads((RECIPES / f"t5-{size}-glue{suffix}.toml").read_text(encoding="utf-8"))
            for suffix in ("", "-hour")
        )
        assert hour["sources"] == full["sources"]
        assert hour["hypernetwork"]["steps"] < full["hypernetwork"]["steps"] / 8
