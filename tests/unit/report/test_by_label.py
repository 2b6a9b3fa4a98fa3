"""What reports say of each label, and what they advise where one gets no answers."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from onboard.contract.measured import LabelScoreDocument
from onboard.domain.label_scores import LabelScore
from onboard.report import render, render_text
from onboard.report.by_label import by_label_notes, by_label_rows, neglect_steps
from onboard.report.page import page_of
from onboard.report.submit_again import submit_again


def with_scores(document: dict[str, Any], *scores: LabelScore) -> dict[str, Any]:
    """The document with labels that were answered so on its test rows."""
    document["metrics"]["test"]["macro_f1"]["labels"] = [
        LabelScoreDocument.of_score(score).to_json() for score in scores
    ]
    document["dataset"]["labels"] = [
        {"label": score.label, "word": str(score.label), "count": score.rows} for score in scores
    ]
    return document


@pytest.fixture
def collapsed(document: dict[str, Any]) -> dict[str, Any]:
    """A version that answers the most frequent label to everything."""
    return with_scores(document, LabelScore("ham", 87, 100, 87), LabelScore("spam", 13, 0, 0))


def printed(document: dict[str, Any]) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(render_text(document))
    return console.file.getvalue()


def test_the_headline_says_which_label_never_gets_an_answer(collapsed: dict[str, Any]) -> None:
    page = page_of(collapsed)
    said = "It gives every text the same answer, ham, and never answers spam (13 rows)."
    assert page.headline.endswith(said)
    assert page.callouts[0].tone == "bad"
    assert page.callouts[0].sentence == said


def test_terminal_and_page_show_precision_recall_and_f1_of_every_label(collapsed: dict[str, Any]) -> None:
    assert by_label_rows(collapsed["metrics"]["test"]) == [
        ["ham", "87%", "100%", "93%", "87", "100"],
        ["spam", "–", "0%", "0%", "13", "0"],
    ]
    for shown in (printed(collapsed), render(collapsed)):
        assert "By label" in shown
        assert "93%" in shown


def test_of_many_labels_the_worst_are_shown() -> None:
    scores = [
        LabelScoreDocument.of_score(LabelScore(f"l{number}", 4, 4, min(4, number))).to_json() for number in range(30)
    ]
    metrics = {"macro_f1": {"value": 0.9, "labels": scores}}
    rows = by_label_rows(metrics)
    assert [row[0] for row in rows[:3]] == ["l0", "l1", "l2"]
    assert len(rows) == 20
    assert by_label_notes(metrics) == ["10 labels with a higher F1 are not shown."]


def test_the_remedy_names_the_rare_label_and_asks_for_nothing_that_was_asked(collapsed: dict[str, Any]) -> None:
    label, judged, tuned = neglect_steps(collapsed)
    assert "Label more rows of spam: 13 of spam were trained on, and 87 of the most frequent label." in label
    assert "--metric macro_f1" in judged
    assert "--tune-hypernetwork always" in tuned
    collapsed["metric"], collapsed["tuning"] = "macro_f1", {"asked": "always", "tried": True, "kept": False}
    (only,) = neglect_steps(collapsed)
    assert "--metric macro_f1 --tune-hypernetwork always" in only


@pytest.mark.parametrize(
    ("tfidf", "advised"),
    [((0.66, 0.48, 0.8), True), ((0.5, 0.3, 0.7), False), ((0.45, 0.41, 0.5), False), ((0.39, 0.3, 0.5), False)],
)
def test_words_alone_are_said_to_be_enough_only_where_they_beat_the_commonest_answer_too(
    document: dict[str, Any], tfidf: tuple[float, float, float], advised: bool
) -> None:
    document["weak"] = True
    document["metrics"]["test"]["accuracy"]["value"] = 0.38
    value, low, high = tfidf
    document["baselines"]["test"] = {
        "majority": {"accuracy": {"value": 0.42, "low": 0.3, "high": 0.5, "n": 30}},
        "tfidf_logistic_regression": {"accuracy": {"value": value, "low": low, "high": high, "n": 30}},
    }
    assert ("counting words may be enough" in printed(document)) is advised


def test_a_label_that_gets_its_answers_changes_nothing(document: dict[str, Any]) -> None:
    before = page_of(document)
    after = page_of(with_scores(document, LabelScore("ham", 15, 14, 12), LabelScore("spam", 15, 16, 13)))
    assert after.headline == before.headline
    assert [callout.title for callout in after.callouts] == [callout.title for callout in before.callouts]


def test_the_command_to_submit_again_keeps_the_flags(document: dict[str, Any]) -> None:
    document["init"] |= {"reason": "asked for", "chosen": "sst2@v1"}
    document["metric"], document["tuning"], document["pins"]["seeds"] = "mcc", None, [7]
    assert submit_again(document) == (
        "onboard submit --dataset FILE --task tickets "
        "--init sst2@v1 --metric mcc --tune-hypernetwork never --test TEST_FILE --seed 7"
    )
    assert "--init TASK" in submit_again(document, init="TASK")
    assert submit_again({}) == "onboard submit --dataset FILE --task NAME"


def test_terms_are_explained_where_they_stand_and_wide_tables_show_that_they_go_on(document: dict[str, Any]) -> None:
    page = render(document)
    assert '<abbr title="The mean of all labels&#39; F1: a rare label counts as much as a common one."' in page
    assert page.count("<table") == page.count('<div class="scroll" tabindex="0"><table')
    assert ".scroll { overflow-x: auto; background:" in page
