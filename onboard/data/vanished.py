"""Remove labels that lost all training rows to conflicts, as they cannot be learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onboard.data.problems import Finding, preview
from onboard.data.rows import LabelledRow
from onboard.data.settled import Settled
from onboard.domain.counting import counted
from onboard.domain.dataset import label_key

Splits = dict[str, list[LabelledRow]]


def without_vanished(
    settled: Settled, splits: Mapping[str, list[LabelledRow]], *, declared: bool
) -> tuple[Settled, Splits, list[Finding]]:
    """Return the labels with training rows, and the rows of the other splits with these labels.

    Args:
        settled: the labels before rows were dropped.
        splits: the remaining rows.
        declared: whether the label set was declared, in which case it stays.
    """
    if settled.kind == "regression" or declared:
        return settled, dict(splits), []
    trained = {label_key(label) for row in splits["train"] for label in row.labels}
    gone = [label for label in settled.labels if label_key(label) not in trained]
    if not gone or len(trained) < 2:  # another check reports fewer than two labels
        return settled, dict(splits), []
    rows = {
        split: [row for row in of_split if all(label_key(label) in trained for label in row.labels)]
        for split, of_split in splits.items()
    }
    dropped = sum(len(of_split) - len(rows[split]) for split, of_split in splits.items())
    named = ", ".join(preview(label_key(label)) for label in gone[:5]) + (", …" if len(gone) > 5 else "")
    what = f"The label {named} has" if len(gone) == 1 else f"The labels {named} have"
    message = f"{what} no training row left, so no answer has {'it' if len(gone) == 1 else 'them'}."
    if dropped:
        message += f" {counted(dropped, 'row')} of other splits with such a label dropped."
    remedy = "Add training rows whose texts have only that label."
    labels = tuple(label for label in settled.labels if label_key(label) in trained)
    return replace(settled, labels=labels, splits=rows), rows, [Finding("vanished_labels", message, len(gone), remedy)]
