"""Files that are small and would take long: each is read in a time that grows with its size, or refused at once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from onboard.data.cards import MAX_CARD_BYTES, require_bounded_card
from onboard.data.folders import require_own_files
from onboard.data.formats import FileProblems
from onboard.data.problems import Problems
from onboard.data.rows import read_table
from onboard.data.texts import read_texts
from onboard.errors import DatasetError, TooLargeError

MOST_SECONDS = 5.0  # of this process; each of these files took minutes


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < MOST_SECONDS


def choice(question: str, label: str = "a") -> dict[str, Any]:
    return {"from_name": question, "to_name": "text", "type": "choices", "value": {"choices": [label]}}


def codes_of(path: Path, label: str | None = None) -> set[str]:
    problems = Problems()
    read_table(path, FileProblems(problems, path.name), (), label)
    return set(problems.counts)


def test_an_export_of_thousands_of_questions_is_refused(tmp_path: Path) -> None:
    tasks = [{"id": i, "data": {"text": f"t {i}"}, "annotations": [{"result": [choice(f"q{i}")]}]} for i in range(8000)]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    assert codes_of(tmp_path / "a.json") == {"too_many_columns"}


def test_an_export_with_many_questions_is_read_for_one_of_them(tmp_path: Path) -> None:
    results = [choice(f"q{i}") for i in range(900)]
    tasks = [{"id": i, "data": {"text": f"t {i}"}, "annotations": [{"result": results}]} for i in range(60)]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    assert codes_of(tmp_path / "a.json", "q7") == set()


@pytest.mark.parametrize("columns", [4_000, 12_000])
def test_flat_records_of_argilla_with_thousands_of_columns_are_refused(tmp_path: Path, columns: int) -> None:
    row = {"text": "a", **{f"q{i}.responses": ["x"] for i in range(columns)}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    assert codes_of(tmp_path / "a.jsonl") == {"too_many_columns"}


def header(columns: int, name: str = "c{}") -> str:
    return ",".join(["text", *(name.format(i) for i in range(columns))])


@pytest.mark.parametrize("name", ["c{}", "c", ""])
def test_a_header_of_very_many_columns_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text(header(60_000, name) + "\n")
    with pytest.raises(DatasetError) as caught:
        read_texts(tmp_path / "a.csv")
    assert caught.value.data["problems"][0]["code"] == "too_many_columns"


def test_thousands_of_columns_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(header(9_000, "c") + "\n" + "x" + ",1" * 9_000 + "\n")
    (row,) = read_texts(tmp_path / "a.csv")
    assert len(row.given) == 9_001


def test_very_many_distinct_labels_are_refused(tmp_path: Path, read: Callable[..., Any]) -> None:
    rows = "".join(f'{{"text": "t {i}", "label": "l{i}"}}\n' for i in range(30_000))
    (tmp_path / "a.jsonl").write_text(rows)
    with pytest.raises(DatasetError) as caught:
        read(tmp_path / "a.jsonl", labels=tuple(f"l{i}" for i in range(2_000)))
    assert {problem["code"] for problem in caught.value.data["problems"]} == {"too_many_labels"}


# --- cards ---

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


def write_card(folder: Path, front: str) -> Path:
    path = folder / "README.md"
    path.write_text(f"---\n{front}\n---\n# A dataset\n", encoding="utf-8")
    return path


def test_aliases_that_repeat_each_other_are_refused(tmp_path: Path) -> None:
    write_card(tmp_path, BOMB + "configs: *a11")
    with refused("card-too-many-values"):
        require_own_files(tmp_path, "data")


@pytest.mark.parametrize("front", ["a: &a [*a, *a]", "a: &a {b: *a}"])
def test_a_card_that_holds_itself_is_refused(tmp_path: Path, front: str) -> None:
    with pytest.raises(TooLargeError):
        require_bounded_card(write_card(tmp_path, front), "data")


def test_a_card_that_nests_deep_is_refused(tmp_path: Path) -> None:
    with refused("card-too-deep"):
        require_bounded_card(write_card(tmp_path, "a: " + "[" * 2_000), "data")


def test_a_card_of_too_many_bytes_is_refused(tmp_path: Path) -> None:
    with refused("card-too-large"):
        require_bounded_card(write_card(tmp_path, "#" * MAX_CARD_BYTES), "data")


def test_a_usual_card_is_read_with_its_aliases(tmp_path: Path) -> None:
    names = "&n\n- name: label\n  dtype: int64"
    write_card(tmp_path, f"license: mit\nfeatures: {names}\nconfigs:\n- config_name: a\n  data_files: x.csv\nagain: *n")
    require_own_files(tmp_path, "data")
    write_card(tmp_path, "configs:\n- data_files: ../x.csv")
    with refused("folder-files-remote"):
        require_own_files(tmp_path, "data")
    (tmp_path / "README.md").write_text("# No front matter\n" + "text\n" * 1000)
    require_own_files(tmp_path, "data")
