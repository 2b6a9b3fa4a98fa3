"""From a recipe and a T5 to a base that predicts: what is trained, what is not, and what the base says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.refusals import refused
from support.tiny_training import make_tiny_t5
from transformers import ByT5Tokenizer

from onboard.bases import find_base, home_bases, named_bases
from onboard.bases.fingerprints import Fingerprints
from onboard.bases.load import load_engine
from onboard.errors import ConflictError, InputError
from onboard.making.multitask.backbone import find_backbone, load_given
from onboard.making.multitask.hypernetwork import new_engine, round_to_half
from onboard.making.multitask.loop import Running
from onboard.making.multitask.make import make_base
from onboard.making.multitask.recipe import Recipe
from onboard.making.multitask.sources import read_sources
from onboard.making.multitask.tasks import SourceBatches
from onboard.model.backbone import norm_parameters
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.fingerprint import raw_fingerprint
from onboard.model.projections import Projections
from onboard.serving import Predictor


def make(document: dict[str, Any], work: Path, output: Path) -> list[str]:
    lines: list[str] = []
    make_base(Recipe.model_validate(document), Running(work, lines.append), output)
    return lines


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Work folder and base of the first test, which the next ones look at."""
    return {"work": tmp_path_factory.mktemp("work"), "base": tmp_path_factory.mktemp("made") / "base"}


def test_hypernetwork_embeddings_and_norms_are_trained_and_nothing_else(
    document: dict[str, Any], shared: dict[str, Path], tiny_t5: Path
) -> None:
    lines = make(document, shared["work"], shared["base"])
    before, after = load_file(tiny_t5 / "model.safetensors"), load_file(shared["base"] / "backbone/model.safetensors")
    moved = {name for name, value in before.items() if not torch.equal(value.half(), after[name])}
    engine = load_engine(find_base(str(shared["base"])), "cpu")
    norms = {name for name in before if name.endswith("layer_norm.weight")}
    assert len(norms) == len(norm_parameters(engine.backbone))
    assert moved == norms
    assert any("validation" in line for line in lines)


def test_the_base_says_what_it_is_and_predicts(shared: dict[str, Path], tiny_t5: Path) -> None:
    base = find_base(str(shared["base"]))
    facts = base.document
    assert (facts["method"], facts["task_embedding_size"], facts["reduction_factor"]) == ("hyperformer++", 8, 4)
    assert facts["backbone"] == {"from": str(tiny_t5), "revision": None, "licence": None}
    assert facts["sources"]["moods"]["metrics"]["test"]["accuracy"]["n"] == 24
    assert set(facts["sources"]["moods"]["metrics"]["baselines"]) == {"majority", "tfidf_logistic_regression"}
    assert facts["recipe"]["hypernetwork"]["label_smoothing"] == 0.1
    assert all("/" not in entry["from"] for entry in facts["recipe"]["sources"].values())  # names, not places
    card = (base.folder / "card.md").read_text(encoding="utf-8")
    for part in (
        "# Base `trial`",
        "Apache-2.0",
        str(tiny_t5),
        "HyperFormer++",
        "| moods | 48 | accuracy |",
        "spearman",
    ):
        assert part in card
    answers = Predictor(base).predict(
        [{"task": "moods", "text": "a great film"}, {"task": "alike", "text_a": "a film", "text_b": "film"}]
    )
    assert answers[0].label in ("positive", "negative")


def test_the_same_again_trains_nothing_and_gives_the_same_base(
    document: dict[str, Any], shared: dict[str, Path], tmp_path: Path
) -> None:
    make(document, shared["work"], tmp_path / "again")
    assert find_base(str(tmp_path / "again")).digest == find_base(str(shared["base"])).digest


def test_another_recipe_or_other_rows_are_refused_by_the_checkpoint(
    document: dict[str, Any], shared: dict[str, Path], tmp_path: Path
) -> None:
    document["hypernetwork"]["learning_rate"] = 1e-2
    with pytest.raises(ConflictError) as caught:
        make(document, shared["work"], tmp_path / "other")
    assert caught.value.data["field"] == "hypernetwork.learning_rate"
    document["hypernetwork"]["learning_rate"] = 3e-3
    document["sources"]["moods"]["rows"] = 40
    with pytest.raises(ConflictError) as caught:
        make(document, shared["work"], tmp_path / "other")
    assert caught.value.data["field"] == "sources.moods.rows"


def test_norms_stay_when_the_recipe_says_so(document: dict[str, Any], tiny_t5: Path, tmp_path: Path) -> None:
    document["hypernetwork"] |= {"train_norms": False, "steps": 2}
    make(document, tmp_path / "work", tmp_path / "base")
    before, after = load_file(tiny_t5 / "model.safetensors"), load_file(tmp_path / "base/backbone/model.safetensors")
    assert all(torch.equal(value.half(), after[name]) for name, value in before.items())


@pytest.mark.parametrize("kind", ["gated and untied", "bytes", "plain hyperformer in bf16"])
def test_any_t5_becomes_a_base(document: dict[str, Any], tmp_path: Path, kind: str) -> None:
    document["hypernetwork"]["steps"] = 2
    if kind == "gated and untied":  # v1.1, flan and mt5
        changes = {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}
        document["backbone"]["from"] = str(make_tiny_t5(tmp_path / "t5", **changes))
    elif kind == "bytes":  # byt5: a tokenizer without a vocabulary file, and a deeper encoder
        folder = make_tiny_t5(tmp_path / "t5", vocab_size=384, num_layers=3, num_decoder_layers=1)
        for path in folder.glob("tokenizer*"):
            path.unlink()
        ByT5Tokenizer().save_pretrained(folder)
        document["backbone"]["from"] = str(folder)
    else:
        document["hypernetwork"] |= {"method": "hyperformer", "precision": "bf16"}
        del document["hypernetwork"]["task_embedding_size"]
    make(document, tmp_path / "work", tmp_path / "base")
    base = find_base(str(tmp_path / "base"))
    (answer,) = Predictor(base).predict([{"task": "moods", "text": "a great film"}])
    assert answer.label in ("positive", "negative")
    if kind == "plain hyperformer in bf16":
        assert base.document["method"] == "hyperformer"
        assert base.embeddings["moods"].shape == (512,)


def test_without_a_licence_it_is_asked_for_before_anything_is_trained(document: dict[str, Any], tmp_path: Path) -> None:
    document["licence"] = ""
    with refused("licence-unknown"):
        make(document, tmp_path / "work", tmp_path / "base")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("rate", [1.0, 20.0])
def test_embeddings_move_at_their_own_rate_and_nothing_else_does(
    document: dict[str, Any], tmp_path: Path, rate: float
) -> None:
    document["hypernetwork"] |= {"steps": 1, "warmup_steps": 0, "embedding_rate": rate, "tasks_per_batch": 2}
    make(document, tmp_path / "work", tmp_path / "base")
    recipe = Recipe.model_validate(document)
    trained = load_file(tmp_path / "work" / "hypernetwork.safetensors")
    generator = torch.Generator().manual_seed(recipe.seed + 2)
    moved = [
        float((trained[f"module.embeddings.{task}"] - torch.randn(1, 8, generator=generator)).abs().max())
        for task in range(2)
    ]
    assert max(moved) == pytest.approx(3e-3 * rate, rel=1e-2)  # Adam's first step is the rate, whatever the gradient
    others = load_given_engine(recipe)
    for name, value in others.hypernetwork.state_dict().items():
        assert float((trained[f"module.hypernetwork.{name}"] - value).abs().max()) <= 3.1e-3, name


def test_the_projector_moves_at_its_own_rate_from_where_the_recipe_starts_it(
    document: dict[str, Any], tmp_path: Path
) -> None:
    document["hypernetwork"] |= {"steps": 1, "warmup_steps": 0, "projector_rate": 0.1, "projector_start": "scaled"}
    make(document, tmp_path / "work", tmp_path / "base")
    trained = load_file(tmp_path / "work" / "hypernetwork.safetensors")
    given = load_given_engine(Recipe.model_validate(document)).hypernetwork.state_dict()
    moved = {name: float((trained[f"module.hypernetwork.{name}"] - value).abs().max()) for name, value in given.items()}
    projectors = {name for name in moved if "projector" in name}
    assert max(moved[name] for name in projectors) == pytest.approx(3e-4, rel=1e-2)
    assert max(moved[name] for name in moved.keys() - projectors) == pytest.approx(3e-3, rel=1e-2)


@pytest.mark.parametrize(("share", "moves"), [(0.0, True), (0.5, True), (1.0, False)])
def test_embeddings_start_at_the_fingerprints_and_do_not_move_where_every_turn_has_a_fresh_one(
    document: dict[str, Any], tmp_path: Path, share: float, moves: bool
) -> None:
    document["hypernetwork"] |= {"embedding_start": "fingerprint", "fingerprint_share": share, "tasks_per_batch": 2}
    make(document, tmp_path / "work", tmp_path / "base")
    base, recipe = find_base(str(tmp_path / "base")), Recipe.model_validate(document)
    assert base.fingerprints is not None
    projections, given = base.fingerprints.projections, load_given_engine(recipe)
    started = Fingerprints.from_raw(projections, raw_fingerprints(given, recipe, projections))
    trained = load_file(tmp_path / "work" / "hypernetwork.safetensors")
    for task, expected in enumerate(started.of.values()):
        moved = float(np.abs(trained[f"module.embeddings.{task}"][0].numpy() - expected).max())
        assert moved > 1e-4 if moves else moved < 1e-6
        assert moved < 0.1
    for name, value in given.hypernetwork.state_dict().items():
        assert not torch.equal(trained[f"module.hypernetwork.{name}"], value), name


@pytest.mark.parametrize("train_norms", [True, False])
def test_a_base_has_the_fingerprints_that_its_own_backbone_sees_on_the_scale_of_the_first_ones(
    document: dict[str, Any], tmp_path: Path, train_norms: bool
) -> None:
    document["hypernetwork"] |= {"embedding_start": "fingerprint", "train_norms": train_norms, "learning_rate": 3e-2}
    make(document, tmp_path / "work", tmp_path / "base")
    base, recipe = find_base(str(tmp_path / "base")), Recipe.model_validate(document)
    known = base.fingerprints
    assert known is not None
    given = raw_fingerprints(load_given_engine(recipe), recipe, known.projections)
    shipped = raw_fingerprints(load_engine(base, "cpu"), recipe, known.projections)
    first = Fingerprints.from_raw(known.projections, given)
    np.testing.assert_allclose(known.mean, first.mean, atol=1e-6)
    np.testing.assert_allclose(known.deviation, first.deviation, atol=1e-6)
    assert list(known.of) == ["alike", "moods"]
    for name, fingerprint in known.again(shipped).of.items():
        np.testing.assert_allclose(known.of[name], fingerprint, atol=1e-5)
        assert np.allclose(known.of[name], first.of[name], atol=1e-3) != train_norms


def raw_fingerprints(engine: Engine, recipe: Recipe, projections: Projections) -> dict[str, np.ndarray]:
    """Of the recipe's sources: four batches of eight rows, far from those of any step."""
    raw = {}
    for index, rows in enumerate(read_sources(recipe.sources, recipe.seed)):
        task = SourceBatches(rows.worded(engine.encoder), engine.encoder, recipe.seed + index)
        batches = [task.batch(10**6 + turn, 8) for turn in range(4)]
        raw[rows.name] = raw_fingerprint(engine, batches, projections)
    return raw


def load_given_engine(recipe: Recipe) -> Engine:
    """The engine that training starts from."""
    backbone, tokenizer = load_given(find_backbone(recipe.backbone))
    round_to_half(backbone)
    return new_engine(recipe.hypernetwork, backbone, TextEncoder(tokenizer, "|", 32), recipe.seed)


def test_a_reduction_that_leaves_no_bottleneck_is_named(document: dict[str, Any], tmp_path: Path) -> None:
    document["hypernetwork"]["reduction_factor"] = 17
    with pytest.raises(InputError) as caught:
        make(document, tmp_path / "work", tmp_path / "base")
    assert caught.value.data["field"] == "hypernetwork.reduction_factor"


def test_a_base_in_the_home_folder_is_used_by_its_name(shared: dict[str, Path]) -> None:
    home_bases().mkdir(parents=True)
    (home_bases() / "trial").symlink_to(shared["base"])
    assert find_base("trial").digest == find_base(str(shared["base"])).digest
    assert [base.name for base in named_bases()][-1] == "trial"
    assert "mini" in [base.name for base in named_bases()]
