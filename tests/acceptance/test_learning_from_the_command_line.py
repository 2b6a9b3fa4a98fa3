"""A task's way through the `onboard` program: submitted, learned, listed, fetched, asked, reported."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.program import Finished, Place
from support.real_jobs import DOCUMENT, opinions

from onboard.registry.jobs import JobRepository
from onboard.serving import Predictor
from onboard.storage.embedding import embedding_digest, unpack_embedding


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, open_base: Path) -> Iterator[Place]:
    """The home of this file's tests: one task is learned in it, and its worker stays for a while."""
    place = Place(tmp_path_factory.mktemp("place"), open_base)
    yield place
    place.leave()


@pytest.fixture(scope="module")
def learned(place: Place) -> Finished:
    """`onboard submit --wait --json`: enough rows to hold some out; no readout, so no provisional version."""
    rows = place.write("mood.jsonl", opinions(70))
    test = place.write("test.jsonl", opinions(12, start=100))
    return place.run("submit", "--dataset", rows, "--test", test, "--readout", "never", "--wait", "--json")


@pytest.fixture
def onboard(place: Place, command_line: CommandLine) -> CommandLine:
    """Commands of that home in this process, for what only looks at it."""
    return command_line.in_place(place)


def test_submit_and_wait_prints_one_document_on_stdout_and_progress_only_on_stderr(learned: Finished) -> None:
    assert learned.returncode == 0, learned.stderr
    document = json.loads(learned.stdout)
    assert set(document) == DOCUMENT
    assert (document["state"], document["task"], document["version"]) == ("succeeded", "mood", 1)
    assert {"accuracy", "macro_f1"} <= set(document["metrics"]["validation"])
    assert document["metrics"]["test"]["accuracy"]["n"] == 12
    assert {"chosen", "candidates"} <= set(document["init"])
    for stage in ("check", "probe", "train", "evaluate", "publish"):
        assert f"{stage}: done in" in learned.stderr
        assert stage in document["seconds"]
    assert "started a worker" in learned.stderr
    assert "{" not in learned.stderr


def test_a_second_submit_starts_no_second_worker_and_makes_the_next_version(
    place: Place, learned: Finished, onboard: CommandLine
) -> None:
    assert len([worker for worker in place.workers() if worker.live]) == 1
    few = "--seed", "1", "--shots", "6", "--readout", "never"
    done = place.run("submit", "--dataset", place.folder / "mood.jsonl", "--wait", *few)
    assert done.returncode == 0, done.stderr
    assert "started a worker" not in done.stderr
    assert "mood" in done.stdout
    assert len(place.workers()) == 1
    document = onboard.json("versions", "mood")
    assert [version["version"] for version in document["versions"]] == [1, 2]
    assert document["aliases"]["latest"] in (1, 2)


def test_waiting_shows_the_provisional_version_when_it_stands_and_ends_with_the_final_one(
    place: Place, learned: Finished, onboard: CommandLine
) -> None:
    rows = place.write("quick.jsonl", opinions(24))
    done = place.run("submit", "--dataset", rows, "--wait", "--json")
    assert done.returncode == 0, done.stderr
    document, progress = json.loads(done.stdout), done.stderr
    assert set(document) == DOCUMENT
    assert progress.index("quick@v1 is published as provisional") < progress.index("probe: started")
    versions = {version["version"]: version["provisional"] for version in onboard.json("versions", "quick")["versions"]}
    assert versions in ({1: False}, {1: True, 2: False})
    assert document["version"] == max(versions)
    shown = onboard.json("jobs", "show", document["job"])["provisional"]
    assert shown["confirmed"] == (document["version"] == 1)
    assert shown["reason"]


def test_fast_stops_after_the_first_version(place: Place, learned: Finished, onboard: CommandLine) -> None:
    rows = place.write("fast.jsonl", opinions(24))
    document = place.json("submit", "--dataset", rows, "--fast", "--wait")
    assert (document["state"], document["version"]) == ("succeeded", 1)
    assert not {"probe", "train"} & set(document["seconds"])
    (version,) = onboard.json("versions", "fast")["versions"]
    assert (version["method"], version["provisional"]) == ("linear", False)
    (answer,) = onboard.json("predict", "fast", "--text", "a good film")["predictions"]
    assert answer["version"] == 1


def test_a_task_starts_from_its_labels_alone(place: Place, learned: Finished, onboard: CommandLine) -> None:
    asked = ("--task", "tone", "--labels", "praise,complaint", "--label-description", "praise=it was good")
    assert onboard.json("check", *asked)["rows"] == {"train": 0, "validation": 0, "test": 0}
    document = place.json("submit", *asked, "--wait")
    assert (document["state"], document["version"]) == ("succeeded", 1)
    assert document["metrics"] == {"validation": None, "test": None}
    (version,) = onboard.json("versions", "tone")["versions"]
    assert (version["method"], version["unmeasured"]) == ("linear", True)
    (answer,) = onboard.json("predict", "tone", "--text", "a good film")["predictions"]
    assert answer["label"] in ("praise", "complaint")


def test_fetch_writes_the_verified_files(place: Place, learned: Finished, onboard: CommandLine) -> None:
    document = onboard.json("fetch", "mood@v1", "--output", "fetched")
    readout = ["readout.safetensors"] if document["readout"] else []
    assert [Path(file).name for file in document["files"]] == ["embedding.safetensors", "card.md", *readout]
    z = unpack_embedding((place.folder / "fetched" / "embedding.safetensors").read_bytes())
    assert embedding_digest(z) == json.loads(learned.stdout)["embedding_digest"] == document["embedding_digest"]
    assert (place.folder / "fetched" / "card.md").read_text(encoding="utf-8").startswith("# mood@v1")


def test_predictions_come_in_the_order_of_the_file(place: Place, learned: Finished) -> None:
    texts = [row["text"] for row in opinions(30, start=40)]
    texts[3] = "good\u2028film"  # a line separator inside of a JSON string is no end of a row
    rows = place.folder / "texts.jsonl"
    lines = [json.dumps({"text": text, "id": number}, ensure_ascii=False) for number, text in enumerate(texts)]
    rows.write_text("\ufeff" + "\n".join(lines) + "\n\n", encoding="utf-8")
    document = place.json("predict", "mood@v1", "--input", rows, "--output", "answers.jsonl")
    assert len(document["predictions"]) == 30
    assert all(set(answer) == {"label", "probability", "task", "version"} for answer in document["predictions"])
    assert {(answer["task"], answer["version"]) for answer in document["predictions"]} == {("mood", 1)}
    written = (place.folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    answered = zip(lines, document["predictions"], strict=True)
    assert [json.loads(line) for line in written] == [{**json.loads(line), **answer} for line, answer in answered]
    with place.services() as services:
        back = Predictor(services).predict([{"task": "mood", "ref": "v1", "text": text} for text in texts[::-1]])
    assert [prediction.label for prediction in back[::-1]] == [answer["label"] for answer in document["predictions"]]
    for one, other in zip(back[::-1], document["predictions"], strict=True):
        assert one.probability == pytest.approx(other["probability"], abs=1e-5)


def test_predictions_of_a_spreadsheet_become_one(place: Place, learned: Finished, onboard: CommandLine) -> None:
    texts = [row["text"] for row in opinions(4, start=80)]
    with (place.folder / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "message"], *([str(number), text] for number, text in enumerate(texts))])
    document = onboard.json(
        "predict", "mood@v1", "--input", "texts.csv", "--text-field", "message", "--output", "answers.csv"
    )
    with (place.folder / "answers.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [(row["label"], float(row["probability"]), row["task"], int(row["version"])) for row in written] == [
        (answer["label"], answer["probability"], answer["task"], answer["version"])
        for answer in document["predictions"]
    ]
    refused = onboard("predict", "mood@v1", "--input", "texts.csv")
    assert refused.code == 2
    assert "--text-field" in refused.remedy


def test_a_jobs_report_is_one_html_file(place: Place, learned: Finished, onboard: CommandLine) -> None:
    job = json.loads(learned.stdout)["job"]
    document = onboard.json("jobs", "show", job, "--report", "report.html")
    assert (document["job"], document["state"], document["version"]) == (job, "succeeded", 1)
    page = (place.folder / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "mood" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    listed = onboard.json("jobs", "list", "--task", "mood")
    assert listed["jobs"][-1]["job"] == job
    unwritable = onboard("jobs", "show", job, "--report", place.folder / "mood.jsonl" / "report.html")
    assert unwritable.code == 6
    assert unwritable.remedy


def test_a_finished_job_cannot_be_cancelled(learned: Finished, onboard: CommandLine) -> None:
    said = onboard("jobs", "cancel", json.loads(learned.stdout)["job"])
    assert said.code == 4
    assert "succeeded" in said.err
    assert "onboard jobs show" in said.remedy


def test_another_label_set_is_refused_and_nothing_is_queued(
    place: Place, learned: Finished, onboard: CommandLine
) -> None:
    before = jobs_in(place)
    rows = place.write("other.jsonl", opinions(20, ("pro", "contra")))
    said = onboard("submit", "--dataset", rows, "--task", "mood")
    assert said.code == 4
    assert "--new-labels" in said.remedy
    assert onboard.json("submit", "--dataset", rows, "--task", "sst2", code=4)["error"]["code"] == "conflict"
    assert jobs_in(place) == before


def jobs_in(place: Place) -> int:
    with place.services() as services, services.database.read() as session:
        return len(JobRepository(session).list())
