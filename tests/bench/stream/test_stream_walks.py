"""The stream bench from its tasks to its page: what is drawn, going on after a stop, what is shared and stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from support.stream_rows import made_step
from support.stream_walks import NAMES, walked

from bench.harness.command import DATA
from bench.harness.rows import finished
from bench.heldout.families import families, held_out
from bench.stream import __main__ as bench
from bench.stream import walking
from bench.stream.figures import Results
from bench.stream.learning import from_hex, to_hex
from bench.stream.material import Material
from bench.stream.methods import FROZEN, GUARDED, LORA, METHODS, NAIVE, REGULARISED, Method
from bench.stream.sharing import Journal, Stream
from bench.stream.sizes import sizes, version_bytes
from bench.stream.tasks import SUITE, TASKS, drawn, in_order
from onboard.bases import Base, find_base

WIDE = DATA / SUITE


@pytest.mark.skipif(not WIDE.is_dir(), reason="the held-out tasks are not beside the checkout (../shared/data/wide)")
def test_the_tasks_are_held_out_and_of_a_family_each() -> None:
    of_task = families(WIDE)
    assert len(TASKS) == len({of_task[task] for task in TASKS}) == 15
    assert set(TASKS) <= set(held_out(WIDE))


def test_no_task_is_one_that_a_base_has_learned() -> None:
    base = find_base("mini")
    assert not set(TASKS) & {source.name for source in base.sources}


def test_orders_differ_in_tasks_and_draws_and_not_in_test_rows(data: Path) -> None:
    names = list(TASKS)
    orders = [in_order(names, order) for order in range(3)]
    assert all(sorted(order) == sorted(names) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    (first, test), (second, same) = (drawn(data / SUITE / "edos_sexism", 12, order, 8) for order in (0, 1))
    assert first.train != second.train
    assert test == same


@pytest.mark.parametrize("method", [FROZEN, REGULARISED, LORA])
def test_a_stream_that_was_stopped_goes_on_to_the_same_end(
    material: Material, journal: Journal, tmp_path: Path, method: str
) -> None:
    stream = Stream(0, method)
    rows = walked(material, journal, tmp_path, method, time_is_up=lambda: len(journal.steps().get(stream, [])) == 2)
    assert len(rows) == 2
    with journal.path.open("a") as file:
        file.write('{"order": 0, "met')  # killed while writing
    on = walked(material, journal, tmp_path, method)
    other = Journal(tmp_path / "unbroken.jsonl", {method: {}})
    assert on == walked(material, other, tmp_path / "elsewhere", method)
    assert not [*tmp_path.rglob("*.safetensors")], "a stream at its end needs no hypernetworks"


def test_a_stream_whose_hypernetworks_are_gone_starts_anew(
    material: Material, journal: Journal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Stream(0, NAIVE)
    walked(material, journal, tmp_path, NAIVE, time_is_up=lambda: len(journal.steps().get(stream, [])) == 2)
    rows = walked(material, journal, tmp_path / "elsewhere", NAIVE)
    assert "starts anew" in capsys.readouterr().out
    other = Journal(tmp_path / "unbroken.jsonl", {NAIVE: {}})
    assert rows == walked(material, other, tmp_path / "other", NAIVE)


def test_a_stream_that_began_anew_and_was_stopped_again_has_no_step_of_its_first_walk(
    material: Material, journal: Journal, tmp_path: Path
) -> None:
    stream = Stream(0, NAIVE)
    for weights, steps in (("here", 2), ("elsewhere", 1)):
        begun = len(list(finished(journal.path)))
        walked(
            material, journal, tmp_path / weights, NAIVE,
            time_is_up=lambda end=begun + steps: len(list(finished(journal.path))) == end,
        )  # fmt: skip
    assert len(journal.steps()[stream]) == 1


def test_methods_share_probe_and_training_where_head_and_embeddings_are_the_same(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    real = walking.begin
    monkeypatch.setattr(walking, "begin", lambda *given: began.append(given[1]) or real(*given))
    tasks = in_order(NAMES, 0)
    frozen = walked(material, journal, tmp_path, FROZEN)
    assert began == tasks
    naive = walked(material, journal, tmp_path, NAIVE)
    assert began == [*tasks, *tasks[1:]]
    assert naive[0]["embedding"] == frozen[0]["embedding"]
    assert naive[1]["given"] != frozen[1]["given"]


def test_rows_of_other_settings_are_not_seen(material: Material, journal: Journal, tmp_path: Path) -> None:
    walked(material, journal, tmp_path, FROZEN)
    assert not Journal(journal.path, {FROZEN: {"steps": 5}}).steps()
    assert list(Journal(journal.path, {FROZEN: {}, NAIVE: {}}).steps()) == [Stream(0, FROZEN)]


def test_an_embedding_survives_its_digits() -> None:
    z = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    assert from_hex(to_hex(z)).tobytes() == z.tobytes()


def test_a_task_stores_less_than_4_kb_and_shares_the_rest(material: Material) -> None:
    half = [made_step((0.5,)), made_step((0.5, 0.5), share=0.0)]
    steps = {Stream(0, method): half for method in METHODS}
    stored = sizes(material, Results(steps, [NAMES[:2]]))
    frozen, guarded, two_kinds = stored[:3]
    assert version_bytes(material) == frozen.own < 4000
    assert frozen.of_task(1000) == pytest.approx(frozen.own + frozen.shared / 1000)
    tuned = guarded.shared - frozen.shared
    assert tuned > 4 * sum(parameter.numel() for parameter in material.engine.hypernetwork.parameters())
    assert two_kinds.own == frozen.own + tuned / 2, "half of the tasks have a hypernetwork of their own"
    assert stored[-1].own == 4 * half[0]["parameters"]


@pytest.fixture
def command(tiny_base: Base, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)

    def options(*more: str) -> list[str]:
        return [
            "--base", str(tiny_base.folder), "--data", str(data), "--orders", "2", "--shots", "12",
            "--test-rows", "10", "--tasks", *NAMES[:2], "--weights", str(tmp_path / "weights"),
            "--output", str(tmp_path / "stream.jsonl"), "--table", str(tmp_path / "stream.md"), *more,
        ]  # fmt: skip

    return options


def test_the_command_measures_goes_on_and_writes_page_and_heat_map(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--part", "2/2")) == 0
    part = [json.loads(line) for line in (tmp_path / "stream.jsonl").read_text().splitlines()]
    assert {(row["method"], row["order"]) for row in part} == {
        (GUARDED, 0), (NAIVE, 0), (FROZEN, 1), (REGULARISED, 1), (LORA, 1),
    }  # fmt: skip
    assert "not measured yet" in (tmp_path / "stream.md").read_text()
    assert bench.main(command()) == 0
    rows = (tmp_path / "stream.jsonl").read_text().splitlines()
    assert len(rows) == 2 * 5 * 2
    assert bench.main(command()) == 0
    assert (tmp_path / "stream.jsonl").read_text().splitlines() == rows
    page = (tmp_path / "stream.md").read_text()
    assert "not measured yet" not in page
    assert all(f"| {method.title} |" in page for method in METHODS.values())
    assert "2 of 2 earlier tasks are generated the same | met |" in page
    assert (tmp_path / "stream-1.svg").read_text().startswith("<svg")
    assert not (tmp_path / "stream-2.svg").exists()  # no page embeds it
    assert "20 of 20 steps" in capsys.readouterr().out


def test_the_plan_tells_what_is_missing_and_measures_nothing(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--methods", FROZEN, LORA)) == 0
    capsys.readouterr()
    assert bench.main(command("--methods", FROZEN, NAIVE, "--plan")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["naive", "4"], ["all", "4"]]
    assert bench.main(command("--methods", FROZEN, "--plan")) == 0
    assert capsys.readouterr().out == "everything is there\n"
    assert len((tmp_path / "stream.jsonl").read_text().splitlines()) == 8


def test_without_the_datasets_it_is_skipped_and_the_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert f"skipped: the datasets are not here ({tmp_path / 'nowhere'})" in capsys.readouterr().out


def test_every_method_says_what_its_numbers_depend_on() -> None:
    settings = {name: bench.settings_of(name, 32) for name in METHODS}
    assert set(settings[FROZEN]) == {"embedding", "probe", "step"}
    assert set(settings[GUARDED]) == {"embedding", "probe", "tuning", "guard", "step"}
    assert settings[NAIVE]["tuning"]["beta"] == 0 < settings[REGULARISED]["tuning"]["beta"]
    assert set(settings[LORA]) == {"recipe"}
    assert isinstance(METHODS[FROZEN], Method)
