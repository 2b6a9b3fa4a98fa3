"""embedding.safetensors: 64 numbers and what they are pinned to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding, read_facts, unpack_embedding

Z = np.linspace(-1, 1, 64, dtype=np.float32)
VERSION = EmbeddingVersion(
    task="mood", kind="onboarded", artifact="sha256:a", embedding_digest="sha256:e", backbone_digest="sha256:b",
    base_digest="sha256:c", hypernetwork_version=3, dataset_digest="sha256:d", parent="sst2@v1",
    task_kind="classification", labels=(True, 3, "3", "naïve 🙂"), words=("true", "3", "3 2", "naive"),
    code_version="0.1.0+abc", seeds=(7,), metrics={"test": {"accuracy": {"value": 0.5}}, "validation": None}, version=2,
)  # fmt: skip
FACTS = embedding_facts(VERSION, "sha256:h")


def test_the_numbers_come_back_bit_for_bit() -> None:
    packed = pack_embedding(Z, FACTS)
    assert unpack_embedding(packed).tobytes() == Z.tobytes()
    assert unpack_embedding(pack_embedding(Z.astype(np.float64), {})).dtype == np.float32


def test_the_facts_are_strings_that_any_reader_of_safetensors_sees(tmp_path: Path) -> None:
    (tmp_path / "e.safetensors").write_bytes(pack_embedding(Z, FACTS))
    with safe_open(tmp_path / "e.safetensors", framework="np") as file:
        facts = file.metadata()
        assert list(file.keys()) == ["z"]
    promised = "task version backbone hypernetwork_version hypernetwork labels dataset metrics init seeds onboard"
    assert set(promised.split()) <= set(facts)
    assert (facts["task"], facts["version"], facts["hypernetwork"]) == ("mood", "2", "sha256:h")
    assert json.loads(facts["labels"]) == [True, 3, "3", "naïve 🙂"]
    assert [type(label) for label in json.loads(facts["labels"])] == [bool, int, str, str]
    assert json.loads(facts["metrics"]) == VERSION.metrics
    assert json.loads(facts["seeds"]) == [7]


def test_the_facts_come_back_with_their_types() -> None:
    assert read_facts(pack_embedding(Z, FACTS)) == FACTS
    numeric = {**FACTS, "task": "2024", "init": "random", "dataset": ""}
    assert read_facts(pack_embedding(Z, numeric)) == numeric  # a task may be called by a number


def test_the_same_content_is_the_same_bytes_in_every_process() -> None:
    program = (
        "import hashlib, numpy as np; from onboard.storage.embedding import pack_embedding\n"
        "facts = {'task': 'mood', 'labels': ['a', 'b'], 'init': 'random', 'dataset': 'd', 'version': 1}\n"
        "print(hashlib.sha256(pack_embedding(np.arange(64.0), facts)).hexdigest())"
    )
    digests = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    }
    assert len(digests) == 1


def test_the_digest_is_of_the_numbers_alone() -> None:
    digest = embedding_digest(Z)
    assert digest.startswith("sha256:")
    assert len(digest) == 7 + 64
    assert embedding_digest(Z.astype(np.float64)) == digest
    assert embedding_digest(Z[::-1][::-1]) == digest
    changed = Z.copy()
    changed[5] = np.nextafter(changed[5], np.float32(9))
    assert embedding_digest(changed) != digest


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, pack_embedding(Z, FACTS)[:-8]])
def test_damaged_bytes_are_told(content: bytes) -> None:
    with pytest.raises(DamagedError):
        unpack_embedding(content)


def test_a_file_of_something_else_is_no_embedding() -> None:
    from safetensors.numpy import save

    with pytest.raises(DamagedError):
        unpack_embedding(save({"weights": Z}))


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, (2).to_bytes(8, "little") + b"[]"])
def test_facts_of_damaged_bytes_are_told(content: bytes) -> None:
    with pytest.raises(DamagedError):
        read_facts(content)


def test_the_client_reads_an_embedding_without_the_safetensors_library(tmp_path: Path) -> None:
    (tmp_path / "e.safetensors").write_bytes(pack_embedding(Z, FACTS | {"metrics": {}}))
    program = (
        "import sys\n"
        "for name in ('safetensors', 'torch', 'sqlalchemy', 'pyarrow', 'transformers'): sys.modules[name] = None\n"
        "import onboard.client\n"
        "from onboard.client.answers import read_embedding\n"
        "from onboard.domain.names import Reference\n"
        "print(read_embedding(open(sys.argv[1], 'rb').read(), Reference.parse('mood')).vector.sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "e.safetensors"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "header",
    [
        {"z": {"dtype": "F64", "shape": [64], "data_offsets": [0, 256]}},
        {"z": {"dtype": "F32", "shape": [8, 8], "data_offsets": [0, 256]}},
        {"z": {"dtype": "F32", "shape": [64], "data_offsets": [0, 512]}},
        {"z": {"dtype": "F32", "shape": [128], "data_offsets": [0, 512]}},
        {"z": {"dtype": "F32", "shape": [64], "data_offsets": [-4, 252]}},
        {"z": {"dtype": "F32", "shape": [-1], "data_offsets": [256, 252]}},
        {"z": {"dtype": "F32", "shape": [64], "data_offsets": "ab"}},
        {"z": {"dtype": "F32", "shape": [64]}},
        {"z": [1]},
        {},
    ],
)
def test_a_header_that_lies_is_damage(header: dict[str, object]) -> None:
    head = json.dumps(header).encode()
    with pytest.raises(DamagedError):
        unpack_embedding(len(head).to_bytes(8, "little") + head + Z.tobytes())
