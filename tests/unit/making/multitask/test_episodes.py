"""Episodes: small tasks cut out of sources, a readout solved on some rows, an encoder that learns from the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.refusals import refused
from support.tiny_teacher import make_teacher
from support.tiny_training import WORDS

from onboard.bases import Base, find_base
from onboard.bases.load import fresh_engine
from onboard.making.curriculum.source import Source
from onboard.making.multitask import checkpoint
from onboard.making.multitask.checkpoint import StageCheckpoint
from onboard.making.multitask.episode_loss import EpisodeLosses, episode_losses, read_episodes
from onboard.making.multitask.episodes import Episode, EpisodeSizes, EpisodeSource
from onboard.making.multitask.loop import Running
from onboard.making.multitask.make import make_base
from onboard.making.multitask.recipe import Recipe
from onboard.making.multitask.sources import read_sources
from onboard.making.pretrain.episodic import go_part_of_the_way, learn_by_episodes
from onboard.making.pretrain.recipe import EpisodicRecipe, recipe_of
from onboard.making.pretrain.teacher import Teacher
from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.statistics.readout import Fitted, Readout, answers_after

EPISODES = {"steps": 4, "batch": 2, "learning_rate": 1e-2, "warmup_steps": 1, "teacher_rows": 20, "precision": "fp32"}


def _silent(line: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture
def given(document: dict[str, Any], tmp_path: Path) -> Base:
    """A base with two sources, a few steps old."""
    make_base(Recipe.model_validate(document), Running(tmp_path / "work", _silent), tmp_path / "given")
    return find_base(str(tmp_path / "given"))


@pytest.fixture
def recipe(document: dict[str, Any], given: Base) -> dict[str, Any]:
    """A recipe by which it learns on, as TOML would give it."""
    return {
        "name": "taught", "seed": 0, "licence": "Apache-2.0", "backbone": {"of": str(given.folder)},
        "sources": document["sources"], "episodes": dict(EPISODES),
    }  # fmt: skip


@pytest.fixture
def engine(given: Base) -> Engine:
    return fresh_engine(given)


@pytest.fixture
def sources(document: dict[str, Any], engine: Engine) -> dict[str, Source]:
    rows = read_sources(Recipe.model_validate(document).sources, 0)
    return {source.name: source.worded(engine.encoder) for source in rows}


def test_an_episode_has_support_of_every_label_and_queries_that_are_not_among_it(
    engine: Engine, sources: dict[str, Source]
) -> None:
    source = EpisodeSource(sources["moods"], engine.encoder, EpisodeSizes(tokens=12))
    for seed in range(20):
        episode = source.draw(np.random.default_rng(seed))
        support, queries = episode.labels[: episode.support], episode.labels[episode.support :]
        assert set(support) == set(queries) == {0, 1}
        assert len(support) <= 32
        assert max(map(len, episode.ids)) <= 12
        assert len(episode.names) == 2
        assert episode.vectors is None
    sizes = {source.draw(np.random.default_rng(seed)).support for seed in range(20)}
    assert min(sizes) <= 4 < 16 <= max(sizes)


def test_the_same_draw_gives_the_same_episode(engine: Engine, sources: dict[str, Source]) -> None:
    source = EpisodeSource(sources["moods"], engine.encoder, EpisodeSizes())
    one, other = (source.draw(np.random.default_rng(3)) for _ in range(2))
    assert one.ids == other.ids
    assert np.array_equal(one.labels, other.labels)


def test_a_scale_becomes_parts_of_which_each_is_as_frequent(engine: Engine, sources: dict[str, Source]) -> None:
    source = EpisodeSource(sources["alike"], engine.encoder, EpisodeSizes())
    counts = {len(source.draw(np.random.default_rng(seed)).names) for seed in range(20)}
    assert counts == {2, 3}


def test_vectors_of_the_teacher_belong_to_their_rows(engine: Engine, sources: dict[str, Source]) -> None:
    moods = sources["moods"]
    places = np.arange(0, len(moods.train), 2)
    marks = np.array([[hash(tuple(engine.encoder.encode([(moods.train[place].text_a, None)])[0]))] for place in places])
    source = EpisodeSource(moods, engine.encoder, EpisodeSizes(), places, marks)
    episode = source.draw(np.random.default_rng(0))
    assert episode.vectors is not None
    assert [hash(tuple(row)) for row in episode.ids] == episode.vectors[:, 0].tolist()


def test_a_source_whose_labels_are_too_rare_is_refused(engine: Engine, sources: dict[str, Source]) -> None:
    with pytest.raises(ValueError, match="moods: fewer than two labels"):
        EpisodeSource(sources["moods"], engine.encoder, EpisodeSizes(), np.arange(3))


@pytest.mark.parametrize("with_names", [False, True])
def test_what_is_solved_is_the_readout_of_a_job(
    engine: Engine, sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch, with_names: bool
) -> None:
    monkeypatch.setattr("onboard.making.multitask.episode_loss.SMOOTH", 0.0)
    episode = EpisodeSource(sources["moods"], engine.encoder, EpisodeSizes()).draw(np.random.default_rng(1))
    sharpness = torch.log(torch.tensor([4.0, 4.0]))
    with torch.no_grad():
        losses = _losses(engine, episode, sharpness, with_names=with_names)
    expected = _answered(engine, episode, with_names=with_names)
    answers = episode.labels[episode.support :]
    assert float(losses.queries) == pytest.approx(-np.log(expected[np.arange(len(answers)), answers]).mean(), abs=2e-3)
    assert losses.right == pytest.approx((expected.argmax(1) == answers).mean(), abs=0.1)


def _losses(engine: Engine, episode: Episode, sharpness: torch.Tensor, *, with_names: bool = False) -> EpisodeLosses:
    (features,) = read_episodes(engine, [episode])
    return episode_losses(engine, episode, features, sharpness, with_names=with_names)


def test_rows_of_several_episodes_are_read_as_each_alone(
    engine: Engine, sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.making.multitask.episode_loss.TOKENS_AT_ONCE", 64)
    drawn = [EpisodeSource(sources[name], engine.encoder, EpisodeSizes()) for name in ("moods", "alike")]
    episodes = [source.draw(np.random.default_rng(5)) for source in drawn]
    with torch.no_grad():
        together = read_episodes(engine, episodes)
        for episode, features in zip(episodes, together, strict=True):
            (alone,) = read_episodes(engine, [episode])
            assert torch.allclose(features, alone, atol=1e-5)


def _answered(engine: Engine, episode: Episode, *, with_names: bool) -> np.ndarray:
    """The query rows by `onboard.statistics.readout`, at the same ridge and sharpness."""
    width = 3 * engine.backbone.config.d_model
    features = bare_features(engine, episode.ids)[:, :width]
    names = bare_features(engine, episode.names)[:, :width] if with_names else None
    like = Fitted(Readout(np.zeros((2, width)), 1.0, np.zeros(2)), np.zeros(0), np.zeros((0, 2)), 1.0, 4.0, 0.0, names)
    n = episode.support
    return answers_after(features[:n], np.eye(2)[episode.labels[:n]], features[n:], like, 3)


def test_the_gradient_reaches_the_encoder_through_the_solution(engine: Engine, sources: dict[str, Source]) -> None:
    engine.backbone.requires_grad_(True)
    episode = EpisodeSource(sources["moods"], engine.encoder, EpisodeSizes()).draw(np.random.default_rng(1))
    losses = _losses(engine, episode, torch.zeros(2), with_names=True)
    losses.queries.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    weight = engine.backbone.encoder.block[0].layer[0].SelfAttention.q.weight
    assert float(weight.grad.abs().sum()) > 0


def test_only_rows_with_vectors_of_the_teacher_are_compared_with_it(engine: Engine, sources: dict[str, Source]) -> None:
    episode = EpisodeSource(sources["moods"], engine.encoder, EpisodeSizes()).draw(np.random.default_rng(1))
    drawn = np.random.default_rng(0).normal(size=(len(episode.ids), 4)).astype(np.float32)
    taught = Episode(episode.task, episode.ids, episode.labels, episode.support, episode.names, drawn)
    with torch.no_grad():
        assert float(_losses(engine, episode, torch.zeros(2)).teacher) == 0
        assert 0.5 < float(_losses(engine, taught, torch.zeros(2)).teacher) < 1.5


def test_a_base_learns_on_and_goes_on_after_a_power_cut_to_the_same_bits(
    recipe: dict[str, Any], given: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Teacher, "second", lambda work: make_teacher(list(WORDS)))
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", -1.0)
    whole = EpisodicRecipe.model_validate(recipe)
    learn_by_episodes(whole, Running(tmp_path / "one", _silent), tmp_path / "first")
    saved = StageCheckpoint.save

    def cut(self: StageCheckpoint, step: int) -> None:
        saved(self, step)
        if step == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(StageCheckpoint, "save", cut)
    with pytest.raises(KeyboardInterrupt):
        learn_by_episodes(whole, Running(tmp_path / "two", _silent), tmp_path / "second")
    monkeypatch.setattr(StageCheckpoint, "save", saved)
    said: list[str] = []
    learn_by_episodes(whole, Running(tmp_path / "two", said.append), tmp_path / "second")
    assert any("resumes at step 2" in line for line in said)
    first, second = find_base(str(tmp_path / "first")), find_base(str(tmp_path / "second"))
    assert first.digest == second.digest != given.digest
    assert first.backbone_digest != given.backbone_digest
    assert set(first.embeddings) == set(given.embeddings)
    assert not np.array_equal(first.embeddings["moods"], given.embeddings["moods"])
    assert first.document["recipe"]["episodes"]["steps"] == 4


def test_weights_go_part_of_the_way_from_where_they_started() -> None:
    module = torch.nn.Linear(1, 1)
    start = {"weight": torch.tensor([[1.0]]), "bias": torch.tensor([2.0])}
    module.load_state_dict({"weight": torch.tensor([[3.0]]), "bias": torch.tensor([2.0])})
    go_part_of_the_way(module, start, 0.25)
    assert module.weight.item() == 1.5
    assert module.bias.item() == 2.0


def test_no_way_at_all_leaves_the_embeddings_as_they_were(recipe: dict[str, Any], given: Base, tmp_path: Path) -> None:
    recipe["episodes"] |= {"way": 0.0, "teacher_weight": 0.0}
    learn_by_episodes(EpisodicRecipe.model_validate(recipe), Running(tmp_path, _silent), tmp_path / "out")
    same = find_base(str(tmp_path / "out"))
    assert all(np.array_equal(same.embeddings[name], z) for name, z in given.embeddings.items())


def test_a_checkpoint_of_other_episodes_is_refused(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Teacher, "second", lambda work: make_teacher(list(WORDS)))
    learn_by_episodes(EpisodicRecipe.model_validate(recipe), Running(tmp_path, _silent), tmp_path / "out")
    recipe["episodes"]["queries"] = 8
    with refused("checkpoint-of-other-recipe", field="episodes.queries"):
        learn_by_episodes(EpisodicRecipe.model_validate(recipe), Running(tmp_path, _silent), tmp_path / "out")


def test_without_weight_the_second_teacher_is_not_asked(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Teacher, "second", lambda work: pytest.fail("it was asked"))
    recipe["episodes"]["teacher_weight"] = 0
    learn_by_episodes(EpisodicRecipe.model_validate(recipe), Running(tmp_path, _silent), tmp_path / "out")


def test_a_source_that_the_base_does_not_know_is_refused(recipe: dict[str, Any], tmp_path: Path) -> None:
    recipe["sources"]["others"] = recipe["sources"].pop("moods")
    with refused("base-lacks-source"):
        learn_by_episodes(EpisodicRecipe.model_validate(recipe), Running(tmp_path, _silent), tmp_path / "out")


def test_a_base_does_not_replace_itself(recipe: dict[str, Any], given: Base, tmp_path: Path) -> None:
    with refused("output-is-input-base"):
        learn_by_episodes(EpisodicRecipe.model_validate(recipe), Running(tmp_path, _silent), given.folder)


def test_the_shipped_recipe_learns_from_the_sources_of_the_base_that_it_begins_with() -> None:
    from onboard.making.multitask.recipe import read_recipe

    path = Path(__file__).parents[4] / "recipes" / "mini-episodes.toml"
    document = read_recipe(path)
    for name, source in document["sources"].items():
        source["from"] = name
    shipped = recipe_of(document, path)
    assert isinstance(shipped, EpisodicRecipe)
    assert (shipped.name, shipped.backbone.of, len(shipped.sources), len(shipped.held_out)) == ("mini", "mini", 127, 49)
