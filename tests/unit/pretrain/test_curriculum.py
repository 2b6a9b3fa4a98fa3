"""The tasks that a base is trained on, and their batches."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from onboard.domain.dataset import Example
from onboard.errors import InputError, NotFoundError
from onboard.model.encoding import TextEncoder, pad
from onboard.model.engine import Engine
from onboard.pretrain.batches import LengthBuckets
from onboard.pretrain.curriculum import Curriculum, FixedTask, Source, TopicTask, build_curriculum, read_source
from onboard.pretrain.multitask import task_probabilities
from onboard.pretrain.recipe import CurriculumCounts
from onboard.pretrain.sentences import corpus_texts, source_folders, source_texts
from onboard.pretrain.topics import TopicLevel, Topics

TEXTS = [f"{word} film {'and plot ' * (row % 5)}" for row, word in enumerate(["good", "bad", "fine", "sad"] * 10)]
NAMES = ("good", "bad", "fine", "sad", "poor", "great", "awful", "happy", "other", "same")
LEVELS = (
    TopicLevel(NAMES[:4], np.arange(40) % 4),
    TopicLevel(NAMES[:10], np.arange(40) % 10),
)
TOPICS = Topics(LEVELS, {name: index for index, name in enumerate(NAMES)})
ROWS = tuple(Example(text, None, ("no", "yes")[row % 2]) for row, text in enumerate(TEXTS[:20]))
SOURCES = [
    Source("sst2", "classification", ("no", "yes"), ("no", "yes"), None, None, ROWS),
    Source("stsb", "regression", (), tuple(str(number) for number in range(21)), 0.0, 20.0,
           tuple(Example(text, "good", float(row)) for row, text in enumerate(TEXTS[:20]))),
]  # fmt: skip


@pytest.fixture
def encoder(tiny_engine: Engine) -> TextEncoder:
    return tiny_engine.encoder


COUNTS = CurriculumCounts(
    renamings=2, topic_levels=(4, 10), topic_subsets=3,
    share_of_sources=0.4, share_of_topics=0.3, share_of_renamed=0.2, share_of_subsets=0.1,
)  # fmt: skip


@pytest.fixture
def curriculum(encoder: TextEncoder) -> Curriculum:
    return build_curriculum(SOURCES, TEXTS, TOPICS, COUNTS, encoder, 0)


def test_sources_come_first_then_the_topic_levels_then_renamed_and_made_tasks(curriculum: Curriculum) -> None:
    names = [[task.name for task in group] for group, _ in curriculum.groups]
    assert names[:2] == [["sst2", "stsb"], ["topics-4", "topics-10"]]
    assert len(names[2]) == len(names[3]) == 3
    assert all(name.startswith("sst2-") for name in names[2])  # a scale has no words to exchange
    assert all(name.startswith("topics-") for name in names[3])
    joined = list(itertools.chain.from_iterable(names))
    assert [task.name for task in curriculum.tasks] == joined
    assert len(set(joined)) == 10


def test_renamed_tasks_have_the_sources_rows_first_under_each_others_words(curriculum: Curriculum) -> None:
    plain, swapped = curriculum.groups[0][0][0], curriculum.groups[2][0][0]
    assert isinstance(plain, FixedTask)
    assert isinstance(swapped, FixedTask)
    assert (plain.words, swapped.words) == (("no", "yes"), ("yes", "no"))
    assert swapped.rows == plain.rows == 20
    for task in curriculum.groups[2][0][1:]:
        assert isinstance(task, FixedTask)
        assert len(set(task.words)) == 2
        assert set(task.words) <= set(NAMES)


def test_a_batch_of_a_source_holds_its_rows_with_their_own_labels(encoder: TextEncoder) -> None:
    source = SOURCES[0]
    ids = encoder.encode([(row.text_a, row.text_b) for row in source.train])
    labels_of: dict[tuple[int, ...], set[str]] = {}
    for each, row in zip(ids, source.train, strict=True):
        labels_of.setdefault(tuple(each), set()).add(str(row.label))
    task = FixedTask("sst2", ids, source.targets(), source.words, encoder, 3)
    for step in range(6):
        batch = task.batch(step, 8)
        assert len(batch.ids) == len(batch.targets) == 8
        assert batch.trie.labels == 2
        for drawn, target in zip(batch.ids, batch.targets, strict=True):
            assert target.sum() == 1
            assert source.words[int(target.argmax())] in labels_of[tuple(drawn)]


def test_a_batch_of_a_topic_level_asks_for_a_few_of_its_topics(encoder: TextEncoder) -> None:
    ids = encoder.encode([(text, None) for text in TEXTS])
    topics_of: dict[tuple[int, ...], set[int]] = {}
    for row, sequence in enumerate(ids):
        topics_of.setdefault(tuple(sequence), set()).add(int(LEVELS[1].assignment[row]))
    task = TopicTask("topics-10", ids, LEVELS[1], encoder, 0)
    sizes = set()
    for step in range(30):
        batch = task.batch(step, 12)
        sizes.add(batch.trie.labels)
        assert batch.targets.shape == (12, batch.trie.labels)
        assert (batch.targets.sum(1) == 1).all()
        assert all(tuple(each) in topics_of for each in batch.ids)
    assert min(sizes) >= 2
    assert max(sizes) <= 8
    assert len(sizes) > 2


def test_a_made_task_keeps_its_choice_of_topics_and_their_texts(curriculum: Curriculum) -> None:
    for task in curriculum.groups[3][0]:
        assert isinstance(task, FixedTask)
        assert task.name == "topics-" + "-".join(task.words)
        level = LEVELS[0] if task.rows == 10 * len(task.words) else LEVELS[1]
        chosen = [level.names.index(word) for word in task.words]
        assert task.rows == np.isin(level.assignment, chosen).sum()
        assert (task.batch(0, 4).targets.sum(1) == 1).all()


def test_a_batch_depends_on_the_step_alone(curriculum: Curriculum) -> None:
    for task in curriculum.tasks:
        first, again, other = task.batch(5, 6), task.batch(5, 6), task.batch(6, 6)
        assert first.ids == again.ids
        np.testing.assert_array_equal(first.targets, again.targets)
        assert first.ids != other.ids or not np.array_equal(first.targets, other.targets)


def test_a_batch_is_of_like_length() -> None:
    lengths = np.random.default_rng(0).permutation(np.arange(1, 401))
    buckets = LengthBuckets([[0] * int(length) for length in lengths], 0)
    spreads = [np.ptp(lengths[buckets.draw(step, 16)]) for step in range(40)]
    assert max(spreads) < 32
    drawn = buckets.draw(3, 16)
    assert len(set(drawn.tolist())) == 16
    assert set(np.concatenate([buckets.draw(step, 16) for step in range(1000)]).tolist()) == set(range(400))
    assert len(buckets.draw(0, 1000)) == 400  # never more than there are


def test_padding_is_on_the_right_and_masked() -> None:
    ids, mask = pad([[5, 6, 7], [8]], 0)
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_each_group_gets_its_share_and_within_it_small_tasks_are_drawn_nearly_as_often_as_large_ones(
    curriculum: Curriculum, encoder: TextEncoder
) -> None:
    found = task_probabilities(curriculum)
    ends = np.cumsum([len(group) for group, _ in curriculum.groups])
    shares = [part.sum() for part in np.split(found, ends[:-1])]
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1])
    large, small = (FixedTask(name, [[5, 1]] * rows, np.ones((rows, 1)), ["a"], encoder, 0)
                    for name, rows in (("large", 4000), ("small", 40)))  # fmt: skip
    uneven = task_probabilities(Curriculum((((large, small), 0.4),)))
    assert uneven.sum() == pytest.approx(1.0)
    assert uneven[0] / uneven[1] == pytest.approx(100**0.1)


def test_a_group_without_tasks_is_left_out_and_the_others_share_the_steps(encoder: TextEncoder) -> None:
    none = COUNTS.model_copy(update={"topic_subsets": 0})
    curriculum = build_curriculum(SOURCES[1:], TEXTS, TOPICS, none, encoder, 0)
    assert [share for _, share in curriculum.groups] == [0.4, 0.3]
    assert task_probabilities(curriculum).tolist() == pytest.approx([4 / 7, 1.5 / 7, 1.5 / 7])


def write_source(folder: Path, rows: list[dict[str, object]], splits: tuple[str, ...] = ("train",)) -> Path:
    folder.mkdir(parents=True)
    for split in splits:
        with gzip.open(folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def test_a_source_is_read_with_its_kind_labels_and_words(tmp_path: Path) -> None:
    classes = write_source(tmp_path / "rte", [{"text_a": "a", "text_b": "b", "label": label} for label in
                                              ("not_entailment", "entailment", "entailment")])  # fmt: skip
    source = read_source(classes)
    assert (source.name, source.kind) == ("rte", "classification")
    assert source.labels == ("entailment", "not_entailment")
    assert source.words == ("entailment", "not entailment")
    assert source.targets().tolist() == [[0, 1], [1, 0], [1, 0]]
    scale = read_source(write_source(tmp_path / "stsb", [{"text": "a", "label": step / 5} for step in range(26)]))
    assert (scale.kind, scale.labels, scale.low, scale.high) == ("regression", (), 0.0, 5.0)
    assert len(scale.words) == scale.targets().shape[1] == 21
    np.testing.assert_allclose(scale.targets() @ np.linspace(0, 5, 21), [step / 5 for step in range(26)], atol=1e-6)


def test_missing_sources_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no source folders"):
        source_folders(tmp_path / "nothing")
    (tmp_path / "sources" / "sst2").mkdir(parents=True)
    with pytest.raises(NotFoundError, match="sst2 has no train split"):
        source_texts(tmp_path / "sources")


def test_texts_to_distil_on_are_those_of_training_and_a_seeded_sample_of_the_corpus(tmp_path: Path) -> None:
    write_source(tmp_path / "sources" / "rte", [{"text_a": "one", "text_b": "two", "label": "x"}] * 2)
    write_source(tmp_path / "sources" / "sst2", [{"text": "one", "label": "x"}, {"text": "three", "label": "x"}])
    assert source_texts(tmp_path / "sources") == ["one", "two", "three"]
    corpus = tmp_path / "corpus.txt"
    lines = [f"Sentence number {row} has exactly seven words. Another {row} has five words." for row in range(30)]
    long = [" ".join(f"A passage {row} has many sentences." for _ in range(4)) for row in range(5)]
    corpus.write_text("\n".join([*lines, *long]), encoding="utf-8")
    short, passages = corpus_texts([corpus], 10, 3, seed=0)
    assert (len(short), len(passages)) == (10, 3)
    assert all(5 <= len(text.split()) <= 60 for text in short)
    assert all(text.startswith("A passage") for text in passages)
    assert corpus_texts([corpus], 10, 3, seed=0) == (short, passages)
    assert corpus_texts([corpus], 10, 3, seed=1) != (short, passages)
