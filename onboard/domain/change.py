"""How a task's dataset or labels were changed."""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypedDict

from onboard.domain.counting import counted
from onboard.domain.dataset import label_text

ChangeAction = Literal["add", "replace", "remove", "rename", "merge", "delete", "describe"]

OF_LABELS: Final = frozenset({"rename", "merge", "delete", "describe"})
"""Actions after which aliases stay in place until somebody promotes the new version."""


class ChangeJson(TypedDict):
    """A change of a task, in a job's `spec.options.change` and in a version's `change`.

    `job`, `version` and `dataset` describe the task before the change; `rows` is the digest of the submitted rows,
    `file` their file. `counts` are numbers of rows by what happened to them. `labels` are the changed labels, `to`
    their new names, `description` the meaning of a label.
    """

    action: ChangeAction
    job: str | None
    version: int | None
    dataset: str
    rows: NotRequired[str]
    file: NotRequired[str]
    counts: NotRequired[dict[str, int]]
    labels: NotRequired[list[Any]]
    to: NotRequired[Any]
    description: NotRequired[str]
    by: NotRequired[str | None]


_OF_ROWS: Final = {
    "added": "{} added", "replaced": "{} with a corrected label", "removed": "{} removed",
    "repeated": "{} that the task already had", "contradicted": "{} that contradict a stored label, skipped",
    "missing": "{} that the task does not have",
}  # fmt: skip


def change_sentence(change: ChangeJson) -> str:
    """Describe the change in one sentence."""
    before = f"v{change['version']}" if change["version"] else f"job {change['job']}"
    if change["action"] not in OF_LABELS:
        counts = change.get("counts", {})
        done = [text.format(counted(counts[name], "row")) for name, text in _OF_ROWS.items() if counts.get(name)]
        return f"Made from the rows of {before}: {', '.join(done) or 'no row changed'}."
    labels = [label_text(label) for label in change.get("labels", ())]
    return f"Made of {before}: {_of_labels(change['action'], labels, change.get('to'))}."


def _of_labels(action: str, labels: list[str], to: Any) -> str:
    named = " and ".join(repr(label) for label in labels)
    if action == "rename":
        return f"the label {named} is called {label_text(to)!r}"
    if action == "merge":
        return f"the labels {named} are one, {label_text(to)!r}"
    if action == "delete":
        return f"without the label {named} and its rows"
    return f"the label {named} is described"
