"""The features of a job's rows, so that later texts can be compared with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from onboard.pipeline.novelty import held_rows
from onboard.pipeline.readout import drawn
from onboard.statistics.drift import Sums, Training, answers_of, sums_of_answers, sums_of_features

if TYPE_CHECKING:
    from onboard.pipeline.evaluate import Judged
    from onboard.pipeline.material import Workbench
    from onboard.statistics.novelty import Novelty


def training_of(
    bench: Workbench, judged: Judged, novelty: Novelty | None, checkpoint: Callable[[], None]
) -> Training | None:
    """Sums over the job's rows; None without rows.

    The features are those of training and validation rows. The answers are those to rows that were left out: to
    validation rows by the version itself, else by the models of the folds.

    Args:
        judged: the version's answers.
        novelty: what it says of rows that were left out of it.
        checkpoint: stops the work.
    """
    rows = [bench.dataset.train[row] for row in drawn(bench)] if bench.dataset.train else []
    if not rows:
        return None
    answered, held_out = judged.left_out()
    if answered is None:
        sums = Sums.empty(bench.targets(rows[:1]).shape[1])
    else:
        sums = sums_of_answers(*answers_of(answered, several=bench.dataset.several_labels))
    held = held_rows(bench)
    sums += sums_of_features(bench.features([*rows, *held], checkpoint)[:, : bench.width], len(sums.labels))
    if novelty is not None:
        judged_rows, unknown = novelty.left_out(len(rows), len(held))
        sums = replace(sums, judged=judged_rows, unknown=unknown)
    return Training(sums, held_out=held_out)
