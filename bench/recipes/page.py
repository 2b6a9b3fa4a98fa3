"""The page of `bench.recipes`: trainings and shares of the way, on kinds of tasks that the base knows, and others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from bench.harness.intervals import mean_shown
from bench.harness.page import NONE, table, table_row
from onboard.train.settings import SHARES, FewShotSettings
from onboard.train.step_length import LossByShare

SERVICE: Final = FewShotSettings()
CHOSEN: Final = "chosen"  # the share that rows select which were predicted without themselves
Row = Mapping[str, Any]
Training = tuple[int, int, float]  # steps, rows a step, learning rate
OWN_TRAINING: Final[Training] = (SERVICE.steps, SERVICE.batch, SERVICE.learning_rate)


def page(rows: Sequence[Row], planned: int, command: str, unseen: Collection[str]) -> str:
    """Markdown.

    Args:
        rows: the measurements, with these settings.
        planned: trainings of the plan.
        command: that made it.
        unseen: names of the tasks whose kind the base does not know.
    """
    tasks = dict.fromkeys(row["cell"]["task"] for row in rows)
    text = [
        "# Recipes of few-shot training", "",
        f"`{command}`. Each source task is learned as if it were new (its own embedding and the made tasks that bear "
        "its name are not among the candidates): kinds that the base knows. Beside them stand kinds that it has "
        "nothing like. Of each so many labelled rows, drawn balanced, from the start that the probe chose. Accuracy "
        "in per cent and loss in nats on 300 test rows at most, means over tasks and draws. \"Gain\" is what training "
        "adds to the start, with a 95% bootstrap interval over tasks. \"Share\": of the way from the start to where "
        "training went; chosen: the one that rows ask for which were predicted without themselves. The service's "
        "recipe is bold ([why](../../docs/decisions/0015-training-goes-far-and-rows-say-how-far.md)).", "",
        f"Measured: {len(rows)} of {planned} trainings ({', '.join(tasks)}).", "",
    ]  # fmt: skip
    if not rows:
        return "\n".join(text)
    judged = [share for row in rows for share in row["by_share"].values()]
    orders = [100 * (share["test_accuracy"] - share["one_order"]) for share in judged]
    own = [row for row in rows if _training(row) == OWN_TRAINING]
    beside = f"The mean of {SERVICE.seeds} orders is {np.mean(orders):+.2f} points beside one."
    text += [*_trainings(rows, unseen), "", beside, ""]
    return "\n".join([*text, *_task_by_task(own, unseen), ""])


def _trainings(rows: Sequence[Row], unseen: Collection[str]) -> list[str]:
    """A line for each training and share of the way, on known and on unseen kinds."""
    groups = {
        "known": [row for row in rows if row["cell"]["task"] not in unseen],
        "unseen": [row for row in rows if row["cell"]["task"] in unseen],
    }
    columns = [f"{name}: {what}" for name in groups for what in ("accuracy", "gain", "loss")]
    lines = []
    shares = (*(f"{share:g}" for share in SHARES), CHOSEN)
    for training, share in product(sorted({_training(row) for row in rows}), shares):
        line = [*(f"{number:g}" for number in training), share]
        for group in groups.values():
            line += _cells([row for row in group if _training(row) == training], share)
        used = (training, share) == (OWN_TRAINING, CHOSEN)
        lines.append([f"**{cell}**" for cell in line] if used else line)
    return table(["steps", "rows a step", "rate", "share", *columns], lines, rule=" --- ")


def _task_by_task(rows: Sequence[Row], unseen: Collection[str]) -> list[str]:
    """The service's own training: accuracy at the start, after the chosen share and after the whole way."""
    lines = [
        "## The service's recipe, task by task", "",
        "Mean over draws. Rows of the sources are drawn balanced, their tests have natural shares: 69% of CoLA's have "
        "one label.", "",
        *table("task | draws | start | chosen | whole way | shares that were chosen", rule=" --- "),
    ]  # fmt: skip
    for task in sorted({row["cell"]["task"] for row in rows}, key=lambda name: (name in unseen, name)):
        own = [row for row in rows if row["cell"]["task"] == task]
        shares = [bearable(row) for row in own]
        columns = [
            [100 * row["by_share"][share]["test_accuracy"] for row, share in zip(own, of_rows, strict=True)]
            for of_rows in (["0"] * len(own), shares, ["1"] * len(own))
        ]
        shown = task if task not in unseen else f"{task} (unseen)"
        means = (f"{np.mean(column):.1f}" for column in columns)
        lines.append(table_row(shown, len(own), *means, ", ".join(shares)))
    return lines


def _training(row: Row) -> Training:
    cell = row["cell"]
    return cell["steps"], cell["batch"], cell["rate"]


def _cells(rows: Sequence[Row], share: str) -> list[str]:
    """Accuracy, gain over the start and loss."""
    if not rows:
        return [NONE] * 3
    by_row = [row["by_share"][bearable(row) if share == CHOSEN else share] for row in rows]
    accuracy = np.array([100 * judged["test_accuracy"] for judged in by_row])
    gain = accuracy - np.array([100 * row["by_share"]["0"]["test_accuracy"] for row in rows])
    shown = mean_shown(gain, [row["cell"]["task"] for row in rows])
    return [f"{accuracy.mean():.1f}", shown, f"{np.mean([judged['test_loss'] for judged in by_row]):.3f}"]


def bearable(row: Row) -> str:
    """The share that the service would have taken."""
    losses = {float(share): float(np.mean(judged["fold_losses"])) for share, judged in row["by_share"].items()}
    return f"{LossByShare(losses[0.0], losses).bearable():g}"
