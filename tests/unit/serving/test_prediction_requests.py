"""What predictions are asked for, checked before a model is loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from onboard.contract.requests import parse_requests
from onboard.domain.limits import MAX_TEXT_CHARACTERS
from onboard.domain.names import Reference
from onboard.errors import InputError


def test_a_text_and_a_pair_are_read_with_and_without_a_reference() -> None:
    first, second, third = parse_requests(
        [
            {"task": "sst2", "text": "good"},
            {"task": "rte", "ref": "v2", "text_a": "a", "text_b": "b"},
            {"task": "rte", "ref": None, "text_a": "a", "text_b": "b"},
        ]
    )
    assert (first.reference, first.text_a, first.text_b) == (Reference("sst2"), "good", None)
    assert (second.reference, second.text_a, second.text_b) == (Reference("rte", None, 2), "a", "b")
    assert third.reference == Reference("rte")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"task": "sst2"}, "text"),
        ({"task": "sst2", "text": ""}, "text"),
        ({"task": "sst2", "text": "  \n"}, "text"),
        ({"task": "sst2", "text": 7}, "text"),
        ({"task": "sst2", "text": None}, "text"),
        ({"task": "rte", "text_a": "a"}, "text_b"),
        ({"task": "rte", "text_a": "a", "text_b": ""}, "text_b"),
        ({"task": "rte", "text_b": "b"}, "text"),
        ({"task": "rte", "text_a": ["a"], "text_b": "b"}, "text_a"),
        ({"task": "sst2", "text": "half \ud83d"}, "text"),
        ({"task": "sst2", "text": "a" * (MAX_TEXT_CHARACTERS + 1)}, "text"),
        ({"task": "sst2", "text": "good", "ref": ""}, "ref"),
        ({"task": "sst2", "text": "good", "ref": 0}, "ref"),
        ({"task": "sst2", "text": "good", 7: 1, "a": 2}, "7"),
        ({"task": "sst2", "sentence": "good"}, "sentence"),
        ({"task": "sst2", "text": "good", "path": "/etc/passwd"}, "path"),
        ({"task": "sst2", "text": "good", "text_b": "ignored?"}, "text_b"),
        ({"task": "sst2", "text": "good", "labels": "positive"}, "labels"),
        ({"task": "sst2", "text": "good", "labels": []}, "labels"),
        ({"task": "sst2", "text": "good", "labels": ["positive", ["negative"]]}, "labels"),
        ({"task": "sst2", "text": "good", "labels": ["positive", float("nan")]}, "labels"),
    ],
)
def test_a_wrong_input_is_refused_by_its_row_and_field_and_says_what_to_do(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_requests([{"task": "sst2", "text": "good"}, wrong, {"task": "sst2"}])
    assert (caught.value.data["row"], caught.value.data["field"]) == (2, field)
    assert caught.value.message.startswith(f"Input 2: {field}")
    assert caught.value.remedy


@pytest.mark.parametrize("task", ["../x", "", "Sst2", "a@b@c", 7, None])
def test_a_wrong_task_names_its_row_too(task: object) -> None:
    with pytest.raises(InputError) as caught:
        parse_requests([{"task": "sst2", "text": "good"}, {"task": task, "text": "good"}])
    assert caught.value.data["row"] == 2
    assert caught.value.data["field"] == "task"
    assert caught.value.message.startswith("Input 2: ")


def test_a_wrong_reference_names_its_row_too() -> None:
    with pytest.raises(InputError) as caught:
        parse_requests([{"task": "sst2", "ref": "v0/..", "text": "good"}])
    assert (caught.value.data["row"], caught.value.data["field"]) == (1, "ref")


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_requests(["good film"])  # type: ignore[list-item]  # what JSON may hold
    assert caught.value.data["row"] == 1


def test_reading_requests_loads_no_model() -> None:
    code = "import sys, onboard.contract.requests; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
