"""Folders: what `datasets` saved, shards, and files by split."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
from dataset_rows import balanced
from support.refusals import refused

ROWS = balanced(12)


def texts(checked: Any) -> set[tuple[str, Any]]:
    return {(row.text_a, row.label) for row in checked.dataset.train}


EXPECTED = {(row["text"], row["label"]) for row in ROWS}


@pytest.fixture
def dataset() -> datasets.Dataset:
    labels = datasets.ClassLabel(names=["good", "bad"])
    features = datasets.Features({"text": datasets.Value("string"), "label": labels})
    rows = [{**row, "label": labels.str2int(row["label"])} for row in ROWS]
    return datasets.Dataset.from_list(rows, features=features)


def test_what_save_to_disk_wrote_is_read_with_its_class_names(dataset, tmp_path: Path, read) -> None:
    dataset.save_to_disk(tmp_path / "saved", num_shards=3)
    assert texts(read(tmp_path / "saved")) == EXPECTED


def test_the_splits_of_a_saved_dict_are_splits(dataset, tmp_path: Path, read) -> None:
    held = dataset.select(range(4))
    unlabelled = dataset.select(range(2)).map(lambda row: {"label": -1})
    datasets.DatasetDict({"train": dataset.select(range(4, 12)), "validation": held, "test": unlabelled}).save_to_disk(
        tmp_path / "saved"
    )
    checked = read(tmp_path / "saved")
    assert checked.report.rows == {"train": 8, "validation": 4, "test": 0}
    assert [finding.code for finding in checked.report.warnings] == ["unlabelled_split"]


def test_an_arrow_file_is_read(dataset, tmp_path: Path, read) -> None:
    dataset.save_to_disk(tmp_path / "saved")
    (path,) = (tmp_path / "saved").glob("*.arrow")
    assert texts(read(path)) == EXPECTED


@pytest.mark.parametrize("write", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("packed", [False, True])
def test_both_kinds_of_arrow_files_are_read_packed_or_not(write, packed, tmp_path: Path, read) -> None:
    table = pa.Table.from_pylist(ROWS)
    stream = io.BytesIO()
    with write(stream, table.schema) as writer:
        writer.write_table(table)
    path = tmp_path / ("d.arrow.gz" if packed else "d.arrow")
    path.write_bytes(gzip.compress(stream.getvalue()) if packed else stream.getvalue())
    assert texts(read(path)) == EXPECTED


@pytest.mark.parametrize("cut", [10, 200, 500])
def test_a_damaged_arrow_file_is_told(cut, tmp_path: Path, problems_of) -> None:
    table = pa.Table.from_pylist(ROWS)
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "d.arrow").write_bytes(stream.getvalue()[:cut])
    assert problems_of(tmp_path / "d.arrow")[0]["code"] in ("bad_arrow", "unreadable_file")


def test_shards_of_parquet_are_one_split(dataset, tmp_path: Path, read) -> None:
    (tmp_path / "d" / "data").mkdir(parents=True)
    for index in range(3):
        dataset.shard(3, index).to_parquet(tmp_path / "d" / "data" / f"train-{index:05}-of-00003.parquet")
    assert texts(read(tmp_path / "d")) == EXPECTED


@pytest.mark.parametrize("name", ["validation", "dev", "valid"])
def test_files_are_splits_by_their_names(name, tmp_path: Path, read) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for split, rows in (("train", ROWS[4:]), (name, ROWS[:2]), ("test", ROWS[2:4])):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(folder).report.rows == {"train": 8, "validation": 2, "test": 2}


def test_a_row_of_a_folder_is_told_with_its_file(tmp_path: Path, problems_of) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "train.csv").write_text("text,label\na,x\n,y\n")
    (problem,) = [problem for problem in problems_of(folder) if problem["code"] == "empty_text"]
    assert (problem["file"], problem["row"], problem["line"]) == (str(folder / "train.csv"), 2, 3)


@pytest.mark.parametrize(
    ("feature", "what"),
    [
        (datasets.List(datasets.Value("string")), "a list"),
        ({"en": datasets.Value("string")}, "an object"),
        (datasets.Image(), "an image"),
    ],
)
def test_a_feature_that_is_no_text_is_named(feature, what, tmp_path: Path, problems_of) -> None:
    value = {"a list": ["a", "b"], "an object": {"en": "a"}, "an image": {"bytes": b"x", "path": None}}[what]
    features = datasets.Features(
        {"text": feature, "caption": datasets.Value("string"), "label": datasets.Value("string")}
    )
    rows = [{"text": value, "caption": "a", "label": label} for label in ("x", "y")]
    saved: Callable[..., None] = datasets.Dataset.from_list(rows, features=features).save_to_disk
    saved(tmp_path / "saved")
    (problem,) = problems_of(tmp_path / "saved")
    assert problem["code"] == "text_type"
    assert f"{what} in the field 'text'" in problem["message"]
    assert "caption" in problem["remedy"]


@pytest.mark.parametrize(
    ("files", "type_"),
    [
        ({}, "folder-without-rows"),
        ({"notes.txt": "hello"}, "folder-without-rows"),
        ({"test.csv": "text,label\na,x\n"}, "folder-without-training-split"),
        ({"state.json": '{"_data_files": [{"filename": "../../x.arrow"}]}'}, "folder-file-name-invalid"),
        ({"state.json": "{"}, "folder-file-unreadable"),
        ({"dataset_dict.json": '{"splits": ["../x"]}'}, "folder-file-name-invalid"),
        ({"train.csv": "text,label\n", "README.md": "---\nconfigs:\n- config_name: a\n  data_files: /etc/*\n---\n"},
         "folder-files-remote"),
    ],
)  # fmt: skip
def test_a_folder_that_is_no_dataset_is_refused_with_the_way_out(files, type_, tmp_path: Path, read) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    with refused(type_) as caught:
        read(folder)
    assert caught.value.remedy
