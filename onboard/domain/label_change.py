"""A change of a task's labels, as all interfaces accept it, and the resulting label set."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from onboard.domain.dataset import Label, label_key, label_text
from onboard.domain.names import did_you_mean
from onboard.errors import ConflictError, InputError

LabelAction = Literal["rename", "merge", "delete", "describe"]
MOST_LETTERS: Final = 200  # of a label
_FEWEST: Final = 2  # labels of a task


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A change of labels.

    Args:
        action: rename one label, merge several into one, delete one with its rows, or describe one.
        to: the new name, for rename and merge.
        description: meaning of the label, for describe; empty removes the description.

    Raises:
        InputError: the action does not exist or is incomplete.
    """

    action: LabelAction
    labels: tuple[Label, ...]
    to: Label | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        if self.action not in get_args(LabelAction):
            raise InputError(
                "label-action-unknown", field="action", action=self.action, actions=list(get_args(LabelAction))
            )
        _require_count(self.action, self.labels)
        if (self.to is not None) != (self.action in ("rename", "merge")):
            raise InputError(
                "label-change-name",
                field="to",
                trouble=f"{self.action} {'lacks the new name' if self.to is None else 'takes no new name'}",
            )
        if (self.description is not None) != (self.action == "describe"):
            raise InputError(
                "label-change-description", field="description",
                trouble=f"{self.action} {'lacks the' if self.description is None else 'takes no'} description",
            )  # fmt: skip
        if self.to is not None:
            _require_label(self.to)

    def known_to(self, task: str, labels: Sequence[Label]) -> LabelChange:
        """Return the change with the task's typed labels; a command line passes them as text.

        Raises:
            InputError: the task does not have one of them, or one is given twice.
            ConflictError: the new name is in use, or fewer than two labels would remain.
        """
        known = tuple(_known(task, label, labels) for label in self.labels)
        if len({label_key(label) for label in known}) < len(known):
            raise InputError("label-given-twice", field="labels", task=task)
        to = self.to
        if to is not None:
            same = [label for label in known if label_text(label) == label_text(to)]
            to = same[0] if same else to
            _require_free(task, to, known, labels)
        left = len(labels) - {"merge": len(known) - 1, "delete": 1}.get(self.action, 0)
        if left < _FEWEST:
            raise ConflictError("labels-left-too-few", task=task, labels=len(labels))
        return LabelChange(self.action, known, to, self.description)

    def after(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        """Return the label set after the change, in order; a merged label takes the place of the first of them."""
        if self.action == "describe":
            return tuple(labels)
        changed, result, placed = {label_key(label) for label in self.labels}, list[Label](), False
        for label in labels:
            if label_key(label) not in changed:
                result.append(label)
            elif self.to is not None and not placed:
                result.append(self.to)
                placed = True
        return tuple(result)

    @property
    def become(self) -> dict[str, Label | None]:
        """Return the new labels of rows by `label_key`; None for rows that are deleted."""
        if self.action == "describe":
            return {}
        return {label_key(label): self.to for label in self.labels}


def _require_count(action: LabelAction, labels: Sequence[Label]) -> None:
    if action == "merge" and len(labels) < 2:
        raise InputError("merge-labels-too-few", field="labels")
    if action != "merge" and len(labels) != 1:
        raise InputError("label-change-labels-too-many", field="labels", action=action)


def _require_label(label: Label) -> None:
    text = label_text(label)
    wrong = None
    if not text.strip():
        wrong = "is empty"
    elif text != text.strip():
        wrong = "begins or ends with whitespace"
    elif len(text) > MOST_LETTERS:
        wrong = f"has {len(text):,} characters; the limit is {MOST_LETTERS}"
    elif any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
        wrong = "contains a control character"
    if wrong is not None:
        raise InputError("label-name-wrong", field="to", trouble=wrong)


def _known(task: str, label: Label, labels: Sequence[Label]) -> Label:
    for alike in (label_key, label_text):
        for known in labels:
            if alike(known) == alike(label):
                return known
    raise InputError(
        "label-not-in-task", field="labels", task=task, label=label, shown=label_text(label),
        guess=did_you_mean(label_text(label), map(label_text, labels)),
    )  # fmt: skip


def _require_free(task: str, to: Label, changed: Sequence[Label], labels: Sequence[Label]) -> None:
    own = {label_key(label) for label in changed}
    if len(changed) == 1 and label_key(to) in own:
        raise ConflictError("label-name-unchanged", task=task, label=to, shown=label_text(to))
    taken = [label for label in labels if label_key(label) not in own and label_text(label) == label_text(to)]
    if taken:
        all_of_them = " ".join(map(label_text, (*changed, to)))
        raise ConflictError("label-name-in-use", task=task, label=to, shown=label_text(to), merged=all_of_them)
