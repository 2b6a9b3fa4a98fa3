"""compare, promote, rollback, tasks list, versions and fetch --bundle as commands, with their exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine
from support.published import add_version, embedding_of
from support.real_jobs import Desk
from support.refusals import refused

from onboard.bases import Base, folder_digest
from onboard.registry.services import Services
from onboard.serving import Predictor

Run = Callable[..., tuple[int, Any, str]]
TEXTS = ("good film", "bad plot", "the film was great")


@pytest.fixture
def onboard(tiny_services: Services, command_line: CommandLine) -> Run:
    """One command of this home: its exit code, its document, what stands on standard error."""
    command_line.at_home(tiny_services.settings)

    def run(*words: str) -> tuple[int, Any, str]:
        said = command_line(*words, "--json")
        return said.code, said.document, said.err

    return run


def test_compare_ends_with_4_unless_the_later_one_is_better_if_that_is_asked_for(rivals: Desk, onboard: Run) -> None:
    code, document, _ = onboard("compare", "mood@v2", "mood@v1", "--if-better")
    assert (code, document["better"], document["comparison"]["verdict"]) == (0, True, "better")
    code, document, _ = onboard("compare", "mood@v1", "mood@v2", "--if-better")
    assert (code, document["better"], document["comparison"]["verdict"]) == (4, False, "worse")
    assert onboard("compare", "mood@v1", "mood@v2")[0] == 0
    assert onboard("compare", "mood@v1", "mood@v1", "--if-better")[0] == 4  # no evidence is not better
    assert onboard("compare", "mood@v1", "sst2@v1")[0] == 2
    assert onboard("compare", "mood@v1", "mood@v9")[0] == 3


def test_promote_and_rollback_tell_what_they_did_and_refuse_with_4(rivals: Desk, onboard: Run) -> None:
    code, refused, _ = onboard("promote", "mood@v2", "--alias", "latest")
    assert (code, refused["error"]["code"]) == (4, "not_better")
    assert onboard("promote", "mood@v2", "--alias", "production")[0] == 0
    code, moved, _ = onboard("promote", "mood@v1", "--alias", "production", "--if-better")
    assert (code, moved["version"], moved["previous"], moved["reason"]) == (0, 1, 2, "promoted: better")
    assert moved["actor"]
    code, refused, _ = onboard("promote", "mood@v2", "--alias", "production", "--if-better")
    assert (code, refused["error"]["comparison"]["better"]) == (4, False)
    code, back, _ = onboard("rollback", "mood", "--alias", "production")
    assert (code, back["version"], back["reason"]) == (0, 2, "rollback")
    assert onboard("rollback", "mood", "--alias", "production")[0] == 4  # nothing came before
    assert onboard("rollback", "mood", "--alias", "canary")[0] == 3
    assert onboard("promote", "mood@v2", "--alias", "v7")[0] == 2
    _, listed, _ = onboard("versions", "mood")
    assert listed["aliases"] == {"latest": 1, "production": 2}


def test_tasks_are_found_by_label_and_metric(tiny_services: Services, tiny_base: Base, onboard: Run) -> None:
    for task, accuracy, loss in (("fair", 0.7, 0.6), ("fine", 0.9, 0.3)):
        test = {name: {"value": value} for name, value in (("accuracy", accuracy), ("log_loss", loss))}
        metrics = {"validation": None, "test": test}
        add_version(tiny_services, tiny_base, task, ("sad", "glad"), ("bad", "good"), metrics=metrics)

    def found(*words: str) -> list[str]:
        code, document, _ = onboard("tasks", "list", *words)
        assert code == 0
        return [task["task"] for task in document["tasks"]]

    assert found("--label", "glad") == ["fair", "fine"]
    assert found("--label", "gl") == []
    assert found("--metric", "accuracy", "--at-least", "0.8") == ["fine"]
    assert found("--metric", "accuracy", "--at-least", "0.7", "--label", "sad") == ["fair", "fine"]
    assert found("--metric", "log_loss", "--at-least", "0.4") == ["fine"]  # there, less is better
    assert found("--metric", "mcc", "--label", "sad") == []
    for words, said in (
        (["--at-least", "0.8"], "minimum value needs a metric"),
        (["--metric", "accurancy"], "no metric 'accurancy'"),
        (["--metric", "mcc", "--at-least", "nan"], "nan is not a value that a metric could reach"),
    ):
        code, document, _ = onboard("tasks", "list", *words)
        assert (code, said in document["error"]["message"]) == (2, True)
    assert set(found()) == {"fair", "fine", *(source.name for source in tiny_base.sources)}


def test_a_bundle_is_verified_and_predicts_elsewhere_without_home_or_database(
    tiny_services: Services, tiny_base: Base, onboard: Run, tmp_path: Path
) -> None:
    version = add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(3))
    bundle = tmp_path / "bundle"
    code, document, _ = onboard("fetch", "mood", "--bundle", "--output", str(bundle))
    assert code == 0
    assert document["files"] == [str(bundle / name) for name in ("embedding.safetensors", "card.md", "base")]
    fetched = (bundle / "embedding.safetensors").read_bytes()
    assert f"sha256:{hashlib.sha256(fetched).hexdigest()}" == document["artifact"] == version.artifact
    assert folder_digest(bundle / "base") == document["base_digest"] == tiny_base.digest

    other = add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(4))
    (bundle / "base" / "base.json").rename(bundle / "base" / "kept.json")
    (bundle / "base" / "base.json").write_text("{}")  # another base is in the way
    assert onboard("fetch", other.reference, "--bundle", "--output", str(bundle))[0] == 4
    (bundle / "base" / "kept.json").replace(bundle / "base" / "base.json")
    assert (bundle / "embedding.safetensors").read_bytes() == fetched, "what was refused has changed nothing"
    (bundle / "embedding.safetensors").write_bytes(fetched[:-1] + bytes([fetched[-1] ^ 1]))
    with refused("bundle-part-damaged"):
        Predictor(bundle)
    (bundle / "embedding.safetensors").write_bytes(fetched)

    inputs = [{"task": "mood", "ref": "v1", "text": text} for text in TEXTS]
    expected = Predictor(tiny_services).predict(inputs)
    tiny_services.close()
    tiny_services.settings.resolved_home.rename(tmp_path / "gone")
    answered = _predicted(bundle, inputs, tmp_path / "elsewhere")
    assert [answer[:3] for answer in answered] == [
        [prediction.label, prediction.task, prediction.version] for prediction in expected
    ]
    assert [answer[3] for answer in answered] == pytest.approx(
        [prediction.probability for prediction in expected], abs=1e-4
    )
    assert not (tmp_path / "elsewhere" / "home").exists()


def _predicted(bundle: Path, inputs: list[dict[str, str]], folder: Path) -> Any:
    """By a process of its own, with another home and no base."""
    folder.mkdir()
    program = (
        "import json, sys; from onboard.serving import Predictor; found = Predictor(sys.argv[1]).predict("
        "json.loads(sys.argv[2])); print(json.dumps([[f.label, f.task, f.version, f.probability] for f in found]))"
    )
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("ONBOARD_")}
    environment = {**inherited, "ONBOARD_HOME": str(folder / "home"), "HOME": str(folder), "ONBOARD_DEVICE": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(bundle), json.dumps(inputs)],
        env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def test_the_wrong_number_of_texts_is_refused_with_the_options_that_mend_it(
    tiny_services: Services, tiny_base: Base, onboard: Run, tmp_path: Path
) -> None:
    for task, pairs in (("alone", False), ("alike", True)):
        add_version(tiny_services, tiny_base, task, ("sad", "glad"), ("bad", "good"), pairs=pairs)
    code, document, _ = onboard("predict", "alike@v1", "--text", TEXTS[0])
    assert (code, document["error"]["remedy"]) == (2, "onboard predict alike@v1 --text-a A --text-b B")
    code, document, _ = onboard("predict", "alone", "--text-a", TEXTS[0], "--text-b", TEXTS[1])
    assert (code, document["error"]["remedy"]) == (2, "onboard predict alone --text T")
    (tmp_path / "texts.csv").write_text("text\ngood film\n")
    code, document, _ = onboard("predict", "alike", "--input", str(tmp_path / "texts.csv"))
    assert (code, document["error"]["row"]) == (2, 1)
    assert document["error"]["remedy"].endswith("texts.csv --text-field FIELD --text-field FIELD")
    assert onboard("tasks", "show", "alike")[1]["pairs"] is True
    onboard("fetch", "alike", "--bundle", "--output", str(tmp_path / "bundle"))
    with refused("input-texts-differ"):
        Predictor(tmp_path / "bundle").predict([{"task": "alike", "text": TEXTS[0]}])


def test_a_bundle_whose_bytes_are_damaged_is_not_written(
    tiny_services: Services, tiny_base: Base, onboard: Run, tmp_path: Path
) -> None:
    version = add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"))
    name = version.artifact.removeprefix("sha256:")
    stored = tiny_services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name
    stored.write_bytes(stored.read_bytes()[:-1] + b"!")
    code, refused, _ = onboard("fetch", "mood", "--bundle", "--output", str(tmp_path / "bundle"))
    assert (code, refused["error"]["code"]) == (1, "damaged")
    assert not (tmp_path / "bundle").exists()
