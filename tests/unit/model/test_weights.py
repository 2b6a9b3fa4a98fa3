"""Files of hypernetworks, and digests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.weights import (
    digest,
    generated_digest,
    hypernetwork_digest,
    load_hypernetwork,
    read_tensors,
    save_hypernetwork,
    write_tensors,
)

FACTS = {f"fact {index}": "ö" * index for index in range(12)}


@pytest.fixture
def hypernetwork() -> Hypernetwork:
    torch.manual_seed(0)
    return Hypernetwork(
        d_model=16,
        encoder_layers=3,
        decoder_layers=2,
        bottleneck=4,
        task_embedding_size=8,
        projector_width=10,
        conditioning_size=6,
    )


def test_a_hypernetwork_comes_back_bit_for_bit_with_its_sizes(hypernetwork: Hypernetwork, tmp_path: Path) -> None:
    path = tmp_path / "hypernetwork.safetensors"
    save_hypernetwork(hypernetwork, path, FACTS)
    loaded = load_hypernetwork(path)
    assert loaded.sizes == hypernetwork.sizes
    assert hypernetwork_digest(loaded) == hypernetwork_digest(hypernetwork)
    assert FACTS.items() <= read_tensors(path)[1].items()
    z = torch.randn(1, 8)
    assert generated_digest(loaded(z)) == generated_digest(hypernetwork(z))


def test_weights_rounded_to_float16_survive_a_file_of_half_the_size(hypernetwork: Hypernetwork, tmp_path: Path) -> None:
    hypernetwork.half().float()
    full, half = tmp_path / "full", tmp_path / "half"
    save_hypernetwork(hypernetwork, full)
    save_hypernetwork(hypernetwork, half, dtype=torch.float16)
    loaded = load_hypernetwork(half)
    assert hypernetwork_digest(loaded) == hypernetwork_digest(hypernetwork)
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    assert half.stat().st_size < 0.7 * full.stat().st_size


def test_equal_content_gives_equal_bytes_that_the_library_reads(tmp_path: Path) -> None:
    tensors = {"b": torch.randn(3, 5)[:, 1:], "a": torch.arange(7), "c": torch.randn(2).bfloat16()}
    files = [tmp_path / str(index) for index in range(5)]
    for path in files:
        write_tensors(tensors, path, FACTS)
    assert len({path.read_bytes() for path in files}) == 1
    loaded = load_file(files[0])
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def test_digests_follow_values_names_types_and_shapes() -> None:
    z = torch.arange(6.0)
    others = [{"z": z + 1}, {"y": z}, {"z": z.double()}, {"z": z.view(2, 3)}, {"z": z, "y": z}]
    assert len({digest(each) for each in [{"z": z}, *others]}) == 6
    assert digest({"z": z}) == digest({"z": z.clone()})


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    with pytest.raises(NotFoundError):
        load_hypernetwork(path)
    write_tensors({"z": torch.randn(4)}, path, {})
    with pytest.raises(InputError, match="not a hypernetwork"):
        load_hypernetwork(path)


def test_damaged_files_are_told_from_wrong_ones(hypernetwork: Hypernetwork, tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    save_hypernetwork(hypernetwork, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DamagedError, match="not readable"):
        load_hypernetwork(path)
    tensors, metadata = hypernetwork.state_dict(), {"format": "onboard-hypernetwork-1", "sizes": '{"d_model": 16}'}
    write_tensors(tensors, path, metadata)
    with pytest.raises(DamagedError, match="does not hold"):
        load_hypernetwork(path)
