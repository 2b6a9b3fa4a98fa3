"""Bases from checkpoints in the authors' naming, and back: `onboard base import` and `onboard base export`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.authors_checkpoint import BIAS, LABELS, TASKS, make_tensors, write_checkpoint
from support.full_disk import full
from support.refusals import refused as error_of
from typer.testing import CliRunner, Result

from cli.base import app
from onboard.bases import Base, find_base
from onboard.bases.fingerprints import FINGERPRINTS, Fingerprints, write_fingerprints
from onboard.bases.load import load_engine
from onboard.data.regression import Buckets
from onboard.domain.dataset import Dataset, Example
from onboard.errors import (
    ConflictError,
    DamagedError,
    InputError,
    NotAllowedError,
    NotFoundError,
    OnboardError,
    StorageError,
    UnavailableError,
)
from onboard.making.exchange import export_base, import_base
from onboard.making.label_words import label_words, read_label_words
from onboard.model.importers import load_hyperformer
from onboard.model.projections import Projections
from onboard.pipeline.material import Workbench
from onboard.serving import Predictor

QUESTIONS = [
    {"task": "cola", "text": "a b c"},
    {"task": "mnli", "text_a": "d e", "text_b": "f"},
    {"task": "stsb", "text_a": "g", "text_b": "h i j"},
]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)], catch_exceptions=True)


def imported(folder: Path, output: Path, **changed: Any) -> Base:
    given = {"tokenizer": str(folder), "labels": folder / "labels.json", "name": "tiny", **changed}
    return import_base(folder, output=output, **given)


@pytest.fixture(params=["hyperformer", "hyperformer++"])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(method: str, tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "authors", method)


def test_a_checkpoint_becomes_a_base_that_answers(folder: Path, method: str, tmp_path: Path) -> None:
    output = tmp_path / "base"
    words = ("--tokenizer", folder, "--labels", folder / "labels.json", "--name", "tiny", "--output", output)
    done = run("import", folder, *words, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["base"], document["method"], document["task_embedding_size"]) == ("tiny", method, 10)
    assert document["imported"] == {"from": "authors", "notes": []}
    base = find_base(str(output))
    assert {source.name: source.kind for source in base.sources} == {
        "cola": "classification", "mnli": "classification", "stsb": "regression",
    }  # fmt: skip
    assert base.sources[[source.name for source in base.sources].index("mnli")].words == ("0", "1", "2")
    assert {name: len(rows) for name, rows in base.trained_rows.items()} == dict.fromkeys(TASKS, 0)
    assert "not stated" in (output / "card.md").read_text().lower()
    answers = Predictor(base).predict(QUESTIONS)
    assert answers[0].label in ("0", "1")
    assert isinstance(answers[2].label, float)
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in output.rglob("*"))
    assert str(tmp_path) not in (output / "base.json").read_text()


def test_without_an_output_a_base_is_used_by_its_name(folder: Path) -> None:
    done = run("import", folder, "--tokenizer", folder, "--labels", folder / "labels.json", "--name", "ours")
    assert done.exit_code == 0, done.output
    assert "Imported from the checkpoint authors" in done.output
    assert find_base("ours").name == "ours"


def test_engine_scores_are_those_of_the_checkpoint(folder: Path, tmp_path: Path) -> None:
    base = imported(folder, tmp_path / "base")
    engine, model = load_engine(base, "cpu"), load_hyperformer(folder)
    ids, labels = torch.tensor([[5, 6, 7, 1]]), torch.tensor([[8, 1]])
    for task in TASKS:
        generated = engine.hypernetwork(torch.from_numpy(base.embeddings[task])[None])
        with torch.no_grad(), engine.attachment.using(generated):
            logits = engine.backbone(input_ids=ids, labels=labels).logits
            assert torch.equal(logits, model(ids, None, labels, tasks=[task]).logits)


def test_export_and_import_give_the_same_tensors_and_predictions(folder: Path, tmp_path: Path) -> None:
    first = imported(folder, tmp_path / "first")
    files = export_base(first, tmp_path / "exported")
    assert {"config.json", "labels.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in files}
    written, given = load_file(tmp_path / "exported" / "model.safetensors"), load_file(folder / "model.safetensors")
    assert written.keys() == given.keys()
    assert all(torch.equal(written[name], given[name]) for name in given)
    second = imported(tmp_path / "exported", tmp_path / "second")
    for file in ("hypernetwork.safetensors", "embeddings.safetensors", "backbone/model.safetensors"):
        assert (first.folder / file).read_bytes() == (second.folder / file).read_bytes()
    assert second.document["sources"] == first.document["sources"]
    before, after = (Predictor(base).predict(QUESTIONS) for base in (first, second))
    assert [answer.to_json() for answer in before] == [answer.to_json() for answer in after]


def test_any_base_is_exported_with_its_anchors_labels_and_template(method: str, tmp_path: Path) -> None:
    first = imported(write_checkpoint(tmp_path / "authors", method), tmp_path / "first")
    document = json.loads((first.folder / "base.json").read_text())
    document["anchors"] = {"stsb": document["sources"].pop("stsb")}
    document["sources"]["cola"]["labels"] = [False, True]
    document |= {"max_tokens": 40, "pair_separator": ".", "licence": "MIT"}
    (first.folder / "base.json").write_text(json.dumps(document))
    done = run("export", first.folder, "--output", tmp_path / "exported", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["digest"] == find_base(str(first.folder)).digest
    second = imported(tmp_path / "exported", tmp_path / "second")
    assert [anchor.name for anchor in second.anchors] == ["stsb"]
    for key in ("sources", "anchors", "max_tokens", "pair_separator", "licence", "reduction_factor"):
        assert second.document[key] == document[key]
    assert all(np.array_equal(first.embeddings[task], second.embeddings[task]) for task in TASKS)


def write_some_fingerprints(folder: Path, tasks: Sequence[str] = TASKS) -> None:
    rng = np.random.default_rng(0)
    raw = {task: rng.standard_normal(10).astype(np.float32) for task in tasks}
    write_fingerprints(Fingerprints.from_raw(Projections.drawn(8, 10, 0), raw), folder / FINGERPRINTS)


def test_fingerprints_are_exported_and_imported_as_they_are(folder: Path, tmp_path: Path) -> None:
    first = imported(folder, tmp_path / "first")
    write_some_fingerprints(first.folder)
    files = export_base(find_base(str(first.folder)), tmp_path / "exported")
    assert FINGERPRINTS in {path.name for path in files}
    second = imported(tmp_path / "exported", tmp_path / "second")
    contents = {(place / FINGERPRINTS).read_bytes() for place in (first.folder, tmp_path / "exported", second.folder)}
    assert len(contents) == 1
    assert (second.folder / FINGERPRINTS).stat().st_mode & 0o044 == 0o044


def fingerprint_on(base: Base) -> np.ndarray:
    rows = (Example("a b c", None, "0"), Example("d e", None, "1"), Example("f g", None, "1"))
    bench = Workbench(base, load_engine(base, "cpu"), Dataset("classification", ("0", "1"), rows), ("0", "1"))
    return bench.fingerprint(bench.encode(rows), bench.targets(rows))


def test_a_base_without_fingerprints_takes_those_of_new_tasks_and_its_export_takes_the_same(
    folder: Path, tmp_path: Path
) -> None:
    first = imported(folder, tmp_path / "first")
    files = export_base(first, tmp_path / "exported")
    assert FINGERPRINTS not in {path.name for path in files}
    second = imported(tmp_path / "exported", tmp_path / "second")
    assert first.fingerprints is second.fingerprints is None
    fingerprint = fingerprint_on(first)
    assert (fingerprint.shape, fingerprint.dtype) == ((64,), np.float32)
    assert np.isfinite(fingerprint).all()
    assert fingerprint.std() > 0
    assert fingerprint_on(second).tobytes() == fingerprint.tobytes()


@pytest.mark.parametrize("harm", ["other bytes", "a task is missing", "no scale", "no projections"])
def test_fingerprints_that_are_damaged_are_refused_and_nothing_is_left(folder: Path, tmp_path: Path, harm: str) -> None:
    if harm == "other bytes":
        (folder / FINGERPRINTS).write_bytes(b"of something else")
    elif harm == "a task is missing":
        write_some_fingerprints(folder, ["cola", "mnli"])
    else:
        write_some_fingerprints(folder)
        missing, whole = harm.removeprefix("no "), load_file(folder / FINGERPRINTS)
        save_file({key: value for key, value in whole.items() if not key.startswith(missing)}, folder / FINGERPRINTS)
    assert FINGERPRINTS in refused(DamagedError, *order(folder, tmp_path / "out" / "base")).message
    assert not (tmp_path / "out").exists()


def test_what_was_left_out_is_said_and_kept_in_the_card(tmp_path: Path) -> None:
    tensors = make_tensors("hyperformer") | {BIAS: torch.full((32, 2), 0.5)}
    folder = write_checkpoint(tmp_path / "authors", "hyperformer", tensors)
    words = ("--tokenizer", folder, "--labels", folder / "labels.json", "--name", "tiny", "--output", tmp_path / "base")
    assert "note: The checkpoint has a position bias" in run("import", folder, *words).output
    assert "position bias" in (tmp_path / "base" / "card.md").read_text()


def refused(error: type[OnboardError], *words: object) -> OnboardError:
    done = run(*words)
    assert isinstance(done.exception, error), (done.output, done.exception)
    assert done.exception.remedy
    return done.exception


def order(folder: Path, output: Path, **changed: object) -> list[object]:
    options = {"tokenizer": folder, "labels": folder / "labels.json", "name": "tiny", "output": output, **changed}
    return ["import", folder, *(word for key, value in options.items() for word in (f"--{key}", value))]


def test_each_wrong_thing_is_refused_with_its_remedy_and_nothing_is_left(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "base"
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    assert refused(InputError, *order(folder, output, name="../Tiny")).type == "name-invalid"
    assert refused(NotFoundError, *order(nothing, output, labels=folder / "x")).type == "checkpoint-missing"
    assert refused(NotFoundError, *order(folder, output, labels=folder / "missing.json")).type == "label-words-missing"
    assert "tokenizer" in refused(InputError, *order(folder, output, tokenizer=nothing)).message
    (folder / "few.json").write_text(json.dumps({"cola": ["0", "1"]}))
    assert "mnli, stsb" in refused(InputError, *order(folder, output, labels=folder / "few.json")).message
    (folder / "many.json").write_text(json.dumps({**LABELS, "sts-b": ["0", "1"]}))
    assert "sts-b" in refused(InputError, *order(folder, output, labels=folder / "many.json")).message
    assert not output.parent.exists()


def test_a_folder_that_is_not_empty_is_left_alone(folder: Path, tmp_path: Path) -> None:
    base = imported(folder, tmp_path / "base")
    digest = base.digest
    for words in (order(folder, base.folder), ["export", base.folder, "--output", base.folder]):
        assert refused(ConflictError, *words).type == "export-folder-not-empty"
    assert find_base(str(base.folder)).digest == digest
    file = tmp_path / "file"
    file.write_text("")
    refused(NotAllowedError, *order(folder, file))
    (tmp_path / "empty").mkdir()
    assert imported(folder, tmp_path / "empty").name == "tiny"


def test_a_disk_that_fills_leaves_nothing_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.making.exchange.save_hypernetwork", full)
    assert "No space left" in refused(StorageError, *order(folder, tmp_path / "out" / "base")).message
    assert list((tmp_path / "out").iterdir()) == []


def test_a_hub_that_cannot_be_reached_is_told_with_the_offline_way(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    caught = refused(UnavailableError, *order(folder, tmp_path / "base", tokenizer="t5-none/of-this-name"))
    assert "folder" in caught.remedy


def test_a_task_whose_name_no_task_may_have_is_named(tmp_path: Path) -> None:
    prefix = "task_embedding_controller.task_to_embeddings."
    tensors = {k.replace(f"{prefix}cola", f"{prefix}CoLA"): v for k, v in make_tensors("hyperformer").items()}
    folder = write_checkpoint(tmp_path / "authors", "hyperformer", tensors)
    caught = refused(InputError, *order(folder, tmp_path / "base"))
    assert "CoLA" in caught.message
    assert f"{prefix}CoLA" in caught.remedy


def test_a_tokenizer_that_does_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "labels.json").write_text(json.dumps({**LABELS, "cola": ["0", "ü"]}))
    assert "'ü' of cola" in refused(InputError, *order(folder, tmp_path / "base")).message
    (folder / "labels.json").write_text(json.dumps({**LABELS, "cola": ["0", " 0"]}))
    assert "cola" in refused(InputError, *order(folder, tmp_path / "base")).message
    (folder / "labels.json").write_text(json.dumps(LABELS))
    larger = Path(shutil.copytree(folder, tmp_path / "larger"))
    content = json.loads((larger / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary |= {f"w{index}": len(vocabulary) + index for index in range(64)}
    (larger / "tokenizer.json").write_text(json.dumps(content))
    caught = refused(InputError, *order(folder, tmp_path / "base", tokenizer=larger))
    assert "105 tokens" in caught.message
    assert "64" in caught.message


def test_a_section_that_no_export_wrote_is_damage(folder: Path, tmp_path: Path) -> None:
    for section in ("[]", '{"max_tokens": "many"}'):
        (folder / "config.json").write_text(f'{{"onboard": {section}}}')
        assert "onboard" in refused(DamagedError, *order(folder, tmp_path / "base")).message


def test_label_words_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    spelt = [f"{value:.1f}" for value in np.linspace(0, 2, 21)]
    document = {
        "a": ["no", "yes"],
        "b": {"labels": [True, 1, "1"], "words": ["true", "one", "1"]},
        "c": {"low": -1.0, "high": 1.0},
        "d": {"low": 0.0, "high": 5.0, "words": spelt},
    }
    path.write_text(json.dumps(document))
    read = read_label_words(path, list(document))
    assert read["b"].labels == (True, 1, "1")
    assert read["c"].words == Buckets(-1, 1).words
    assert read["d"].words == tuple(spelt)
    assert label_words(read.values()) == document


WRONG = [
    "0", "{}", '["a"]', '["a", "a"]', '["a", ""]', '["a", 1]', '["a", null]', '{"labels": ["a", "b"]}',
    '{"labels": ["a", "b"], "words": ["a"]}', '{"labels": ["a", ["b"]], "words": ["a", "b"]}',
    '{"labels": ["a", "a"], "words": ["a", "b"]}', '{"labels": ["a", "b"], "words": ["a", "b"], "low": 0}',
    '{"low": 0}', '{"low": 5, "high": 5}', '{"low": "0", "high": "5"}', '{"low": 0, "high": NaN}',
    '{"low": 0, "high": Infinity}', '{"low": 0, "high": 5, "words": ["0", "5"]}', '{"low": 0, "high": 5, "step": 1}',
]  # fmt: skip


@pytest.mark.parametrize("entry", WRONG)
def test_label_words_that_cannot_be_used_are_refused_by_task(entry: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(f'{{"cola": {entry}}}')
    with error_of("label-words-unusable", task="cola") as caught:
        read_label_words(path, ["cola"])
    assert '"sst2"' in caught.value.remedy


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"caf\xe9"])
def test_a_labels_file_of_something_else_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_bytes(content)
    with error_of("label-words-not-object" if content == b"[]" else "label-words-not-json"):
        read_label_words(tmp_path / "labels.json", ["cola"])


def test_tasks_without_words_are_named_five_at_most(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("{}")
    with error_of("label-words-incomplete", missing="t0, t1, t2, t3, t4 and 3 more"):
        read_label_words(tmp_path / "labels.json", [f"t{index}" for index in range(8)])
