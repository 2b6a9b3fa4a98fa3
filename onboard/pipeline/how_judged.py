"""Explain in sentences, for the report, how validation metrics were computed."""

from __future__ import annotations

from typing import Final

from onboard.contract.report import ReadoutFacts
from onboard.data.limits import FEWEST_FOLDED_ROWS
from onboard.pipeline.outputs import TrainOutput

NO_ROWS: Final = "There are no labeled rows. Add a test split to measure the version."
ONE_ROW_EACH: Final = "Every label has only one training row, so none can be held out."


def in_folds(trained: TrainOutput, predicted: int, rows: int, *, with_readout: bool) -> str:
    """Explain a cross-validation.

    Args:
        trained: output of the training.
        predicted: number of training rows that were predicted out of fold.
        rows: number of training rows.
        with_readout: whether a readout answers too.
    """
    by_themselves = "Each training row was predicted by a model that was not trained on it"
    if predicted < rows:
        by_themselves = (
            f"{predicted} of the {rows} training rows were predicted by a model that was not trained on them"
        )
    if trained.weights is not None and not with_readout:
        return f"{by_themselves}."
    if trained.has_embedding:
        chosen = "the start and the distance from it"
    else:
        chosen = "the readout's regularization" + ("" if trained.is_readout else ", and its share")
    return f"{by_themselves}; but they chose {chosen}, so the estimate may be optimistic."


def on_held_out_rows(trained: TrainOutput, readout: ReadoutFacts | None) -> str | None:
    """Explain what held-out rows have chosen; None if they chose nothing.

    Args:
        trained: output of the training.
        readout: facts of its readout.
    """
    rows, chosen = trained.training.chosen_on, "the distance from the start"
    if not rows and readout:
        rows, chosen = readout.rows, "the readout's share"
    return f"{rows} of these rows chose {chosen}, so these numbers are slightly optimistic." if rows else None


def too_few(rows: int, held_out_but_known: int) -> str:
    """Explain why there is no estimate.

    Args:
        rows: number of training rows.
        held_out_but_known: held-out rows that were left out because the training's start was trained on them.
    """
    if held_out_but_known:
        return f"All {held_out_but_known} held-out rows were used to train the start or the hypernetwork."
    if rows < FEWEST_FOLDED_ROWS:
        return f"{rows} rows are too few for a validation estimate."
    return (
        f"Fewer than {FEWEST_FOLDED_ROWS} of the {rows} training rows can be cross-validated: "
        "the others were used to train the start, or no other row has their label."
    )
