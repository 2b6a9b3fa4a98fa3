"""A version as plain weights: a T5 with nothing but these files answers what the service answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file
from support.command_line import CommandLine
from support.published import add_version, embedding_of
from support.tuned_heads import tuned_head
from torch.nn import functional as F  # noqa: N812

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.model.backbone import load_backbone
from onboard.model.scoring import LabelTrie, PackedTries, label_log_probabilities
from onboard.services import Services
from onboard.serving import Predictor

WORDS = ("sad", "happy", "good film")
TEXTS = ["good film", "a bad plot", "the film was great and not sad"]


@pytest.fixture
def services(tiny_services: Services, tiny_base: Base) -> Services:
    add_version(tiny_services, tiny_base, "mood", ("a", True, "c|d"), WORDS, z=embedding_of(1), pairs=False)
    head = tuned_head(tiny_services, tiny_base, 0.5, seed=1).version
    changes = {"hypernetwork_version": head, "pairs": False}
    add_version(tiny_services, tiny_base, "mood", ("a", True, "c|d"), WORDS, z=embedding_of(1), **changes)
    return tiny_services


def hung_on(backbone: torch.nn.Module, tensors: dict[str, np.ndarray]) -> None:
    """What the README of an export says, in plain PyTorch."""

    def adapted(y: torch.Tensor, place: str) -> torch.Tensor:
        down, down_bias, up, up_bias, gamma, beta = (
            torch.from_numpy(tensors[f"{place}.{part}"])
            for part in ("down", "down_bias", "up", "up_bias", "gamma", "beta")
        )
        inner = F.gelu(y @ down.T + down_bias, approximate="tanh")
        return y + F.layer_norm(inner @ up.T + up_bias, y.shape[-1:], gamma, beta, 1e-5)

    def hang(module: torch.nn.Module, place: str) -> None:
        def hook(_: object, __: object, output: object) -> object:
            if isinstance(output, tuple):
                return (adapted(output[0], place), *output[1:])
            return adapted(output, place)

        module.register_forward_hook(hook)

    for stack in ("encoder", "decoder"):
        for layer, block in enumerate(backbone.get_submodule(stack).block):
            hang(block.layer[0].SelfAttention, f"{stack}.block.{layer}.self_attention")
            hang(block.layer[-1].DenseReluDense, f"{stack}.block.{layer}.feed_forward")


@pytest.mark.parametrize("ref", ["v1", "v2"])
def test_a_t5_with_the_exported_adapters_answers_what_the_service_answers(
    services: Services, tiny_base: Base, tmp_path: Path, command_line: CommandLine, ref: str
) -> None:
    command_line.at_home(services.settings)
    said = command_line("export", f"mood@{ref}", "--format", "adapters", "--output", tmp_path / "out", "--json")
    assert said.code == 0, said.err
    files = [tmp_path / "out" / name for name in ("adapters.safetensors", "README.md")]
    document = {"task": "mood", "version": int(ref[1:]), "format": "adapters", "files": [str(path) for path in files]}
    assert said.document == document

    backbone, encoder = load_backbone(tiny_base.folder / "backbone"), load_engine(tiny_base, "cpu").encoder
    hung_on(backbone, load_file(files[0]))
    trie = PackedTries.pack(
        [LabelTrie.build([encoder.label_ids(word) for word in WORDS])],
        backbone.config.decoder_start_token_id,
        torch.device("cpu"),
    )
    answers = Predictor(services).predict([{"task": "mood", "ref": ref, "text": text} for text in TEXTS])
    for text, answer in zip(TEXTS, answers, strict=True):
        ids = torch.tensor(encoder.encode([(text, None)]))
        with torch.inference_mode():
            states = backbone.encoder(input_ids=ids).last_hidden_state
            alone = label_log_probabilities(backbone, states, None, trie, None).exp()[0]
        np.testing.assert_allclose(alone, answer.probabilities, atol=1e-5)


def test_the_readme_says_what_is_needed_and_the_file_what_it_is(
    services: Services, tiny_base: Base, tmp_path: Path, command_line: CommandLine
) -> None:
    command_line.at_home(services.settings)
    assert command_line("export", "mood@v1", "--format", "adapters", "--output", tmp_path).code == 0
    readme = (tmp_path / "README.md").read_text()
    assert "| true | happy |" in readme
    assert "| c&#124;d | good film |" in readme
    assert tiny_base.backbone_digest in readme
    assert "takes one text" in readme
    assert "readout" not in readme
    with safe_open(tmp_path / "adapters.safetensors", "numpy") as stored:
        facts = stored.metadata()
    assert (facts["task"], facts["version"], facts["labels"]) == ("mood", "1", '["a", true, "c|d"]')
    add_version(services, tiny_base, "stars", bounds=(1.0, 5.0), z=embedding_of(4))
    assert command_line("export", "stars", "--format", "adapters", "--output", tmp_path / "stars").code == 0
    assert "mean of the answers" in (tmp_path / "stars" / "README.md").read_text()


def test_what_is_not_there_or_cannot_be_written_is_told(
    services: Services, tmp_path: Path, command_line: CommandLine
) -> None:
    command_line.at_home(services.settings)
    assert command_line("export", "nothing", "--format", "adapters", "--output", tmp_path).code == 3
    (tmp_path / "file").write_text("")
    assert command_line("export", "mood", "--format", "adapters", "--output", tmp_path / "file").code == 6
