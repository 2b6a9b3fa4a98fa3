import pytest

from onboard.domain.moment import seconds_text
from onboard.report import headline
from onboard.report.label_next import FEWEST_HELD_OUT, FEWEST_ROWS, NextText, more_labels
from onboard.report.sentences import interval_text, metric_text, value_text
from onboard.train import learning, learning_curve


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
    assert headline(document) == ("Version 1 of `t` is published but was not measured. Only 8 rows were submitted.")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("queued", "Job `j` for `t` waits in the queue."),
        ("running", "Job `j` for `t` is running in stage probe."),
        ("failed", "Job `j` for `t` failed in stage probe: the disk is full."),
        ("cancelled", "Job `j` for `t` was cancelled in stage probe: the disk is full."),
        ("dead", "Job `j` for `t` used up its attempts in stage probe: the disk is full."),
    ],
)
def test_an_unfinished_job_says_where_it_stands(state, expected):
    document = {"job": "j", "task": "t", "state": state, "stage": "probe", "error": {"message": "the disk is full."}}
    assert headline(document) == expected


def test_an_empty_document_says_that_nothing_is_known():
    assert headline({}) == "There is no information about this job yet."


def test_numbers_are_written_for_people():
    assert value_text("accuracy", 0.8125, 30) == "81%"
    assert value_text("accuracy", 0.8125, 1000) == "81.2%"
    assert [value_text("accuracy", right / 250, 250) for right in (0, 1, 249, 250)] == ["0%", "0.4%", "99.6%", "100%"]
    assert value_text("mse", 0.00021) == "0.00021"
    assert value_text("mse", 12345.6) == "12,346"
    assert interval_text("mcc", {"low": -0.1, "high": 0.2}) == "-0.10 to 0.20"
    assert metric_text("accuracy", {"value": 0.5, "low": None, "high": None, "n": 1}) == "50%"
    assert metric_text("accuracy", None) == ""


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.42, "0.4 s"), (42.4, "42 s"), (200, "3 min 20 s"), (3900, "1 h 5 min")]
)
def test_durations_are_written_for_people(seconds, expected):
    assert seconds_text(seconds) == expected


def test_what_more_labels_would_buy_is_said_or_why_it_cannot_be() -> None:
    points = [{"rows": 12.0, "accuracy": 0.61}, {"rows": 24.0, "accuracy": 0.7}]
    curve = {"points": points, "more": 32, "gain": 0.052, "low": 0.01, "high": 0.11, "reason": None}
    section = more_labels({"more_rows": curve})
    assert section is not None
    assert section.rows == []
    assert section.sentences == [
        "With 32 more labels accuracy would change by about +5 points (95% interval +1 to +11).",
        "Learning curve: 61% right with 12 rows, 70% right with 24 rows.",
    ]
    untold = {"points": [], "more": 32, "gain": None, "low": None, "high": None, "reason": "16 rows are too few."}
    section = more_labels({"more_rows": untold})
    assert section is not None
    assert section.sentences == ["The gain from 32 more labels is unknown. 16 rows are too few."]
    for nothing in ({}, {"more_rows": None}, {"more_rows": {"gain": "much"}}):
        assert more_labels(nothing) is None


@pytest.mark.parametrize(
    ("gain", "low", "high", "said"),
    [
        (-0.04, -0.15, 0.002, "−4 points (95% interval −15 to 0): the gain is not significant."),
        (-0.001, -0.004, 0.004, "0 points (95% interval 0 to 0): the gain is not significant."),
        (0.02, 0.004, 0.05, "+2 points (95% interval 0 to +5): the gain is not significant."),
        (0.02, 0.006, 0.05, "+2 points (95% interval +1 to +5)."),
    ],
)
def test_a_gain_is_told_only_where_the_interval_has_nothing_else(gain, low, high, said) -> None:
    section = more_labels({"more_rows": {"more": 32, "gain": gain, "low": low, "high": high}})
    assert section is not None
    assert section.sentences == [f"With 32 more labels accuracy would change by about {said}"]


def job(rows: int, counts: list[int], **more: object) -> dict[str, object]:
    labels = [{"label": number, "count": count} for number, count in enumerate(counts)]
    dataset = {"kind": "classification", "rows": {"train": rows}, "labels": labels}
    return {"state": "succeeded", "dataset": dataset, "more_rows": None, **more}


def test_too_few_rows_to_tell_what_more_would_bring_are_told() -> None:
    assert FEWEST_ROWS == learning_curve.FEWEST_ROWS
    for few in (job(12, [6, 6], validation_kind="cross-validated"), job(4, [2, 2])):
        section = more_labels(few)
        assert section is not None
        assert section.sentences == ["The gain from more labels cannot be estimated with fewer than 24 training rows."]
    section = more_labels(job(30, [1] * 30))
    assert section is not None
    assert section.sentences == ["The gain from more labels cannot be estimated: every label has one training row."]
    dataset = {"kind": "regression", "rows": {"train": 12}}
    for nothing in (
        job(24, [12, 12]),
        job(12, [6, 6], validation_kind="held-out"),
        job(12, [6, 6], state="failed"),
        job(12, [6, 6], dataset=dataset),
    ):
        assert more_labels(nothing) is None


def test_few_held_out_rows_cannot_tell_either() -> None:
    assert FEWEST_HELD_OUT == learning.FEWEST_CHOOSING
    rows = {"train": 40, "validation": FEWEST_HELD_OUT - 1}
    dataset = {"kind": "classification", "rows": rows, "labels": [{"label": "a", "count": 20}] * 2}
    section = more_labels(job(40, [20, 20], validation_kind="held-out", dataset=dataset))
    assert section is not None
    assert section.sentences == ["The gain from more labels cannot be estimated with fewer than 16 held-out rows."]
    rows["validation"] = FEWEST_HELD_OUT
    assert more_labels(job(40, [20, 20], validation_kind="held-out", dataset=dataset)) is None


def test_without_an_estimate_its_reason_says_why_nothing_is_told_of_more_labels() -> None:
    section = more_labels(job(36, [18, 18], validation_kind=None, validation_reason="Fewer than 8 of them can."))
    assert section is not None
    assert section.sentences == ["The gain from more labels is unknown. Fewer than 8 of them can."]


@pytest.mark.parametrize(
    ("value", "spread", "shown"),
    [(2001.0512, 0.38, "2001.05 ± 0.38"), (0.00012, 0.000031, "0.000120 ± 0.000031"),
     (63809.4, 31059.0, "63809 ± 31059"), (1.25, 0.0, "1.25")],
)  # fmt: skip
def test_numbers_have_the_digits_that_their_spread_leaves(value: float, spread: float, shown: str) -> None:
    section = more_labels({"label_next": {"rows": [{"text": "a", "value": value, "spread": spread}]}})
    assert section is not None
    assert section.rows[0].answer == shown


def test_texts_to_label_next_are_shown_with_what_is_answered_now() -> None:
    answers = [{"label": True, "probability": 0.52}, {"label": "no", "probability": 0.46}]
    rows = [{"text": "so so", "answers": answers}, {"text_a": "a", "text_b": "b", "value": 2.5, "spread": 0.71}]
    section = more_labels({"label_next": {"rows": rows, "read": 900, "known": 3, "repeated": 7, "considered": 890}})
    assert section is not None
    assert section.rows == [NextText("true 52% or no 46%", ["so so"]), NextText("2.50 ± 0.71", ["a", "b"])]
    assert "These 2 texts are" in section.sentences[0]
    assert "the least certain first; near-duplicates are avoided if possible" in section.sentences[0]
    assert "of 890 that were looked at; the file has 900 rows" in section.sentences[0]
    for nothing in ({"label_next": None}, {"label_next": {"rows": []}}, {"label_next": "x"}):
        assert more_labels(nothing) is None
    one = more_labels({"label_next": {"rows": [{"value": "x"}, 3], "considered": 2}})
    assert one is not None
    assert one.sentences[0].startswith(
        "This text is the most useful one to label (of 2 that were looked at). Label it,"
    )
