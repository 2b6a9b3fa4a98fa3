"""From text and sources to a base: every stage once, in small, with a teacher of a few thousand numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.refusals import refused
from support.tiny_base import WORDS, make_tiny_base
from support.tiny_teacher import make_teacher
from support.tiny_training import WORDS as SOURCE_WORDS
from support.tiny_training import make_sources

from onboard.bases import find_base
from onboard.bases.load import load_engine
from onboard.making.curriculum import topics
from onboard.making.multitask import checkpoint, hypernetwork
from onboard.making.multitask.assemble import measure
from onboard.making.multitask.checkpoint import StageCheckpoint
from onboard.making.multitask.loop import Running, TrainingStage, run_stage
from onboard.making.multitask.sources import folder_entries, read_sources
from onboard.making.pretrain.ingredients import Ingredients
from onboard.making.pretrain.recipe import OwnRecipe, RenewedRecipe
from onboard.making.pretrain.renew import renew_base
from onboard.making.pretrain.run import make_base
from onboard.making.pretrain.teacher import Teacher
from onboard.model.backbone import norm_parameters
from onboard.model.quantised import dequantise, quantise
from onboard.model.quantised_backbone import QUANTISED_FILE
from onboard.serving import Predictor

STAGE = {"steps": 3, "batch": 6, "learning_rate": 1e-3, "warmup_steps": 1}
RECIPE = OwnRecipe.model_validate(
    {
        "name": "test",
        "seed": 0,
        "licence": "Apache-2.0",
        "backbone": {"vocabulary_size": 300, "d_ff": 24, "decoder_layers": 1, "max_tokens": 32},
        "sentences": {"from_corpus": 300, "paragraphs": 2, "more_from_corpus": 20, "more_paragraphs": 0},
        "inherit": {"texts": 60, "most_tokens": 16},
        "distill": {**STAGE, "batch": 60},
        "curriculum": {
            "topic_levels": [2, 3], "fewest_rows": 4, "sources": {"share": 0.4, "tasks": 9},
            "renamed": {"share": 0.2, "tasks": 2}, "topics": {"share": 0.4, "tasks": 4},
        },
        "multitask": {
            **STAGE, "dropout": 0.1, "label_smoothing": 0.1, "shares": {"sources": 0.6, "topics": 0.4},
            "decoder_rate": 1.5,
        },
        "hypernetwork": {
            **STAGE, "reduction_factor": 1, "task_embedding_size": 16, "projector_width": 8, "embedding_rate": 10.0,
            "tasks_per_batch": 2,
        },
    }
)  # fmt: skip
SUBJECTS = ["music", "kitchen", "money", "sports", "travel", "garden"]
MADE = [first + last for first in ("bar", "den", "fil", "gor", "lum", "mar", "sol") for last in ("ten", "vik", "mon")]
ENDS = ("", "like", "wise", "ful", "less")


class _PowerCutError(Exception):
    """Ends a run in the middle."""


@pytest.fixture
def ingredients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ingredients[OwnRecipe]]:
    """Sources and corpus with a work folder of its own for each name; changes to the section [hypernetwork]."""
    words = [word + end for word in (*SUBJECTS, *WORDS.split(), *MADE) for end in ENDS]
    known = ["this", "sentence", "speaks", "of", "all", "day", *SOURCE_WORDS, *words]
    monkeypatch.setattr(Teacher, "load", lambda: make_teacher(known))
    monkeypatch.setattr(topics, "SKIPPED_WORDS", 0)
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", -1.0)
    sources = folder_entries(make_sources(tmp_path / "sources"))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(f"This sentence speaks of {word} all day." for word in words), encoding="utf-8")

    def make(name: str, **changes: Any) -> Ingredients[OwnRecipe]:
        stage = RECIPE.hypernetwork.model_copy(update=changes)
        recipe = RECIPE.model_copy(update={"sources": sources, "hypernetwork": stage})
        return Ingredients(recipe, [corpus], Running(tmp_path / name, lambda line: None))

    return make


STARTED = {"embedding_start": "fingerprint"}
JOINT = {**STARTED, "fingerprint_share": 0.5, "backbone_rate": 2e-2}


@pytest.mark.parametrize(
    "changes",
    [{}, STARTED, {**STARTED, "fingerprint_share": 0.5}, {"backbone_rate": 2e-2}, {"dropout": 0.3},
     {**JOINT, "dropout": 0.3}],
    ids=["random", "fingerprint", "fresh fingerprints", "backbone", "dropout", "all of it"],
)  # fmt: skip
def test_a_base_is_made_resumes_where_it_was_cut_and_gives_the_same_bytes(
    ingredients: Callable[..., Ingredients[OwnRecipe]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
) -> None:
    whole = ingredients("whole", **changes)
    make_base(whole, tmp_path / "first")
    base = find_base(str(tmp_path / "first"))
    anchors = [anchor.name for anchor in base.anchors]
    assert [source.name for source in base.sources] == ["alike", "moods"]
    if "embedding_start" not in changes:
        assert anchors == ["topics-any-all-2", "topics-any-all-3"]
        assert base.fingerprints is None
    else:
        assert {"topics-any-all-2", "topics-any-all-3"} < set(anchors)
        assert any(name.startswith("moods-") for name in anchors)
        assert base.fingerprints is not None
        assert set(base.fingerprints.of) == set(base.embeddings) == {"alike", "moods", *anchors}
    assert base.document["sources"]["moods"]["metrics"]["test"]["accuracy"]["n"] == 24
    assert all(z.shape == (16,) for z in base.embeddings.values())
    assert set(base.trained_rows) == {"alike", "moods"}
    assert (base.folder / "card.md").read_text(encoding="utf-8").startswith("# Base `test`")
    (answer,) = Predictor(base).predict([{"task": "moods", "text": "a great film"}])
    assert answer.label in ("negative", "positive")

    cut = ingredients("cut", **changes)
    save, saved = StageCheckpoint.save, []

    def save_then_cut(self: StageCheckpoint, step: int) -> None:
        save(self, step)
        saved.append(step)
        if len(saved) in (2, 6, 9):  # in the middle of each of the training stages
            raise _PowerCutError

    monkeypatch.setattr(StageCheckpoint, "save", save_then_cut)
    for _ in range(3):
        with pytest.raises(_PowerCutError):
            make_base(cut, tmp_path / "second")
        assert not (tmp_path / "second" / "base.json").exists()
    make_base(cut, tmp_path / "second")
    assert find_base(str(tmp_path / "second")).digest == base.digest


@pytest.mark.parametrize("changes", [{}, JOINT], ids=["norms", "backbone"])
def test_what_was_measured_is_what_is_stored_in_int8(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path, changes: dict[str, Any]
) -> None:
    given = ingredients("work", **changes)
    make_base(given, tmp_path / "base")
    base = find_base(str(tmp_path / "base"))
    engine = load_engine(base, "cpu")
    assert base.document["weights"] == "int8"
    assert not (base.folder / "backbone" / "model.safetensors").exists()
    assert "int8" in (base.folder / "card.md").read_text(encoding="utf-8")
    for rows in read_sources(given.recipe.sources, given.recipe.seed):
        z = base.embeddings[rows.name]
        again = measure(engine, z, rows.worded(engine.encoder))
        assert again == base.document["sources"][rows.name]["metrics"]


def backbone_in(checkpoint_file: Path) -> dict[str, torch.Tensor]:
    """The backbone of a stage, as a base would store it."""
    prefix = "module.backbone."
    tensors = load_file(checkpoint_file)
    return quantise({name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)})


def moved(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    """Names of the weights that differ, of those that are stored."""
    return {name.removesuffix(".scale") for name, tensor in after.items() if not torch.equal(before[name], tensor)}


def test_without_a_rate_of_its_own_nothing_of_the_backbone_is_trained_with_the_hypernetwork_but_its_norms(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    make_base(ingredients("work", **STARTED, dropout=0.3), tmp_path / "base")
    stored = load_file(tmp_path / "base" / "backbone" / QUANTISED_FILE)
    changed = moved(backbone_in(tmp_path / "work" / "multitask.safetensors"), stored)
    assert changed == {name for name in stored if name.endswith("layer_norm.weight")}
    assert len(changed) == len(norm_parameters(load_engine(find_base(str(tmp_path / "base")), "cpu").backbone))


def test_with_a_rate_of_its_own_the_whole_backbone_is_trained_and_its_best_weights_are_stored(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    make_base(ingredients("work", **JOINT, validate_every=1), tmp_path / "base")
    stored = load_file(tmp_path / "base" / "backbone" / QUANTISED_FILE)
    changed = moved(backbone_in(tmp_path / "work" / "multitask.safetensors"), stored)
    alone = "decoder.block.0.layer.0.SelfAttention."  # a label of one piece attends to nothing but itself
    assert changed >= {name for name in stored if not name.endswith(".scale") and not name.startswith(alone)}
    assert moved(backbone_in(tmp_path / "work" / "hypernetwork-best.safetensors"), stored) == set()


def test_the_backbone_moves_in_proportion_to_its_own_rate_whatever_the_rate_of_the_stage(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    first = {"steps": 1, "warmup_steps": 1, "backbone_rate": 1e-3}
    for name, rates in (("low", {"learning_rate": 1e-4}), ("high", {"learning_rate": 1e-2})):
        make_base(ingredients(name, **first, **rates), tmp_path / f"base-{name}")
    started, low, high = (
        load_file(tmp_path / place)["module.backbone.encoder.block.0.layer.0.SelfAttention.q.weight"]
        for place in ("low/multitask.safetensors", "low/hypernetwork.safetensors", "high/hypernetwork.safetensors")
    )
    begun = dequantise(quantise({"q": started}))["q"]
    assert torch.equal(low, high)
    assert float((low - begun).abs().max()) == pytest.approx(1e-3 * float(begun.square().mean().sqrt()), rel=1e-2)


def test_states_are_dropped_in_the_loss_of_a_step_and_neither_in_validation_nor_afterwards(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores: list[dict[str, float]] = []
    losses: list[list[float]] = []

    def look_then_run(stage: TrainingStage, running: Running) -> None:
        def validate() -> None:
            assert stage.validation is not None
            scores.append(dict(stage.validation.score(lambda: None).values))

        validate()
        losses.append([float(stage.loss_of(step).value.detach()) for step in (0, 1, 0)])
        validate()
        validate()
        run_stage(stage, running)

    monkeypatch.setattr(hypernetwork, "run_stage", look_then_run)
    for name, share in (("plain", 0.0), ("dropped", 0.5)):
        make_base(ingredients(name, **JOINT, dropout=share), tmp_path / f"base-{name}")
    assert len(scores) == 6
    assert all(score == scores[0] for score in scores)
    plain, dropped = losses
    assert plain[0] == plain[2]
    assert dropped[0] == dropped[2]  # what is dropped depends on the step alone
    assert all(abs(one - other) > 1e-4 for one, other in zip(plain[:2], dropped[:2], strict=True))


def test_too_little_text_for_the_vocabulary_is_told_before_anything_is_trained(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    given = ingredients("work")
    shape = RECIPE.backbone.model_copy(update={"vocabulary_size": 5000})
    wanting = replace(given, recipe=given.recipe.model_copy(update={"backbone": shape}))
    with refused("vocabulary-size-differs"):
        make_base(wanting, tmp_path / "base")


def test_shares_of_kinds_without_tasks_are_told_before_the_backbone_is_trained(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    given = ingredients("work")
    stage = RECIPE.multitask.model_copy(update={"shares": {"form": 0.5, "renamed": 0.5}})
    wanting = replace(given, recipe=given.recipe.model_copy(update={"multitask": stage}))
    with refused("shares-of-unknown-tasks") as caught:
        make_base(wanting, tmp_path / "base")
    assert caught.value.data["field"] == "multitask.shares"
    assert "sources, topics" in caught.value.remedy


def test_a_new_hypernetwork_is_trained_on_the_backbone_of_a_base_and_nothing_of_that_changes(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    own = ingredients("own")
    make_base(own, tmp_path / "given")
    given = find_base(str(tmp_path / "given"))
    document = RECIPE.model_dump(mode="json", include={"name", "seed", "licence", "curriculum", "hypernetwork"})
    for field in ("backbone_rate", "dropout"):
        del document["hypernetwork"][field]
    document["hypernetwork"] |= {
        **STARTED, "fingerprint_share": 0.5, "projector_start": "open", "projector_width": 24, "train_norms": False,
    }  # fmt: skip
    document |= {"backbone": {"of": str(given.folder)}, "sentences": {"from_sources": 40, "from_corpus": 100}}
    sources = dict(list(own.recipe.sources.items())[:1])
    recipe = RenewedRecipe.model_validate(document).model_copy(update={"sources": sources})
    made_from = Ingredients(recipe, own.corpus, Running(tmp_path / "renewed", lambda line: None))
    with refused("output-is-backbone-base"):
        renew_base(made_from, given.folder)
    renew_base(made_from, tmp_path / "new")
    new = find_base(str(tmp_path / "new"))
    assert new.backbone_digest == given.backbone_digest
    assert new.digest != given.digest
    assert [source.name for source in new.sources] == ["alike"]
    assert new.anchors
    assert new.fingerprints is not None
    assert set(new.known_rows) == set(given.known_rows), "what trained the backbone is known to every task"
    assert new.document["recipe"]["backbone"] == {"of": "given", "grow": None}
    texts = json.loads((tmp_path / "renewed" / "texts.json").read_text(encoding="utf-8"))
    assert len(texts) == 40 + 100
    (answer,) = Predictor(new).predict([{"task": "alike", "text_a": "a great film", "text_b": "a bad film"}])
    assert 0.0 <= float(answer.label) <= 5.0


def test_the_backbone_of_a_base_that_does_not_say_how_it_is_stored_is_taken_as_it_is(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    given = make_tiny_base(tmp_path / "tiny")  # float16 is what a base has that was made or imported without `weights`
    assert "weights" not in given.document
    document = RECIPE.model_dump(mode="json", include={"name", "seed", "licence", "curriculum"})
    document |= {
        "backbone": {"of": str(given.folder)}, "sentences": {"from_sources": 40, "from_corpus": 100},
        "hypernetwork": {**STAGE, "reduction_factor": 1, "task_embedding_size": 8},
    }  # fmt: skip
    own = ingredients("renewed")
    recipe = RenewedRecipe.model_validate(document).model_copy(update={"sources": own.recipe.sources})
    renew_base(replace(own, recipe=recipe), tmp_path / "new")
    new = find_base(str(tmp_path / "new"))
    assert new.backbone_digest == given.backbone_digest
    assert new.document["pair_separator"] == given.document["pair_separator"]
    (answer,) = Predictor(new).predict([{"task": "moods", "text": "a great film"}])
    assert answer.label in ("negative", "positive")


def test_the_backbone_of_a_base_learns_on_where_the_recipe_says_so_and_is_stored_in_int8(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    folder = make_tiny_base(tmp_path / "tiny").folder
    of_the_hub = {"backbone": {"from": "google-t5/t5-small"}}
    (folder / "base.json").write_text(json.dumps(json.loads((folder / "base.json").read_text()) | of_the_hub))
    given = find_base(str(folder))
    document = RECIPE.model_dump(mode="json", include={"name", "seed", "licence", "curriculum", "multitask"})
    document |= {
        "backbone": {"of": str(given.folder)}, "sentences": {"from_sources": 40, "from_corpus": 100},
        "hypernetwork": {**STAGE, "reduction_factor": 1, "task_embedding_size": 8},
    }  # fmt: skip
    own = ingredients("renewed")
    recipe = RenewedRecipe.model_validate(document).model_copy(update={"sources": own.recipe.sources})
    renew_base(replace(own, recipe=recipe), tmp_path / "new")
    new = find_base(str(tmp_path / "new"))
    assert new.backbone_digest != given.backbone_digest
    assert new.document["weights"] == "int8"
    assert new.document["backbone"] == of_the_hub["backbone"], "where it came from stays known"
    assert "all its weights trained on the sources" in (new.folder / "card.md").read_text(encoding="utf-8")
    assert set(new.known_rows) >= set(given.known_rows)
    before, after = (load_engine(base).backbone.state_dict() for base in (given, new))
    assert all(not torch.equal(before[name], after[name]) for name in before if name.endswith("SelfAttention.q.weight"))


def test_the_backbone_of_a_base_learns_beside_the_hypernetwork_where_that_has_a_rate_for_it(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path
) -> None:
    given, own = make_tiny_base(tmp_path / "tiny"), ingredients("renewed")
    document = RECIPE.model_dump(mode="json", include={"name", "seed", "licence", "curriculum", "multitask"})
    document |= {"backbone": {"of": str(given.folder)}, "sentences": {"from_sources": 40, "from_corpus": 100}}
    digests = set()
    for rate, share in ((0.0, 0.0), (1e-3, 0.0), (1e-3, 1.0)):
        stage = {"backbone_rate": rate, "teacher_share": share, "teacher_tokens": 50, "dropout": 0.1}
        document["hypernetwork"] = {**STAGE, "reduction_factor": 1, "task_embedding_size": 8, **stage}
        recipe = RenewedRecipe.model_validate(document).model_copy(update={"sources": own.recipe.sources})
        work = replace(own.running, work=tmp_path / f"work-{rate}-{share}")
        output = tmp_path / f"new-{rate}-{share}"
        renew_base(replace(own, recipe=recipe, running=work), output)
        digests.add(find_base(str(output)).backbone_digest)
    assert len(digests) == 3, "the rate moves the backbone, and the teacher holds it"


def test_the_backbone_of_a_base_grows_before_it_learns_on_beside_a_teacher_of_the_width_that_it_had(
    ingredients: Callable[..., Ingredients[OwnRecipe]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ingredients("own")
    make_base(own, tmp_path / "given")
    had = load_engine(find_base(str(tmp_path / "given")), "cpu").backbone.config
    document = RECIPE.model_dump(mode="json", include={"name", "seed", "licence", "curriculum", "multitask"})
    document["multitask"] |= {"teacher_share": 1.0, "teacher_tokens": 60}
    grow = {"d_model": had.d_model + 8, "num_layers": had.num_layers + 1, "num_decoder_layers": 2}
    document |= {
        "backbone": {"of": str(tmp_path / "given"), "grow": grow},
        "sentences": {"from_sources": 40, "from_corpus": 100},
        "hypernetwork": {**STAGE, "reduction_factor": 1, "task_embedding_size": 8, "backbone_rate": 1e-3},
    }
    recipe = RenewedRecipe.model_validate(document).model_copy(update={"sources": own.recipe.sources})
    made_from = Ingredients(recipe, own.corpus, Running(tmp_path / "grown", lambda line: None))
    renew_base(made_from, tmp_path / "new")
    new = find_base(str(tmp_path / "new"))
    got = load_engine(new, "cpu").backbone.config
    assert {field: getattr(got, field) for field in grow} == grow
    assert (got.d_ff, got.num_heads) == (had.d_ff, had.num_heads)
    assert new.document["recipe"]["backbone"]["of"] == "given"
    (answer,) = Predictor(new).predict([{"task": "moods", "text": "a great film"}])
    assert answer.label in ("negative", "positive")

    def not_installed() -> None:
        raise AssertionError

    monkeypatch.setattr(Teacher, "load", not_installed)
    renew_base(made_from, tmp_path / "again")  # what the teacher said stands in the work folder
    assert find_base(str(tmp_path / "again")).digest == new.digest
    document["backbone"]["grow"]["num_layers"] += 1
    other = RenewedRecipe.model_validate(document).model_copy(update={"sources": own.recipe.sources})
    with refused("checkpoint-of-other-recipe"):
        renew_base(replace(made_from, recipe=other), tmp_path / "other")
