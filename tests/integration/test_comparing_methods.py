"""`onboard compare-methods`: the same rows through the queue once a method, side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine
from support.program import Place
from support.real_jobs import Desk, opinions, write_rows
from support.served import served

from cli import watch
from onboard.bases import Base
from onboard.pipeline import own_weights
from onboard.train.settings import OwnWeightsSettings

METHODS = "default,linear,prompt-tuning-r,adapters,full-fine-tuning"  # adapters do not fit the tiny base as they are


@pytest.fixture
def run(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Commands at the desk's home, whose jobs are done by the test's own process as they are followed."""
    monkeypatch.setattr(own_weights, "OwnWeightsSettings", partial(OwnWeightsSettings, steps=3, most_steps=3))
    monkeypatch.setenv("ONBOARD_START_WORKER", "false")

    def follow(service: Any, job: str) -> Any:
        desk.run(desk.claim())
        return service.job(job).document

    monkeypatch.setattr("cli.watch.follow", follow)
    line = CommandLine(monkeypatch, capsys)
    line.at_home(desk.services.settings)
    return line


def test_each_method_makes_a_version_of_the_same_rows(run: CommandLine, desk: Desk, tmp_path: Path) -> None:
    rows, test = (
        write_rows(tmp_path / "mood.jsonl", opinions(24)),
        write_rows(tmp_path / "t.jsonl", opinions(8, start=90)),
    )
    plot = tmp_path / "methods.svg"
    said = run(
        "compare-methods", rows, "--methods", METHODS, "--shots", 16, "--test", test, "--tune-hypernetwork", "never",
        "--plot", plot, "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    document = said.document
    assert (document["task"], document["metric"], document["split"]) == ("mood-methods", "accuracy", "test")
    states = {result["method"]: result["state"] for result in document["results"]}
    assert states == {
        "default": "succeeded", "linear": "succeeded", "prompt-tuning-r": "succeeded", "adapters": "refused",
        "full-fine-tuning": "refused",
    }  # fmt: skip
    versions = desk.versions("mood-methods")
    assert [version.method for version in versions] == ["hyperformer++", "linear", "prompt-tuning-r"]
    assert {version.dataset_digest for version in versions} == {versions[0].dataset_digest}
    assert [result["stored_bytes"] for result in document["results"][:3]] == [
        version.stored_bytes for version in versions
    ]
    assert [result["trained"] for result in document["results"][:3]] == [16, 2 * (3 * 16) + 2, 100 * 16]
    assert all(result["seconds"] > 0 for result in document["results"][:3])
    assert all(result["memory_bytes"] > 1e6 for result in document["results"][:3])
    assert "which does not divide" in document["results"][3]["error"]
    assert plot.read_text(encoding="utf-8").count("<circle") == 3


def test_whoever_stops_watching_is_told_what_goes_on_and_how_to_look_at_it(
    run: CommandLine, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(service: Any, job: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.watch.follow", interrupted)
    said = run("compare-methods", write_rows(tmp_path / "mood.jsonl", opinions(24)), "--methods", "default,linear")
    jobs = [job.id for job in desk.jobs()]
    assert (said.code, len(jobs)) == (130, 2)
    (line,) = [line for line in said.err.splitlines() if "the jobs continue" in line]
    assert sorted(line.partition(": ")[2].split()) == sorted(jobs)
    assert "onboard jobs list --task mood-methods" in said.err


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        (["--method", "linear"], "methods-too-few"),
        (["--methods", "linear,,bitfit"], "method-name-empty"),
        (["--plot", "methods.png"], "plot-not-svg"),
    ],
)
def test_what_it_cannot_do_is_told_before_anything_is_queued(
    run: CommandLine, desk: Desk, tmp_path: Path, words: list[str], type_: str
) -> None:
    said = run("compare-methods", write_rows(tmp_path / "mood.jsonl", opinions(8)), *words, "--json")
    assert (said.code, said.error["type"]) == (2, type_)
    assert desk.jobs() == []


def test_rows_that_no_method_can_learn_from_are_one_error(run: CommandLine, desk: Desk, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "mood.jsonl", [{"text": "good", "label": "yes"}])
    said = run("compare-methods", rows, "--methods", "default,linear")
    assert said.code == 2
    assert said.err.count("error: ") == 1
    assert desk.jobs() == []


def test_methods_are_compared_from_elsewhere_as_beside_the_database(
    tmp_path: Path, tiny_base: Base, few_steps: None, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> None:
    place = Place(tmp_path, tiny_base.folder)
    place.home.mkdir()
    rows = write_rows(tmp_path / "mood.jsonl", opinions(24))
    follow, documents = watch.follow, list[dict[str, Any]]()
    with served(place) as service, place.services() as services:
        desk = Desk(services, tmp_path)

        def done_and_followed(gateway: Any, job: str) -> Any:
            desk.run(desk.claim())
            return follow(gateway, job)

        monkeypatch.setattr(watch, "follow", done_and_followed)
        for side in ("here", "there"):
            command_line.on_side(side, service)
            said = command_line(
                "compare-methods", rows, "--methods", "default,linear,adapters", "--shots", 16, "--task", side,
                "--tune-hypernetwork", "never", "--json",
            )  # fmt: skip
            assert said.code == 0, said.err
            documents.append(said.document)
            results = said.document["results"]
            assert [result["version"] for result in results] == [f"{side}@v1", f"{side}@v2", None]
            assert [result["stored_bytes"] for result in results[:2]] == [v.stored_bytes for v in desk.versions(side)]
        assert not service.elsewhere.exists()
    here, there = (_without_names(document) for document in documents)
    assert there == here


def _without_names(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The results, but jobs, tasks, seconds and memory, which are others each time."""
    own = ("job", "version", "seconds", "memory_bytes")
    return [{key: value for key, value in result.items() if key not in own} for result in document["results"]]
