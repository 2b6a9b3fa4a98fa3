import copy
import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.report import render
from onboard.report.charts import Scale, curve, moving_average
from onboard.report.page import split_results

EVIL = "<script>alert(1)</script>\"'&`"
VOID = {"meta", "line", "circle", "polyline"}


class Checker(HTMLParser):
    """Collects tags and text; fails on an element that is closed out of order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def visible(html: str) -> str:
    return re.sub(r"\s+", " ", "".join(parsed(html).text)).replace("\u2060", "")


def paths(value: Any, prefix: tuple = ()) -> list[tuple]:
    """The path of every key and element of a document."""
    if isinstance(value, dict):
        return [p for key, inner in value.items() for p in [(*prefix, key), *paths(inner, (*prefix, key))]]
    if isinstance(value, list):
        return [p for i, inner in enumerate(value[:2]) for p in [(*prefix, i), *paths(inner, (*prefix, i))]]
    return []


def replaced(document: dict, path: tuple, value: Any) -> dict:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def test_a_full_report_holds_every_section(document):
    shown = visible(render(document))
    for fact in (
        "answers 81% of held-out rows right (73–87%, n = 30)",
        "TF-IDF + logistic regression",
        "Nothing was trained, chosen or stopped on these rows.",
        "billing answered as delivery: 3 of 12 rows",
        "2 rows conflict.",
        "Decide.",
        "row: 12",
        "“money” for billing, “human” for cancel, “place” for delivery",
        "Some candidate was trained on 4 of the task's rows.",
        "12% of the tokens",
        "31% right, after training 1.105",
        "1 min 15 s",
        "+0.001 (-0.002 to +0.004)",
        "sha256:beef",
        "0, 1",
        "onboard predict tickets@v3",
        "60 rows",
    ):
        assert fact in shown


def test_the_page_needs_no_network_and_holds_no_script(document):
    html = render(document)
    checker = parsed(html)
    assert not {"script", "link", "img", "iframe", "base", "object"} & {tag for tag, _ in checker.tags}
    assert not re.search(r"https?:|url\(|@import|\bsrc=|\bon\w+=", html)
    policy = next(a["content"] for tag, a in checker.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_page_suits_dark_screens_phones_and_paper(document):
    html = render(document)
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert 'name="viewport"' in html


def test_whatever_users_wrote_is_escaped(document):
    texts = [path for path in paths(document) if isinstance(_at(document, path), str)]
    assert len(texts) > 30
    for path in texts:
        checker = parsed(render(replaced(document, path, EVIL)))
        assert "script" not in {tag for tag, _ in checker.tags}, path
        for _, attributes in checker.tags:
            assert not any(name.startswith("on") for name in attributes), path


def test_a_label_in_angle_brackets_is_shown_as_it_was_written(document):
    document["confusion"]["labels"][2] = "<b>bold & brave</b>"
    assert "billing answered as <b>bold & brave</b>: 3 of 12 rows" in visible(render(document))


def _at(document: Any, path: tuple) -> Any:
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize("junk", [None, "text", True, {"a": None}, math.nan, 1e300, [[]]])
def test_any_key_may_be_absent_null_or_something_else(document, junk):
    for path in paths(document):
        parsed(render(replaced(document, path, junk)))


KEYS = ("job", "state", "task", "version", "metrics", "init", "baselines", "confusion", "seconds", "training", "weak")


@given(st.dictionaries(st.sampled_from(KEYS), st.sampled_from([None, "succeeded", 3, {}, {"test": None}, [1]])))
def test_any_keys_together_may_be_missing(sparse):
    parsed(render(sparse))


def test_an_empty_document_is_a_page_too():
    assert "There is no information about this job yet." in visible(render({}))


def test_a_metric_of_several_kinds_of_tasks_is_shown_once(document):
    (result,) = split_results(document)
    names = [row[0] for row in result.rows]
    assert len(names) == len(set(names)) == len(document["metrics"]["test"])


def test_a_weak_result_says_so_first_and_what_to_do_next(document):
    document["weak"] = True
    document["weak_reason"] = "It is not significantly better than the 20% of always giving the most frequent label."
    document["guard"] = None
    document["metrics"]["test"]["accuracy"]["value"] = 0.3
    shown = visible(render(document))
    assert shown.index("Weak result") < shown.index("Test rows")
    assert "not significantly better than the 20%" in shown
    assert (
        "Add labeled rows (60 were trained on) and submit again: onboard submit --dataset FILE --task tickets" in shown
    )
    assert "--init TASK" in shown
    assert "TF-IDF + logistic regression reaches 66% on the same rows" in shown
    assert "Weak result" not in visible(render(document | {"weak": False}))


def test_a_failed_job_shows_its_remedy_and_how_to_go_on():
    error = {"message": "the training diverged", "remedy": "Use another --seed"}
    shown = visible(render({"job": "j1", "state": "failed", "error": error}))
    assert "the training diverged" in shown
    assert "Use another --seed" in shown
    assert "onboard jobs retry j1" in shown


def test_nothing_that_helps_is_told_above_the_numbers(document):
    alarm = "No candidate is a better start than mean by more than noise (a@v1: 0.010 nats a row, the noise is 0.020)."
    document["init"] |= {"chosen": "mean", "alarm": alarm}
    shown = visible(render(document))
    notice = "No earlier embedding was found to help: training started from mean"
    assert shown.index(notice) < shown.index("Test rows") < shown.index(alarm)
    assert notice not in visible(render(document | {"init": document["init"] | {"alarm": None}}))


def test_a_row_that_looks_mislabelled_is_told_in_a_sentence(document):
    example = {"text": "premise | hypothesis", "label": 1, "likelier": True}
    document["dataset"]["warnings"][0]["examples"] = [example]
    assert "“premise | hypothesis” is labeled 1; true looks more likely." in visible(render(document))


def test_an_alias_that_stayed_and_a_refused_tuning_are_told(document):
    document["latest"] = {"alias": "latest", "moved": False, "reason": "It is significantly worse."}
    document["guard"]["verdict"] = "refused"
    shown = visible(render(document))
    assert "latest did not move It is significantly worse." in shown
    assert "onboard promote tickets@v3 --alias latest" in shown
    assert "Tuning of the hypernetwork: refused" in shown


def test_a_version_without_measurement_says_so_and_how_to_get_one(document):
    document["metrics"] = {"validation": None, "test": None}
    document["validation_reason"] = "Only 8 rows were submitted."
    shown = visible(render(document))
    assert "The version was not measured" in shown
    assert "onboard submit --dataset FILE --test HELD_OUT_FILE" in shown


def test_the_cross_validation_is_explained_where_nothing_better_exists(document):
    document["validation_kind"] = "cross-validated"
    assert "The validation is a cross-validated estimate" not in visible(render(document))
    document["metrics"] = {"validation": document["metrics"]["test"]}
    assert "The validation is a cross-validated estimate" in visible(render(document))


def test_what_the_folds_have_chosen_is_told_once_beside_test_rows_too(document):
    document["validation_kind"], document["validation_reason"] = "cross-validated", "They chose the initialisation."
    document["metrics"]["validation"] = document["metrics"]["test"]
    assert visible(render(document)).count("They chose the initialisation.") == 1
    del document["metrics"]["test"]
    assert visible(render(document)).count("They chose the initialisation.") == 1


def test_a_thousand_candidates_show_the_best_and_the_chosen_one(document):
    many = [{"embedding": f"t{number}@v1", "loss": 1 + number / 1000} for number in range(1000)]
    document["init"] = {"chosen": "t500@v1", "candidates": many}
    shown = visible(render(document))
    assert "t500@v1" in shown
    assert "t8@v1" in shown
    assert "t10@v1" not in shown
    assert "990 worse candidates are not shown." in shown


def test_a_matrix_of_many_labels_is_told_by_its_worst_mistakes(document):
    size = 40
    labels = [f"label{number}" for number in range(size)]
    matrix = [[9 if t == p else 0 for p in range(size)] for t in range(size)]
    matrix[3][5] = 4
    document["confusion"] = {"labels": labels, "matrix": matrix}
    html = render(document)
    assert "label3 answered as label5: 4 of 13 rows" in visible(html)
    assert 'class="heat' not in html


def test_a_long_training_stays_a_small_page(document):
    document["training"]["loss"] = [1.0 + math.sin(step) for step in range(100_000)]
    assert len(render(document)) < 100_000


def test_labels_of_every_type_are_shown_as_submitted(document):
    document["confusion"]["labels"] = [True, 1, "1"]
    assert "true answered as 1: 3 of 12 rows" in visible(render(document))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.2, 1.9), (-0.3, 1.0), (0.0, 8000.0), (5.0, 5.0), (0, 1e-9)])
def test_ticks_are_few_round_and_on_the_scale(low, high):
    ticks = Scale(low, high).ticks()
    assert 1 <= len(ticks) <= 11
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert all(0 <= Scale(low, high).at(tick) <= 100 for tick in ticks)


def test_a_curve_keeps_its_ends_and_its_direction():
    drawn = curve("loss", [4.0, 2.0, 1.0], smoothed=True)
    points = [tuple(map(float, point.split(","))) for point in drawn.raw.split()]
    assert [x for x, _ in points] == [0, 50, 100]
    assert points[0][1] < points[1][1] < points[2][1]  # SVG counts downwards
    assert curve("loss", [1.0], smoothed=True) is None


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.integers(0, 5))
def test_a_moving_average_keeps_length_and_range(values, width):
    averaged = moving_average(values, width)
    assert len(averaged) == len(values)
    assert min(values) - 1e-6 <= min(averaged) <= max(averaged) <= max(values) + 1e-6
