"""Remarks above the numbers of a report, with suggestions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from onboard.contract.changes import change_sentence
from onboard.domain.label_set import MULTILABEL
from onboard.domain.methods import AUTO
from onboard.report.by_label import neglect, neglect_steps
from onboard.report.reading import bulk_request, mapping, mappings, number, text, within
from onboard.report.sentences import TRIVIAL_BASELINES, baseline_name, better, deciding_metric, fair_split, value_text
from onboard.report.submit_again import own_start, submit_again

FEW_ROWS = 100  # training rows; with fewer, more rows help most

Tone = Literal["bad", "warn", "info"]


@dataclass(frozen=True, slots=True)
class Callout:
    """A remark above the numbers: a title, a sentence, and steps to take (commands between backticks)."""

    tone: Tone
    title: str
    sentence: str = ""
    steps: tuple[str, ...] = ()


def callouts(document: Mapping[str, Any]) -> list[Callout]:
    """Return all remarks above the numbers, most serious first."""
    error = _error(document)
    if bulk_request(document):
        return [] if error is None else [error]
    callouts = [
        error,
        _neglect(document),
        _weak(document),
        _not_measured(document),
        _alarm(document),
        _guard(document),
        _latest(document),
        _changed(document),
        _cross_validated(document),
    ]
    return [callout for callout in callouts if callout is not None]


def _error(document: Mapping[str, Any]) -> Callout | None:
    error = mapping(document.get("error"))
    if not error:
        return None
    job = text(document.get("job"))
    steps = [text(error.get("remedy"))]
    if document.get("state") in ("failed", "cancelled", "dead") and job:
        steps.append(f"Run it again from its last finished stage: `onboard jobs retry {job}`")
    if job:
        steps.append(f"Read its log: `onboard jobs logs {job}`")
    if document.get("state") in ("failed", "cancelled", "dead"):  # the headline contains the reason
        return Callout("bad", "What to do", steps=tuple(filter(None, steps)))
    return Callout("bad", "An attempt of this job failed", text(error.get("message")), tuple(filter(None, steps)))


def _neglect(document: Mapping[str, Any]) -> Callout | None:
    sentence = neglect(document)
    if not sentence:
        return None
    title = "Some labels are never or rarely answered: see “by label” before you use this version"
    return Callout("bad", title, sentence, tuple(neglect_steps(document)))


def _weak(document: Mapping[str, Any]) -> Callout | None:
    if not document.get("weak"):
        return None
    reason = text(document.get("weak_reason")) or "It is not better than always giving the most frequent label."
    return Callout("bad", "Weak result: do not rely on this version yet", reason, tuple(next_steps(document)))


def next_steps(document: Mapping[str, Any]) -> list[str]:
    """Return suggestions after a weak result, most promising first."""
    dataset, init = mapping(document.get("dataset")), mapping(document.get("init"))
    steps = []
    if mappings(dataset.get("warnings")):
        steps.append("Read the dataset warnings below; mislabeled and conflicting rows do the most harm.")
    rows = number(within(dataset, "rows", "train"))
    if rows is not None and rows < FEW_ROWS and not neglect(document):
        again = submit_again(document)
        steps.append(f"Add labeled rows ({rows:.0f} were trained on) and submit again: `{again}`")
    if dataset.get("kind") == MULTILABEL:  # other methods do not support it
        return [*steps, *_words_alone(document)]
    if own_start(document):
        steps.append("Compare methods on these rows: `onboard compare-methods FILE`")
        return [*steps, *_words_alone(document)]
    if not mapping(document.get("methods")) and within(document, "tuning", "asked") != "always":
        steps.append(f"Let the rows choose the method: `{submit_again(document, method=AUTO)}`")
    other = f"another task than {text(init.get('chosen'))}" if init.get("reason") == "asked for" else "a task"
    steps.append(f"Start from {other} that you know to be alike: `{submit_again(document, init='TASK')}`")
    return [*steps, *_words_alone(document)]


def _words_alone(document: Mapping[str, Any]) -> list[str]:
    """Return the suggestion for a baseline that is better than the version, if there is one."""
    stronger = _stronger_baseline(document)
    return [f"{stronger} on the same rows: for this task, counting words may be enough."] if stronger else []


def _stronger_baseline(document: Mapping[str, Any]) -> str:
    """Return a baseline that is better than the version and clearly better than the trivial answer."""
    split, deciding = fair_split(document), deciding_metric(document)
    if split is None or deciding is None:
        return ""
    baselines, sign = mapping(within(document, "baselines", split)), -1 if better(deciding) == "lower" else 1
    own = number(within(document, "metrics", split, deciding, "value"))
    bars = [number(within(baselines, name, deciding, "value")) for name in TRIVIAL_BASELINES]
    bar = next((bar for bar in bars if bar is not None), None)
    for name, metrics in baselines.items():
        value, end = (number(within(metrics, deciding, key)) for key in ("value", "low" if sign > 0 else "high"))
        if name in TRIVIAL_BASELINES or value is None or own is None or bar is None or end is None:
            continue
        if sign * value > sign * own and sign * end > sign * bar:
            return f"{baseline_name(name)} reaches {value_text(deciding, value)}"
    return ""


def unmeasured(document: Mapping[str, Any]) -> bool:
    """Return whether a job has published a version without rows that show how good it is."""
    return document.get("state") == "succeeded" and not bulk_request(document) and fair_split(document) is None


def _not_measured(document: Mapping[str, Any]) -> Callout | None:
    if not unmeasured(document):
        return None
    if number(within(document, "dataset", "rows", "train")) == 0:
        task = text(document.get("task"))
        steps = [f"Label a few rows of each label, then submit them: `onboard submit --dataset FILE --task {task}`"]
        if not mapping(document.get("label_next")):
            steps.append("To see which texts to label first, submit the labels again with `--unlabelled FILE`")
        return Callout("warn", "Unmeasured: made from its labels alone", steps=tuple(steps))
    step = "Submit rows that are not trained on: `onboard submit --dataset FILE --test HELD_OUT_FILE`"
    return Callout("warn", "The version was not measured", steps=(step,))


def _alarm(document: Mapping[str, Any]) -> Callout | None:
    init = mapping(document.get("init"))
    chosen = text(init.get("chosen"))
    if not init.get("alarm") or not chosen:
        return None
    title = f"No earlier embedding was found to help: training started from `{chosen}`"
    others = "“Where training started” shows the other candidates."
    return Callout("warn", title, others)


def _guard(document: Mapping[str, Any]) -> Callout | None:
    guard = mapping(document.get("guard"))
    verdict = text(guard.get("verdict"))
    if not verdict or verdict == "accepted":
        return None
    sentence = text(guard.get("reason")) or "The version was published without changing the hypernetwork."
    return Callout("warn", f"Tuning of the hypernetwork: {verdict}", sentence)


def _latest(document: Mapping[str, Any]) -> Callout | None:
    move = mapping(document.get("latest"))
    if move.get("moved") is not False:
        return None
    task, version = text(document.get("task")), text(document.get("version"))
    alias = text(move.get("alias")) or "latest"
    step = f"To move it anyway: `onboard promote {task}@v{version} --alias {alias}`"
    return Callout("warn", f"`{alias}` did not move", text(move.get("reason")), (step,))


def _changed(document: Mapping[str, Any]) -> Callout | None:
    """Describe the change of a version, and how it compares with the previous one if `latest` followed."""
    change, move = mapping(document.get("change")), mapping(document.get("latest"))
    if not change.get("action") or document.get("version") is None:
        return None
    compared = text(move.get("reason")) if move.get("moved") else ""
    said = change_sentence(change)
    return Callout("info", "An earlier version was changed", f"{said} {compared}".strip())


def _cross_validated(document: Mapping[str, Any]) -> Callout | None:
    if document.get("validation_kind") != "cross-validated" or fair_split(document) != "validation":
        return None
    sentence = text(document.get("validation_reason")) or (
        "There were too few rows to hold some out. Every row was predicted by a model that had not seen it. "
        "The published version was trained on all of them."
    )
    return Callout("info", "The validation is a cross-validated estimate", sentence)
