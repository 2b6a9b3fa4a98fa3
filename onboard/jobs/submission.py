"""Use case: what a submitter asks for becomes a checked request. Every door hands in an order and gets the same."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onboard.data.task_name import check_task_name, task_name_of
from onboard.domain.job import JobSpec, KindChoice, ProbeStrategy, TuneHypernetwork
from onboard.errors import InputError, OnboardError

if TYPE_CHECKING:
    from onboard.data.read import ReadOptions
    from onboard.jobs.submit import Request

_LABELS_REMEDY: Final = "Write them between commas: A,B"


@dataclass(frozen=True, slots=True)
class Order:
    """A dataset and what is wanted of it, as the flags of `onboard submit` say it.

    Args:
        dataset: a file, or hf://NAME[/CONFIG].
        unlabelled: file of texts, of which the report names those to label next.
        probe: how `--init auto` chooses: candidates race, or each is measured on every row.
        labels: the label set as text between commas; quoted as in CSV.
        base: name or folder; empty means the one of the settings.
        key: idempotency key.
        owner: who asks, for audit.
        hide_folders: name files without their folder in errors (uploads lie in temporary ones).
    """

    dataset: str
    task: str | None = None
    init: str = "auto"
    probe: ProbeStrategy = "race"
    tune_hypernetwork: TuneHypernetwork = "auto"
    method: str = ""
    validation: Path | None = None
    test: Path | None = None
    unlabelled: Path | None = None
    kind: KindChoice = "auto"
    labels: str = ""
    text_field: list[str] = field(default_factory=list)
    label_field: str | None = None
    metric: str = ""
    shots: int | None = None
    seed: int = 0
    base: str = ""
    new_labels: bool = False
    queue: str = "default"
    priority: int = 0
    time_limit: float | None = None
    key: str | None = None
    owner: str | None = None
    hide_folders: bool = False

    @property
    def name(self) -> str:
        """The task's name: given, or from the file's. Raises InputError when it is none."""
        return check_task_name(self.task) if self.task is not None else task_name_of(self.dataset)


def check(order: Order, default_base: str) -> dict[str, Any]:
    """The document of `onboard check --json`: what the checks say and how long the job would take.

    Args:
        default_base: whose words the labels get, and whose length the texts are held against, where the order names
            none. Where its files cannot be read, the dataset is checked all the same.

    Raises:
        DatasetError, InputError: as `onboard.data.read.read_dataset`.
    """
    from onboard.data.read import read_dataset
    from onboard.jobs.estimate import DatasetSize, estimate_seconds

    name = order.name
    checked = read_dataset(order.dataset, _options(order, **_tokens_at_hand(order.base or default_base)))
    report = checked.report.to_json()
    size, texts = DatasetSize.of_report(report), len(checked.unlabelled.rows) if checked.unlabelled else 0
    seconds = None if size is None else estimate_seconds(size, unlabelled=texts)
    return {"task": name, **report, "estimated_seconds": None if seconds is None else round(seconds)}


def prepare(order: Order, default_base: str) -> Request:
    """Read and check the dataset of an order, for `onboard.jobs.submit.submit`.

    Args:
        default_base: where the order names none.

    Raises:
        DatasetError, InputError: as `onboard.data.read.read_dataset`.
        NotFoundError, DamagedError: the base does not exist, or its tokenizer cannot be read.
    """
    from onboard.data.read import read_dataset
    from onboard.jobs.submit import Request

    name = order.name
    options = _options(order, **_tokens(order.base or default_base))
    spec = JobSpec(
        task=name, dataset="", init=order.init, tune_hypernetwork=order.tune_hypernetwork, method=order.method,
        kind=order.kind, metric=order.metric, shots=order.shots, seed=order.seed, base=order.base or default_base,
        new_labels=order.new_labels, options={} if order.probe == "race" else {"probe": order.probe},
    )  # fmt: skip
    return Request(
        read_dataset(order.dataset, options), spec, order.queue, order.priority, order.key, order.time_limit,
        order.owner,
    )  # fmt: skip


def split_labels(text: str) -> tuple[str, ...]:
    """Labels between commas; one that holds a comma is quoted as in CSV. Raises InputError."""
    if not text:
        return ()
    try:
        labels = tuple(label.strip() for label in next(csv.reader([text], skipinitialspace=True), []))
    except csv.Error as error:
        raise InputError("labels: they are no line of CSV.", _LABELS_REMEDY, field="labels") from error
    if not labels or not all(labels):
        raise InputError("labels: one is empty.", _LABELS_REMEDY, field="labels")
    return labels


def _tokens_at_hand(base: str) -> dict[str, Any]:
    try:
        return _tokens(base)
    except OnboardError:
        return {}


def _tokens(base: str) -> dict[str, Any]:
    """What reading a dataset asks of the base: tokens of a text, after how many it cuts, and labels' words."""
    from onboard.bases import find_base
    from onboard.bases.tokens import token_counter, verbaliser_of

    named = find_base(base)
    return {
        "count_tokens": token_counter(named),
        "max_tokens": int(named.document["max_tokens"]),
        "verbaliser": verbaliser_of(named),
    }


def _options(order: Order, **more: Any) -> ReadOptions:
    from onboard.data.read import ReadOptions

    return ReadOptions(
        validation=order.validation, test=order.test, unlabelled=order.unlabelled, kind=order.kind,
        labels=split_labels(order.labels), text_fields=tuple(order.text_field), label_field=order.label_field,
        shots=order.shots, seed=order.seed, hide_folders=order.hide_folders, **more,
    )  # fmt: skip
