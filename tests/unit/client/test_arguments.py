"""Programs pass one text where a list may stand, and errors speak of arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from onboard.client import local
from onboard.domain.arguments import in_arguments
from onboard.domain.evaluation import Evaluation
from onboard.domain.submission import Submission
from onboard.errors import DatasetError


@pytest.fixture
def messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "home"))
    path = tmp_path / "messages.jsonl"
    rows = [{"message": f"Message {number}.", "topic": ("a", "b, c")[number % 2]} for number in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_one_text_is_a_field_and_not_its_letters(messages: Path) -> None:
    checked = local.check(messages, text_field="message", label_field="topic", labels=["b, c", "a"])
    assert checked.document["fields"] == {"text": ["message"], "label": "topic"}
    assert [label.label for label in checked.labels] == ["b, c", "a"]
    assert not (messages.parent / "home").exists()  # a check makes no home


@pytest.mark.parametrize("declaration", [Submission, Evaluation])
def test_what_is_no_list_of_texts_is_refused(declaration: Any) -> None:
    assert declaration("a.jsonl", text_field=None).text_field == ()
    assert declaration("a.jsonl", text_field=["a", "b"]).text_field == ["a", "b"]
    with refused("argument-not-texts", field="text_field"):
        declaration("a.jsonl", text_field=3)


def test_errors_name_arguments(messages: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        local.check(messages)
    assert 'text_field="NAME"' in caught.value.remedy
    assert all("--" not in problem["remedy"] for problem in caught.value.data["problems"])
    with refused("too-few-shots", shots=0):
        local.check(messages, text_field="message", label_field="topic", shots=0)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("drop them: --unknown-labels drop", 'drop them: unknown_labels="drop"'),
        ("Leave out --labels, or --kind regression.", 'Leave out labels, or kind="regression".'),
        ("Start from --init sst2@v1.", 'Start from init="sst2@v1".'),
        ("Let it have another label set: --new-labels", "Let it have another label set: new_labels=True"),
        ("onboard submit FILE --task NAME", 'submit(FILE) task="NAME"'),
        ("Name the task: --task NAME", 'Name the task: task="NAME"'),
        ("--rows 3 has no meaning without labeled rows.", "rows=3 has no meaning without labeled rows."),
        ("onboard jobs watch j1 --json", "onboard jobs watch j1 --json"),  # no counterpart
    ],
)
def test_options_become_arguments(words: str, arguments: str) -> None:
    assert in_arguments(words) == arguments
