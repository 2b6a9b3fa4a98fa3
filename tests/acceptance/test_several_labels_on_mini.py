"""A real task with several labels per text on `mini`, from a few rows, where the data is at hand."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.real_jobs import Desk

from onboard.bases import find_base
from onboard.hypernetworks.register import register_base
from onboard.registry.schema import upgrade
from onboard.registry.services import open_services
from onboard.serving import Predictor
from onboard.settings import Settings

ASPECTS = Path(__file__).parents[3] / "shared" / "data" / "multi" / "sentihood_aspects"
pytestmark = pytest.mark.skipif(
    not ASPECTS.is_dir(), reason="tasks with several labels are not here (../shared/data/multi)"
)


def some(split: str, count: int) -> list[dict[str, Any]]:
    with gzip.open(ASPECTS / f"{split}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, count)]


def test_aspects_are_learned_from_150_rows(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", base="mini", device="cpu")
    settings.resolved_home.mkdir()
    upgrade(f"sqlite:///{tmp_path / 'home' / 'onboard.db'}")
    with closing(open_services(settings)) as services:
        register_base(services, find_base("mini"))
        desk = Desk(services, tmp_path)
        train = some("train", 150)
        known = {label for row in train for label in row["labels"]}
        test = [row for row in some("test", 80) if known.issuperset(row["labels"])]
        result = desk.learn(train, "aspects", test=test)
        own, words = result["metrics"]["test"], result["baselines"]["test"]["tfidf_one_vs_rest"]
        assert own["micro_f1"]["value"] > words["micro_f1"]["value"]
        assert own["macro_f1"]["value"] > words["macro_f1"]["value"]
        assert not result["weak"]
        (answer,) = Predictor(services).predict([{"task": "aspects", "text": "LOCATION1 is cheap, rents are low"}])
        assert answer.chosen is not None
        assert "price" in answer.chosen
