"""The facts of a job's document in sentences, shared by the HTML page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onboard.domain.report import LOWER_IS_BETTER, METRICS, SHARE_METRICS, plain_number
from onboard.report.reading import bulk_request, listing, mapping, number, text, within

METRIC_NAMES: Final = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "mcc": "MCC",
    "log_loss": "log-loss",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mse": "mean squared error",
    "micro_f1": "micro-F1",
    "lrap": "label ranking precision",
    "exact_match": "exact match",
}
BASELINE_NAMES: Final = {
    "majority": "majority",
    "tfidf_logistic_regression": "TF-IDF + logistic regression",
    "mean": "always the mean",
    "tfidf_ridge": "TF-IDF + ridge regression",
    "commonest_set": "the most frequent set",
    "tfidf_one_vs_rest": "TF-IDF + one-vs-rest",
}
TRIVIAL_BASELINES: Final = ("majority", "mean", "commonest_set")
ROWS_FOR_A_DECIMAL = 1000  # with this many rows, a tenth of a per cent is meaningful


def metric_name(name: str) -> str:
    """Return the display name of a metric."""
    return METRIC_NAMES.get(name, name.replace("_", " "))


def baseline_name(name: str) -> str:
    """Return the display name of a baseline."""
    return BASELINE_NAMES.get(name, name.replace("_", " "))


def better(name: str) -> str:
    """Return whether "higher" or "lower" values of a metric are better."""
    return "lower" if name in LOWER_IS_BETTER else "higher"


def value_text(name: str, value: float, rows: float | None = None) -> str:
    """Format a value: shares as per cent, everything else with two or three digits."""
    if name in SHARE_METRICS:
        nearly = value not in (0, 1) and round(value, 2) in (0, 1)  # 249 of 250 must not become 100%
        return f"{100 * value:.{1 if nearly else _decimals(rows)}f}%"
    return plain_number(value, 2) if abs(value) < 100 else f"{value:,.0f}"


def interval_text(name: str, metric: Mapping[str, Any]) -> str:
    """Return a metric's interval, "73–87%" or "0.41 to 0.66"; "" without one."""
    low, high, rows = number(metric.get("low")), number(metric.get("high")), number(metric.get("n"))
    if low is None or high is None:
        return ""
    if name in SHARE_METRICS:
        return f"{100 * low:.{_decimals(rows)}f}–{100 * high:.{_decimals(rows)}f}%"
    joint = " to " if low < 0 else "–"
    return f"{value_text(name, low)}{joint}{value_text(name, high)}"


def metric_text(name: str, metric: Any) -> str:
    """Return a metric with its interval, "81% (73–87%)"; "" without a value."""
    document = mapping(metric)
    value = number(document.get("value"))
    if value is None:
        return ""
    interval = interval_text(name, document)
    shown = value_text(name, value, number(document.get("n")))
    return f"{shown} ({interval})" if interval else shown


def _decimals(rows: float | None) -> int:
    return 1 if rows is not None and rows >= ROWS_FOR_A_DECIMAL else 0


def fair_split(document: Mapping[str, Any]) -> str | None:
    """Return the fairest measured split: test, else validation; None without any."""
    metrics = mapping(document.get("metrics"))
    return next((split for split in ("test", "validation") if mapping(metrics.get(split))), None)


def deciding_metric(document: Mapping[str, Any]) -> str | None:
    """Return the document's deciding metric, else the first that it has of the kind's list."""
    split = fair_split(document)
    metrics = mapping(within(document, "metrics", split)) if split else {}
    order = [text(document.get("metric")), *(name for names in METRICS.values() for name in names), *metrics]
    return next((name for name in order if number(within(metrics, name, "value")) is not None), None)


def version_name(document: Mapping[str, Any]) -> str:
    """Return "Version 3 of `tickets`", as far as known."""
    task, version = text(document.get("task")), document.get("version")
    named = f"`{task}`" if task else "the task"
    return f"Version {version} of {named}" if version is not None else named[0].upper() + named[1:]


def headline(document: Mapping[str, Any]) -> str:
    """Describe the result of the job in one sentence, with names between backticks."""
    state = text(document.get("state"))
    if state in ("queued", "running", "failed", "cancelled", "dead"):
        return _unfinished(document, state)
    if bulk_request(document):
        return _answered(document)
    split, deciding = fair_split(document), deciding_metric(document)
    if state != "succeeded" and document.get("version") is None and split is None:
        return "There is no information about this job yet."
    if split is None or deciding is None:
        reason = text(document.get("validation_reason")).rstrip(".")
        because = f". {reason}" if reason else ", as no rows were held out"
        return f"{version_name(document)} is published but was not measured{because}."
    metric = mapping(within(document, "metrics", split, deciding))
    baselines = mapping(within(document, "baselines", split))
    compared = [
        f"{baseline_name(name)} {value_text(deciding, value, number(within(metrics, deciding, 'n')))}"
        for name, metrics in baselines.items()
        if isinstance(metrics, Mapping) and (value := number(within(metrics, deciding, "value"))) is not None
    ]
    against = f"; {', '.join(compared)}" if compared else ""
    return f"{version_name(document)} {_achieved(deciding, metric)}{against}."


def _answered(document: Mapping[str, Any]) -> str:
    rows, bad = (number(document.get(key)) or 0.0 for key in ("rows", "bad_rows"))
    seconds = number(within(document, "seconds", "predict")) or 0.0
    rate = f", {rows / seconds:,.0f} a second" if seconds else ""
    wrong = f"; {bad:,.0f} of them cannot be answered, with a reason in each" if bad else ""
    by = ", ".join(f"`{text(version)}`" for version in listing(document.get("versions")))
    return f"{rows:,.0f} rows are answered by {by}{rate}{wrong}. They are in `{text(document.get('output'))}`."


def _achieved(name: str, metric: Mapping[str, Any]) -> str:
    rows = number(metric.get("n"))
    shown = value_text(name, number(metric.get("value")) or 0.0, rows)
    inside = [interval_text(name, metric), f"n = {rows:,.0f}" if rows is not None else ""]
    around = f" ({', '.join(filter(None, inside))})" if any(inside) else ""
    crossed = metric.get("estimate") == "cross-validated"
    if name == "accuracy":
        where = "of rows right in cross-validation" if crossed else "of held-out rows right"
        return f"answers {shown} {where}{around}"
    article = "an" if name == "mcc" else "a"
    where = "in cross-validation" if crossed else "on held-out rows"
    named = f"{metric_name(name)} correlation" if name in ("pearson", "spearman") else metric_name(name)
    return f"reaches {article} {named} of {shown} {where}{around}"


def _unfinished(document: Mapping[str, Any], state: str) -> str:
    job = f"Job `{text(document.get('job'))}`" if document.get("job") else "The job"
    task, stage = text(document.get("task")), text(document.get("stage"))
    about = f" for `{task}`" if task else ""
    if state == "queued":
        return f"{job}{about} waits in the queue."
    in_stage = f" in stage {stage}" if stage else ""
    if state == "running":
        return f"{job}{about} is running{in_stage}."
    message = text(within(document, "error", "message")).rstrip(".")
    because = f": {message}" if message else ""
    ended = {"failed": "failed", "cancelled": "was cancelled", "dead": "used up its attempts"}[state]
    return f"{job}{about} {ended}{in_stage}{because}."
