"""Why training started where it did, in sentences."""

from __future__ import annotations

import pytest

from onboard.probe import prefilter
from onboard.report.figures import candidates_chart
from onboard.report.start import (
    MOST_CANDIDATES,
    UNLIKE_FROM,
    candidate_detail,
    candidate_rows,
    start_notes,
    what_it_is,
    word_notes,
    word_rows,
)


def test_the_alarm_stands_first_and_then_what_the_numbers_do_not_say() -> None:
    init = {
        "alarm": "No candidate is a better start than random.",
        "most_like": {"flights@v1": "what a question about flights asks", "sst2@v1": "sentiment"},
        "weights": {"a@v1": 0.25, "b@v1": 0.75},
        "ties": ["c@v1", "mean"],
        "prefilter": {"considered": 1000, "kept": 52},
        "strategy": "race",
        "candidates": [measured("a@v1", OWN, round=3, tuned=0.4), measured("b@v1", OWN, round=1)],
    }
    alarm, alike, mixture, ties, prefiltered, raced, tuned = start_notes(init)
    assert alarm == "No candidate is a better start than random."
    assert alike == "Most like: what a question about flights asks (flights@v1); sentiment (sst2@v1)."
    assert mixture == "The mixture is 75% b@v1, 25% a@v1."
    assert ties == "A tie: the rows cannot distinguish it from c@v1, mean."
    assert prefiltered.startswith("52 of 1,000 embeddings were measured")
    assert raced.startswith("The candidates raced")
    assert "a short training" in tuned


def test_a_start_that_is_hardly_ahead_of_one_that_knows_nothing_is_told_as_such() -> None:
    (note,) = start_notes({"ties": ["c@v1", "random"], "chosen": "a@v1"})
    assert note == (
        "A tie: the rows cannot distinguish it from c@v1, random. It leads random by one to two standard errors."
    )


def test_nothing_is_said_of_what_was_not_there() -> None:
    assert start_notes({}) == []
    assert start_notes({"ties": [], "prefilter": {"considered": 9, "kept": 9}, "alarm": None, "weights": None}) == []


def test_many_ties_are_counted() -> None:
    init = {
        "ties": [f"t{index}@v1" for index in range(8)],
        "candidates": [measured(f"t{index}@v1", OWN) for index in range(10)],
    }
    of_nine, of_eight = "8 of the 9 other", "the 8 other"
    assert start_notes(init) == [f"A tie: the rows cannot distinguish it from {of_nine} starting points."]
    assert start_notes({"ties": init["ties"]}) == [
        f"A tie: the rows cannot distinguish it from {of_eight} starting points."
    ]


def test_no_race_and_no_training_is_told_of_where_there_was_none() -> None:
    """8 rows are one round, and below 16 nothing is trained."""
    few = [measured("a@v1", OWN, round=1, rows=8), measured("b@v1", OWN, round=1, rows=8)]
    assert start_notes({"strategy": "race", "candidates": few}) == ["Every candidate was measured on all rows."]
    rounds = [measured("a@v1", OWN, round=2, rows=12), measured("b@v1", OWN, round=1, rows=8)]
    (raced,) = start_notes({"strategy": "race", "candidates": rounds})
    assert "raced" in raced
    assert "tuned" not in raced
    trained = [measured("a@v1", OWN, round=1, tuned=0.3), measured("b@v1", OWN, round=1)]
    for strategy in ("race", "exhaustive"):
        every, tuned = start_notes({"strategy": strategy, "candidates": trained, "overlap": 3})
        assert every == "Every candidate was measured on all rows that it had not been trained on."
        assert "(tuned)" in tuned


def test_rows_that_were_known_to_all_are_told() -> None:
    (known,) = start_notes({"known_too": True})
    assert known.startswith("The base or earlier versions were trained on all or nearly all of these rows")
    for other in ({"known_too": False}, {"known_too": None}, {"known_too": True, "reason": "asked for"}):
        assert start_notes(other) == []


@pytest.mark.parametrize(("measured", "unlike"), [(UNLIKE_FROM - 1, False), (UNLIKE_FROM, True)])
def test_unlike_embeddings_are_told_of_only_where_some_were_measured(measured: int, unlike: bool) -> None:
    (note,) = start_notes({"prefilter": {"considered": 1000, "kept": measured}})
    more = ", and a few dissimilar ones" if unlike else ""
    assert note.endswith(f"most similar texts and labels{more}.")
    assert prefilter.NEAREST + prefilter.SPREAD + prefilter.ANCHORS == UNLIKE_FROM


def test_a_candidate_that_left_early_says_when_and_one_that_was_tuned_says_how_it_did() -> None:
    assert candidate_detail({"accuracy": 0.5, "rows": 8, "round": 1}) == "50% right, round 1, 8 rows"
    assert (
        candidate_detail({"accuracy": 0.5, "rows": 32, "round": 3, "tuned": 0.41}) == "50% right, after training 0.410"
    )
    assert candidate_detail({}) == ""


def test_those_that_came_farther_stand_before_those_that_left_with_a_smaller_loss() -> None:
    left = {"embedding": "left@v1", "loss": 0.1, "round": 1, "rows": 8}
    stayed = {"embedding": "stayed@v1", "loss": 0.5, "round": 3, "rows": 32}
    chart = candidates_chart({"chosen": "stayed@v1", "candidates": [left, stayed], "rows": 32})
    assert chart is not None
    assert [track.label for track in chart.tracks] == ["stayed@v1", "left@v1"]


def measured(name: str, words: tuple[str, str], **more: object) -> dict[str, object]:
    return {"embedding": name, "loss": 0.5, "low": 0.4, "high": 0.6, "rows": 32, "words": words, **more}


LABELS = {"labels": [{"label": "positive_one"}, {"label": "negative"}]}
OWN, OTHER = ("positive one", "negative"), ("good", "bad")


def test_the_table_says_how_far_each_came_and_the_chosen_one_stands_first() -> None:
    init = {
        "chosen": "mixture",
        "ties": ["a@v1"],
        "candidates": [
            measured("a@v1", OWN, round=3, tuned=0.45, accuracy=0.75),
            measured("mixture", OWN, round=3, tuned=0.5),
            measured("b@v1", OWN, round=1, rows=8),
        ],
    }
    assert candidate_rows(init) == [
        ["mixture", "", "", "32", "last", "0.500", "chosen"],  # it has no loss before training
        ["a@v1", "0.500 (0.40–0.60)", "75%", "32", "last", "0.450", "tie"],
        ["b@v1", "0.500 (0.40–0.60)", "", "8", "1 of 3", "", ""],
    ]
    chart = candidates_chart(init)
    assert chart is not None
    assert [(track.label, track.shown, track.at is None) for track in chart.tracks] == [
        ("mixture", "", True), ("a@v1", "0.500", False), ("b@v1", "0.500", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "besides"), [(10, ""), (11, "1 worse candidate is"), (30, "20 worse candidates are")]
)
def test_table_and_chart_show_the_same_candidates_and_how_many_there_are_besides(count: int, besides: str) -> None:
    init = {"chosen": "t9@v1", "candidates": [measured(f"t{number}@v1", OWN) for number in range(count)]}
    chart = candidates_chart(init)
    assert chart is not None
    shown = [name for name, *_ in candidate_rows(init)]
    assert shown == [track.label for track in chart.tracks]
    assert len(shown) == MOST_CANDIDATES
    assert shown[0] == "t9@v1"
    assert besides in chart.caption
    assert bool(besides) == ("not shown" in chart.caption)


def test_no_loss_is_below_nothing_and_few_rows_have_no_interval() -> None:
    wide = {"embedding": "a@v1", "loss": 0.2, "low": -0.1, "high": 0.5}
    cells = [candidate_rows({"candidates": [{**wide, "rows": rows}]})[0][1] for rows in (8, 7)]
    assert cells == ["0.200 (0.00–0.50)", "0.200"]
    chart = candidates_chart({"candidates": [{**wide, "rows": 7}]})
    assert chart is not None
    assert (chart.tracks[0].low, chart.tracks[0].high) == (None, None)


def test_a_start_that_was_asked_for_was_not_chosen_by_numbers() -> None:
    asked = candidates_chart({"candidates": [measured("a@v1", OWN)], "reason": "asked for", "rows": 32, "overlap": 1})
    assert asked is not None
    assert "chose" not in asked.caption
    assert "It was trained on 1 of" in asked.caption


def test_every_candidate_has_its_mapping_and_those_that_differ_in_the_last_round_are_told() -> None:
    candidates = [
        measured("a@v1", OTHER, round=2, tuned=0.4),
        measured("b@v1", OWN, round=2, tuned=0.5),
        measured("c@v1", OTHER, round=2, tuned=0.6),
        measured("d@v1", ("bad", "good"), round=1),
    ]
    document = {"dataset": LABELS, "init": {"chosen": "a@v1", "candidates": candidates}}
    mapped = "“good” for positive_one, “bad” for negative"
    assert word_rows(document) == [
        ["a@v1", mapped],
        ["b@v1", "the labels' own"],
        ["c@v1", mapped],
        ["d@v1", "“bad” for positive_one, “good” for negative"],
    ]
    assert word_notes(document) == [
        f"Words that stand for the labels: {mapped}.",
        "Under b@v1 they would be the labels' own.",
    ]


def test_candidates_with_the_same_words_share_a_sentence() -> None:
    candidates = [measured("a@v1", OTHER), *(measured(name, OWN, tuned=0.5) for name in ("b@v1", "c@v1", "mean"))]
    document = {"dataset": LABELS, "init": {"chosen": "a@v1", "candidates": candidates}}
    assert word_notes(document)[1:] == ["Under b@v1, c@v1 and mean they would be the labels' own."]


@pytest.mark.parametrize(
    ("labels", "words", "own"),
    [
        (["+", "-"], ["+", "-"], True),
        (["+", "-"], ["-", "+"], False),
        ([-1, 1], ["-1", "1"], True),
        ([-1, 1], ["1", "-1"], False),
        (["CardLost", 1.0], ["card lost", "1"], True),
        (["not_entailment", True], ["not_entailment", "true"], True),
        (["😀", "x"], ["label 1", "x"], False),
        ([None, {"a": 1}], ["x", "y"], False),
    ],
)
def test_words_are_the_labels_own_only_where_they_say_the_same(labels: list, words: list[str], own: bool) -> None:
    init = {"candidates": [{"embedding": "a@v1", "loss": 1.0, "words": words}]}
    ((_, shown),) = word_rows({"dataset": {"labels": [{"label": label} for label in labels]}, "init": init})
    assert (shown == "the labels' own") == own


def test_labels_that_are_sentences_are_shortened() -> None:
    sentence = "The customer wants the money back because the parcel has not arrived"
    init = {"candidates": [{"embedding": "a@v1", "loss": 1.0, "words": ["refund"]}]}
    ((_, words),) = word_rows({"dataset": {"labels": [{"label": sentence}]}, "init": init})
    assert words == "“refund” for The customer wants t…cel has not arrived"


def test_of_many_labels_only_some_words_are_told_and_of_a_regression_none() -> None:
    words = [f"word {number}" for number in range(150)]
    document = {
        "dataset": {"labels": [{"label": number} for number in range(150)]},
        "init": {"chosen": "a@v1", "candidates": [{"embedding": "a@v1", "loss": 1.0, "words": words}]},
    }
    (note,) = word_notes(document)
    assert note.endswith("“word 7” for 7 and 142 more.")
    assert word_notes({**document, "dataset": {"labels": []}}) == word_rows({**document, "dataset": {}}) == []
    assert word_notes({}) == candidate_rows({}) == []


def test_a_name_that_says_nothing_to_a_reader_is_explained() -> None:
    assert what_it_is("sst2@v1") == what_it_is("") == ""
    assert "mixture" in what_it_is("mixture")
    assert what_it_is("topics-any-all-12") == "a practice task of the base: what a text is about"
    assert what_it_is("mean") == "an average of embeddings"
