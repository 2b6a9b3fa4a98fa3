"""A task is changed through the `onboard` program and its worker: rows are added, labels renamed and merged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.program import Place, remedy_of
from support.real_jobs import opinions


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, open_base: Path) -> Iterator[Place]:
    """The home of this file's tests, in which a task is learned; its worker stays for a while."""
    place = Place(tmp_path_factory.mktemp("changing"), open_base)
    place.json("submit", place.write("mood.jsonl", opinions(40)), "--fast", "--wait")
    yield place
    place.leave()


def answer(place: Place, reference: str) -> str:
    (said,) = place.json("predict", reference, "--text", "the film was good")["predictions"]
    return str(said["label"])


def test_a_task_grows_and_its_labels_change_while_an_alias_keeps_the_old_names(place: Place) -> None:
    added = place.json("add", "mood", place.write("more.jsonl", opinions(6, start=900)), "--fast", "--wait")
    assert (added["state"], added["version"]) == ("succeeded", 2)
    said = place.run("submit", place.write("mood.jsonl", [*opinions(40), *opinions(10, start=900)]), "--fast", "--wait")
    assert "4 rows more: they are added to it" in said.stderr
    before = answer(place, "mood")
    renamed = place.json("labels", "mood", "rename", before, "liked")
    assert (renamed["version"], renamed["job"]) == (4, None)
    assert answer(place, "mood") == before
    assert answer(place, "mood@v4") == "liked"
    moved = place.json("promote", "mood@v4", "--alias", "latest", "--as-before")
    assert moved["names"] == [["liked", before]]
    assert answer(place, "mood") == before
    listed = place.json("labels", "mood")["labels"]
    assert "liked" in [label["label"] for label in listed]
    refused = place.run("labels", "mood", "delete", "liked")
    assert (refused.returncode, "only one would be left" in refused.stderr) == (4, True)
    assert remedy_of(refused).startswith("Keep at least two labels")


def test_answers_of_files_have_the_names_of_the_alias(place: Place) -> None:
    texts = place.write("texts.jsonl", [{"text": "the film was good"}, {"text": "a plot was poor"}])
    names = {}
    for reference in ("mood@latest", "mood@v4"):
        folder = place.folder / f"answers-{reference.partition('@')[2]}"
        done = place.run("predict", reference, "--input", texts, "--output", f"{folder}/")
        assert done.returncode == 0, done.stderr
        lines = (folder / "part-000000.jsonl").read_text(encoding="utf-8").splitlines()
        names[reference] = {json.loads(line)["label"] for line in lines}
    assert "liked" not in names["mood@latest"]
    assert "liked" in names["mood@v4"]
