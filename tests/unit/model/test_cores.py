"""Parts of a batch on several cores: in their order, the same numbers, each thread with its share of the cores."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onboard.model.cores import FEWEST_ROWS, PART_COSTS, PARTS, even_parts, side_by_side
from onboard.model.engine import Engine
from onboard.model.side_by_side import Losses

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """What a test does to torch's threads ends with it."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("of_torch", "workers", "threads"), [(1, 1, 1), (2, 2, 1), (3, 3, 1), (8, 4, 2)])
def test_parts_are_worked_on_at_the_same_time_and_no_more_threads_compute_than_there_are_cores(
    of_torch: int, workers: int, threads: int
) -> None:
    torch.set_num_threads(of_torch)
    together, seen = threading.Barrier(workers), set[str]()

    def work(part: int) -> tuple[int, int]:
        together.wait(10)
        seen.add(threading.current_thread().name)
        return part, torch.get_num_threads()

    assert side_by_side(CPU, work, range(workers)) == [(part, threads) for part in range(workers)]
    assert len(seen) == workers
    assert torch.get_num_threads() == of_torch
    begun_later: list[int] = []
    later = threading.Thread(target=lambda: begun_later.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert begun_later == [of_torch]


def test_elsewhere_nothing_leaves_the_caller() -> None:
    here = threading.current_thread()
    assert side_by_side(torch.device("cuda"), lambda _: threading.current_thread(), [1, 2]) == [here, here]


@pytest.mark.parametrize("of_torch", [1, 2])
def test_one_part_has_all_cores_and_whoever_asks_the_same_thread(of_torch: int) -> None:
    torch.set_num_threads(of_torch)
    computing: list[tuple[threading.Thread, int]] = []

    def ask() -> None:
        computing.extend(side_by_side(CPU, lambda _: (threading.current_thread(), torch.get_num_threads()), [1]))

    for _ in range(3):
        asking = threading.Thread(target=ask)
        asking.start()
        asking.join()
    assert len(set(computing)) == 1
    assert computing[0][1] == of_torch


def test_a_copy_of_a_process_computes_on_threads_of_its_own() -> None:
    torch.set_num_threads(1)
    assert side_by_side(CPU, int, [1]) == [1]
    copy = os.fork()
    if copy == 0:
        signal.alarm(10)  # without an end of its own it would wait for threads that it has not
        os._exit(0 if side_by_side(CPU, int, [1]) == [1] else 1)
    assert os.waitpid(copy, 0)[1] == 0


def test_an_error_of_one_part_is_the_caller_s() -> None:
    torch.set_num_threads(2)

    def work(part: int) -> int:
        if part == 1:
            raise RuntimeError("part 1")
        return part

    with pytest.raises(RuntimeError, match="part 1"):
        side_by_side(CPU, work, range(4))
    assert side_by_side(CPU, lambda part: part, range(4)) == [0, 1, 2, 3]


def test_the_gradient_of_parts_is_that_of_the_whole_and_does_not_depend_on_the_number_of_cores(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    ids = [rng.integers(3, 60, rng.integers(3, 12)).tolist() for _ in range(13)]
    targets, z = np.eye(2)[rng.integers(0, 2, 13)], torch.from_numpy(rng.standard_normal((2, 16)).astype(np.float32))
    tries = [tiny_engine.trie(words) for words in (("good", "bad"), ("yes", "no"))]
    chosen = [np.arange(7), np.arange(4, 13)]
    gradients = []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        gradients.append(Losses(tiny_engine, tries, ids, targets).gradient(z, chosen))
    for gradient, losses in gradients[1:]:
        assert gradient.equal(gradients[0][0])
        np.testing.assert_array_equal(losses, gradients[0][1])
    monkeypatch.setattr("onboard.model.memory.even_parts", lambda lengths, most: [slice(0, len(lengths))])
    gradient, losses = Losses(tiny_engine, tries, ids, targets).gradient(z, chosen)
    torch.testing.assert_close(gradient, gradients[0][0])
    np.testing.assert_allclose(losses, gradients[0][1], rtol=1e-5)
    assert len(even_parts([12] * 16, 32)) > 1


def costs(rows: int, longest: int) -> int:
    return rows * longest + PART_COSTS


def two_cores_take(parts: Sequence[slice], lengths: Sequence[int]) -> int:
    """What the busier one computes when each takes the next part as soon as it is free."""
    busy = [0, 0]
    for part in parts:
        busy[busy[1] < busy[0]] += costs(part.stop - part.start, lengths[part.stop - 1])
    return max(busy)


@given(st.lists(st.integers(1, 128), max_size=9).map(sorted), st.integers(1, 9))
def test_two_cores_are_done_with_even_parts_as_soon_as_with_any_two(lengths: list[int], most: int) -> None:
    parts = even_parts(lengths, most)
    assert [row for part in reversed(parts) for row in range(len(lengths))[part]] == list(range(len(lengths)))
    assert all(0 < part.stop - part.start <= most for part in parts)
    assert len(parts) < 2 or len(lengths) > FEWEST_ROWS or len(lengths) > most
    of_two = [
        max(costs(cut, lengths[cut - 1]), costs(len(lengths) - cut, lengths[-1]))
        for cut in range(1, len(lengths)) if max(cut, len(lengths) - cut) <= most
    ]  # fmt: skip
    if len(lengths) > FEWEST_ROWS and of_two:
        assert two_cores_take(parts, lengths) <= min(of_two)


def test_ten_rows_of_one_length_keep_two_cores_equally_busy() -> None:
    assert even_parts([128] * 10, 32) == [slice(5, 10), slice(0, 5)]


def test_large_batches_have_parts_for_four_cores() -> None:
    assert len(even_parts([40] * 64, 64)) == PARTS
