"""`onboard base train` as a process of its own: killed and given again, and as two processes under a launcher."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_training import make_sources, make_tiny_t5

from onboard.making.multitask.loop import Running
from onboard.making.multitask.make import make_base
from onboard.making.multitask.recipe import Recipe
from onboard.making.multitask.sources import folder_entries

PROGRAM = [sys.executable, "-c", "from cli.main import main; main()", "base", "train"]
RECIPE = """
name = "trial"
licence = "Apache-2.0"

[backbone]
from = "{t5}"
max_tokens = 32

[hypernetwork]
reduction_factor = 4
task_embedding_size = 8
projector_width = 8
steps = 60
batch = 7
learning_rate = 3e-3
warmup_steps = 2
validate_every = 6
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("material")
    make_tiny_t5(folder / "t5")
    make_sources(folder / "sources")
    return folder


@pytest.fixture
def start(material: Path, tmp_path: Path) -> Start:
    """Starts the command with `--work NAME`, options and variables."""

    def begin(work: str, *more: str, **variables: str) -> subprocess.Popen[str]:
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(RECIPE.format(t5=material / "t5"), encoding="utf-8")
        options = ["--recipe", str(recipe), "--sources", str(material / "sources"), "--threads", "1", "--device", "cpu"]
        places = ["--work", str(tmp_path / work), "--output", str(tmp_path / f"{work}-base")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        return subprocess.Popen(
            [*PROGRAM, *options, *places, *more], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return begin


@pytest.fixture(scope="module")
def whole(material: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of the same training, never interrupted, in this process; `base` lies beside it."""
    folder = tmp_path_factory.mktemp("whole")
    here(material, folder / "work", folder / "base")
    return folder / "work"


def here(material: Path, work: Path, output: Path) -> None:
    """The same training in this process, which has imported everything already."""
    document = tomllib.loads(RECIPE.format(t5=material / "t5"))
    entries = folder_entries(material / "sources")
    document["sources"] = {name: {"from": entry.source} for name, entry in entries.items()}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    make_base(Recipe.model_validate(document), Running(work, lambda line: None), output)
    torch.set_num_threads(threads)


def until(process: subprocess.Popen[str], beginning: str) -> None:
    """Wait for a line of progress."""
    assert process.stderr is not None
    assert any(line.startswith(beginning) for line in process.stderr)


def finished(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    out, said = process.communicate(timeout=240)
    assert process.returncode == code, said
    return out, said


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    """All weights that training left in a work folder."""
    names = ("hypernetwork", "hypernetwork-best")
    return {
        f"{name}/{key}": value for name in names for key, value in load_file(folder / f"{name}.safetensors").items()
    }


def test_a_killed_training_saves_says_how_to_go_on_and_ends_with_the_same_bits(
    start: Start, material: Path, whole: Path, tmp_path: Path
) -> None:
    killed = start("killed")
    until(killed, "hypernetwork 6: validation")
    killed.send_signal(signal.SIGTERM)
    _, said = finished(killed, 143)
    assert 6 <= int(said.partition("was saved at step ")[2].split()[0]) < 60
    assert "repeat the command" in said
    assert not (tmp_path / "killed-base" / "base.json").exists()
    here(material, tmp_path / "killed", tmp_path / "killed-base")
    resumed, expected = tensors(tmp_path / "killed"), tensors(whole)
    assert resumed.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(resumed[name], expected[name])] == []
    base = (tmp_path / "killed-base" / "hypernetwork.safetensors").read_bytes()
    assert base == (whole.parent / "base" / "hypernetwork.safetensors").read_bytes()


def test_two_processes_stop_together_go_on_and_give_what_one_gives_with_the_whole_batch(
    start: Start, whole: Path, tmp_path: Path
) -> None:
    first, second = (start("two", **launched) for launched in launches())
    until(first, "hypernetwork 6: validation")
    second.send_signal(signal.SIGTERM)  # only one of them is told
    assert "was saved at step" in finished(first, 143)[1]
    finished(second, 143)
    both = [start("two", "--json", "--resume", **launched) for launched in launches()]
    (document, said), (nothing, quiet) = (finished(process) for process in both)
    assert json.loads(document)["base"] == "trial"
    assert nothing == ""
    assert "resumes at step" in said
    assert "hypernetwork" not in quiet  # only the first process speaks
    two, one = tensors(tmp_path / "two"), tensors(whole)
    assert two.keys() == one.keys()
    for name in one.keys() - {name for name in one if "optimiser" in name}:
        torch.testing.assert_close(two[name], one[name], atol=1e-5, rtol=0, msg=name)


def launches() -> list[dict[str, str]]:
    """The variables that torchrun and accelerate launch set for two processes on one machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        "TORCHELASTIC_RUN_ID": "test", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)]
