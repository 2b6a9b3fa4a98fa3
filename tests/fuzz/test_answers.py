"""What a client reads, whatever a service, a cache or a disk gives it: it is read, or refused by an error of ours."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from bounded import bounded
from hypothesis import example, given
from hypothesis import strategies as some

from onboard.bases import find_base
from onboard.client.answers import read_embedding
from onboard.client.bases import download_base
from onboard.client.cache import EmbeddingCache
from onboard.client.connection import Connection
from onboard.client.events import EventReader
from onboard.client.problems import problem_of
from onboard.domain.names import Reference
from onboard.errors import DamagedError, OnboardError
from onboard.storage.embedding import pack_embedding, read_facts, unpack_embedding

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=12),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FACTS: dict[str, Any] = {
    "task": "mood", "version": 1, "backbone": "sha256:1", "base": "sha256:2", "hypernetwork_version": 1,
    "hypernetwork": "sha256:3", "dataset": "", "init": "random", "seeds": [0], "onboard": "0.1.0", "labels": ["a", "b"],
    "words": ["a", "b"], "metrics": {}, "weak": False,
}  # fmt: skip
WHOLE = pack_embedding(np.arange(4, dtype=np.float32), FACTS)


def packed(header: bytes, rest: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + rest


def require_ours(read: Callable[[], object], *kinds: type[OnboardError]) -> None:
    try:
        read()
    except kinds or (OnboardError,) as error:  # noqa: B030 - a tuple either way
        assert error.message  # noqa: PT017 - the point is that nothing else comes out


@some.composite
def damaged(draw: Any) -> bytes:
    """An embedding with a few bytes changed, or a header of anything."""
    if draw(some.booleans()):
        at = draw(some.integers(0, len(WHOLE) - 1))
        return WHOLE[:at] + draw(some.binary(max_size=8)) + WHOLE[at + draw(some.integers(0, 8)) :]
    return packed(json.dumps(draw(JSON)).encode(), draw(some.binary(max_size=32)))


@bounded(250)
@given(damaged() | some.binary(max_size=60))
@example(packed(b"[]"))
@example(packed(b'{"__metadata__": []}'))
@example(packed(b'{"__metadata__": {"seeds": 1}}'))
@example(packed(b'{"__metadata__": {"a": "' + b"[" * 200_000 + b'"}}'))
@example(packed(b"[" * 200_000))
@example(packed(b'{"z": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', b"abcd"))
@example(packed(b'{"z": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}}', b"abcdefgh"))
@example(struct.pack("<Q", 2**63) + b"{}")
def test_any_bytes_are_an_embedding_or_damaged(content: bytes) -> None:
    require_ours(lambda: unpack_embedding(content), DamagedError)
    require_ours(lambda: read_facts(content), DamagedError)
    require_ours(lambda: read_embedding(content, Reference("mood")), DamagedError)


@bounded(250)
@given(some.sampled_from(sorted(FACTS)), JSON)
@example("seeds", 1)
@example("labels", None)
@example("version", "x")
@example("version", float("inf"))
@example("task", None)
def test_an_embedding_with_any_fact_is_read_or_damaged(fact: str, value: Any) -> None:
    content = pack_embedding(np.arange(4, dtype=np.float32), {**FACTS, fact: value})
    require_ours(lambda: read_embedding(content, Reference("mood")), DamagedError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    (folder / "backbone").mkdir()
    for name in (
        "backbone/config.json",
        "hypernetwork.safetensors",
        "embeddings.safetensors",
        "trained_rows.safetensors",
    ):
        (folder / name).write_bytes(b"{}")
    return folder


SOURCES = some.dictionaries(
    some.text(max_size=5) | some.just("mood"),
    some.fixed_dictionaries({"kind": JSON, "labels": JSON, "words": JSON}) | JSON,
    max_size=2,
)


@bounded(250)
@given(
    some.fixed_dictionaries(
        {"format": some.just(1)}, optional={"name": JSON, "sources": SOURCES | JSON, "anchors": JSON}
    )
)
@example({"format": 1, "sources": []})
@example({"format": 1, "sources": {"mood": None}})
@example({"format": 1, "sources": {"mood": {"kind": "classification", "labels": None, "words": []}}})
@example({"format": 1, "anchors": {"mood": {}}})
def test_any_base_json_is_a_base_or_refused(folder: Path, document: dict[str, Any]) -> None:
    (folder / "base.json").write_text(json.dumps(document), encoding="utf-8")

    def read() -> None:
        base = find_base(str(folder))
        assert base.name == str(document["name"])
        assert all(isinstance(task.labels, tuple) for task in (*base.sources, *base.anchors))

    require_ours(read)


@bounded(150)
@given(some.binary(max_size=60) | JSON.map(lambda document: json.dumps(document).encode()))
@example(b"[" * 200_000)
@example(b"\xff")
def test_any_bytes_are_a_base_json_or_refused(folder: Path, content: bytes) -> None:
    (folder / "base.json").write_bytes(content)
    require_ours(lambda: find_base(str(folder)))


class Hostile:
    """A service that lists whatever it likes, and sends other bytes."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def __call__(self, asked: httpx.Request) -> httpx.Response:
        listed = asked.url.path.count("/") == 3
        return httpx.Response(200, content=json.dumps(self._files) if listed else b"evil", request=asked)


NAMES = some.sampled_from(
    ["../up", "/etc/up", "a/../../up", "a\\b", "a\0b", "", ".", "a", "a/b", "\u2025/up", "\ud800", "x" * 300]
)
FILES = some.fixed_dictionaries({"name": NAMES | JSON, "digest": some.just("sha256:1") | JSON})


@bounded(200)
@given(some.fixed_dictionaries({"files": some.lists(FILES, max_size=3) | JSON}) | some.just({}))
@example({"files": [{"name": "a", "digest": "sha256:1"}, {"name": "a/b", "digest": "sha256:1"}]})
@example({"files": [{"name": "x" * 300, "digest": "sha256:1"}]})
def test_any_list_of_a_bases_files_is_refused_and_writes_nothing_elsewhere(files: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "in" / "base"
        target.parent.mkdir()
        connection = Connection("http://localhost", transport=httpx.MockTransport(Hostile(files)))
        with pytest.raises(OnboardError):
            connection.run(download_base("sha256:" + "0" * 64, target, 1))
        assert list(Path(place).rglob("*")) == [target.parent]


@bounded(150)
@given(some.binary(max_size=60) | JSON.map(lambda document: json.dumps(document).encode()))
@example(b"[" * 200_000)
@example(b'{"etag": 1, "digest": 2, "at": "x"}')
@example(b'{"etag": 1, "digest": 2, "at": 1' + b"0" * 400 + b"}")
def test_any_note_of_a_cache_is_read_or_counts_as_none(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        cache = EmbeddingCache(Path(place), "http://localhost")
        cache.keep("/there", "tag", b"content")
        (note,) = Path(place).glob("notes/*/*")
        note.write_bytes(content)
        read = cache.note("/there")
        assert read is None or isinstance(read.at, float)


@bounded(250)
@given(some.lists(some.text(max_size=30) | some.sampled_from(["", ":", "data: {}", "data:{", "data: []"]) | JSON.map(
    lambda document: "data: " + json.dumps(document)), max_size=6))  # fmt: skip
@example(["data: " + "[" * 200_000, ""])
@example(['data: {"id": "x", "message": 1}', ""])
@example(['data: {"id": 1, "message": "m"}', ""])
@example(['data: {"id": null, "message": "m", "kind": "k"}', ""])
def test_any_stream_is_events_or_refused(lines: list[str]) -> None:
    reader = EventReader("localhost")
    require_ours(lambda: [reader.events(line) for line in lines])


@bounded(250)
@given(
    some.integers(300, 599),
    some.binary(max_size=60) | JSON.map(lambda document: json.dumps(document).encode()),
    some.sampled_from(["application/problem+json", "text/html", ""]),
)
@example(422, b"[" * 200_000, "application/problem+json")
@example(422, b'{"code": "scope", "detail": 1, "status": "x", "args": []}', "application/problem+json")
@example(422, b'{"code": ["scope"], "message": null}', "application/problem+json")
def test_any_refusal_is_an_error_of_ours(status: int, content: bytes, kind: str) -> None:
    request = httpx.Request("GET", "http://localhost/")
    error = problem_of(httpx.Response(status, content=content, headers={"content-type": kind}, request=request))
    assert isinstance(error, OnboardError)
    assert error.message
