"""Files that are small where they lie and large once they are read: each is refused before it takes the memory."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded import bounded
from hypothesis import example, given
from hypothesis import strategies as some
from pyarrow import parquet

from onboard.data.formats import FileProblems, budget, decoded, parquet_pages, source
from onboard.data.problems import Problems
from onboard.data.rows import read_table
from onboard.data.texts import telling_texts

MOST_BYTES = 1 << 20  # of a file's content, in these tests
MOST_ROWS = 5_000
MOST_VALUES = 40_000
MOST_TAKEN = 12 << 20  # bytes that pyarrow may have meanwhile: a few times the content
POOLS: list[pa.MemoryPool] = []  # what was taken from one may outlive the test, and is given back to it
BOMB_CODES = {"too_large", "too_many_rows", "too_many_values"}
REFUSALS = BOMB_CODES | {"text_type", "label_type", "column_type", "bad_arrow", "bad_parquet", "unreadable_file"}


@pytest.fixture(autouse=True, scope="module")
def _small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (budget, decoded, source):
            patch.setattr(module, "MAX_FILE_BYTES", MOST_BYTES)
        patch.setattr(budget, "EXPANDED_FREE_BYTES", MOST_BYTES >> 2)
        patch.setattr(budget, "MAX_ROWS", MOST_ROWS)
        patch.setattr("onboard.data.rows.MAX_ROWS", MOST_ROWS)
        patch.setattr(budget, "MAX_VALUES", MOST_VALUES)
        patch.setattr(parquet_pages, "_BATCH_BYTES", 2 << 20)
        patch.setattr(source, "MAX_LINES", 2 * MOST_ROWS)
        yield


def codes_and_memory(path: Path, text: str = "text") -> tuple[set[str], int]:
    """What is reported of a file, and the most bytes that pyarrow had while it was read."""
    problems, before = Problems(), pa.default_memory_pool()
    pool = pa.proxy_memory_pool(pa.system_memory_pool())
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        read_table(path, FileProblems(problems, path.name), (text,), "label")
        telling_texts(path, (text,), FileProblems(problems, path.name))
    finally:
        pa.set_memory_pool(before)
    return set(problems.counts), pool.max_memory()


# --- columns that are larger than they look ---


def views(rows: int, size: int) -> pa.Array:
    """Every row is a view of the same text."""
    view = size.to_bytes(4, "little") + b"xxxx" + bytes(8)
    return pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(view * rows), pa.py_buffer(b"x" * size)])


def of_dictionary(rows: int, size: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * size]))


def of_viewed_dictionary(rows: int, size: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), views(4, size))


def one_run(rows: int, size: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["x" * size]))


def listed_views(rows: int, size: int) -> pa.Array:
    sizes = pa.array([size] * rows, pa.int32())
    return pa.ListViewArray.from_arrays(pa.array([0] * rows, pa.int32()), sizes, pa.array(range(size)))


COLUMNS: dict[str, Callable[[int, int], pa.Array]] = {
    "nulls": lambda rows, _: pa.nulls(rows),
    "texts": lambda rows, size: pa.array(["x" * size] * min(rows, (8 << 20) // size)),
    "large texts": lambda rows, size: pa.array(["x" * size] * min(rows, (8 << 20) // size), pa.large_string()),
    "views": views,
    "dictionary": of_dictionary,
    "dictionary of views": of_viewed_dictionary,
    "one run": one_run,
    "nulls in lists": lambda rows, size: pa.FixedSizeListArray.from_arrays(pa.nulls(rows * size), size),
    "lists that share": listed_views,
}


def small_table(text: pa.Array) -> pa.Table:
    rows = len(text)
    return pa.table({"text": text, "label": pa.DictionaryArray.from_arrays([i % 2 for i in range(rows)], ["a", "b"])})


def write_arrow(path: Path, table: pa.Table, *, stream: bool, compression: str | None) -> Path:
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return path


@bounded(40)
@given(
    some.sampled_from(sorted(COLUMNS)),
    some.sampled_from([10, 1_000, 4_999, 5_001, 60_000]),
    some.sampled_from([10, 3_000, 200_000]),
    some.booleans(),
    some.sampled_from([None, "lz4", "zstd"]),
)
@example("nulls", 60_000, 10, True, None)
@example("texts", 4_999, 200_000, True, "zstd")
@example("texts", 4_999, 200_000, False, "lz4")
@example("views", 4_999, 200_000, True, "zstd")
@example("dictionary", 4_999, 200_000, False, None)
@example("dictionary of views", 4_999, 200_000, True, None)
@example("nulls in lists", 10, 200_000, True, None)
@example("lists that share", 4_999, 3_000, True, None)
@example("one run", 4_999, 200_000, True, None)
def test_an_arrow_file_is_read_or_refused_in_little_memory(
    kind: str, rows: int, size: int, stream: bool, compression: str | None
) -> None:
    if kind == "nulls in lists" and rows * size > 10_000_000:
        rows = 10
    column = COLUMNS[kind](rows, size)
    with tempfile.TemporaryDirectory() as folder:
        path = write_arrow(Path(folder, "a.arrow"), small_table(column), stream=stream, compression=compression)
        codes, taken = codes_and_memory(path)
    assert taken < MOST_TAKEN
    if rows > MOST_ROWS or (len(column) * size > 4 * MOST_BYTES and kind in {"texts", "views", "dictionary"}):
        assert codes & REFUSALS, codes


ENCODINGS: list[dict[str, Any]] = [
    {"use_dictionary": True},
    {"use_dictionary": False, "column_encoding": {"text": "PLAIN", "label": "PLAIN"}},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY", "label": "PLAIN"}},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY", "label": "PLAIN"}},
]


@bounded(30)
@given(
    some.integers(0, 3),
    some.sampled_from([10, 1_000, 4_999, 5_001]),
    some.sampled_from([10, 1_000, 100_000]),
    some.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
    some.sampled_from(["1.0", "2.0"]),
)
@example(0, 4_999, 100_000, "zstd", "1.0")
@example(2, 4_999, 100_000, "none", "2.0")
@example(2, 4_999, 100_000, "zstd", "1.0")
def test_a_parquet_file_is_read_or_refused_in_little_memory(
    encoding: int, rows: int, size: int, compression: str, version: str
) -> None:
    texts = pa.array(["x" * size]).take(pa.array([0] * min(rows, (32 << 20) // size)))
    table = pa.table({"text": texts, "label": ["a", "b"] * (len(texts) // 2) + ["a"] * (len(texts) % 2)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        parquet.write_table(table, path, compression=compression, data_page_version=version, **ENCODINGS[encoding])
        codes, taken = codes_and_memory(path)
    assert taken < MOST_TAKEN + 64 * size
    if rows > MOST_ROWS or len(texts) * size > MOST_BYTES:
        assert codes & BOMB_CODES, codes
    elif len(texts) * size < MOST_BYTES >> 3:
        assert not codes & BOMB_CODES, codes


def test_what_is_no_bomb_is_read_whatever_its_type(tmp_path: Path) -> None:
    texts = [f"text {row % 7}" for row in range(40)]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        for stream in (True, False):
            path = write_arrow(
                tmp_path / "a.arrow", small_table(pa.array(texts, kind)), stream=stream, compression="zstd"
            )
            problems = Problems()
            table = read_table(path, FileProblems(problems, "a.arrow"), (), None)
            assert [row.text_a for row in table.rows] == texts, kind
            assert not problems.counts
    for options in ENCODINGS:
        parquet.write_table(pa.table({"text": texts, "label": ["a", "b"] * 20}), tmp_path / "a.parquet", **options)
        problems = Problems()
        table = read_table(tmp_path / "a.parquet", FileProblems(problems, "a.parquet"), (), None)
        assert ([row.text_a for row in table.rows], problems.count) == (texts, 0), options


# --- bytes that lie ---


@bounded(150)
@given(some.booleans(), some.integers(0, 1 << 30), some.binary(min_size=1, max_size=8))
def test_a_damaged_file_is_read_or_refused_in_little_memory(is_parquet: bool, at: int, damage: bytes) -> None:
    table = small_table(pa.array([f"text {row}" for row in range(8)]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet" if is_parquet else "a.arrow")
        if is_parquet:
            parquet.write_table(table, path, compression="zstd")
        else:
            write_arrow(path, table, stream=at % 2 == 0, compression="zstd")
        data = bytearray(path.read_bytes())
        start = 8 + at % (len(data) - 16)
        data[start : start + len(damage)] = damage
        path.write_bytes(data)
        _, taken = codes_and_memory(path)
    assert taken < MOST_TAKEN


# --- text files ---


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.jsonl.gz", "a.csv.gz"])
def test_lines_without_rows_are_counted(tmp_path: Path, name: str) -> None:
    header = b'{"text": "a", "label": "b"}\n' if "jsonl" in name else b"text,label\n"
    content = header + b"\n" * (2 * MOST_ROWS + 1)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    codes, _ = codes_and_memory(tmp_path / name)
    assert codes == {"too_many_rows"}


HEADS = {"jsonl": b"{}\n", "csv": b"text,label\n", "json": b"[", "parquet": b"PAR1", "arrow": b"ARROW1"}


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.json.gz", "a.parquet.gz", "a.arrow.gz"])
def test_gzip_of_more_than_a_file_may_hold_is_refused(tmp_path: Path, name: str) -> None:
    head = HEADS[name.split(".")[1]]
    (tmp_path / name).write_bytes(gzip.compress(head + b" " * (2 * MOST_BYTES)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onboard.data.formats.jsonl.MAX_FILE_BYTES", MOST_BYTES)
        codes, _ = codes_and_memory(tmp_path / name)
    assert codes & {"too_large", "line_too_long", "bad_parquet", "bad_arrow"}
