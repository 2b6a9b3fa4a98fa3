"""`onboard check`: what people and programs see; errors are left to the program's edge."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from dataset_rows import balanced
from support.refusals import refused
from typer.testing import CliRunner

from cli.check import check
from onboard.bases import find_base
from onboard.errors import DatasetError, InputError
from onboard.jobs.estimate import START_SECONDS, TOKENS_PER_CHARACTER, DatasetSize, estimate_seconds
from onboard.jobs.submission import split_labels

app = typer.Typer()
app.command()(check)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False, terminal_width=200)
    assert result.exit_code == 0
    return result.stdout


def test_json_is_one_document_with_the_report_and_an_estimate(write_jsonl) -> None:
    document = json.loads(run(write_jsonl(balanced(), "reviews.jsonl"), "--json"))
    assert document["task"] == "reviews"
    assert document["rows"] == {"train": 20, "validation": 0, "test": 0}
    assert document["estimated_seconds"] > 0
    assert document["warnings"] == []


def test_the_first_version_is_estimated_too_and_fast_is_that_alone(write_jsonl) -> None:
    rows = write_jsonl(balanced(), "reviews.jsonl")
    usual, fast = (json.loads(run(rows, *flags, "--json")) for flags in ((), ("--fast",)))
    tokens = usual["characters"]["mean"] * TOKENS_PER_CHARACTER
    first = round(estimate_seconds(DatasetSize(20, tokens), method="linear"))
    assert START_SECONDS <= first < usual["estimated_seconds"]
    assert usual["estimated_seconds_first"] == fast["estimated_seconds_first"] == fast["estimated_seconds"] == first
    assert f"a first version after about {first} seconds" in run(rows)


def test_the_estimate_counts_what_is_trained_held_out_tested_and_looked_at(write_jsonl) -> None:
    rows, held = balanced(400), [{"text": f"other {number}", "label": "good"} for number in range(400)]
    test, pool = write_jsonl(held, "test.jsonl"), write_jsonl([{"text": f"new {n}"} for n in range(300)], "pool.jsonl")
    numbers = [{"text": f"sentence number {number}", "label": number / 7} for number in range(24)]
    for data, flags, counts in (
        (rows, (), {"rows": 300, "validation": 100}),
        (rows, ("--validation", test), {"rows": 400, "validation": 400}),
        (rows, ("--test", test), {"rows": 300, "validation": 100, "test": 400}),
        (rows, ("--unlabelled", pool), {"rows": 300, "validation": 100, "unlabelled": 300}),
        (rows, ("--shots", 24), {"rows": 24}),
        (numbers, ("--kind", "regression"), {"rows": 24, "regression": True}),
    ):
        document = json.loads(run(write_jsonl(data), *flags, "--json"))
        tokens = document["characters"]["mean"] * TOKENS_PER_CHARACTER
        unlabelled = counts.pop("unlabelled", 0)
        seconds = estimate_seconds(DatasetSize(mean_tokens=tokens, **counts), unlabelled=unlabelled)
        assert document["estimated_seconds"] == round(seconds), flags
        assert document["estimated_seconds_tuned"] > document["estimated_seconds"] + 30, flags


def test_people_see_task_labels_warnings_and_that_nothing_was_queued(write_jsonl) -> None:
    rows = [*balanced(20, ("CardLost", "[red]ok[/red]")), *balanced(1, ("CardLost",))]
    shown = run(write_jsonl(rows), "--task", "cards")
    for words in ("cards", "classification", "card lost", '"[red]ok[/red]"', "repeated exactly", "nothing was queued"):
        assert words in shown


EMOJI = ("😀", "😡", "👍")


def test_labels_are_shown_by_the_words_that_a_job_gives_them(write_jsonl) -> None:
    document = json.loads(run(write_jsonl(balanced(20, EMOJI)), "--json"))
    assert sorted(label["word"] for label in document["labels"]) == ["label 1", "label 2", "label 3"]
    assert [(warning["code"], warning["count"]) for warning in document["warnings"]] == [("label_words", 3)]
    start = "The customer wants his money back as the parcel has never arrived"
    long = json.loads(run(write_jsonl(balanced(20, (f"{start} at home", f"{start} at work"))), "--json"))
    assert [label["word"] for label in long["labels"]] == [start.lower(), f"{start.lower()} 2"]
    assert [(warning["code"], warning["count"]) for warning in long["warnings"]] == [("label_words", 2)]


@pytest.mark.parametrize("damaged", [True, False])
def test_a_dataset_is_checked_where_there_is_no_base_or_a_damaged_one(
    write_jsonl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damaged: bool
) -> None:
    base = tmp_path / "base"
    if damaged:
        shutil.copytree(find_base("mini").folder, base)
        (base / "backbone" / "tokenizer.json").write_text("{", encoding="utf-8")
    monkeypatch.setenv("ONBOARD_BASE", str(base))
    document = json.loads(run(write_jsonl(balanced(20, EMOJI)), "--json"))
    assert [(label["label"], label["word"]) for label in document["labels"]] == [
        (emoji, emoji) for emoji in sorted(EMOJI)
    ]
    assert document["warnings"] == []


def test_the_time_is_said_without_tuning_and_with_it(write_jsonl) -> None:
    shown = " ".join(run(write_jsonl(balanced())).split())
    said = r"about \d+ seconds on a laptop if the hypernetwork is not tuned, about \d+ (seconds|minutes) if it is"
    assert re.search(said, shown)


def test_flags_reach_the_checks(write_jsonl) -> None:
    rows = [{"headline": f"h {i}", "desk": str(i % 3)} for i in range(90)]
    test = write_jsonl([{"headline": "unseen", "desk": "2"}], "test.jsonl")
    flags = ("--text-field", "headline", "--label-field", "desk", "--shots", 12, "--seed", 4, "--labels", "2,1,0")
    document = json.loads(run(write_jsonl(rows), *flags, "--test", test, "--json"))
    assert [(label["label"], label["train"]) for label in document["labels"]] == [("2", 4), ("1", 4), ("0", 4)]
    assert document["rows"]["test"] == 1
    regression = json.loads(run(write_jsonl(rows), *flags[:4], "--kind", "regression", "--json"))
    assert (regression["kind"], regression["low"], regression["high"]) == ("regression", 0.0, 2.0)


def test_texts_to_choose_from_are_checked_as_a_submission_checks_them(write_jsonl) -> None:
    dataset = write_jsonl(balanced(20), "reviews.jsonl")
    many = write_jsonl([{"text": f"unlabelled {number}"} for number in range(1_003)], "pool.jsonl")
    document = json.loads(run(dataset, "--unlabelled", many, "--json"))
    assert [(warning["code"], warning["count"]) for warning in document["warnings"]] == [("many_unlabelled", 3)]
    with refused("all-labelled"):
        run(dataset, "--unlabelled", dataset)


def test_problems_are_raised_not_printed(write_jsonl) -> None:
    path = write_jsonl([{"text": "", "label": "x"}])
    with pytest.raises(DatasetError):
        run(path)
    with refused("name-invalid", name="../../x"):
        run(path, "--task", "../../x")
    with refused("unknown-choice", value="ranking"):
        run(path, "--kind", "ranking")


@pytest.mark.parametrize(
    ("text", "labels"),
    [("", ()), ("a,b", ("a", "b")), (' a , "b, c"', ("a", "b, c")), ("no fee,fee", ("no fee", "fee"))],
)
def test_labels_are_split_at_commas_as_in_csv(text, labels) -> None:
    assert split_labels(text) == labels


def test_an_empty_label_is_refused() -> None:
    with pytest.raises(InputError):
        split_labels("a,,b")


def test_the_command_and_the_checks_import_nothing_heavy() -> None:
    program = "import sys, cli.check, onboard.data.hub; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "torch",
        "transformers",
        "sklearn",
        "scipy",
        "numpy",
        "pyarrow",
        "huggingface_hub",
        "rich.console",
        "celery",
    }
    assert not heavy & set(loaded)


def test_the_words_are_found_without_loading_the_model(write_jsonl) -> None:
    program = (
        "import sys; from onboard.domain.submission import Submission; from onboard.jobs.submission import check; "
        f"report = check(Submission({str(write_jsonl(balanced(20, EMOJI)))!r}), 'mini'); "
        "print(report['labels'][0]['word'], *sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert printed[:2] == ["label", "1"]
    assert not {"torch", "transformers"} & set(printed)
