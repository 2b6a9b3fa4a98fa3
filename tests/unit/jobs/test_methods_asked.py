"""What a submission asks of a method: refused before anything is queued, with what would work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.real_jobs import Desk, opinions
from support.refusals import refused

from onboard.bases import Base
from onboard.domain.dataset import Dataset, Example
from onboard.domain.methods import COMPARED_ONLY, HYPERNETWORKS, OWN_WEIGHTS, content_of, method_settings
from onboard.domain.submission import Submission
from onboard.jobs.methods import as_queued
from onboard.jobs.submission import job_spec
from onboard.model.methods import METHODS, TASK_METHODS
from onboard.registry.services import Services


@pytest.fixture
def desk(tiny_services: Services, tmp_path: Path) -> Desk:
    return Desk(tiny_services, tmp_path)


def test_the_names_are_those_of_the_methods_that_there_are() -> None:
    assert tuple(METHODS) == HYPERNETWORKS
    assert tuple(TASK_METHODS) == (*OWN_WEIGHTS, COMPARED_ONLY)
    assert [name for name, method in TASK_METHODS.items() if not method.PUBLISHES] == [COMPARED_ONLY]


REFUSED: list[tuple[str, dict[str, Any], str, dict[str, object]]] = [
    ("compacta", {}, "unknown-method", {"guess": " Did you mean compacter?"}),
    ("full-fine-tuning", {}, "method-compared-only", {"method": "full-fine-tuning"}),
    ("hyperformer", {}, "method-not-of-base", {"base": "tiny", "method": "hyperformer"}),
    ("compacter", {"reduction_factor": 3}, "method-setting-not-divisor", {"name": "reduction_factor", "value": 3}),
    ("compacter", {"reduction_factor": 4, "n": 3}, "method-setting-not-divisor", {"name": "n", "value": 3}),
    ("adapters", {}, "method-setting-not-divisor", {"name": "reduction_factor", "value": 32}),
    ("prompt-tuning-r", {"tokens": 1000}, "prompt-too-long", {"tokens": 1000, "most": 128}),
    ("bitfit", {"rank": 2}, "unknown-method-setting", {"unknown": "rank"}),
    ("linear", {"rank": 2}, "method-without-settings", {"name": "linear"}),
    ("", {"rank": 2}, "method-without-settings", {"name": "hyperformer++"}),
]


@pytest.mark.parametrize(("method", "settings", "type_", "facts"), REFUSED)
def test_what_cannot_be_learned_is_refused_with_what_can(
    desk: Desk, method: str, settings: dict[str, Any], type_: str, facts: dict[str, object]
) -> None:
    with refused(type_, **facts) as caught:
        desk.submit(opinions(8), method=method, settings=settings)
    assert caught.value.remedy
    assert desk.jobs() == []


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({"tune_hypernetwork": "always"}, "--tune-hypernetwork always"),
        ({"init": "sst2"}, "--init sst2"),
        ({"init": "mean"}, "--init mean"),
    ],
)
def test_what_only_an_embedding_has_is_refused(desk: Desk, more: dict[str, Any], option: str) -> None:
    with refused("option-with-method", option=option, method="bitfit"):
        desk.submit(opinions(8), method="bitfit", **more)
    assert desk.jobs() == []


@pytest.mark.parametrize(
    ("more", "type_"),
    [
        ({"init": "mean"}, "init-with-method"),
        ({"init": "topics-2"}, "init-with-method"),
        ({"init": "sst3"}, "unknown-init"),
        ({"init": "sst2", "settings": {"reduction_factor": 2}}, "init-reduction-factor-differs"),
    ],
)
def test_adapters_start_at_those_of_one_task_or_as_their_paper_says(
    desk: Desk, more: dict[str, Any], type_: str
) -> None:
    with refused(type_):
        desk.submit(opinions(8), method="adapters-dagger", **more)
    assert desk.jobs() == []
    queued = desk.submit(opinions(8), method="adapters-dagger", init="sst2", settings={"reduction_factor": 4})
    assert queued.spec.init == "sst2"


def test_a_readout_alone_needs_two_rows_of_every_label(desk: Desk) -> None:
    rows = [*opinions(8), {"text": "the film was sad", "label": "odd"}]
    with refused("label-needs-two-rows"):
        desk.submit(rows, method="linear")
    assert desk.jobs() == []
    desk.submit([*rows, {"text": "a film was sad", "label": "odd"}], method="linear")


def test_what_is_queued_tunes_and_probes_nothing(desk: Desk, tiny_base: Base) -> None:
    job = desk.submit(opinions(8), method="bitfit", tune_hypernetwork="auto")
    assert (job.spec.tune_hypernetwork, job.spec.init, job.spec.without_embedding) == ("never", "random", True)
    own = desk.submit(opinions(8), "own", method=tiny_base.method, tune_hypernetwork="auto").spec
    assert (own.tune_hypernetwork, own.init, own.without_embedding) == ("auto", "auto", False)
    assert as_queued(own, Dataset("classification", ("yes",), (Example("a", None, "yes"),))) == own


def test_a_submission_brings_its_settings_to_the_job() -> None:
    asked = Submission("hf://mood", method="compacter", method_setting=["reduction_factor=16", "n=8"])
    spec = job_spec(asked, "mini")
    assert (spec.method, spec.method_settings) == ("compacter", {"reduction_factor": 16, "n": 8})
    assert job_spec(Submission("hf://mood"), "mini").method_settings == {}


@pytest.mark.parametrize("written", ["n", "n=", "=4", "n=four", "n=null"])
def test_a_setting_is_a_name_and_a_number(written: str) -> None:
    with refused("method-setting-malformed"):
        method_settings([written])


def test_a_setting_is_given_once_and_may_be_a_list() -> None:
    assert method_settings(["encoder_layers=[0, 1]", "n=4"]) == {"encoder_layers": [0, 1], "n": 4}
    with refused("method-setting-malformed"):
        method_settings(["n=4", "n=8"])


def test_a_method_of_a_later_release_is_told_as_that() -> None:
    assert [content_of(name, "mood@v1") for name in ("", "hyperformer++", "linear", "bitfit")] == [
        "embedding", "embedding", "readout", "weights",
    ]  # fmt: skip
    with refused("method-unknown-to-release"):
        content_of("lora-2", "mood@v1")
