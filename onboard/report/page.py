"""The contents of both reports, in order; the HTML template and the terminal only format them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onboard.contract.changes import change_sentence
from onboard.domain.report import METRICS
from onboard.report.advice import Callout, callouts, unmeasured
from onboard.report.by_label import BY_LABEL_HEAD, by_label_notes, by_label_rows, neglect
from onboard.report.charts import RowChart, StepChart
from onboard.report.earlier_tasks import earlier_tasks
from onboard.report.figures import (
    candidates_chart,
    curves,
    labels_chart,
    results_chart,
    times_chart,
)
from onboard.report.label_next import MoreLabels, more_labels
from onboard.report.mistakes import Mistakes, mistakes
from onboard.report.reading import bulk_request, mapping, mappings, number, text, within
from onboard.report.sentences import (
    baseline_name,
    deciding_metric,
    fair_split,
    headline,
    metric_name,
    metric_text,
)
from onboard.report.start import CANDIDATE_HEAD, candidate_rows, start_notes, what_it_is, word_notes, word_rows
from onboard.report.tried import MethodsTried, methods_tried
from onboard.report.tuned import GUARD_HEAD, answering_facts, guard_notes, guard_rows
from onboard.report.warned import Warned, dataset_warnings

Facts = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SplitResults:
    """The results on one split: the deciding metric as a chart, all metrics and all labels as tables (head, rows)."""

    title: str
    explanation: str
    chart: RowChart | None
    head: list[str]
    rows: list[list[str]]
    notes: list[str]
    label_head: list[str]
    label_rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a report, in order. Empty lists and None omit their section."""

    title: str
    state: str
    weak: bool
    unmeasured: bool
    made: str
    headline: str
    callouts: list[Callout]
    results: list[SplitResults]
    warnings: list[Warned]
    mistakes: Mistakes | None
    more_labels: MoreLabels | None
    chosen: str
    chosen_is: str
    start_notes: list[str]
    earlier_tasks: list[str]
    candidates: RowChart | None
    candidate_head: list[str]
    candidate_rows: list[list[str]]
    words: list[list[str]]
    word_notes: list[str]
    curves: list[StepChart]
    training: Facts
    tried: MethodsTried | None
    guard_head: list[str]
    guard: list[list[str]]
    guard_notes: list[str]
    dataset: Facts
    labels: RowChart | None
    times: RowChart | None
    facts: Facts
    commands: list[str]
    events: list[tuple[str, str, str]]


def page_of(document: Mapping[str, Any]) -> Page:
    """Return the contents for a job's document."""
    init, training = mapping(document.get("init")), mapping(document.get("training"))
    dataset = mapping(document.get("dataset"))
    task, version = text(document.get("task")), document.get("version")
    return Page(
        title=f"{task} v{version}" if task and version is not None else task or f"job {text(document.get('job'))}",
        state=text(document.get("state")),
        weak=bool(document.get("weak")),
        unmeasured=unmeasured(document),
        made=text(document.get("finished_at") or document.get("created_at")),
        headline=" ".join(filter(None, (headline(document), neglect(document)))),
        callouts=callouts(document),
        results=list(split_results(document)),
        warnings=dataset_warnings(dataset),
        mistakes=mistakes(mapping(document.get("confusion"))),
        more_labels=more_labels(document),
        chosen=text(init.get("chosen")),
        chosen_is=". ".join(filter(None, (what_it_is(text(init.get("chosen"))), text(init.get("reason"))))),
        start_notes=start_notes(init),
        earlier_tasks=earlier_tasks(document),
        candidates=candidates_chart(init),
        candidate_head=CANDIDATE_HEAD,
        candidate_rows=candidate_rows(init),
        words=word_rows(document),
        word_notes=word_notes(document),
        curves=curves(training),
        training=[*training_facts(training), *answering_facts(document), *memory_facts(document)],
        tried=methods_tried(document),
        guard_head=GUARD_HEAD,
        guard=guard_rows(mapping(document.get("guard"))),
        guard_notes=guard_notes(mapping(document.get("guard"))),
        dataset=[*changed_facts(document), *dataset_facts(dataset)],
        labels=labels_chart(dataset),
        times=times_chart(mapping(document.get("seconds"))),
        facts=pinned_facts(document),
        commands=_commands(task, version, pair=dataset.get("pairs") is True),
        events=[
            (text(e.get("at")), text(e.get("stage")), text(e.get("message"))) for e in mappings(document.get("events"))
        ],
    )


def changed_facts(document: Mapping[str, Any]) -> Facts:
    """Describe how the dataset was changed from an earlier one; empty if it was submitted as a whole."""
    change = mapping(document.get("change"))
    return [("made of", change_sentence(change))] if change.get("action") else []


def _commands(task: str, version: Any, *, pair: bool) -> list[str]:
    if not task or version is None:
        return []
    texts = '--text-a "…" --text-b "…"' if pair else '--text "…"'
    return [f"onboard predict {task}@v{version} {texts}", f"onboard fetch {task}@v{version}"]


def split_results(document: Mapping[str, Any]) -> Iterator[SplitResults]:
    """Yield the results of every measured split, test first."""
    deciding = deciding_metric(document)
    for split in ("test", "validation"):
        metrics = mapping(within(document, "metrics", split))
        if not metrics or deciding is None:
            continue
        baselines = mapping(within(document, "baselines", split))
        columns = [metrics, *(mapping(baseline) for baseline in baselines.values())]
        in_order = (name for of_kind in METRICS.values() for name in of_kind if name in metrics)
        names = list(dict.fromkeys((*in_order, *metrics)))
        yield SplitResults(
            title="Cross-validation" if _crossed(document, split) else f"{split.capitalize()} rows",
            explanation=_explanation(document, split),
            chart=results_chart(metrics, baselines, deciding),
            head=["metric", "this version", *(baseline_name(name) for name in baselines)],
            rows=[[metric_name(n), *(metric_text(n, column.get(n)) or "–" for column in columns)] for n in names],
            notes=[*_notes(["this version", *map(baseline_name, baselines)], columns), *by_label_notes(metrics)],
            label_head=BY_LABEL_HEAD,
            label_rows=by_label_rows(metrics),
        )


def _explanation(document: Mapping[str, Any], split: str) -> str:
    if split == "test":
        return "Nothing was trained, chosen or stopped on these rows."
    if _crossed(document, split):
        reason = text(document.get("validation_reason")) if fair_split(document) == "test" else ""  # else it is on top
        return reason or "Every row was predicted by a model that had not seen it."
    return f"These rows were not trained on. {text(document.get('validation_reason'))}".rstrip()


def _crossed(document: Mapping[str, Any], split: str) -> bool:
    return split == "validation" and document.get("validation_kind") == "cross-validated"


def _notes(owners: Sequence[str], columns: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = [
        f"{owner}: {text(mapping(metric).get('note'))}"
        for owner, column in zip(owners, columns, strict=True)
        for metric in column.values()
        if mapping(metric).get("note")
    ]
    return list(dict.fromkeys(parts))


def training_facts(training: Mapping[str, Any]) -> Facts:
    """Return method, settings, inputs without rows, number of parameters, steps, learning rate and padding."""
    steps, rate = number(training.get("steps")), number(training.get("learning_rate"))
    trained, settings = number(training.get("trained")), mapping(training.get("settings"))
    padding, share = number(training.get("padding_share")), number(training.get("share"))
    facts = [
        ("method", text(training.get("method"))),
        ("settings", ", ".join(f"{name} {text(value)}" for name, value in settings.items() if text(value))),
        ("made of", _made_of(mapping(training.get("without_rows")))),
        ("numbers trained", "" if trained is None or training.get("without_rows") else f"{trained:,.0f}"),
        ("steps", "" if steps is None else f"{steps:,.0f}"),
        ("share of the distance", "" if share is None else f"{100 * share:g}%"),
        ("learning rate", "" if rate is None else f"{rate:g}"),
        ("padding", "" if padding is None else f"{100 * padding:.0f}% of the tokens"),
    ]
    return [(name, value) for name, value in facts if value]


def _made_of(without_rows: Mapping[str, Any]) -> str:
    """Describe the inputs of a version without labeled rows; empty for any other."""
    labels, described, texts = (number(without_rows.get(key)) for key in ("labels", "described", "texts"))
    if not labels:
        return ""
    also = f", {described:,.0f} of them described" if described else ""
    whose = "unlabeled texts" if without_rows.get("unlabelled") else "generic texts that ship with Onboard"
    return f"the words of {labels:,.0f} labels{also}; centered by {texts or 0:,.0f} {whose}"


def memory_facts(document: Mapping[str, Any]) -> Facts:
    """Describe batches that did not fit into the GPU's memory."""
    return [
        (
            "GPU memory",
            f"too small for {text(halving.get('rows'))} rows at once in {text(halving.get('stage'))}: "
            f"{text(halving.get('rows_at_once'))} were taken, the result is the same",
        )
        for halving in mappings(document.get("halved"))
    ]


def dataset_facts(dataset: Mapping[str, Any]) -> Facts:
    """Return name, kind, rows by split and digest of the dataset."""
    rows = mapping(dataset.get("rows"))
    shown = ", ".join(f"{count:,.0f} {name}" for name, amount in rows.items() if (count := number(amount)) is not None)
    named = [
        ("name", dataset.get("name")),
        ("kind", dataset.get("kind")),
        ("rows", shown),
        ("digest", dataset.get("digest")),
    ]
    return [(name, text(value)) for name, value in named if text(value)]


def pinned_facts(document: Mapping[str, Any]) -> Facts:
    """Return the identity and the dependencies of the version."""
    plain = ("job", "task", "version", "embedding_digest", "hypernetwork_version", "created_at", "finished_at")
    pins = mapping(document.get("pins"))
    named = {key: document.get(key) for key in plain} | {key: pins[key] for key in pins}
    asked = bulk_request(document)
    named |= {key: asked.get(key) for key in ("input", "output")}
    named |= {"versions": mapping(asked.get("question")).get("pinned")}
    return [(key.replace("_", " "), _flat(value)) for key, value in named.items() if text(value)]


def _flat(value: Any) -> str:
    return ", ".join(map(text, value)) if isinstance(value, (list, tuple)) else text(value)
