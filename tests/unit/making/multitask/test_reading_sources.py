"""The sources of a recipe: three splits that share no row, whatever the recipe says they come from."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from support.refusals import refused
from support.tiny_training import make_sources

from onboard.data import hub
from onboard.domain.dataset import Example, example_key
from onboard.errors import InputError
from onboard.making.multitask.recipe import SourceEntry
from onboard.making.multitask.sources import folder_entries, read_sources
from onboard.model.engine import Engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_sources(tmp_path / "sources")


def keys(rows: tuple[Example, ...]) -> set[str]:
    return {example_key(row) for row in rows}


def entry(folder: Path, name: str, **fields: object) -> dict[str, SourceEntry]:
    return {name: SourceEntry(source=str(folder / name), **fields)}  # type: ignore[arg-type]  # checked by pydantic


def test_a_folder_of_folders_is_read_with_kinds_labels_words_and_metrics(folder: Path, tiny_engine: Engine) -> None:
    alike, moods = read_sources(folder_entries(folder), 0)
    assert (alike.name, alike.dataset.kind, alike.metric) == ("alike", "regression", "spearman")
    assert (moods.name, moods.dataset.labels, moods.metric) == ("moods", ("negative", "positive"), "accuracy")
    source = moods.worded(tiny_engine.encoder)
    assert source.words == ("negative", "positive")
    assert len(source.train) == 48
    assert len(source.validation) == 24
    assert len(alike.worded(tiny_engine.encoder).words) == 21


def test_a_folder_says_what_it_is_in_a_file_of_its_own(folder: Path, tiny_engine: Engine) -> None:
    facts = 'title = "is a film liked"\nfamily = "sentiment"\nlicence = "CC BY 4.0"\nweight = 2\n'
    (folder / "moods" / "source.toml").write_text(facts, encoding="utf-8")
    alike, moods = (source.worded(tiny_engine.encoder) for source in read_sources(folder_entries(folder), 0))
    assert (moods.about.family, moods.about.weight, alike.about.weight) == ("sentiment", 2.0, 1.0)
    document = moods.to_json()
    assert (document["title"], document["licence"]) == ("is a film liked", "CC BY 4.0")
    assert "title" not in alike.to_json()


def test_a_folder_is_like_no_other(folder: Path) -> None:
    (folder / "moods" / "source.toml").write_text('like = "other.toml"\n', encoding="utf-8")
    with refused("recipe-field-wrong", field="like"):
        folder_entries(folder)


@pytest.mark.parametrize(
    "licence", ["CC BY-NC 4.0", "for research purposes only", "Non-commercial use", "CC BY-ND 3.0"]
)
def test_rows_whose_licence_forbids_it_train_no_base(folder: Path, licence: str) -> None:
    (folder / "moods" / "source.toml").write_text(f'licence = "{licence}"\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        folder_entries(folder)
    assert "moods" in caught.value.message
    assert licence in caught.value.message


def test_a_source_under_two_names_is_refused(folder: Path) -> None:
    shutil.copytree(folder / "moods", folder / "moods-again")
    with refused("sources-share-rows", source="moods-again", other="moods", rows=48, source_rows=48):
        read_sources(folder_entries(folder), 0)


def test_validation_rows_are_never_in_training_however_the_splits_are_made(folder: Path) -> None:
    (own,) = read_sources(entry(folder, "moods"), 0)
    (held,) = read_sources(entry(folder, "moods", splits="hold-out", held_out_rows=10), 0)
    (halved,) = read_sources(entry(folder, "moods", splits="halve"), 0)
    for source, sizes in ((own, (48, 24, 24)), (held, (38, 10, 24)), (halved, (48, 12, 12))):
        splits = [keys(rows) for rows in (source.dataset.train, source.dataset.validation, source.dataset.test)]
        assert tuple(map(len, splits)) == sizes
        assert len(set.union(*splits)) == sum(sizes)
    assert keys(halved.dataset.validation) | keys(halved.dataset.test) == keys(own.dataset.validation)
    assert keys(held.dataset.validation) < keys(own.dataset.train)
    assert read_sources(entry(folder, "moods", splits="hold-out", held_out_rows=10), 0) == [held]
    assert read_sources(entry(folder, "moods", splits="hold-out", held_out_rows=10), 1) != [held]


def test_without_a_test_split_the_validation_becomes_it_when_rows_are_held_out(folder: Path) -> None:
    (folder / "moods" / "test.jsonl.gz").unlink()
    (source,) = read_sources(entry(folder, "moods", splits="hold-out", held_out_rows=10), 0)
    assert (len(source.dataset.train), len(source.dataset.validation), len(source.dataset.test)) == (38, 10, 24)


def test_at_most_so_many_rows_are_taken(folder: Path) -> None:
    (source,) = read_sources(entry(folder, "moods", rows=10), 0)
    (again,) = read_sources(entry(folder, "moods", rows=10), 0)
    assert len(source.dataset.train) == 10
    assert source == again


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_missing_split_is_named_with_the_way_to_make_it(folder: Path, split: str) -> None:
    (folder / "moods" / f"{split}.jsonl.gz").unlink()
    type_ = "source-train-split-missing" if split == "train" else "source-split-missing"
    with refused(type_, source="moods", split=split) as caught:
        read_sources(folder_entries(folder), 0)
    assert f"{split}.jsonl.gz" in caught.value.remedy
    if split != "train":
        assert 'splits = "h' in caught.value.remedy


def test_a_metric_of_another_kind_is_named(folder: Path) -> None:
    with refused("source-metric-unknown", metric="pearson") as caught:
        read_sources(entry(folder, "moods", metric="pearson"), 0)
    assert caught.value.data["field"] == "sources.moods.metric"
    assert "accuracy" in caught.value.remedy
    assert read_sources(entry(folder, "moods", metric="mcc"), 0)[0].metric == "mcc"


def test_no_source_at_all_is_told(tmp_path: Path) -> None:
    with refused("recipe-without-sources"):
        read_sources({}, 0)
    with refused("sources-folder-empty"):
        folder_entries(tmp_path / "nothing")
    (tmp_path / "Bad Name").mkdir()
    with refused("name-invalid"):
        folder_entries(tmp_path)


def test_a_hub_that_cannot_be_reached_is_told_at_once_with_the_way_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fetch, nowhere = hub.fetch, "http://127.0.0.1:9"
    monkeypatch.setattr(hub, "fetch", lambda source, _, *more, **named: fetch(source, nowhere, *more, **named))
    started = time.monotonic()
    with refused("hub-unreachable") as caught:
        read_sources({"cola": SourceEntry(source="hf://nyu-mll/glue/cola")}, 0)
    assert time.monotonic() - started < 5
    assert "--sources DIR" in caught.value.remedy
    assert "[sources.cola]" in caught.value.remedy


def test_rows_that_stand_in_two_splits_stay_in_training_only(folder: Path) -> None:
    shutil.copy(folder / "moods" / "train.jsonl.gz", folder / "moods" / "validation.jsonl.gz")
    with refused("source-split-missing", split="validation"):
        read_sources(folder_entries(folder), 0)
