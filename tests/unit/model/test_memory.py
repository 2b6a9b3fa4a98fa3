"""A GPU whose memory is too small, played by a hook: fewer rows at once, the same result, and it is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from bench.harness.as_a_job import train_embedding
from onboard.model.batch import LabelledRows
from onboard.model.batched import BATCH, log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import Execution
from onboard.model.memory import PART_COSTS_ON_A_GPU, RowsAtOnce
from onboard.train.fewshot import Trained
from onboard.train.settings import FewShotSettings

WORDS = ("good", "bad", "fine", "awful", "happy", "sad", "great", "poor")
SETTINGS = FewShotSettings(steps=8, batch=16, seeds=1)
Small = Callable[[int], Any]


@pytest.fixture
def small(tiny_engine: Engine) -> Small:
    """`with small(rows):` more rows than that do not fit; the error comes as CUDA's does, in the midst of a layer."""

    @contextmanager
    def play(
        rows: int, error: type[BaseException] = torch.OutOfMemoryError, in_backward: bool = False
    ) -> Iterator[None]:
        def forward(module: Any, inputs: Any, output: torch.Tensor) -> None:
            if in_backward and output.requires_grad:
                output.register_hook(lambda gradient: refuse(len(output)))
            else:
                refuse(len(output))

        def refuse(count: int) -> None:
            if count > rows:
                raise error("CUDA out of memory. Tried to allocate 20.00 MiB.\nmore of it")

        handle = tiny_engine.backbone.encoder.block[-1].layer[-1].layer_norm.register_forward_hook(forward)
        try:
            yield
        finally:
            handle.remove()

    return play


@pytest.fixture
def rows(tiny_engine: Engine) -> LabelledRows:
    texts = [f"{word} film" + " and plot" * (number % 6) for number, word in enumerate(WORDS * 3)]
    return LabelledRows(
        tiny_engine.encoder.encode([(text, None) for text in texts]), np.eye(2, dtype=np.float32)[[0, 1] * 12]
    )


def train(engine: Engine, rows: LabelledRows, at_once: RowsAtOnce | None = None) -> Trained:
    start = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    return train_embedding(
        engine, start, rows, engine.trie(["yes", "no"]), SETTINGS, 0, Execution(trained_at_once=at_once)
    )


def score(engine: Engine, ids: Sequence[Sequence[int]], at_once: RowsAtOnce | None = None) -> np.ndarray:
    z = np.random.default_rng(1).standard_normal(16).astype(np.float32)
    return log_probabilities(engine, ids, z, engine.trie(["yes", "no"]), at_once=at_once)


@pytest.mark.parametrize("in_backward", [False, True])
def test_a_batch_that_does_not_fit_is_trained_in_parts_to_the_same_embedding(
    tiny_engine: Engine, rows: LabelledRows, small: Small, in_backward: bool
) -> None:
    whole = train(tiny_engine, rows)
    halvings: list[tuple[int, int]] = []
    at_once = RowsAtOnce(on_halved=lambda tried, fewer: halvings.append((tried, fewer)))
    with small(5, in_backward=in_backward):
        parts = train(tiny_engine, rows, at_once)
    assert halvings == [(24, 12), (12, 6), (6, 3)]
    np.testing.assert_allclose(parts.z, whole.z, atol=1e-4)
    np.testing.assert_allclose(parts.losses, whole.losses, atol=1e-5)
    assert parts.padding_share < whole.padding_share


def test_a_step_that_breaks_off_in_its_second_part_begins_anew(tiny_engine: Engine, rows: LabelledRows) -> None:
    whole = train(tiny_engine, rows)
    calls = iter(range(1000))

    def refuse_once(module: Any, inputs: Any, output: torch.Tensor) -> None:
        if next(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    at_once = RowsAtOnce(8)
    handle = tiny_engine.backbone.encoder.block[-1].layer[-1].layer_norm.register_forward_hook(refuse_once)
    try:
        parts = train(tiny_engine, rows, at_once)
    finally:
        handle.remove()
    assert at_once.limit == 4
    np.testing.assert_allclose(parts.z, whole.z, atol=1e-4)


def test_where_everything_fits_not_a_bit_differs(tiny_engine: Engine, rows: LabelledRows, small: Small) -> None:
    whole = train(tiny_engine, rows)
    with small(24):
        assert train(tiny_engine, rows).z.tobytes() == whole.z.tobytes()


def test_rows_that_do_not_fit_are_scored_in_parts_and_the_size_is_kept(
    tiny_engine: Engine, rows: LabelledRows, small: Small
) -> None:
    ids = [*rows.ids, *rows.ids, *rows.ids, *rows.ids]
    assert len(ids) > BATCH
    halvings: list[tuple[int, int]] = []
    at_once = RowsAtOnce(BATCH, on_halved=lambda tried, fewer: halvings.append((tried, fewer)))
    with small(10):  # a CPU takes a quarter of a batch at once
        scores_twice = score(tiny_engine, ids, at_once), score(tiny_engine, ids, at_once)
    assert halvings == [(64, 32), (32, 16), (16, 8)]
    for scores in scores_twice:
        np.testing.assert_allclose(scores, score(tiny_engine, ids), atol=1e-5)


def test_one_row_that_does_not_fit_is_an_error_that_says_what_to_do(
    tiny_engine: Engine, rows: LabelledRows, small: Small
) -> None:
    for work in (train, lambda engine, rows: score(engine, rows.ids)):
        with small(0), refused("gpu-memory-too-small", work="one row of this dataset") as caught:
            work(tiny_engine, rows)
        assert "nvidia-smi" in caught.value.remedy
        assert "more of it" not in caught.value.message
        assert not caught.value.retryable


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_a_machine_without_memory_and_any_other_error_are_not_masked(
    tiny_engine: Engine, rows: LabelledRows, small: Small, error: type[BaseException]
) -> None:
    for work in (train, lambda engine, rows: score(engine, rows.ids)):
        with small(5, error=_other(error)), pytest.raises(error, match="something else"):
            work(tiny_engine, rows)


def _other(kind: type[BaseException]) -> Any:
    return lambda message: kind("something else")


def test_the_library_of_matrix_products_is_understood_too() -> None:
    at_once = RowsAtOnce(8)

    def work() -> int:
        if at_once.parts(8)[0].stop > 4:
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
        return len(at_once.parts(8))

    assert at_once.fitting(8, work) == 2


@pytest.mark.parametrize(("limit", "rows", "stops"), [(None, 5, [5]), (8, 5, [5]), (2, 5, [2, 4, 6]), (None, 0, [])])
def test_parts_cover_all_rows(limit: int | None, rows: int, stops: list[int]) -> None:
    parts = RowsAtOnce(limit).parts(rows)
    assert [part.stop for part in parts] == stops
    assert [row for part in parts for row in range(rows)[part]] == list(range(rows))


@given(st.lists(st.integers(1, 9000), max_size=7).map(sorted), st.integers(1, 8))
def test_parts_of_like_length_are_the_cheapest_that_fit(lengths: list[int], limit: int) -> None:
    def cost(stops: Sequence[int]) -> int:
        return sum((stop - start) * lengths[stop - 1] + PART_COSTS_ON_A_GPU for start, stop in pairwise((0, *stops)))

    parts = RowsAtOnce(limit).parts_of_like_length(lengths, torch.device("cuda"))
    assert [row for part in parts for row in range(len(lengths))[part]] == list(range(len(lengths)))
    assert all(part.stop - part.start <= limit for part in parts)
    cuts = (cut for count in range(len(lengths)) for cut in combinations(range(1, len(lengths)), count))
    ways = ((*cut, len(lengths)) for cut in cuts)
    fitting = [way for way in ways if all(stop - start <= limit for start, stop in pairwise((0, *way)))]
    assert cost([part.stop for part in parts]) == min(map(cost, fitting), default=0)
