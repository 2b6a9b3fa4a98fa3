"""A T5 that exists: found in a folder, on a hub, in its cache, or refused within seconds."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import load_file, save_file
from support.refusals import refused

from onboard.errors import InputError, UnavailableError
from onboard.making.multitask.backbone import FoundBackbone, find_backbone, load_given
from onboard.making.multitask.recipe import GivenBackbone

HUB_ID = GivenBackbone(source="google-t5/t5-tiny")


class Hub:
    """What huggingface_hub answers: one model, or nothing but errors."""

    def __init__(self, folder: Path, *, reachable: bool = True, cached: bool = False, licence: str | None = "mit"):
        self.folder, self.reachable, self.cached, self.licence = folder, reachable, cached, licence

    def model_info(self, name: str, revision: str | None, timeout: float) -> SimpleNamespace:
        if not self.reachable:
            raise ConnectionError("Name or service not known")
        assert timeout <= 5
        return SimpleNamespace(sha="c0ffee", card_data={"license": self.licence} if self.licence else None)

    def snapshot_download(self, name: str, local_files_only: bool = False, **named: object) -> str:
        if local_files_only and not self.cached:
            raise LocalEntryNotFoundError("not in the cache")
        return str(self.folder)


@pytest.fixture
def hub(tiny_t5: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(tiny_t5)
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: made)
    monkeypatch.setattr("huggingface_hub.snapshot_download", made.snapshot_download)
    return made


def test_a_folder_is_a_backbone_without_commit_and_licence(tiny_t5: Path) -> None:
    backbone = find_backbone(GivenBackbone(source=str(tiny_t5)))
    assert (backbone.folder, backbone.revision, backbone.licence) == (tiny_t5, None, None)


def test_a_model_of_the_hub_comes_with_its_commit_and_licence(hub: Hub) -> None:
    backbone = find_backbone(HUB_ID)
    assert (backbone.folder, backbone.revision, backbone.licence) == (hub.folder, "c0ffee", "mit")
    assert backbone.to_json() == {"from": "google-t5/t5-tiny", "revision": "c0ffee", "licence": "mit"}


def test_without_the_hub_what_was_downloaded_before_serves(hub: Hub) -> None:
    hub.reachable, hub.cached = False, True
    backbone = find_backbone(HUB_ID)
    assert (backbone.folder, backbone.revision, backbone.licence) == (hub.folder, hub.folder.name, None)


def test_a_hub_that_cannot_be_reached_is_told_with_the_way_without_it(hub: Hub) -> None:
    hub.reachable = False
    with refused("hub-unreachable-for-backbone"):
        find_backbone(HUB_ID)


def test_a_hub_that_never_answers_is_given_up_within_seconds(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.data.hub_deadline.DEADLINE_SECONDS", 0.2)
    monkeypatch.setattr(hub, "model_info", lambda *arguments, **named: time.sleep(2))
    started = time.monotonic()
    with refused("hub-unreachable-for-backbone"):
        find_backbone(HUB_ID)
    assert time.monotonic() - started < 1.5


def test_a_real_hub_that_refuses_connections_is_given_up_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: HfApi(endpoint="http://127.0.0.1:9"))
    started = time.monotonic()
    with pytest.raises(UnavailableError):
        find_backbone(HUB_ID)
    assert time.monotonic() - started < 5


def test_what_is_neither_a_folder_nor_a_name_is_told(tmp_path: Path) -> None:
    for name in (str(tmp_path / "missing"), "./missing", "~/missing"):
        with refused("backbone-folder-missing"):
            find_backbone(GivenBackbone(source=name))


def test_a_loaded_backbone_is_frozen_and_rounded_to_what_float16_holds(tiny_t5: Path, tmp_path: Path) -> None:
    backbone, tokenizer = load_given(FoundBackbone("x", tiny_t5, None, None))
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    assert tokenizer.eos_token_id == 1
    for path in tiny_t5.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    weights["shared.weight"][0, 0] = 1e6
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with refused("backbone-beyond-float16"):
        load_given(FoundBackbone("x", tmp_path, None, None))
    assert torch.isfinite(backbone.shared.weight).all()


def test_a_tokenizer_that_cannot_be_loaded_is_told(tiny_t5: Path, tmp_path: Path) -> None:
    for path in tiny_t5.iterdir():
        if "tokenizer" not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError) as caught:
        load_given(FoundBackbone("x", tmp_path, None, None))
    assert caught.value.type in ("tokenizer-empty", "tokenizer-unreadable")
