"""What the tasks of single kinds ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onboard.making.curriculum import Source
from onboard.making.curriculum.from_sources import renamed, restricted
from onboard.making.curriculum.joined import ExtendedTask, joined
from onboard.making.curriculum.merged import merged
from onboard.making.curriculum.neighbours import dense_sample, nearest
from onboard.making.curriculum.pairs import pairs
from onboard.making.curriculum.workshop import Workshop
from onboard.model.encoding import TextEncoder


def _read(task: object, encoder: TextEncoder, steps: int = 6) -> list[tuple[str, str]]:
    """Texts and label words of some batches."""
    rows = []
    for step in range(steps):
        batch = task.batch(step, 16)  # type: ignore[attr-defined]  # any training task
        for ids, target in zip(batch.ids, batch.targets, strict=True):
            rows.append((encoder.tokenizer.decode(ids[:-1]), task.words[int(target.argmax())]))  # type: ignore[attr-defined]
    return rows


def _named(tasks: Sequence[object], name: str) -> object:
    return next(task for task in tasks if task.name == name)  # type: ignore[attr-defined]


def test_a_renamed_task_has_its_sources_rows_under_other_words(workshop: Workshop, encoder: TextEncoder) -> None:
    tasks = renamed(workshop)
    assert not any(task.name.startswith("stsb") for task in tasks)
    good = _named(tasks, "sst2-bad-good")
    assert all(("great" in text) == (label == "good") for text, label in _read(good, encoder))
    swapped = _named(tasks, "sst2-positive-negative")
    assert all(("great" in text) == (label == "negative") for text, label in _read(swapped, encoder))
    assert len([task for task in tasks if task.name.startswith("sst2-")]) > 6


def test_words_of_unknown_labels_come_from_their_neighbours_not_from_the_opposite_label(workshop: Workshop) -> None:
    near = workshop.wording.near("music", 3, apart_from=["kitchen"])
    assert len(near) == 3
    vectors = {word: workshop.wording.vector(word) for word in [*near, "music", "kitchen"]}
    for word in near:
        assert vectors[word] @ vectors["music"] > vectors[word] @ vectors["kitchen"]  # type: ignore[operator]
    assert workshop.wording.near("unheard", 3) == []


def test_a_restricted_task_keeps_the_rows_of_two_labels(workshop: Workshop, encoder: TextEncoder) -> None:
    task = _named(restricted(workshop), "mnli-only-contradiction-neutral")
    rows = _read(task, encoder)
    assert {label for _, label in rows} == {"contradiction", "neutral"}
    assert all(("there is no" in text) == (label == "contradiction") for text, label in rows)


def test_a_scale_is_cut_where_it_says(workshop: Workshop, encoder: TextEncoder, sources: list[Source]) -> None:
    scores = {row.text_b.lower().split(" .")[0]: row.label for row in sources[-1].train if row.text_b}
    ends = _named(restricted(workshop), "stsb-ends-different-similar")
    for text, label in _read(ends, encoder):
        score = scores[text.split("| ")[1].split(" .")[0]]
        assert (score <= 1.0) == (label == "different")  # type: ignore[operator]
        assert (score >= 4.0) == (label == "similar")  # type: ignore[operator]


def test_labels_are_merged_and_tasks_of_one_relation_united(workshop: Workshop, encoder: TextEncoder) -> None:
    tasks = merged(workshop)
    apart = _read(_named(tasks, "mnli-merged-conflict-consistent"), encoder)
    assert all(("there is no" in text) == (label == "conflict") for text, label in apart)
    united = _read(_named(tasks, "union-same-meaning-different-same"), encoder, 12)
    assert any("left by" in text and label == "same" for text, label in united)
    assert any("mean" in text and label == "same" for text, label in united)
    assert all(("left by" in text or "mean" in text) == (label == "same") for text, label in united)
    joint = _read(_named(tasks, "joint-cola-sst2-acceptable-unacceptable-negative-positive"), encoder, 12)
    expected = {"great": "positive", "awful": "negative", "the likes": "unacceptable", "likes the": "acceptable"}
    assert all(next(word for part, word in expected.items() if part in text) == label for text, label in joint)


def _of(tasks: Sequence[object], beginning: str) -> list[object]:
    return [task for task in tasks if task.name.startswith(beginning)]  # type: ignore[attr-defined]


def test_pieces_of_a_joined_text_are_of_its_label(workshop: Workshop, encoder: TextEncoder) -> None:
    tasks = joined(workshop)
    counted: Callable[[str], tuple[int, int]] = lambda text: (text.count("great"), text.count("awful"))  # noqa: E731
    for way in ("few", "many", "unmarked", "told"):
        rows = _read(_of(tasks, f"joined-sst2-{way}")[0], encoder)
        assert max(len(text.split()) for text, _ in rows) > 14
        for text, label in rows:
            great, awful = counted(text)
            assert (great > 0, awful > 0) == (label == "positive", label == "negative") or way == "told"
    assert any(min(counted(text)) > 0 for text, _ in _read(_of(tasks, "joined-sst2-mostly")[0], encoder))
    pure = _read(_of(tasks, "joined-sst2-few")[0], encoder)
    assert not any(". ." in text for text, _ in pure)  # a stop only where a piece has none


def test_an_extended_pair_keeps_both_of_its_texts_whole(workshop: Workshop, encoder: TextEncoder) -> None:
    tasks = [task for task in joined(workshop) if isinstance(task, ExtendedTask)]
    assert {task.name.split("-")[1] for task in tasks} == {"mnli", "qnli", "rte"}
    (whole,) = (source for source in workshop.sources if source.name == "qnli")
    pairs_of = {(encoder.tokenizer.decode(encoder.encode([(row.text_a, None)])[0][:-1]),
                 encoder.tokenizer.decode(encoder.encode([(row.text_b, None)])[0][:-1]))
                for row in whole.train if row.text_b}  # fmt: skip
    longest = 0
    for text, _ in _read(_of(tasks, "extended-qnli")[0], encoder, 12):
        left, right = text.split(" | ")
        assert any(left_text == left and right_text in right for left_text, right_text in pairs_of)
        longest = max(longest, len(text.split()))
    assert longest > 30


def test_an_edited_pair_says_what_was_done(workshop: Workshop, encoder: TextEncoder) -> None:
    tasks = pairs(workshop)
    for text, label in _read(_of(tasks, "pairs-denied")[0], encoder):
        left, right = text.split(" | ")
        assert (("not" in left.split()) != ("not" in right.split())) == (label == "denied")
    for text, label in _read(_of(tasks, "pairs-word")[0], encoder):
        left, right = text.split(" | ")
        assert (right in left) == (label == "present")
    for text, label in _read(_of(tasks, "pairs-holds")[0], encoder, 25):
        left, right = text.split(" | ")
        assert (right in left) == (label == "present")


def test_a_rule_that_fits_too_few_rows_makes_no_task(workshop: Workshop) -> None:
    places = workshop.plain[:40]
    few = np.array([0] * 3 + [1] * 3 + [-1] * 34)
    assert workshop.rows("few", places, None, few, 2) is None
    lopsided = np.array([0] * 39 + [1])
    assert workshop.rows("lopsided", places, None, lopsided, 2) is None
    enough = workshop.rows("enough", places, None, np.arange(40) % 2, 2)
    assert enough is not None
    assert len(enough) == 40


def test_neighbours_are_those_of_all_comparisons() -> None:
    vectors = np.random.default_rng(0).standard_normal((60, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    sample = np.arange(0, 60, 2)
    near = nearest(vectors, sample, 3)
    own = vectors[sample].astype(np.float32)
    similarity = own @ own.T - 2 * np.eye(30)
    for place in range(30):
        expected = set(sample[np.argsort(-similarity[place])[:3]].tolist())
        assert set(near.right[near.left == sample[place]].tolist()) == expected
    np.testing.assert_allclose(near.cosine, [float(vectors[a].astype(np.float32) @ vectors[b]) for a, b in
                                             zip(near.left, near.right, strict=True)], atol=1e-3)  # fmt: skip
    assert ((near.cosine[near.between(0.2, 0.5)] >= 0.2) & (near.cosine[near.between(0.2, 0.5)] < 0.5)).all()


def test_a_dense_sample_keeps_neighbourhoods_together() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((500, 8)), 4, axis=0)
    vectors = centres + 0.001 * rng.standard_normal(centres.shape)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    fitting = np.arange(2000)
    sample = dense_sample(vectors, fitting, 300, np.random.default_rng(1))
    assert 200 < len(sample) <= 300
    together = np.unique(sample // 4, return_counts=True)[1]
    assert (together == 4).mean() > 0.9
    np.testing.assert_array_equal(dense_sample(vectors, fitting[:100], 300, rng), fitting[:100])
