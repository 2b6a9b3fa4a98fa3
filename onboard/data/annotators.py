"""Combine the answers of several annotators into one label per text, and report texts without agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from onboard.data.fields import Fields
from onboard.data.formats import Row
from onboard.data.formats.tools import Reason, Tool, ToolAnswer
from onboard.data.limits import MAX_EXAMPLES
from onboard.data.problems import Finding, preview
from onboard.domain.counting import counted
from onboard.domain.dataset import label_key
from onboard.domain.job import KindChoice
from onboard.domain.label_set import MULTILABEL

_ROWS_NAMED: Final = 20
SEVERAL_FROM: Final = 0.1  # share of texts with several labels from which on all texts may have several
_TOLD: Final[dict[Reason, dict[str, str]]] = {
    "rejected": {
        "code": "rejected_rows",
        "what": "that the annotators rejected, skipped or ignored",
        "remedy": "To include them, change the annotators' verdicts in {tool} and export again.",
    },
    "unlabelled": {
        "code": "unlabelled_rows",
        "what": "without a label",
        "remedy": "Label them in {tool} and export again.",
    },
    "several_labels": {
        "code": "several_labels",
        "what": "with several labels from one annotator",
        "remedy": "Decide on one in {tool}, or allow several labels per text: --kind multilabel",
    },
}


@dataclass(frozen=True, slots=True)
class Dispute:
    """A text with disagreement: how often each label was given, and the majority label, if any."""

    row: int
    counts: tuple[tuple[object, int], ...]
    label: object

    def example(self) -> dict[str, object]:
        """Return the row with the labels that it was given."""
        return {"row": self.row, "labels": [label for label, _ in self.counts], "label": self.label}


@dataclass(slots=True)
class LeftOut:
    """Rows of an export without a label, by reason, and disputed texts."""

    tool: str
    rows: dict[Reason, list[int]] = field(default_factory=dict)
    disputes: list[Dispute] = field(default_factory=list)

    def add(self, reason: Reason, row: int) -> None:
        """Record a row without a label."""
        self.rows.setdefault(reason, []).append(row)

    @property
    def count(self) -> int:
        """Return how many texts are left out."""
        return sum(map(len, self.rows.values())) + sum(dispute.label is None for dispute in self.disputes)

    def findings(self, split: str) -> list[Finding]:
        """Return warnings that list the rows."""
        findings = [self._reason(split, reason, rows) for reason, rows in self.rows.items()]
        return findings + ([self._disputes(split)] if self.disputes else [])

    def _reason(self, split: str, reason: Reason, rows: list[int]) -> Finding:
        said = _TOLD[reason]
        message = f"{counted(len(rows), 'row')} of the {split} split {said['what']}: left out ({_named(rows)})."
        return Finding(said["code"], message, len(rows), said["remedy"].format(tool=self.tool))

    def _disputes(self, split: str) -> Finding:
        settled = [dispute.row for dispute in self.disputes if dispute.label is not None]
        open_rows = [dispute.row for dispute in self.disputes if dispute.label is None]
        parts = (
            [f"{len(settled):,} have the label that more than half of them gave ({_named(settled)})"] if settled else []
        )
        parts += [f"{len(open_rows):,} are left out ({_named(open_rows)})"] if open_rows else []
        message = f"{counted(len(self.disputes), 'row')} of the {split} split have annotators who disagree: "
        examples = tuple(dispute.example() for dispute in self.disputes[:MAX_EXAMPLES])
        remedy = f"Decide on one label for each in {self.tool} and export again."
        return Finding("disagreeing_annotators", f"{message}{', '.join(parts)}.", len(self.disputes), remedy, examples)


@dataclass(slots=True)
class _Item:
    """A text with its annotators' answers; the row is that of the first annotation."""

    row: Row
    answers: list[ToolAnswer] = field(default_factory=list)


def agreed(
    rows: Iterable[Row], tool: Tool, fields: Fields, left_out: LeftOut, kind: KindChoice = "auto"
) -> Iterator[Row]:
    """Yield the rows with a majority label; record all others in `left_out`.

    If texts may have several labels, a row has the list of those that more than half of its annotators gave.

    Args:
        kind: kind of the task; with auto, texts may have several labels if at least one in ten has.
    """
    items = list(_items(rows, tool, fields))
    settled = _set_settled if _may_have_several(items, kind) else _settled
    for item in items:
        yield from settled(item, fields, left_out)


def _may_have_several(items: Iterable[_Item], kind: KindChoice) -> bool:
    if kind != "auto":
        return kind == MULTILABEL
    labelled = [item for item in items if any(answer.reason in (None, "several_labels") for answer in item.answers)]
    several = [item for item in labelled if any(answer.reason == "several_labels" for answer in item.answers)]
    return bool(several) and len(several) >= SEVERAL_FROM * len(labelled)


def _items(rows: Iterable[Row], tool: Tool, fields: Fields) -> Iterator[_Item]:
    """Yield the texts with all answers of annotators."""
    if not tool.item:
        for row in rows:
            answers = list(tool.answers(row.values, fields.label))
            yield _Item(row._replace(values={name: row.values.get(name) for name in fields.texts}), answers)
        return
    items: dict[Hashable, _Item] = {}
    for row in rows:
        key = tuple(map(str, (row.values.get(name) for name in (*tool.item, *fields.texts))))
        item = items.setdefault(key, _Item(row._replace(values={name: row.values.get(name) for name in fields.texts})))
        item.answers += tool.answers(row.values, fields.label)
    yield from items.values()


def _set_settled(item: _Item, fields: Fields, left_out: LeftOut) -> Iterator[Row]:
    """Yield the row with the labels that more than half of its annotators gave."""
    sets = [_listed(answer) for answer in item.answers if answer.reason in (None, "several_labels", "no_label")]
    if not sets:
        reasons = {answer.reason for answer in item.answers}
        reason: Reason = "rejected" if "rejected" in reasons else "unlabelled"
        left_out.add(reason, item.row.number)
        return
    names = {_key(label): label for labels in sets for label in labels}
    counts = Counter(key for labels in sets for key in dict.fromkeys(map(_key, labels)))
    most = [names[key] for key, count in counts.items() if count * 2 > len(sets)]
    if any(count < len(sets) for count in counts.values()):
        shown = tuple((_shown(names[key]), count) for key, count in counts.most_common())
        left_out.disputes.append(Dispute(item.row.number, shown, ", ".join(str(_shown(label)) for label in most)))
    labels = sets[0] if len(sets) == 1 else most  # as written, including repetitions
    yield item.row._replace(values={**item.row.values, fields.label: labels})


def _listed(answer: ToolAnswer) -> list[object]:
    """Return the labels of an answer, or of all answers to one question."""
    if not isinstance(answer.label, list):
        return [answer.label]
    parts = [part if isinstance(part, list) else [part] for part in answer.label]
    return [label for part in parts for label in part]


def _settled(item: _Item, fields: Fields, left_out: LeftOut) -> Iterator[Row]:
    labels = [answer.label for answer in item.answers if answer.reason is None]
    reasons = {answer.reason for answer in item.answers}
    if not labels:
        order: tuple[Reason, ...] = ("several_labels", "rejected", "unlabelled")
        left_out.add(next((reason for reason in order if reason in reasons), "unlabelled"), item.row.number)
        return
    names = {_key(label): label for label in reversed(labels)}
    counts = Counter(map(_key, labels)).most_common()
    label = names[counts[0][0]]
    if len(counts) > 1:
        most = label if counts[0][1] * 2 > len(labels) else None
        shown = tuple((_shown(names[key]), count) for key, count in counts)
        left_out.disputes.append(Dispute(item.row.number, shown, None if most is None else _shown(most)))
        if most is None:
            return
    yield item.row._replace(values={**item.row.values, fields.label: label})


def _key(label: object) -> str:
    """Return a key of a label. Invalid labels (lists, objects) are reported later; here their text is used."""
    return label_key(label) if isinstance(label, str | bool | int | float) else repr(label)


def _shown(label: object) -> object:
    return preview(label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label))


def _named(rows: Sequence[int]) -> str:
    shown = ", ".join(f"{row:,}" for row in rows[:_ROWS_NAMED])
    return f"{'row' if len(rows) == 1 else 'rows'} {shown}" + (", …" if len(rows) > _ROWS_NAMED else "")
