"""The whole curriculum: every kind, determinism, held-out rows and held-out kinds."""

from __future__ import annotations

import numpy as np
import pytest
from curriculum_samples import COUNTS, MARK

from onboard.domain.names import require_name
from onboard.making.curriculum import KINDS, Curriculum, KindCounts, PlainTexts, Source, build_curriculum, topical
from onboard.making.curriculum.workshop import task_name
from onboard.model.encoding import TextEncoder


@pytest.fixture(scope="module", autouse=True)
def _small_clusters() -> None:
    topical._FEWEST_OF_A_CLUSTER = 4  # type: ignore[misc]  # a constant of hundreds of thousands of texts


@pytest.fixture(scope="module")
def curriculum(sources: list[Source], material: PlainTexts, encoder: TextEncoder) -> Curriculum:
    return build_curriculum(sources, material, COUNTS, encoder, 0)


def test_every_kind_makes_tasks_and_the_sources_come_first_under_their_own_names(
    curriculum: Curriculum, sources: list[Source]
) -> None:
    assert curriculum.kinds == KINDS
    assert [task.name for task in curriculum.of("sources")] == [source.name for source in sources]
    assert [task.words for task in curriculum.tasks[: len(sources)]] == [source.words for source in sources]
    assert {kind: len(curriculum.of(kind)) for kind in KINDS if len(curriculum.of(kind)) < 6} == {}


def test_names_are_unique_and_readable(curriculum: Curriculum) -> None:
    names = [task.name for task in curriculum.tasks]
    assert len(set(names)) == len(names)
    assert all(require_name(name) for name in names)
    assert "form-tense-past-present" in names


def test_words_that_no_task_may_be_named_by_are_cut_or_replaced_and_still_told_apart() -> None:
    assert task_name("form-tense", ("not past", "past")) == "form-tense-not_past-past"
    words = [f"word{number}" for number in range(30)]
    wordings = [words, words[::-1], [*words[:-1], "other"], ["yes", "no"], ["Yes", "no"], ["да", "нет"], ["ja", "нет"],
                ["ти", "нет"], ["sci/tech", "world"], ["sci tech", "world"]]  # fmt: skip
    names = [task_name("topics-all-40", wording) for wording in wordings]
    assert len(set(names)) == len(names)
    assert all(require_name(name).startswith("topics-all-40-") for name in names)
    longest = 64 - len("topics-all-40-")
    assert task_name("topics-all-40", ["w" * longest]) == f"topics-all-40-{'w' * longest}"


def test_every_batch_has_a_text_and_a_distribution_over_two_labels_or_more_per_row(
    curriculum: Curriculum, encoder: TextEncoder
) -> None:
    for task in curriculum.tasks:
        for step in range(3):
            batch = task.batch(step, 12)
            assert 1 <= len(batch.ids) <= 12, task.name
            assert batch.targets.shape == (len(batch.ids), batch.trie.labels), task.name
            assert batch.targets.dtype == np.float32
            assert batch.trie.labels >= 2
            np.testing.assert_allclose(batch.targets.sum(1), 1.0, rtol=1e-6)
            assert all(ids[-1] == encoder.eos_id and 2 <= len(ids) <= encoder.max_tokens for ids in batch.ids)
            assert all(isinstance(token, int) for token in batch.ids[0])


def test_the_labels_of_a_made_task_are_known_and_differ_in_their_first_tokens(
    curriculum: Curriculum, encoder: TextEncoder
) -> None:
    for kind in KINDS[1:]:
        for task in curriculum.of(kind):
            tokens = [encoder.label_ids(word) for word in task.words]
            assert all(
                word == word.lower() and 2 <= len(ids) <= 4 for word, ids in zip(task.words, tokens, strict=True)
            )
            assert encoder.tokenizer.unk_token_id not in {token for ids in tokens for token in ids}, task.name
            assert len({ids[0] for ids in tokens}) == len(tokens), task.name


def test_a_batch_depends_on_seed_and_step_alone(
    curriculum: Curriculum, sources: list[Source], material: PlainTexts, encoder: TextEncoder
) -> None:
    again = build_curriculum(sources, material, COUNTS, encoder, 0)
    assert [task.name for task in again.tasks] == [task.name for task in curriculum.tasks]
    for first, second in zip(curriculum.tasks, again.tasks, strict=True):
        second.batch(3, 8)  # what was drawn before does not matter
        one, two = first.batch(5, 8), second.batch(5, 8)
        assert one.ids == two.ids, first.name
        np.testing.assert_array_equal(one.targets, two.targets)
        others = [first.batch(step, 8).ids for step in (6, 7, 8)]
        assert any(other != one.ids for other in others), first.name
    other = build_curriculum(sources, material, COUNTS, encoder, 1)
    assert other.of("sources")[0].batch(5, 8).ids != curriculum.of("sources")[0].batch(5, 8).ids


def test_no_validation_row_is_in_any_batch_even_when_the_material_holds_it(
    curriculum: Curriculum, encoder: TextEncoder, material: PlainTexts
) -> None:
    mark = encoder.label_ids(MARK)[0]
    assert any(MARK in text for text in material.texts)
    for task in curriculum.tasks:
        for step in range(4):
            assert not any(mark in ids for ids in task.batch(step, 24).ids), task.name


def test_a_kind_that_is_held_out_is_really_absent(curriculum: Curriculum) -> None:
    without = curriculum.only(lambda kind, _: kind not in ("topics", "pairs"))
    assert without.kinds == tuple(kind for kind in KINDS if kind not in ("topics", "pairs"))
    assert without.of("topics") == without.of("pairs") == ()
    assert not any(task.name.startswith(("topics-", "pairs-")) for task in without.tasks)
    assert len(without.tasks) == len(curriculum.tasks) - len(curriculum.of("topics")) - len(curriculum.of("pairs"))


def test_a_kind_without_a_share_is_never_made(
    sources: list[Source], material: PlainTexts, encoder: TextEncoder
) -> None:
    none = {kind: KindCounts(share=0, tasks=9) for kind in KINDS if kind not in ("sources", "form")}
    few = COUNTS.model_copy(update={**none, "form": KindCounts(share=0.5, tasks=5)})
    curriculum = build_curriculum(sources, material, few, encoder, 0)
    assert curriculum.kinds == ("sources", "form")
    assert len(curriculum.of("form")) == 5
    assert [share for _, share in curriculum.groups] == [0.1, 0.5]


def test_the_plain_part_holds_what_words_and_text_alone_decide(curriculum: Curriculum) -> None:
    plain = curriculum.plain
    assert plain.kinds == ("sources", "joined", "topics", "pairs")
    assert len(plain.of("sources")) == len(curriculum.of("sources"))
    assert all(task.name.startswith("topics-any-") for task in plain.of("topics"))
    assert all(task.name.startswith("pairs-similar-") for task in plain.of("pairs"))
    assert len(plain.of("topics")) < len(curriculum.of("topics"))


def test_topics_are_drawn_anew_in_every_batch(curriculum: Curriculum) -> None:
    task = next(task for task in curriculum.of("topics") if task.name == "topics-any-all-8")
    assert {task.batch(step, 12).trie.labels for step in range(40)} == set(range(2, 9))
