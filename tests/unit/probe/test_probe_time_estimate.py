"""The time estimate counts the rows of a probe as it measures them."""

from __future__ import annotations

import numpy as np
import pytest
from evaluators import evaluator_of
from fake_evaluator import faked

from onboard.data.limits import PROBE_ROWS, PROBE_TOKENS
from onboard.domain.dataset import Example
from onboard.jobs.estimate import GPU_SPEEDUP, START_SECONDS, DatasetSize, estimate_seconds
from onboard.model.cost import Passes
from onboard.model.engine import Engine
from onboard.probe.candidates import NOTHING_LEARNED, Candidate
from onboard.probe.finals import Finalist, try_finalists
from onboard.probe.passes import CANDIDATES, probe_passes
from onboard.probe.racing import race
from onboard.probe.settings import FEWEST_ROWS, FinalSettings, ProbeSettings

WORDS = ("yes", "no")


def raced(rows: int) -> int:
    """Rows that are measured of as many candidates as the estimate takes, when nobody is clearly worse."""
    names = [*(f"task{number}@v1" for number in range(CANDIDATES - len(NOTHING_LEARNED))), *NOTHING_LEARNED]
    of_pairs = np.random.default_rng(0).standard_normal((len(names), rows // 2 + 1, 1))
    noise = (of_pairs * (1.0, -1.0)).reshape(len(names), -1)[:, :rows]  # of no weight after any even number of rows
    losses = {name: 1e-3 * place + of_rows for place, (name, of_rows) in enumerate(zip(names, noise, strict=True))}
    fake, evaluator, candidates = faked(losses)
    race(evaluator, candidates, np.arange(rows), spared=NOTHING_LEARNED)
    return len({(name, row) for among, of_rows in fake.asked for name in among for row in of_rows})


def last_round(engine: Engine, rows: int) -> Passes:
    """Rows that go through the model for three and for the better of those that have learned nothing."""
    if rows < FEWEST_ROWS:
        return Passes()
    evaluator = evaluator_of(engine, [Example("good film", None, WORDS[row % 2]) for row in range(rows)], WORDS)
    starts = np.random.default_rng(1).standard_normal((ProbeSettings().finalists + 1, 16)).astype(np.float32)
    finalists = [Finalist(Candidate(f"t{number}@v1", z), WORDS) for number, z in enumerate(starts)]
    try_finalists(evaluator, finalists, np.arange(rows), FinalSettings())
    return Passes(evaluator.passes, evaluator.trained)


@pytest.mark.parametrize("count", [2, 8, 10, 32, 100, 256, 1500])
def test_a_probe_in_which_nobody_falls_behind_measures_as_many_rows_as_the_estimate_says(
    tiny_engine: Engine, count: int
) -> None:
    rows = min(count, PROBE_ROWS)
    last = last_round(tiny_engine, rows)
    assert probe_passes(count) == Passes(raced(rows) + last.scored, last.trained)


def test_the_probe_reads_the_beginning_of_a_text_and_training_all_that_the_model_can() -> None:
    beginning, whole, longer = (estimate_seconds(DatasetSize(32, tokens)) for tokens in (PROBE_TOKENS, 128, 5_000))
    training = [estimate_seconds(DatasetSize(32, tokens), probed=False) for tokens in (PROBE_TOKENS, 128)]
    named = Passes(32)
    assert longer == whole
    assert whole - beginning == pytest.approx(training[1] - training[0])
    assert estimate_seconds(DatasetSize(32, 128)) - training[1] == pytest.approx(
        probe_passes(32).seconds(PROBE_TOKENS) - named.seconds(PROBE_TOKENS)
    )


def test_a_gpu_does_not_start_a_worker_faster() -> None:
    much = DatasetSize(
        1500, 100, validation=500, test=100, regression=True
    )  # a classification gets a learning curve there, too
    slow, quick = (estimate_seconds(much, gpu=gpu) for gpu in (False, True))
    assert slow - START_SECONDS == pytest.approx(GPU_SPEEDUP * (quick - START_SECONDS))


def test_every_row_that_is_answered_takes_time() -> None:
    plain = estimate_seconds(DatasetSize(32, 20))
    scored = Passes(1000).seconds(20)
    assert estimate_seconds(DatasetSize(32, 20, test=1000)) - plain == pytest.approx(scored)
    assert estimate_seconds(DatasetSize(32, 20), unlabelled=1000) - plain == pytest.approx(scored)


def test_a_job_without_rows_is_estimated_too() -> None:
    """Its time is looked up whenever a later job runs."""
    assert 0 < estimate_seconds(DatasetSize(0, 0.0)) < estimate_seconds(DatasetSize(32, 20.0))
