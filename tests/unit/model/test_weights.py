"""Files of hypernetworks, and digests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.full_disk import full
from support.refusals import refused

from bench.harness.generated import generated_digest
from onboard.errors import NotFoundError
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods import METHODS, new_hypernetwork
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus
from onboard.model.quantised import round_to_stored
from onboard.model.weights import (
    digest,
    hypernetwork_digest,
    load_hypernetwork,
    read_tensors,
    save_hypernetwork,
    write_tensors,
)

FACTS = {f"fact {index}": "ö" * index for index in range(12)}


SIZES = {
    "d_model": 16,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "bottleneck": 4,
    "task_embedding_size": 8,
    "projector_width": 10,
    "conditioning_size": 6,
}


@pytest.fixture(params=sorted(METHODS))
def hypernetwork(request: pytest.FixtureRequest) -> Hypernetwork:
    torch.manual_seed(0)
    return new_hypernetwork(request.param, SIZES)


def test_a_hypernetwork_comes_back_bit_for_bit_with_its_sizes(hypernetwork: Hypernetwork, tmp_path: Path) -> None:
    path = tmp_path / "hypernetwork.safetensors"
    save_hypernetwork(hypernetwork, path, FACTS)
    loaded = load_hypernetwork(path)
    assert (type(loaded), loaded.sizes) == (type(hypernetwork), hypernetwork.sizes)
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


def test_weights_rounded_to_int8_survive_a_file_that_holds_bytes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    hypernetwork = new_hypernetwork("hyperformer++", {**SIZES, "d_model": 64, "bottleneck": 16})
    round_to_stored(hypernetwork)
    path = tmp_path / "hypernetwork.safetensors"
    save_hypernetwork(hypernetwork, path, FACTS, torch.int8)
    tensors, metadata = read_tensors(path)
    assert FACTS.items() <= metadata.items()
    assert tensors["encoder.up.weight"].dtype == torch.int8
    assert tensors["encoder.up.weight.scale"].shape == (1024,)
    assert tensors["encoder.norm.weight"].dtype == torch.float16
    loaded = load_hypernetwork(path)
    assert hypernetwork_digest(loaded) == hypernetwork_digest(hypernetwork)
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    del tensors["encoder.up.weight.scale"]
    write_tensors(tensors, path, metadata)
    with refused("tensor-scale-missing"):
        load_hypernetwork(path)


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
    assert len({digest(tensors) for tensors in [{"z": z}, *others]}) == 6
    assert digest({"z": z}) == digest({"z": z.clone()})


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    with pytest.raises(NotFoundError):
        load_hypernetwork(path)
    write_tensors({"z": torch.randn(4)}, path, {})
    with refused("not-a-hypernetwork"):
        load_hypernetwork(path)


def test_damaged_files_are_told_from_wrong_ones(hypernetwork: Hypernetwork, tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    save_hypernetwork(hypernetwork, path)
    path.write_bytes(path.read_bytes()[:-100])
    with refused("weights-file-unreadable"):
        load_hypernetwork(path)
    tensors, metadata = hypernetwork.state_dict(), {"format": "onboard-hypernetwork-1", "sizes": '{"d_model": 16}'}
    write_tensors(tensors, path, metadata)
    with refused("hypernetwork-file-damaged"):
        load_hypernetwork(path)


def test_a_file_that_names_no_method_is_hyperformer_plus_plus(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    save_hypernetwork(new_hypernetwork("hyperformer++", SIZES), path)
    tensors, metadata = read_tensors(path)
    assert metadata.pop("method") == "hyperformer++"
    write_tensors(tensors, path, metadata)
    assert type(load_hypernetwork(path)) is HyperFormerPlusPlus


def test_methods_that_are_none_are_refused_and_the_known_ones_named(tmp_path: Path) -> None:
    with refused("unknown-base-method", method="lora") as caught:
        new_hypernetwork("lora", SIZES)
    assert "hyperformer++, hyperformer" in caught.value.remedy
    path = tmp_path / "file.safetensors"
    save_hypernetwork(new_hypernetwork("hyperformer", SIZES), path)
    tensors, metadata = read_tensors(path)
    write_tensors(tensors, path, {**metadata, "method": "hyperformer+++"})
    with refused("hypernetwork-method-unknown", method="hyperformer+++") as caught:
        load_hypernetwork(path)
    assert "pip install" in caught.value.remedy


def test_sizes_that_are_not_given_are_those_of_the_method() -> None:
    given = {name: SIZES[name] for name in ("d_model", "encoder_layers", "decoder_layers", "bottleneck")}
    defaults = ("task_embedding_size", "projector_width", "conditioning_size")
    assert [new_hypernetwork("hyperformer++", given).sizes[name] for name in defaults] == [64, 128, 64]
    assert [new_hypernetwork("hyperformer", given).sizes[name] for name in defaults] == [512, 128, 64]


def test_what_is_loaded_can_be_trained_and_does_not_hang_on_the_file(
    hypernetwork: Hypernetwork, tmp_path: Path
) -> None:
    path = tmp_path / "hypernetwork.safetensors"
    save_hypernetwork(hypernetwork, path)
    before = torch.random.get_rng_state()
    loaded = load_hypernetwork(path)
    assert torch.equal(torch.random.get_rng_state(), before)
    path.write_bytes(bytes(path.stat().st_size))
    assert hypernetwork_digest(loaded) == hypernetwork_digest(hypernetwork)
    loaded(torch.randn(1, 8)).encoder.up.sum().backward()
    assert all(parameter.requires_grad for parameter in loaded.parameters())


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with refused("weights-not-writable"):
        write_tensors({"z": torch.randn(4)}, tmp_path / "file", {})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_breaks_off_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.safetensors"
    write_tensors({"z": torch.zeros(4)}, path, {})
    before = path.read_bytes()
    monkeypatch.setattr("onboard.model.weights.shutil.copyfileobj", full)
    with refused("weights-not-writable"):
        write_tensors({"z": torch.ones(4)}, path, {})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
