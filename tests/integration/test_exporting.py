"""A version as plain weights: a T5 with nothing but these files answers what the service answers."""

from __future__ import annotations

import json
import sys
import warnings
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
from onboard.model.encoding import pad
from onboard.model.readout_features import BLOCKS_OF_TEXTS
from onboard.model.scoring import LabelTrie, PackedTries, label_log_probabilities
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.statistics.readout import Readout
from onboard.storage.readout import pack_readout
from onboard.versions.export import onnx

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


def drawn_readout(base: Base, blocks: int, *, of_roots: bool) -> Readout:
    width = blocks * load_engine(base, "cpu").backbone.config.d_model
    weights = np.random.default_rng(2).standard_normal((2, width)).astype(np.float16)
    return Readout(weights, 0.5, np.zeros(2, np.float32), of_roots=of_roots)


@pytest.fixture
def exported_kinds(services: Services, tiny_base: Base) -> dict[str, list[dict[str, str]]]:
    """Inputs of tasks that differ in all that the model holds: words, head, readout, pairs, buckets."""
    read, before = (
        services.store(pack_readout(drawn_readout(tiny_base, blocks, of_roots=of_roots), tiny_base.digest), "readout")
        for blocks, of_roots in ((BLOCKS_OF_TEXTS, True), (4, False))
    )
    add_version(services, tiny_base, "read", WORDS[:2], WORDS[:2], z=embedding_of(2), readout=read)
    add_version(services, tiny_base, "alike", WORDS[:2], WORDS[:2], z=embedding_of(3), pairs=True, readout=before)
    add_version(services, tiny_base, "stars", bounds=(1.0, 5.0), z=embedding_of(4))
    single = {task: [{"task": task, "text": text} for text in TEXTS] for task in ("mood", "read", "stars")}
    return {**single, "alike": [{"task": "alike", "text_a": text, "text_b": "bad plot"} for text in TEXTS]}


@pytest.mark.parametrize("task", ["mood", "read", "alike", "stars"])
def test_onnxruntime_answers_what_the_service_answers(
    services: Services, tiny_base: Base, tmp_path: Path, command_line: CommandLine, task: str,
    exported_kinds: dict[str, list[dict[str, str]]],
) -> None:  # fmt: skip
    onnxruntime = pytest.importorskip("onnxruntime")
    command_line.at_home(services.settings)
    said = command_line("export", task, "--format", "onnx", "--output", tmp_path)
    assert said.code == 0, said.err
    inputs = exported_kinds[task]
    answers = Predictor(services).predict(inputs)
    expected = np.log([answer.probabilities for answer in answers])
    encoder = load_engine(tiny_base, "cpu").encoder
    ids = encoder.encode([(row.get("text", row.get("text_a", "")), row.get("text_b")) for row in inputs])
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for rows in ([0, 1, 2], [2], [0, 1]):
        input_ids, mask = (part.numpy() for part in pad([ids[row] for row in rows], encoder.pad_id))
        (logs,) = session.run(None, {"input_ids": input_ids, "attention_mask": mask})
        np.testing.assert_allclose(logs, expected[rows], atol=1e-4)
    facts = json.loads((tmp_path / "labels.json").read_text())
    assert tuple(facts["labels"]) == (answers[0].labels if task != "stars" else ())
    assert (facts["end_of_sequence"], facts["padding"]) == (encoder.eos_id, encoder.pad_id)


def test_the_program_in_the_readme_runs_in_the_folder(
    services: Services, tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("onnxruntime")
    command_line.at_home(services.settings)
    assert command_line("export", "mood", "--format", "onnx", "--output", tmp_path).code == 0
    program = (tmp_path / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the program is short: it leaves closing its file to Python
        exec(program, {})
    (answer,) = Predictor(services).predict([{"task": "mood", "text": "A text."}])
    printed = capsys.readouterr().out
    assert all(str(label) in printed for label in answer.labels)


def test_a_model_that_answers_otherwise_is_not_exported(
    services: Services, tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    command_line.at_home(services.settings)
    monkeypatch.setattr(onnx, "probabilities_of", lambda *_: np.full((6, 3), 1 / 3))
    said = command_line("export", "mood", "--format", "onnx", "--output", tmp_path / "out", "--json")
    assert (said.code, said.error["type"]) == (1, "onnx-answers-differ")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(onnx, "MOST_BYTES", 10)
    said = command_line("export", "mood", "--format", "onnx", "--output", tmp_path / "out", "--json")
    assert (said.code, said.error["type"]) == (2, "onnx-too-large")


def test_without_its_packages_the_command_that_brings_them_is_named(
    services: Services, tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.at_home(services.settings)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    said = command_line("export", "mood", "--format", "onnx", "--output", tmp_path)
    assert (said.code, "onboard[onnx]" in said.err) == (2, True)


def test_what_is_not_there_or_cannot_be_written_is_told(
    services: Services, tmp_path: Path, command_line: CommandLine
) -> None:
    command_line.at_home(services.settings)
    assert command_line("export", "nothing", "--format", "adapters", "--output", tmp_path).code == 3
    (tmp_path / "file").write_text("")
    assert command_line("export", "mood", "--format", "adapters", "--output", tmp_path / "file").code == 6
