"""Models stay in memory between jobs, and those that go leave nothing behind."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
from support.refusals import refused

from onboard.bases import Base
from onboard.bases.load import KEPT_BASES, frozen_engine, resolve_device
from onboard.domain.names import require_device_name
from onboard.errors import InputError, UnavailableError
from onboard.model.engine import Engine
from onboard.model.memory import give_memory_back
from onboard.storage.cache import Cache
from workers.device import require_device

CPU = torch.device("cpu")


@dataclass
class Loaded:
    """Stands for an engine: hooks and backbone hold one another."""

    base: str
    itself: Any = None

    def __post_init__(self) -> None:
        self.itself = self


@dataclass
class Bases:
    """Three bases, a cache for two, and what was loaded in which order; `alive` counts what is still in memory."""

    loads: list[str] = field(default_factory=list)
    most_alive: int = 0

    def __post_init__(self) -> None:
        self.cache = Cache[str, Loaded](2, give_memory_back)
        self._seen: list[weakref.ref[Loaded]] = []

    def _load(self, name: str) -> Loaded:
        engine = Loaded(name)
        self.loads.append(name)
        self._seen.append(weakref.ref(engine))
        self.most_alive = max(self.most_alive, sum(engine() is not None for engine in self._seen))
        return engine

    def use(self, *names: str) -> None:
        for name in names:
            self.cache.get_alone(name, partial(self._load, name))


@pytest.fixture(autouse=True)
def _no_collector_but_ours() -> Any:
    gc.disable()
    yield
    gc.enable()


def test_two_bases_that_alternate_are_loaded_once_each() -> None:
    bases = Bases()
    bases.use(*"ababab")
    assert bases.loads == ["a", "b"]


def test_the_one_that_was_not_used_for_longest_goes_before_another_is_loaded() -> None:
    bases = Bases()
    bases.use(*"abacab")
    assert bases.loads == ["a", "b", "c", "b"]
    assert bases.most_alive == 2


def test_a_base_that_cannot_be_loaded_is_tried_again() -> None:
    calls = iter([MemoryError(), "engine"])

    def load() -> Any:
        loaded = next(calls)
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    cache = Cache[str, Any](2)
    with pytest.raises(MemoryError):
        cache.get_alone("a", load)
    assert cache.get_alone("a", load) == "engine"


def test_a_worker_keeps_two_bases() -> None:
    assert KEPT_BASES == 2  # docs/how-to/troubleshoot.md says so


def test_a_base_that_does_not_fit_into_the_gpu_is_told(tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(engine: Engine, device: Any) -> Engine:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(Engine, "to", full)
    with refused("gpu-memory-too-small") as caught:
        frozen_engine(tiny_base, CPU)
    assert not caught.value.retryable


@pytest.mark.parametrize("wrong", ["gpu", "cuda:x", "", "cpu;rm", "CPU"])
def test_a_wrong_name_of_a_device_is_told_without_torch(wrong: str) -> None:
    for check in (require_device_name, require_device):
        with pytest.raises(InputError) as caught:
            check(wrong)
        assert "--device" in caught.value.remedy


def test_a_torch_without_cuda_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with refused("torch-without-cuda"):
        resolve_device("cuda:0")


@pytest.mark.parametrize(("count", "said"), [(0, "no GPU"), (1, "one GPU, cuda:0"), (4, "4 GPUs, cuda:0 to cuda:3")])
def test_a_gpu_that_is_not_there_is_told_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch, count: int, said: str
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with refused("unknown-cuda-device", seen=said) as caught:
        resolve_device("cuda:7")
    assert "CUDA_VISIBLE_DEVICES" in caught.value.remedy


def test_a_worker_looks_for_its_gpu_before_it_starts() -> None:
    with pytest.raises(UnavailableError) as caught:  # its type depends on how torch was built
        require_device("cuda:97")
    assert caught.value.data["index"] == 97
    assert caught.value.remedy
    require_device("cpu")
    require_device("auto")
