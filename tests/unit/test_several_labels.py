"""Several labels per text: how they are read, measured, learned and compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from bench.heldout.figures import Results
from bench.heldout.plan import ArmRun
from bench.multilabel import __main__ as bench
from bench.multilabel.page import Facts, markdown
from bench.multilabel.plan import ARMS, plan
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.data.snapshot import load, save
from onboard.data.splits import folds, holdout
from onboard.data.targets import indicators_of, targets_of
from onboard.domain.dataset import Example
from onboard.domain.label_set import chosen_set, in_order_of, labels_in, set_shown, set_text
from onboard.errors import DatasetError
from onboard.evaluate.baselines import cross_validate_baselines, score_baselines
from onboard.evaluate.sets import compare_sets, evaluate_sets, ranking_precision
from onboard.statistics.label_sets import fit_curve, fit_sets, fit_sets_so_far
from onboard.statistics.ridge import Path as Ridge

SETS: list[list[str]] = [[], ["a"], ["b"], ["a", "c"], ["b", "c"]]
ROWS: list[dict[str, Any]] = [{"text": f"text {place}", "labels": SETS[place % 5]} for place in range(40)]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Checked]:
    def read_rows(rows: list[dict[str, Any]] | str, name: str = "rows.jsonl", **options: Any) -> Checked:
        path = tmp_path / name
        if isinstance(rows, str):
            path.write_text(rows, encoding="utf-8")
        elif name.endswith(".json"):
            path.write_text(json.dumps(rows), encoding="utf-8")
        else:
            written(path, rows)
        return read_dataset(path, ReadOptions(suspects=False, **options))

    return read_rows


def problems_of(read: Callable[..., Checked], *arguments: Any, **options: Any) -> list[tuple[str, int | None]]:
    with pytest.raises(DatasetError) as raised:
        read(*arguments, **options)
    return [(problem["code"], problem["row"]) for problem in raised.value.data["problems"]]


def sets_of(checked: Checked) -> Counter[str]:
    return Counter(str(row.label) for row in checked.dataset.train)


def test_lists_are_recognized_and_stored(read: Callable[..., Checked]) -> None:
    checked = read(ROWS)
    assert (checked.report.kind, checked.dataset.labels) == ("multilabel", ("a", "b", "c"))
    assert sets_of(checked) == Counter({"[]": 8, '["a"]': 8, '["b"]': 8, '["a", "c"]': 8, '["b", "c"]': 8})
    assert {row.label: row.train for row in checked.report.labels} == {"a": 16, "b": 16, "c": 16}
    assert load(save(checked.dataset)) == checked.dataset


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        ('text,labels\nx,"[""a"", ""c""]"\ny,[]\nz,"[""b""]"\n', "cells.csv", "auto"),
        ("text,labels\nx,a|c\ny,\nz,b\n", "bars.csv", "multilabel"),
        ("text,labels\nx,a; c\ny,\nz,b\n", "semicolons.csv", "multilabel"),
        ('text,labels\nx,"a, c"\ny,\nz,b\n', "commas.csv", "multilabel"),
        ("text,a,b,c\nx,1,0,1\ny,0,0,0\nz,0,1,0\n", "columns.csv", "auto"),
        ("text,a,b,c\nx,true,false,true\ny,false,false,false\nz,false,true,false\n", "switches.csv", "auto"),
    ],
)
def test_tables_say_the_same(content: str, name: str, kind: str, read: Callable[..., Checked]) -> None:
    rows = [{"text": "x", "labels": ["c", "a"]}, {"text": "y", "labels": []}, {"text": "z", "labels": ["b"]}]
    assert read(content, name, kind=kind).report.digest == read(rows).report.digest


def test_lists_of_class_labels_have_their_names(tmp_path: Path) -> None:
    import datasets

    names = datasets.List(datasets.ClassLabel(names=["a", "b", "c"]))
    features = datasets.Features({"text": datasets.Value("string"), "labels": names})
    rows = [{"text": row["text"], "labels": ["abc".index(label) for label in row["labels"]]} for row in ROWS]
    dataset = datasets.Dataset.from_list(rows, features=features)
    dataset.to_parquet(str(tmp_path / "rows.parquet"))
    dataset.save_to_disk(str(tmp_path / "folder"))
    expected = read_dataset(written(tmp_path / "rows.jsonl", ROWS)).report.digest
    for path in (tmp_path / "rows.parquet", tmp_path / "folder"):
        assert read_dataset(path, ReadOptions(suspects=False)).report.digest == expected


def test_a_label_that_is_listed_twice_counts_once(read: Callable[..., Checked]) -> None:
    checked = read([*ROWS, {"text": "more", "labels": ["a", "a"]}])
    assert sets_of(checked)['["a"]'] == 9
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "repeated_labels"]
    assert (finding.count, "first row 41" in finding.message) == (1, True)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"labels": "a"}, ("mixed_labels", 41)),
        ({"labels": ["a", " "]}, ("missing_label", 41)),
        ({"labels": None}, ("missing_label", 41)),
        ({"labels": [["a"]]}, ("label_type", 41)),
        ({"labels": [{"a": 1}, "a"]}, ("label_type", 41)),
        ({"labels": ["a", float("nan")]}, ("nan_label", 41)),
    ],
)
def test_bad_lists_are_told_by_row(row: dict[str, Any], problem: tuple[str, int], read: Callable[..., Checked]) -> None:
    assert problem in problems_of(read, [*ROWS, {"text": "more", **row}])


def test_a_list_among_single_labels_is_what_is_wrong(read: Callable[..., Checked]) -> None:
    rows: list[dict[str, Any]] = [{"text": f"t{place}", "label": "ab"[place % 2]} for place in range(9)]
    rows[4]["label"] = ["a"]
    assert problems_of(read, rows) == [("mixed_labels", 5)]
    assert read(rows, kind="multilabel").dataset.labels == ("a", "b")


@pytest.mark.parametrize("labels", [[], ["a"]])
def test_sets_that_are_all_alike_teach_nothing(labels: list[str], read: Callable[..., Checked]) -> None:
    assert problems_of(read, [{"text": f"t{place}", "labels": labels} for place in range(9)]) == [("one_label", None)]


def test_labels_that_training_does_not_have(read: Callable[..., Checked], tmp_path: Path) -> None:
    test = written(tmp_path / "test.jsonl", [{"text": "p", "labels": ["a", "z"]}, {"text": "q", "labels": ["a"]}])
    assert problems_of(read, ROWS, test=test) == [("unknown_label", 1)]
    assert len(read(ROWS, test=test, unknown_labels="drop").dataset.test) == 1
    assert problems_of(read, ROWS, labels=("a", "b")) == [("unknown_label", 4)]


def test_kinds_that_are_asked_for_stay(read: Callable[..., Checked]) -> None:
    for kind in ("classification", "regression"):
        assert {code for code, _ in problems_of(read, ROWS, kind=kind)} == {"label_type"}


def test_texts_to_label_next_are_refused(read: Callable[..., Checked], tmp_path: Path) -> None:
    pool = written(tmp_path / "pool.jsonl", [{"text": "new"}])
    for kind in ("auto", "multilabel"):
        with refused("unlabelled-with-sets"):
            read(ROWS, unlabelled=pool, kind=kind)


def label_studio(labels: list[list[str]]) -> dict[str, Any]:
    annotations = [
        {"id": place, "was_cancelled": False, "result": [{"from_name": "topics", "value": {"choices": chosen}}]}
        for place, chosen in enumerate(labels)
    ]
    return {"annotations": annotations}


EXPORTS: dict[str, Callable[[int, list[str]], dict[str, Any]]] = {
    "Label Studio": lambda place, labels: {"id": place, "data": {"text": f"t{place}"}, **label_studio([labels])},
    "Argilla": lambda place, labels: {
        "id": str(place), "fields": {"text": f"t{place}"},
        "responses": {"topics": [{"value": labels, "status": "submitted"}]},
    },
    "doccano": lambda place, labels: {"id": place, "text": f"t{place}", "label": labels},
    "Prodigy": lambda place, labels: {
        "text": f"t{place}", "options": [], "accept": labels, "answer": "accept", "_input_hash": place,
        "_task_hash": place,
    },
}  # fmt: skip


@pytest.mark.parametrize("tool", EXPORTS)
def test_multi_choice_exports_are_sets(tool: str, read: Callable[..., Checked]) -> None:
    sets = [["a", "b"], ["a"], ["b", "c"], []] * 3
    name = "export.jsonl" if tool == "Prodigy" else "export.json"
    checked = read([EXPORTS[tool](place, labels) for place, labels in enumerate(sets)], name)
    expected = Counter({'["a", "b"]': 3, '["a"]': 3, '["b", "c"]': 3})
    assert sets_of(checked) == (expected + Counter({"[]": 3}) if tool == "Prodigy" else expected)
    left_out = [finding.code for finding in checked.report.warnings if finding.code == "unlabelled_rows"]
    assert left_out == ([] if tool == "Prodigy" else ["unlabelled_rows"])


def test_labels_that_most_annotators_gave_count(read: Callable[..., Checked]) -> None:
    given: list[list[list[str]]] = [[["a", "b"], ["a"], ["a", "c"]], [["b"], ["b", "c"]], [["c"]]]
    rows = [{"id": place, "data": {"text": f"t{place}"}, **label_studio(labels)} for place, labels in enumerate(given)]
    checked = read(rows, "export.json")
    assert sets_of(checked) == Counter(['["a"]', '["b"]', '["c"]'])
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "disagreeing_annotators"]
    assert finding.count == 2


def test_few_texts_with_several_labels_are_left_out_unless_asked_for(read: Callable[..., Checked]) -> None:
    rows = [{"id": place, "text": f"t{place}", "label": ["ab"[place % 2]]} for place in range(30)]
    rows[3]["label"] = ["a", "b"]
    checked = read(rows, "export.json")
    assert (checked.report.kind, len(checked.dataset.train)) == ("classification", 29)
    assert sets_of(read(rows, "export.json", kind="multilabel"))['["a", "b"]'] == 1


def test_cells_that_look_like_several_labels_are_pointed_out(read: Callable[..., Checked]) -> None:
    content = "text,label\n" + "".join(f"t{place},{('a', 'b', 'a; b')[place % 3]}\n" for place in range(9))
    (finding,) = [finding for finding in read(content, "rows.csv").report.warnings if finding.code == "joined_labels"]
    assert (finding.count, "--kind multilabel" in finding.remedy) == (1, True)


def test_rare_labels_are_held_out_too(read: Callable[..., Checked]) -> None:
    rows = [
        {"text": f"t{place}", "labels": ["common", "rare"] if place % 20 == 0 else ["common"]} for place in range(200)
    ]
    rows += [{"text": f"u{place}", "labels": ["other"]} for place in range(40)]
    dataset = read(rows).dataset
    held = holdout(dataset, 0)
    assert 2 <= sum("rare" in labels_in(row.label) for row in held.validation) <= 4
    in_folds = [sum("rare" in labels_in(dataset.train[row].label) for row in fold) for fold in folds(dataset, 5, 0)]
    assert in_folds == [2, 2, 2, 2, 2]


def test_a_set_is_one_text() -> None:
    assert labels_in(set_text(("a", 1, "b, c"))) == ("a", 1, "b, c")
    assert in_order_of(("b", "a", "c"), ["c", "b", "c"]) == ("b", "c")
    assert chosen_set(("a", "b", "c"), [0.5, 0.49, 0.9]) == ("a", "c")
    assert (set_shown("[]"), set_shown('["a", "b"]')) == ("none", "a, b")
    with pytest.raises(ValueError, match="does not represent a set"):
        labels_in("a")
    rows = [Example("x", None, '["b", "a"]'), Example("y", None, "[]")]
    assert indicators_of(("a", "b", "c"), rows).tolist() == [[1, 1, 0], [0, 0, 0]]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(2, 6))
def test_metrics_are_those_of_scikit_learn(seed: int, rows: int, labels: int) -> None:
    from sklearn.metrics import f1_score, label_ranking_average_precision_score

    random = np.random.default_rng(seed)
    truth = (random.random((rows, labels)) < 0.4).astype(float)
    scores = random.integers(0, 5, (rows, labels)) / 4  # with ties
    measured = evaluate_sets(truth, scores)
    answered = scores >= 0.5
    there = (truth.sum(0) + answered.sum(0)) > 0
    if there.sum() > 1:  # a single column is another kind of task to scikit-learn
        micro = f1_score(truth[:, there], answered[:, there], average="micro", zero_division=0)
        macro = f1_score(truth[:, there], answered[:, there], average="macro", zero_division=0)
        assert measured["micro_f1"].value == pytest.approx(micro)
        assert measured["macro_f1"].value == pytest.approx(macro)
    assert measured["exact_match"].value == pytest.approx((truth == answered).all(1).mean())
    if labels > 1:
        expected = label_ranking_average_precision_score(truth, scores)
        assert ranking_precision(truth, scores).mean() == pytest.approx(expected)
    for metric in measured.values():
        if metric.low is not None and metric.high is not None:
            assert 0 <= metric.low <= metric.value <= metric.high <= 1


def test_each_label_is_told_with_macro_f1() -> None:
    truth = np.array([[1, 0], [1, 1], [0, 0]])
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.1]])
    first, second = evaluate_sets(truth, scores, labels=("a", "b"))["macro_f1"].labels
    assert (first.label, first.rows, first.answers, first.right) == ("a", 2, 2, 1)
    assert (second.precision, second.recall, second.f1) == (1.0, 1.0, 1.0)


def test_versions_are_compared_by_the_f1_of_each_set() -> None:
    truth = np.tile([[1.0, 0.0]], (30, 1))
    wrong, right = np.tile([[0.9, 0.8]], (30, 1)), np.tile([[0.9, 0.1]], (30, 1))
    better = compare_sets(truth, wrong, right)
    assert (better.verdict, better.newly_right, better.newly_wrong) == ("better", 30, 0)
    assert compare_sets(truth, right, wrong).verdict == "worse"
    near = np.tile([[0.9, 0.1]], (30, 1)) * np.array([[1.0, 1.0]] * 10 + [[0.1, 8.0]] * 20)  # 10 right, 20 wrong
    assert (compare_sets(truth, wrong, near).newly_right, compare_sets(truth, wrong, near).newly_wrong) == (10, 20)
    assert compare_sets(truth[:0], wrong[:0], right[:0]).verdict == "not enough evidence"


def made(rows: int, seed: int = 0, labels: int = 4, rare: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 24) whose first columns say the labels, with noise."""
    random = np.random.default_rng(seed)
    shares = np.linspace(rare, 0.5, labels)
    truth = (random.random((rows, labels)) < shares).astype(np.float32)
    features = random.standard_normal((rows, 24))
    features[:, :labels] += 3 * truth
    return features.astype(np.float32), truth


def each(rows: int) -> list[np.ndarray]:
    return [np.array([row]) for row in range(rows)]


def test_a_readout_answers_sets_it_has_not_seen() -> None:
    features, truth = made(200)
    others, expected = made(300, seed=1)
    fitted = fit_sets(features, truth, each(200), blocks=3)
    assert fitted.readout.independent
    measured = evaluate_sets(expected, fitted.readout.probabilities(others))
    assert measured["micro_f1"].value > 0.75
    assert measured["macro_f1"].value > 0.7
    scores = evaluate_sets(truth, fitted.probabilities)
    assert abs(scores["micro_f1"].value - measured["micro_f1"].value) < 0.15, "rows without themselves tell the truth"
    half = fitted.readout.of_labels([2, 0])
    assert half.probabilities(others) == pytest.approx(fitted.readout.probabilities(others)[:, [2, 0]])


@pytest.mark.parametrize("rows", [2, 3, 7, 9])
def test_very_few_rows_make_a_readout_too(rows: int) -> None:
    features, _ = made(rows)
    truth = np.zeros((rows, 2))
    truth[0, 0] = truth[-1, 1] = 1
    scores = fit_sets(features, truth, each(rows), blocks=3).readout.probabilities(features)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("rows", [1, 5, 60])
def test_a_readout_of_the_rows_so_far_answers_sets(rows: int) -> None:
    features, truth = made(60)
    others, expected = made(300, seed=1)
    names = np.zeros((4, 24))
    names[:, :4] = np.eye(4)
    fitted = fit_sets_so_far(features[:rows], truth[:rows], names.astype(np.float32), features, blocks=3)
    assert fitted.readout.independent
    measured = evaluate_sets(expected, fitted.readout.probabilities(others))
    assert measured["lrap"].value > {1: 0.5, 5: 0.6, 60: 0.85}[rows]
    if rows == 60:
        alone = fit_sets(features, truth, each(60), blocks=3).readout.probabilities(others)
        assert measured["micro_f1"].value > evaluate_sets(expected, alone)["micro_f1"].value - 0.05


def test_without_each_is_without_groups_of_one() -> None:
    random = np.random.default_rng(3)
    x, y, counted = random.standard_normal((12, 30)), random.random((12, 2)), random.random(12) + 0.5
    path = Ridge.of(x, y, counted)
    for ridge in (0.1, 1.0, 10.0):
        assert path.without_each(ridge) == pytest.approx(path.without(each(12), ridge))


def test_a_rare_label_is_answered_though_it_is_seldom_likely() -> None:
    random = np.random.default_rng(0)
    right = np.zeros((400, 1))
    right[:12] = 1
    scores = np.where(right > 0, 0.35, 0.0) + 0.12 * random.standard_normal((400, 1))
    answered = fit_curve(scores, right).answered(scores) >= 0.5
    assert answered[:12].sum() >= 9
    assert answered[12:].sum() <= 12


def test_a_label_without_rows_is_hardly_answered() -> None:
    random = np.random.default_rng(0)
    right = np.zeros((200, 2))
    right[:80, 0] = 1
    scores = np.hstack([right[:, :1], np.zeros((200, 1))]) + 0.1 * random.standard_normal((200, 2))
    answered = fit_curve(scores, right).answered(scores) >= 0.5
    assert answered[:, 1].mean() < 0.05


def test_features_that_are_not_finite_are_refused() -> None:
    features, truth = made(10)
    features[3, 3] = np.nan
    with refused("features-not-finite"):
        fit_sets(features, truth, each(10), blocks=3)
    with refused("readout-needs-two-rows"):
        fit_sets(features[:1, :3], truth[:1], [], blocks=3)


def test_baselines_are_the_commonest_set_and_one_vs_rest(read: Callable[..., Checked]) -> None:
    rows = [{"text": f"{' '.join(SETS[place % 5])} {place}", "labels": SETS[place % 5]} for place in range(60)]
    dataset = read(rows).dataset
    test = dataset.train[:20]
    scored = score_baselines(dataset, test)
    assert scored["tfidf_one_vs_rest"]["micro_f1"].value > scored["commonest_set"]["micro_f1"].value
    crossed = cross_validate_baselines(dataset, np.arange(60) % 5)
    assert crossed["tfidf_one_vs_rest"]["macro_f1"].estimate == "cross-validated"
    assert targets_of(dataset, test).shape == (20, 3)


def test_the_bench_says_what_was_wanted_and_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = plan(["tags", "topics"], tuple(ARMS), (32,))
    values = {"ours": 60.0, "tfidf": 40.0, "minilm": 61.0}
    rows: dict[ArmRun, dict[str, Any]] = {
        run: {
            "family": "", "rarest": 1.0, "seconds": 1.0,
            **dict.fromkeys(("micro_f1", "macro_f1", "lrap", "exact_match"), values.get(run.arm, 10.0)),
        }
        for run in runs
    }  # fmt: skip
    page = markdown(Results(rows), Facts("python -m bench.multilabel", "mini", 2, 300, []))
    of, runs_made = "one-vs-rest logistic regression, n = 32", "2 tasks, 4 draws"
    assert f"| micro-F1 above TF-IDF + {of} | +20.0 (+20.0 to +20.0), {runs_made} | met |" in page
    assert f"| macro-F1 above MiniLM + {of} | -1.0 (-1.0 to -1.0), {runs_made} | **not met** |" in page
    assert "not measured yet" in page
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert "skipped: the datasets are not here" in capsys.readouterr().out
