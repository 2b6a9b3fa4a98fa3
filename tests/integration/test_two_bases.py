"""One process serves jobs of several bases: each is loaded once, and none learns on the other's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.real_jobs import Desk, opinions

from onboard.bases import Base, load
from onboard.storage.cache import Cache


def test_jobs_of_two_bases_take_turns_without_loading_anything_again(
    desk: Desk, tiny_base: Base, other_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def count(base: Base, device: torch.device) -> Any:
        loaded.append(base.digest)
        return frozen_engine(base, device)

    frozen_engine = load.frozen_engine
    monkeypatch.setattr(load, "frozen_engine", count)
    monkeypatch.setattr(load, "loaded_engines", Cache(load.KEPT_BASES))
    results = [
        desk.learn_on(base, opinions(24), f"task{number}", init="random")
        for number, base in enumerate([tiny_base, other_base, tiny_base, other_base])
    ]
    assert loaded == [tiny_base.digest, other_base.digest]
    learned_on = [result["pins"]["base"] for result in results]
    assert learned_on == [tiny_base.digest, other_base.digest] * 2
    assert results[0]["embedding_digest"] == results[2]["embedding_digest"] != results[1]["embedding_digest"]


def test_a_start_that_moves_to_another_base_while_the_job_waits_is_the_one_that_was_named(
    desk: Desk, tiny_base: Base, other_base: Base
) -> None:
    desk.learn_on(tiny_base, opinions(24), "shared", init="random")
    desk.submit(opinions(24, start=40), "new", init="shared")
    waiting = desk.claim()
    desk.learn_on(other_base, opinions(24), "shared", init="random")
    assert (desk.run(waiting).result or {})["init"]["chosen"] == "shared@v1"
