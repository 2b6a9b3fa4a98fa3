"""The bench of mixed load: it runs against a real server, counts errors, and says what was not kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from bench import load
from onboard.bases import Base


def test_a_server_is_asked_by_clients_and_its_memory_is_read(tiny_base: Base) -> None:
    seen = load.measure(str(tiny_base.folder), load.Sizes(minutes=0.05, tasks=20, clients=2))
    assert not seen.errors
    assert len(seen.seconds) > 2
    assert min(seen.resident) > 2**20
    figures = load.figures(seen)
    assert 0 < figures["p50_milliseconds"] <= figures["p99_milliseconds"]


def test_growth_errors_and_slow_answers_are_not_kept() -> None:
    steady = load.Found([(float(number), 0.01) for number in range(100)], Counter(), [100] * 100)
    assert load.figures(steady)["kept"]
    slow = [*steady.seconds[:90], *((float(number), 0.04) for number in range(90, 100))]
    worse = load.figures(load.Found(slow, Counter({"late": 2}), [100] * 60 + [110] * 40))
    assert (worse["growth"], worse["p99_of_p50"], worse["errors"], worse["kept"]) == (0.1, 4.0, 2, False)
    document = {"command": "x", "machine": {"cores": 2, "processor": "y"}, "base": "mini", **asdict(load.Sizes())}
    shown = load.page({**document, **worse})
    assert shown.count("**not met**") == 3
