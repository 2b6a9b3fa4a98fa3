import pytest

from onboard.domain.moment import seconds_text
from onboard.report import headline
from onboard.report.sentences import interval_text, metric_text, value_text


def test_the_headline_says_it_in_one_sentence(document):
    assert headline(document) == (
        "Version 3 of `tickets` answers 81% of held-out rows right (73–87%, n = 30); "
        "majority 20%, TF-IDF + logistic regression 66%."
    )


def test_the_headline_takes_test_rows_before_validation_rows(document):
    document["metrics"]["validation"] = {"accuracy": {"value": 0.99, "low": 0.9, "high": 1.0, "n": 40}}
    assert "81%" in headline(document)
    document["metrics"]["test"] = None
    assert "99% of held-out rows right (90–100%, n = 40)." in headline(document)


def test_the_headline_names_cross_validation(document):
    for metric in document["metrics"]["test"].values():
        metric["estimate"] = "cross-validated"
    assert "answers 81% of rows right in cross-validation (73–87%, n = 30)" in headline(document)


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        (
            "macro_f1",
            {"value": 0.5, "low": 0.4, "high": 0.6, "n": 1379},
            "a macro-F1 of 50.0% on held-out rows (40.0–60",
        ),
        (
            "mcc",
            {"value": 0.1, "low": -0.2, "high": 0.4, "n": 9},
            "an MCC of 0.10 on held-out rows (-0.20 to 0.40, n = 9)",
        ),
        ("spearman", {"value": 0.5, "n": 1379}, "reaches a Spearman correlation of 0.50 on held-out rows (n = 1,379)."),
    ],
)
def test_the_headline_follows_the_deciding_metric(metric, value, expected):
    document = {"state": "succeeded", "task": "t", "version": 1, "metric": metric, "metrics": {"test": {metric: value}}}
    assert expected in headline(document)


def test_without_held_out_rows_the_headline_says_that_nothing_was_measured():
    document = {"state": "succeeded", "task": "t", "version": 1, "validation_reason": "Only 8 rows were submitted."}
    assert headline(document) == (
        "Version 1 of `t` is published; how good it is was not measured: Only 8 rows were submitted."
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("queued", "Job `j` for `t` waits in the queue."),
        ("running", "Job `j` for `t` is running in stage probe."),
        ("failed", "Job `j` for `t` failed in stage probe: the disk is full."),
        ("cancelled", "Job `j` for `t` was cancelled in stage probe: the disk is full."),
        ("dead", "Job `j` for `t` used up its attempts and was given up in stage probe: the disk is full."),
    ],
)
def test_an_unfinished_job_says_where_it_stands(state, expected):
    document = {"job": "j", "task": "t", "state": state, "stage": "probe", "error": {"message": "the disk is full."}}
    assert headline(document) == expected


def test_an_empty_document_says_that_nothing_is_known():
    assert headline({}) == "Nothing is known about this job yet."


def test_numbers_are_written_for_people():
    assert value_text("accuracy", 0.8125, 30) == "81%"
    assert value_text("accuracy", 0.8125, 1000) == "81.2%"
    assert value_text("mse", 12345.6) == "12,346"
    assert interval_text("mcc", {"low": -0.1, "high": 0.2}) == "-0.10 to 0.20"
    assert metric_text("accuracy", {"value": 0.5, "low": None, "high": None, "n": 1}) == "50%"
    assert metric_text("accuracy", None) == ""


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.42, "0.4 s"), (42.4, "42 s"), (200, "3 min 20 s"), (3900, "1 h 5 min")]
)
def test_durations_are_written_for_people(seconds, expected):
    assert seconds_text(seconds) == expected
