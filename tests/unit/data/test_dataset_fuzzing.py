"""Whatever the bytes, reading ends in a dataset or in a DatasetError; whatever the rows, writing and reading agree."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onboard.data.hashes import normalised
from onboard.data.invisible import visible
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.snapshot import digest, load, save
from onboard.domain.dataset import Dataset, example_key
from onboard.errors import DatasetError

OPTIONS = ReadOptions(suspects=False)
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=25).filter(
    lambda text: text.strip() == text and visible(text).strip() and not {"\r", "\0"} & set(text)
)
pairs_of_rows = st.lists(
    st.tuples(texts, texts), min_size=4, max_size=12, unique_by=lambda row: normalised(visible(row[0]))
)


def read_bytes(data: bytes, name: str) -> Dataset:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return read_dataset(path, OPTIONS).dataset


def outcome(data: bytes, name: str) -> Dataset | DatasetError:
    try:
        return read_bytes(data, name)
    except DatasetError as error:
        return error


def require_sound(result: Dataset | DatasetError) -> None:
    if isinstance(result, Dataset):
        assert digest(load(save(result))) == digest(result)
    else:
        assert result.data["problem_count"] > 0
        assert json.dumps(result.to_json())
        assert result.message.encode()


def labelled(rows: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"text_a": a, "text_b": b, "label": "even" if i % 2 else "odd"} for i, (a, b) in enumerate(rows)]


def encoded(rows: list[dict[str, str]], name: str) -> bytes:
    if "parquet" in name:
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), buffer)
        return buffer.getvalue()
    if "csv" in name:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@FUZZ
@given(pairs_of_rows, st.sampled_from(["d.jsonl", "d.csv", "d.parquet"]))
def test_rows_survive_every_format_and_the_snapshot(rows, name) -> None:
    expected = labelled(rows)
    dataset = read_bytes(encoded(expected, name), name)
    assert sorted((row.text_a, row.text_b, row.label) for row in dataset.train) == sorted(
        (row["text_a"], row["text_b"], row["label"]) for row in expected
    )
    assert digest(dataset) == digest(read_bytes(encoded(expected[::-1], "d.jsonl"), "d.jsonl"))
    assert list(map(example_key, load(save(dataset)).train)) == list(map(example_key, dataset.train))


@FUZZ
@given(
    st.binary(max_size=300), st.sampled_from(["d.jsonl", "d.csv", "d.tsv", "d.parquet", "d.jsonl.gz"]), st.booleans()
)
def test_any_bytes_end_in_a_dataset_or_a_dataset_error(data, name, packed) -> None:
    require_sound(outcome(gzip.compress(data) if packed else data, name))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
json_rows = st.lists(
    st.dictionaries(st.sampled_from(["text", "text_a", "text_b", "label", "id"]), json_values, max_size=4), max_size=8
)


@FUZZ
@given(json_rows)
def test_any_json_rows_end_in_a_dataset_or_a_dataset_error(rows) -> None:
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    require_sound(outcome(data, "d.jsonl"))


@FUZZ
@given(st.data(), st.sampled_from(["d.jsonl", "d.csv", "d.parquet", "d.jsonl.gz"]))
def test_damaged_files_end_in_a_dataset_or_a_dataset_error(data, name) -> None:
    rows = [{"text": f"sentence {i}", "label": f"label {i % 2}"} for i in range(20)]
    whole = encoded(rows, name)
    whole = gzip.compress(whole) if name.endswith("gz") else whole
    start = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + data.draw(st.integers(0, 8)) :]
    require_sound(outcome(damaged, name))


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet"])
def test_field_names_from_hostile_files_are_harmless(name) -> None:
    with pytest.raises(DatasetError) as caught:
        read_bytes(encoded([{"[bold]": "a", "\x1b[31m": "b"}], name), name)
    assert caught.value.message.isprintable()
    assert "\x1b" not in caught.value.remedy
