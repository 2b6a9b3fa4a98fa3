"""The canary texts: many, of many kinds, and a half that nobody is tuned on."""

from __future__ import annotations

import json
from collections import Counter

from onboard.guard.canaries import _FILE, canary_ids, canary_texts
from onboard.model.engine import Engine


def test_there_are_many_of_many_kinds_and_lengths_and_none_twice() -> None:
    rows = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
    kinds = Counter(row["kind"] for row in rows)
    words = [len(first.split()) + len((second or "").split()) for first, second in canary_texts()]
    assert len(rows) >= 240
    assert len(kinds) >= 12
    assert min(kinds.values()) >= 8
    assert len(set(canary_texts())) == len(rows)
    assert sum(second is not None for _, second in canary_texts()) >= 40
    assert min(words) == 1
    assert sum(count >= 100 for count in words) >= 10


def test_the_guard_judges_by_texts_that_nobody_is_tuned_on(tiny_engine: Engine) -> None:
    judged, tuned = (canary_ids(tiny_engine.encoder, use) for use in ("guard", "tuning"))
    everything = tiny_engine.encoder.encode(canary_texts())
    assert sorted([*judged, *tuned]) == sorted(everything)
    assert min(len(judged), len(tuned)) >= 120


def test_both_halves_have_texts_of_every_kind() -> None:
    kinds = [json.loads(line)["kind"] for line in _FILE.read_text(encoding="utf-8").splitlines()]
    assert set(kinds[::2]) == set(kinds[1::2]) == set(kinds)
