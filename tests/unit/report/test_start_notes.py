"""Why training started where it did, in sentences."""

from __future__ import annotations

from onboard.report.figures import candidates_chart
from onboard.report.start import (
    MOST_CANDIDATES,
    candidate_detail,
    candidate_rows,
    start_notes,
    what_it_is,
    word_notes,
    word_rows,
)


def test_the_alarm_stands_first_and_then_what_the_numbers_do_not_say() -> None:
    init = {
        "alarm": "Nothing is a better start than random.",
        "weights": {"a@v1": 0.25, "b@v1": 0.75},
        "ties": ["c@v1", "mean"],
        "prefilter": {"considered": 1000, "kept": 52},
        "strategy": "race",
    }
    alarm, mixture, ties, prefiltered, strategy = start_notes(init)
    assert alarm == "Nothing is a better start than random."
    assert mixture == "The mixture is 75% b@v1, 25% a@v1."
    assert ties == "A tie: the rows cannot tell it from c@v1, mean."
    assert prefiltered.startswith("52 of 1,000 embeddings were measured")
    assert "raced" in strategy


def test_nothing_is_said_of_what_was_not_there() -> None:
    assert start_notes({}) == []
    assert start_notes({"ties": [], "prefilter": {"considered": 9, "kept": 9}, "alarm": None, "weights": None}) == []
    assert start_notes({"ties": [f"t{index}@v1" for index in range(8)]})[0].endswith("t4@v1 and 3 more.")


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
        ["mixture", "0.500 (0.40–0.60)", "", "32", "last", "0.500", "chosen"],
        ["a@v1", "0.500 (0.40–0.60)", "75%", "32", "last", "0.450", "tie"],
        ["b@v1", "0.500 (0.40–0.60)", "", "8", "1 of 3", "", ""],
    ]
    many = {"candidates": [measured(f"t{number}@v1", OWN) for number in range(30)]}
    assert len(candidate_rows(many)) == MOST_CANDIDATES


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
        ["b@v1", "their own"],
        ["c@v1", mapped],
        ["d@v1", "“bad” for positive_one, “good” for negative"],
    ]
    assert word_notes(document) == [
        f"Words that stand for the labels: {mapped}.",
        "Under b@v1 they would be: their own.",
    ]


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
    assert "base" in what_it_is("topics-any-3")
