"""The benches with a tiny base and hand-made sources: they run, keep what is finished, and say what they found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.tiny_training import make_sources, write_split

from bench import ablations, step_time
from bench.curriculum import __main__ as curriculum
from bench.curriculum import curricula
from bench.harness.as_if_new import candidates
from bench.harness.intervals import seeds_interval
from bench.harness.runs import run_all
from bench.harness.variants import VARIANTS
from onboard.bases import Base
from onboard.bases.load import fresh_engine
from onboard.making.curriculum import Curriculum, Source
from onboard.making.multitask.tasks import SourceBatches
from onboard.making.pretrain.teacher import Teacher
from onboard.model.encoding import TextEncoder
from onboard.train.settings import FewShotSettings

WORDS = ["good", "bad", "film", "plot", "the", "was", "and", "great", "awful", "yes", "no"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sources(tmp_path_factory.mktemp("sources"), rows=80)


def files(folder: Path) -> list[str]:
    return ["--output", str(folder / "out.json"), "--table", str(folder / "out.md")]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks transformers for it
def test_step_times_of_all_variants_and_the_hypernetworks_share_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(step_time, "peak_memory", lambda name, setup: 1000)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    output = tmp_path / "step_time.json"
    assert step_time.main(["--setup", "tiny", "--rounds", "1", "--warm-up", "1", "--output", str(output)]) == 0
    document = json.loads(output.read_text())
    assert {"hyperformer", "adapters", "hyperformer_pp / full_fine_tuning"} <= {
        *document["seconds"],
        *document["ratios"],
    }
    assert list(document["hypernetwork_share_by_tasks_in_memory"]) == ["8", "100", "1000"]
    assert "share of a step" in capsys.readouterr().out


def test_with_no_options_step_times_are_of_the_cpus_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(step_time, "print_own_peak", lambda name, setup: asked.append(setup.device))
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    assert step_time.main(["--memory-of", "full_fine_tuning"]) == 0
    assert asked == ["cpu"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: then it is measured")
def test_without_a_gpu_its_step_times_are_skipped_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert step_time.main(["--gpu"]) == 0
    assert "skipped" in capsys.readouterr().out


def test_every_ablation_trains_is_scored_and_stands_in_a_table(tiny_base: Base, sources: Path, tmp_path: Path) -> None:
    options = ["--base", str(tiny_base.folder), "--sources", str(sources), "--steps", "4", "--batch", "4"]
    work = ["--seeds", "1", "--processes", "1", "--work", str(tmp_path / "work.jsonl")]
    assert ablations.main([*options, *work, *files(tmp_path)]) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    assert [run["variant"] for run in document["runs"]] == list(VARIANTS)
    assert all(set(run["scores"]) == {"alike", "moods"} for run in document["runs"])
    table = (tmp_path / "out.md").read_text()
    assert all(comparison.title in table for comparison in ablations.COMPARISONS)


def test_without_sources_the_ablations_are_skipped_and_the_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ablations.main(["--sources", str(tmp_path / "nowhere"), *files(tmp_path)]) == 0
    assert f"skipped: the source tasks are not here ({tmp_path / 'nowhere'})" in capsys.readouterr().out


def test_finished_runs_are_not_measured_again_unless_the_settings_differ(tmp_path: Path) -> None:
    work, measured = tmp_path / "work.jsonl", []

    def measure(variant: str, seed: int) -> dict[str, Any]:
        measured.append((variant, seed))
        return {"mean": float(seed)}

    run_all([("a", 0)], measure, work, {"steps": 1})
    with work.open("a") as file:
        file.write('{"variant": "b", "se')  # killed while writing
    rows = run_all([("a", 0), ("b", 1)], measure, work, {"steps": 1})
    assert measured == [("a", 0), ("b", 1)]
    assert [(row["variant"], row["mean"]) for row in rows] == [("a", 0.0), ("b", 1.0)]
    run_all([("a", 0), ("b", 1)], measure, work, {"steps": 1})
    assert len(measured) == 2
    run_all([("a", 0)], measure, work, {"steps": 2})
    assert len(measured) == 3


def test_the_interval_over_seeds_is_students() -> None:
    mean, low, high = seeds_interval([1.0, 2.0, 3.0])
    assert (mean, low, high) == pytest.approx((2.0, 2.0 - 2.4841, 2.0 + 2.4841), abs=1e-3)


@pytest.mark.parametrize(
    ("better", "expected"),
    [
        (0.0, "above full fine-tuning, multi-task, as in the paper"),
        (5.0, "**differs from the paper**: below full fine-tuning, multi-task by 4.0 (clearly)"),
    ],
)
def test_a_row_says_whether_the_seeds_can_tell_that_the_order_is_not_the_papers(better: float, expected: str) -> None:
    means = {"hyperformer": [51.0, 52.0, 53.0], "full": [50.0 + better, 51.1 + better, 51.9 + better]}
    assert ablations._beside_the_paper(ablations.TABLE_1, "hyperformer", means) == expected


def test_where_the_papers_mean_is_not_known_no_order_is_claimed() -> None:
    means = {"hyperformer": [51.0], "adapters": [60.0], "full": [50.0]}
    assert ablations._beside_the_paper(ablations.TABLE_1, "adapters", means) == "order not verified"
    assert "Adapters" not in ablations._beside_the_paper(ablations.TABLE_1, "hyperformer", means)
    assert ablations._beside_the_paper({}, "hyperformer", means) == "order not verified"


VARIANT_PARTS = {  # tensors that the variant trains beside or instead of the plain ones
    "without-conditional-norm": ({"hypernetwork", "embeddings", "norms"}, True),
    "without-both-norms": ({"hypernetwork", "embeddings"}, True),
    "without-t5-norms": ({"hypernetwork", "embeddings"}, False),
    "without-projector": ({"hypernetwork", "embeddings", "norms"}, False),
    "without-adapters": ({"norms"}, False),
    "full": ({"backbone"}, False),
}


@pytest.mark.parametrize("name", VARIANT_PARTS)
def test_variants_train_what_the_paper_says_and_nothing_else(tiny_base: Base, name: str) -> None:
    engine = fresh_engine(tiny_base)
    method = VARIANTS[name].build(engine, ["one", "two"])
    parts, same_norm_for_all = VARIANT_PARTS[name]
    assert set(method.modules) == parts
    trained = {id(parameter) for parameter in method.trained}
    assert all(parameter.requires_grad == (id(parameter) in trained) for parameter in engine.backbone.parameters())
    if "embeddings" in parts:
        first, second = (engine.hypernetwork(z).encoder for z in method.modules["embeddings"].parameters())
        assert torch.equal(first.gamma, second.gamma) == same_norm_for_all
        assert not torch.equal(first.down, second.down)
    if name == "without-projector":
        assert engine.hypernetwork.sizes["task_embedding_size"] == engine.hypernetwork.sizes["conditioning_size"]


class FakeTeacher:
    @classmethod
    def load(cls) -> FakeTeacher:
        return cls()

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        counts = np.stack([np.bincount([ord(letter) % 8 for letter in text], minlength=8) for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float16)


def hand_made(sources: Sequence[Source], material: Any, counts: Any, encoder: TextEncoder, seed: int) -> Curriculum:
    """The sources, and one of them under other names as if it were topics and form."""
    own = tuple(SourceBatches(source, encoder, seed) for source in sources)
    moods = sources[-1]
    topics, form = (
        tuple(SourceBatches(replace(moods, name=f"{kind}-{number}"), encoder, number) for number in range(3))
        for kind in ("topics", "form")
    )
    return Curriculum(((own, 1.0), (topics, 1.0), (form, 1.0)), ("sources", "topics", "form"))


@pytest.fixture
def curriculum_options(
    tiny_base: Base, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    monkeypatch.setattr(curricula, "Teacher", FakeTeacher)
    monkeypatch.setattr(curricula, "build_curriculum", hand_made)
    monkeypatch.setattr(curricula, "common_words", lambda texts: WORDS)
    monkeypatch.setattr(curricula, "FEW_SHOT", FewShotSettings(steps=2))
    kinds = "\n".join(f"{kind} = {{ share = 1.0, tasks = 8 }}" for kind in curricula.KINDS)
    (tmp_path / "tiny.toml").write_text(
        f"[curriculum]\ntopic_levels = [2]\n{kinds}\n[sources]\nthird.family = 'topic'\n"
    )
    wide, rng = make_sources(tmp_path / "wide", rows=40), np.random.default_rng(3)
    (wide / "alike").rename(wide / "third")
    (wide / "moods").rename(wide / "another")
    for name in ("questions", "requests"):
        for split in ("train", "test"):
            rows = [{"text": " ".join(rng.permutation(WORDS)[:6]), "label": ("film", "plot")[n % 2]} for n in range(90)]
            write_split(wide / name, split, rows)
    (wide / "heldout.txt").write_text("questions\nrequests\n")
    (wide / "README.md").write_text("| dataset | family |\n|---|---|\n| questions | question |\n| requests | act |\n")

    def options(*more: str) -> list[str]:
        return [
            "--base", str(tiny_base.folder), "--sources", str(sources), "--wide", str(tmp_path / "wide"),
            "--tasks", "questions", "requests",
            "--recipe", str(tmp_path / "tiny.toml"), "--steps", "4", "--batch", "4", "--draws", "1",
            "--processes", "1", "--work", str(tmp_path / "work"), *files(tmp_path), *more,
        ]  # fmt: skip

    return options


def test_curricula_are_compared_on_held_out_tasks_by_family(
    curriculum_options: Callable[..., list[str]], tmp_path: Path
) -> None:
    assert curriculum.main(curriculum_options("--curricula", "everything", "everything but form", "2 sources")) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    runs = {run["variant"]: run for run in document["runs"]}
    assert {name: run["tasks"] for name, run in runs.items()} == {
        "everything": 10, "everything but form": 7, "2 sources": 2
    }  # fmt: skip
    assert document["sources"][:2] == ["alike", "moods"], "those of --sources come first"
    assert set(document["sources"]) == {"alike", "moods", "third", "another"}, "what is held out is not learned"
    assert all(len(run["accuracy"]["requests"]) == 1 for run in runs.values())
    assert all(0 <= accuracy <= 100 for accuracy in runs["everything"]["accuracy"]["questions"])
    lines = (tmp_path / "out.md").read_text().splitlines()
    assert "| curriculum | tasks | mean | beside everything | act | question |" in lines
    cells = {line.split(" | ")[0]: line.split(" | ") for line in lines}
    own, whole = (runs[name]["accuracy"] for name in ("everything but form", "everything"))
    gains = [a - b for task in own for a, b in zip(own[task], whole[task], strict=True)]
    assert cells["| everything but form"][3] == f"{np.mean(gains):+.1f}"
    assert cells["| everything"][3] == "–"
    assert cells["| everything"][5] == f"{np.mean(whole['questions']):.1f} |"


def test_the_family_of_a_source_is_that_of_the_recipe(
    curriculum_options: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    family_of: dict[str, str] = {}

    def made_of(sources: Sequence[Source], *more: Any) -> Curriculum:
        family_of.update({source.name: source.about.family for source in sources})
        return hand_made(sources, *more)

    monkeypatch.setattr(curricula, "build_curriculum", made_of)
    assert curriculum.main(curriculum_options("--curricula", "sources only")) == 0
    assert family_of["third"] == "topic"


def test_a_curriculum_that_is_compared_has_no_fingerprints_of_the_base_that_lent_the_backbone(
    fingerprinted_base: Base, tmp_path: Path
) -> None:
    table = {name: np.zeros(64, dtype=np.float32) for name in ("sst2", "one", "two")}
    trained = curricula._as_base(fingerprinted_base, table, tmp_path)
    assert trained.fingerprints is None
    candidates_now = candidates(trained, 0, "new", None)
    assert [(candidate.embedding, len(candidate.z)) for candidate in candidates_now] == [
        (name, 64) for name in ("sst2", "one", "two", "random", "mean")
    ]


def test_a_task_that_is_learned_as_if_it_were_new_meets_no_made_task_that_bears_its_name(
    fingerprinted_base: Base,
) -> None:
    def offered(task: str) -> set[str]:
        return {candidate.embedding for candidate in candidates(fingerprinted_base, 0, task, None)}

    everything = offered("new")
    assert everything - offered("sst2") == {"sst2"}
    assert everything - offered("made-1") == {"made-1"}
    assert everything - offered("made") == {f"made-{number}" for number in range(20)}


def test_without_the_teacher_the_curricula_are_skipped_and_the_command_that_mends_it_is_named(
    curriculum_options: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("onboard.making.pretrain.teacher.find_spec", lambda name: None)
    monkeypatch.setattr(curricula, "Teacher", Teacher)
    assert curriculum.main(curriculum_options("--texts", "7")) == 0
    assert "skipped: " in (said := capsys.readouterr().out)
    assert "onboard[mini]" in said


def test_the_backbone_of_a_variant_is_its_own(tiny_base: Base) -> None:
    first, second = fresh_engine(tiny_base), fresh_engine(tiny_base)
    VARIANTS["full"].build(first, ["one"])
    assert not any(parameter.requires_grad for parameter in second.backbone.parameters())
