"""`submit --method auto`: several methods on the same rows, and the cheapest that is good enough is published."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.real_jobs import STAGES, CrashError, Desk, crash_after, opinions
from support.refusals import refused

from onboard.domain.methods import OWN_START
from onboard.pipeline import choose, own_weights
from onboard.registry.services import Services
from onboard.report.html import render
from onboard.report.terminal import render_text
from onboard.serving import Predictor
from onboard.testing import RecordedProgress
from onboard.train.method_choice import Choice
from onboard.train.settings import OwnWeightsSettings


@pytest.fixture
def quick(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk where own weights are trained in three steps, and `auto` tries one that fits the tiny base, one not."""
    monkeypatch.setattr(own_weights, "OwnWeightsSettings", partial(OwnWeightsSettings, steps=3, most_steps=3))
    monkeypatch.setattr(choose, "SMALL", ("compacter", "bitfit"))
    monkeypatch.setattr(choose, "nothing_to_gain", lambda _: None)
    return desk


def chosen(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(choose, "cheapest", lambda _: Choice(method, "The test says so."))


def names(result: dict[str, Any]) -> list[str]:
    return [tried["method"] for tried in result["methods"]["tried"]]


def test_all_that_were_tried_are_told_and_one_is_published(quick: Desk) -> None:
    result = quick.learn(opinions(24), method="auto")
    methods = result["methods"]
    assert sorted(names(result)) == ["bitfit", "compacter", "hyperformer++", "linear"]
    assert (methods["evidence"], methods["rows"]) == ("cross-validated rows", 24)
    measured = [tried for tried in methods["tried"] if tried["reason"] is None]
    assert [tried["bytes"] for tried in measured] == sorted(tried["bytes"] for tried in measured)
    assert all(tried["low"] <= tried["loss"] <= tried["high"] for tried in measured)
    assert min(tried["behind"] for tried in measured) == 0
    assert next(tried for tried in methods["tried"] if tried["method"] == "compacter")["reason"].startswith(
        "reduction_factor of Compacter is 32, which does not divide"
    )
    assert quick.version("mood").method == methods["chosen"]
    assert "These rows chose the method, too" in result["validation_reason"]
    assert result["seconds"]["choose"] > 0


@pytest.mark.parametrize("method", ["bitfit", "linear", "hyperformer++"])
@pytest.mark.parametrize("rows", [24, 72])
def test_it_is_judged_by_what_it_would_publish(
    quick: Desk, monkeypatch: pytest.MonkeyPatch, method: str, rows: int
) -> None:
    for module in ("choose", "evaluate"):
        monkeypatch.setattr(f"onboard.pipeline.{module}.temperature_of", lambda *_: (1.7, "rows", rows))
    chosen(monkeypatch, method)
    result = quick.learn(opinions(rows), method="auto")
    (tried,) = [tried for tried in result["methods"]["tried"] if tried["method"] == method]
    assert tried["loss"] == pytest.approx(result["metrics"]["validation"]["log_loss"]["value"], abs=1e-5)


def test_another_method_is_published_as_if_it_had_been_asked_for(
    quick: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = quick.learn(opinions(24), "asked", method="bitfit")
    for method in ("bitfit", "linear"):
        chosen(monkeypatch, method)
        result, version = quick.learn(opinions(24), f"by-{method}", method="auto"), quick.version(f"by-{method}")
        assert (version.method, version.parent, version.hypernetwork_version) == (method, OWN_START, 1)
        assert (result["init"]["chosen"], result["tuning"], result["guard"]) == (OWN_START, None, None)
        (answer,) = Predictor(tiny_services).predict([{"task": f"by-{method}", "text": "film was good"}])
        assert answer.label in version.labels
        if method == "bitfit":
            assert result["embedding_digest"] == alone["embedding_digest"]
            assert result["metrics"] == alone["metrics"]


def test_held_out_rows_judge_where_there_are_enough(quick: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(monkeypatch, "bitfit")
    result = quick.learn(opinions(72), method="auto")
    assert result["methods"]["evidence"] == "held-out rows"
    assert result["methods"]["rows"] == result["metrics"]["validation"]["accuracy"]["n"]


def test_too_few_rows_to_judge_publish_the_default(quick: Desk) -> None:
    result = quick.learn(opinions(6), method="auto")
    assert (quick.version("mood").method, result["methods"]["tried"]) == ("hyperformer++", [])
    assert result["methods"]["reason"] == "No rows are left to compare it with other methods."


def test_another_attempt_goes_on_after_the_choice(quick: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(monkeypatch, "bitfit")
    quick.submit(opinions(16), method="auto")
    with pytest.raises(CrashError):
        quick.run(quick.claim(), crash_after("choose"))
    quick.lose()
    progress = RecordedProgress()
    quick.run(quick.claim(), progress)
    notes = [said for what, said, _ in progress.calls if what == "note" and "resumed" in said]
    assert notes == [f"{stage}: resumed from the output of an earlier attempt" for stage in (*STAGES[1:3], "choose")]
    assert quick.version("mood").method == "bitfit"


def test_texts_to_label_next_are_named_by_what_is_published(
    quick: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen(monkeypatch, "bitfit")
    pool = tmp_path / "pool.jsonl"
    pool.write_text('{"text": "a great film and not sad"}\n', encoding="utf-8")
    asked = {"options": {"unlabelled": pool}}
    own = quick.learn(opinions(16), "own", method="bitfit", **asked)["label_next"]
    assert quick.learn(opinions(16), "chosen", method="auto", **asked)["label_next"] == own


def test_both_reports_show_what_was_tried(quick: Desk) -> None:
    from rich.console import Console

    result = quick.learn(opinions(24), method="auto")
    console = Console(record=True, width=120)
    console.print(render_text(result))
    text, page = console.export_text(), render(result)
    for said in (text, page):
        assert "Methods tried" in said
        assert "does not divide" in said
        assert "above the lowest" in said


@pytest.mark.parametrize(
    ("more", "type_"),
    [
        ({"tune_hypernetwork": "always"}, "tune-with-auto-method"),
        ({"settings": {"n": 4}}, "method-without-settings"),
    ],
)
def test_what_has_no_meaning_with_it_is_refused_before_anything_is_queued(
    quick: Desk, more: dict[str, Any], type_: str
) -> None:
    with refused(type_, method="auto"):
        quick.submit(opinions(8), method="auto", **more)
    assert quick.jobs() == []
