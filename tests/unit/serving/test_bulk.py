"""Files answered shard by shard: every row once, in order, whatever stops the run."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from bench.harness.services import wait_until
from onboard.domain.prediction import Prediction
from onboard.errors import (
    InputError,
    NotAllowedError,
    NotFoundError,
)
from onboard.serving.bulk import answering, plan
from onboard.serving.bulk.answering import BulkDone, predict_files
from onboard.serving.bulk.asked import BulkQuestion
from onboard.serving.bulk.inputs import inputs_of
from onboard.serving.bulk.outputs import outputs_at
from onboard.serving.bulk.plan import Plan, make_plan, read_plan

QUESTION = BulkQuestion(("mood@latest",), ("mood@v2",))
TWO = BulkQuestion(("mood@latest", "kind@v1"), ("mood@v2", "kind@v1"))


class Answering:
    """Answers a text by itself; may stop after so many texts."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.texts: list[str] = []
        self.stop_after = stop_after

    def __call__(self, inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        if self.stop_after is not None and len(self.texts) + len(inputs) > self.stop_after:
            raise KeyboardInterrupt
        self.texts += [asked["text"] for asked in inputs]
        return [Prediction(asked["text"], 0.5, asked["task"], int(asked["ref"][1:])) for asked in inputs]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SHARD_ROWS", 10)
    monkeypatch.setattr(answering, "_ROWS_AT_ONCE", 4)
    monkeypatch.setattr(answering, "_LOOK_SECONDS", 0.05)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of three files with 23, 10 and 4 rows, one of which is bad."""
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": f"a{n}", "id": n}) + "\n" for n in range(23)))
    (folder / "b" / "c.csv").write_text("text,label\n" + "".join(f"b{n},x\n" for n in range(10)))
    (folder / "d.jsonl").write_text('{"text": "d0"}\n{"text": ""}\n{"text": "d2"}\n{"text": "d3"}\n')
    (folder / "_SUCCESS").write_text("")
    return folder


TEXTS = [*(f"a{n}" for n in range(23)), *(f"b{n}" for n in range(10)), "d0", None, "d2", "d3"]


def lines(output: Path) -> list[dict[str, Any]]:
    parts = sorted(path for path in output.iterdir() if path.name.startswith("part-"))
    return [json.loads(line) for path in parts for line in path.read_text(encoding="utf-8").splitlines()]


def run(source: Path, output: Path, answer: Answering | None = None, question: BulkQuestion = QUESTION) -> BulkDone:
    return predict_files(source, output, question, answer or Answering())


def test_every_row_is_answered_once_and_in_order_and_a_bad_one_says_where_it_stands(
    source: Path, tmp_path: Path
) -> None:
    planned: list[Plan] = []
    counted: list[int] = []
    done = predict_files(source, tmp_path / "out", QUESTION, Answering(), planned.append, counted.append)
    rows = lines(tmp_path / "out")
    assert [row.get("label") for row in rows] == TEXTS
    assert rows[0] == {"text": "a0", "id": 0, "label": "a0", "probability": 0.5, "task": "mood", "version": 2}
    assert rows[23]["given_label"] == "x"
    error = rows[34]["error"]
    assert (error["file"], error["row"], error["code"]) == (str(source / "d.jsonl"), 2, "empty_text")
    assert (done.plan.rows, done.plan.bad_rows, sum(counted), planned) == (37, 1, 37, [done.plan])
    names = [path.name for path in sorted((tmp_path / "out").iterdir()) if not path.name.startswith(".")]
    assert names == [*(f"part-{n:06d}.jsonl" for n in range(5)), "plan.json"]
    assert done.to_document().to_json()["shards"] == 5


@pytest.mark.parametrize("stop_after", [0, 3, 8, 9, 12, 20, 22, 23, 30, 35])
def test_a_run_that_was_stopped_goes_on_and_ends_as_one_that_was_not(
    source: Path, tmp_path: Path, stop_after: int
) -> None:
    run(source, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", Answering(stop_after))
    shards = sum(path.name.startswith("part-") for path in (tmp_path / "out").iterdir())
    (tmp_path / "out" / ".part-000001.jsonl.part").write_text("half a li")  # as kill -9 leaves it
    second = Answering()
    # meanwhile `latest` names another version: the run ends on the one that it began with
    done = run(source, tmp_path / "out", second, replace(QUESTION, pinned=("mood@v3",)))
    assert done.found_shards == shards
    assert done.plan.question.pinned == ("mood@v2",)
    for part in ("plan.json", *(f"part-{n:06d}.jsonl" for n in range(5))):
        assert (tmp_path / "out" / part).read_bytes() == (tmp_path / "whole" / part).read_bytes()
    answered = [text for text in TEXTS if text]
    assert second.texts == answered[len(answered) - len(second.texts) :]
    third = Answering()
    assert run(source, tmp_path / "out", third).added_shards == 0
    assert third.texts == []


def test_a_shard_that_is_gone_is_made_again_and_no_other(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "out")
    (tmp_path / "out" / "part-000001.jsonl").unlink()
    answer = Answering()
    run(source, tmp_path / "out", answer)
    assert answer.texts == [f"a{n}" for n in range(10, 20)]
    assert [row.get("label") for row in lines(tmp_path / "out")] == TEXTS


def test_several_tasks_answer_in_one_pass(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "out", None, TWO)
    rows = lines(tmp_path / "out")
    assert len(rows) == 37
    answers = [(answer["task"], answer["version"], answer["label"]) for answer in rows[2]["answers"]]
    assert answers == [("mood", 2, "a2"), ("kind", 1, "a2")]


def test_a_single_file_is_answered_too(source: Path, tmp_path: Path) -> None:
    run(source / "a.jsonl", tmp_path / "out")
    assert [row["label"] for row in lines(tmp_path / "out")] == TEXTS[:23]


@pytest.mark.parametrize("changed", ["a.jsonl", "d.jsonl"])
def test_an_input_that_changes_while_it_is_read_is_refused_and_its_shard_not_written(
    source: Path, tmp_path: Path, changed: str
) -> None:
    class Changing(Answering):
        def __call__(self, inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
            if not self.texts:
                with (source / changed).open("a") as stream:
                    stream.write('{"text": "more"}\n')
            return super().__call__(inputs)

    with refused("input-changed", file=changed):
        run(source, tmp_path / "out", Changing())
    written = {row.get("label") for row in lines(tmp_path / "out")}
    assert not written & set(TEXTS[:23] if changed == "a.jsonl" else TEXTS[-4:])
    with refused("input-changed"):
        run(source, tmp_path / "out")


def test_the_folder_of_something_else_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("all of it")
    with refused("output-has-other-files"):
        run(source, tmp_path / "full")
    run(source, tmp_path / "out")
    for question in (TWO, replace(QUESTION, labels=("a", "b")), replace(QUESTION, probabilities=True)):
        with refused("output-of-other-request"):
            run(source, tmp_path / "out", None, question)
    (source / "e.jsonl").write_text('{"text": "e"}\n')
    with refused("output-of-other-input"):
        run(source, tmp_path / "out")
    (source / "e.jsonl").unlink()
    os.utime(source / "a.jsonl", (1, 1))
    with refused("input-changed"):
        run(source, tmp_path / "out")
    (tmp_path / "out" / "plan.json").write_text('{"format": 99}')
    with refused("plan-damaged"):
        run(source, tmp_path / "out")


def test_what_cannot_be_done_is_told_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with refused("input-without-files"):
        run(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(NotFoundError):
        run(tmp_path / "nothing", tmp_path / "out")
    with refused("output-inside-input"):
        run(source, source / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotAllowedError):
        run(source, tmp_path / "file" / "out")
    (source / "z.jsonl").write_text('{"text_a": "a", "text_b": "b"}\n')
    with refused("input-mixes-pairs"):
        run(source, tmp_path / "out")
    (source / "z.jsonl").write_text("")  # an empty shard is skipped

    def refuse(_: Plan) -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        predict_files(source, tmp_path / "out", QUESTION, Answering(), refuse)
    assert [path.name for path in (tmp_path / "out").iterdir()] in ([".lock"], [])
    assert run(source, tmp_path / "out").plan.rows == 37  # what was refused keeps nobody from it


@pytest.mark.parametrize("place", ["out", "memory://full-disk"])
def test_a_full_disk_is_told_wherever_the_answers_go(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("onboard.serving.bulk.outputs.os.fsync", full)
    monkeypatch.chdir(tmp_path)
    with refused("store-full" if "://" in place else "output-not-writable"):
        predict_files(source, place, QUESTION, Answering())


def test_processes_that_do_the_same_share_the_shards(source: Path, tmp_path: Path) -> None:
    other = Answering()

    class Meanwhile(Answering):
        def __call__(self, inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
            if not self.texts:  # the first shard is ours: the other does the rest, and would wait for us at the end
                thread.start()
                wait_until(lambda: len(other.texts) == 26, 20, "the others' shards")
            return super().__call__(inputs)

    mine = Meanwhile()
    thread = threading.Thread(target=run, args=(source, tmp_path / "out", other))
    done = run(source, tmp_path / "out", mine)
    thread.join(20)
    assert not thread.is_alive()
    assert (mine.texts, sorted(other.texts)) == (TEXTS[:10], sorted(text for text in TEXTS[10:] if text))
    assert (done.found_shards, done.added_shards) == (0, 1)
    assert [row.get("label") for row in lines(tmp_path / "out")] == TEXTS
    assert not list((tmp_path / "out").glob(".part*"))


def test_what_a_killed_process_held_is_taken_over(source: Path, tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from onboard.serving.bulk import plan; plan.SHARD_ROWS = 10\n"
        "from onboard.serving.bulk.answering import predict_files\n"
        "from onboard.serving.bulk.asked import BulkQuestion\n"
        "from onboard.domain.prediction import Prediction\n"
        "def answer(inputs):\n"
        "    if any(asked['text'] == 'a15' for asked in inputs): print('held', flush=True); sys.stdin.read()\n"
        "    return [Prediction(asked['text'], 0.5, 'mood', 2) for asked in inputs]\n"
        "predict_files(Path(sys.argv[1]), Path(sys.argv[2]), BulkQuestion(('mood@latest',), ('mood@v2',)), answer)\n"
    )
    words = [sys.executable, "-c", program, str(source), str(tmp_path / "out")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.kill()
    answer = Answering()
    done = run(source, tmp_path / "out", answer)
    assert (done.found_shards, answer.texts[0]) == (1, "a10")
    assert [row.get("label") for row in lines(tmp_path / "out")] == TEXTS


def test_a_plan_cuts_long_texts_into_smaller_shards_and_is_read_as_it_was_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SHARD_CHARACTERS", 12)
    made = make_plan(QUESTION, inputs_of(source))
    assert all(shard.rows <= 6 for shard in made.shards)
    by_file = groupby(made.shards, key=lambda shard: shard.file)
    assert [sum(shard.rows for shard in shards) for _, shards in by_file] == [23, 10, 4]
    (tmp_path / "plan.json").write_text(plan.plan_text(made))
    assert read_plan(outputs_at(tmp_path)) == made


def test_no_more_than_a_few_rows_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SHARD_ROWS", 200)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": f"{n} " + "x" * 10_000}) + "\n" for n in range(600)))

    class Forgetful(Answering):
        def __call__(self, inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
            return [Prediction("x", 0.5, "mood", 2) for _ in inputs]

    tracemalloc.start()
    try:
        run(tmp_path / "in.jsonl", tmp_path / "out", Forgetful())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_500_000, f"{peak:,} bytes for 6,000,000 of input"
    assert len(lines(tmp_path / "out")) == 600
