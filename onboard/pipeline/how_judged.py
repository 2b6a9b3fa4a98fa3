"""Explain in sentences, for the report, how validation metrics were computed."""

from __future__ import annotations

from typing import Final

from onboard.contract.report import ReadoutFacts
from onboard.data.limits import FEWEST_FOLDED_ROWS
from onboard.pipeline.outputs import TrainOutput

NO_ROWS: Final = "There are no labeled rows; a test split would measure the version."
ONE_ROW_EACH: Final = "Every label has one training row: held out, it could not be learned."


def in_folds(trained: TrainOutput, predicted: int, rows: int, *, with_readout: bool) -> str:
    """Explain a cross-validation.

    Args:
        trained: output of the training.
        predicted: number of training rows that were predicted out of fold.
        rows: number of training rows.
        with_readout: whether a readout answers too.
    """
    by_themselves = "Each training row was predicted without itself"
    if predicted < rows:
        by_themselves = f"{predicted} of the {rows} training rows were predicted without themselves"
    if trained.weights is not None and not with_readout:
        return f"{by_themselves}, by weights of the other rows."
    if trained.has_embedding:
        chosen = "the initialisation and how far to go from it"
    else:
        chosen = "how regular the readout is" + ("" if trained.is_readout else ", and how much it says")
    return f"{by_themselves}; but they chose {chosen}, so it may be too good."


def on_held_out_rows(trained: TrainOutput, readout: ReadoutFacts | None) -> str | None:
    """Explain what held-out rows have chosen; None if they chose nothing.

    Args:
        trained: output of the training.
        readout: facts of its readout.
    """
    rows, chosen = trained.training.chosen_on, "how far to go from the start"
    if not rows and readout:
        rows, chosen = readout.rows, "how much of the answer is the readout's"
    return f"{rows} of these rows chose {chosen}, so these numbers are a little too good." if rows else None


def too_few(rows: int, held_out_but_known: int) -> str:
    """Explain why there is no estimate.

    Args:
        rows: number of training rows.
        held_out_but_known: held-out rows that were left out because the training's start was trained on them.
    """
    if held_out_but_known:
        return (
            f"All {held_out_but_known} held-out rows have trained what this training started from, or its hypernetwork."
        )
    if rows < FEWEST_FOLDED_ROWS:
        return f"{rows} rows are too few for a validation estimate."
    return (
        f"Fewer than {FEWEST_FOLDED_ROWS} of the {rows} training rows can be predicted without themselves: "
        "the others have trained what this training started from, or no other row has their label."
    )
