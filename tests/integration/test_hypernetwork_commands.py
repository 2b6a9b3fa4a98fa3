"""`onboard hypernetwork`, and bundles of later hypernetworks: beside the database and from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.command_line import CommandLine
from support.program import Place
from support.published import add_version, embedding_of
from support.refusals import refused
from support.served import Served, served
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.client import Onboard
from onboard.errors import NotFoundError
from onboard.registry.audit import entries
from onboard.serving import Predictor

SIDES = ("here", "there")
LABELS = ("sad", "happy"), ("sad", "happy")
INPUTS = [{"task": "mood", "text": text} for text in ("good film", "bad plot", "the film was great")]
GUARD = {
    "verdict": "accepted", "share": 0.5, "reason": "No earlier task lost more than 0.02 nats.",
    "tasks": [
        {
            "task": "sst2@v1", "verdict": "pass", "increase": 0.001, "low": -0.002, "high": 0.004, "rows": 90,
            "flipped": 2,
        }
    ],
}  # fmt: skip
Said = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Iterator[Served]:
    """mood@v1 is pinned to hypernetwork 1 and mood@v2, the same numbers, to 2; the head is 3."""
    place = Place(tmp_path_factory.mktemp("heads"), tiny_base.folder)
    place.home.mkdir()
    with ExitStack() as opened:
        service = opened.enter_context(served(place))
        services = opened.enter_context(place.services())
        add_version(services, tiny_base, "mood", *LABELS, z=embedding_of(1))
        second = tuned_head(services, tiny_base, 0.5, guard=GUARD)
        add_version(
            services, tiny_base, "mood", *LABELS, z=embedding_of(1), hypernetwork_version=2, pinned=second.digest
        )
        tuned_head(services, tiny_base, seed=2, moved_from=1)
        yield service


@pytest.fixture
def said(service: Served, command_line: CommandLine) -> Said:
    """Exit code and standard output of a command."""

    def run(side: str, *words: object, as_json: bool = True) -> tuple[int, str]:
        command_line.on_side(side, service)
        return command_line(*words, *["--json"] * as_json)[:2]

    return run


@pytest.mark.parametrize("side", SIDES)
def test_the_line_is_listed_with_its_head_and_how_much_is_pinned_to_each(
    side: str, said: Said, tiny_base: Base
) -> None:
    for named in ((), ("--base", tiny_base.digest)):
        code, out = said(side, "hypernetwork", "list", *named)
        document = json.loads(out)
        assert (code, document["base"], document["base_digest"]) == (0, "tiny", tiny_base.digest)
        line = document["hypernetworks"]
        assert [(head["version"], head["parent"], head["head"]) for head in line] == [
            (1, None, False), (2, 1, False), (3, 2, True)
        ]  # fmt: skip
        assert [head["pinned"] for head in line] == [1 + len(tiny_base.sources), 1, 0]
    assert said(side, "hypernetwork", "list", "--base", "nothing")[0] == 3


@pytest.mark.parametrize("side", SIDES)
def test_a_version_is_shown_with_what_is_pinned_to_it_and_the_guards_verdict(side: str, said: Said) -> None:
    code, out = said(side, "hypernetwork", "show", 2)
    document = json.loads(out)
    assert (code, document["parent"], document["head"], document["pinned"]) == (0, 1, False, 1)
    assert document["pinned_by"] == {"tasks": 1, "in_use": ["mood@v2"], "learned": 0}
    assert document["guard"] == GUARD
    _, text = said(side, "hypernetwork", "show", 2, as_json=False)
    for expected in (document["digest"], "tuned from v1", "mood@v2", "sst2@v1", "pass", "No earlier task lost"):
        assert expected in text
    assert "tuned from v1 and moved onto v2" in said(side, "hypernetwork", "show", 3, as_json=False)[1]
    assert json.loads(said(side, "hypernetwork", "show", 1)[1])["guard"] is None
    assert said(side, "hypernetwork", "show", 9)[0] == 3


@pytest.mark.parametrize("side", SIDES)
def test_going_back_moves_the_head_alone_is_written_down_and_says_what_it_means(
    side: str, said: Said, service: Served
) -> None:
    before = said(side, "predict", "mood@v2", "--text", "good film")
    code, text = said(side, "hypernetwork", "revert", 2, as_json=False)
    assert code == 0
    for expected in ("v2 is the head", "was v3", "New tasks are learned under it", "Published versions do not change"):
        assert expected in text
    assert [head["head"] for head in json.loads(said(side, "hypernetwork", "list")[1])["hypernetworks"]][1]
    assert said(side, "predict", "mood@v2", "--text", "good film") == before
    again, _ = said(side, "hypernetwork", "revert", 2)  # no change
    code, out = said(side, "hypernetwork", "revert", 3)
    document = json.loads(out)
    assert (again, code, document["version"], document["previous"], document["base"]) == (0, 0, 3, 2, "tiny")
    with service.place.services() as services, services.database.read() as session:
        written = [entry for entry in entries(session, 9) if entry.action == "hypernetwork.revert"][:2]
    assert [(entry.facts["previous"], entry.facts["version"]) for entry in written] == [(2, 3), (3, 2)]
    assert all(entry.actor for entry in written)
    assert said(side, "hypernetwork", "revert", 9)[0] == 3


def test_a_bundle_has_the_same_files_from_elsewhere_and_predicts_what_the_service_does(
    tmp_path: Path, said: Said, service: Served
) -> None:
    for side in SIDES:
        code, out = said(side, "fetch", "mood@v2", "--bundle", "--output", tmp_path / side)
        names = ["embedding.safetensors", "card.md", "base", "hypernetwork.safetensors"]
        assert (code, [Path(file).name for file in json.loads(out)["files"]]) == (0, names)
    here, there = ({file.relative_to(tmp_path / side): file for file in (tmp_path / side).rglob("*")} for side in SIDES)
    assert here.keys() == there.keys()
    assert [file for file in here if here[file].is_file() and here[file].read_bytes() != there[file].read_bytes()] == []
    with service.place.services() as services:
        expected = Predictor(services).predict([{**asked, "ref": "v2"} for asked in INPUTS])
    for answer, same in zip(Predictor(tmp_path / "there").predict(INPUTS), expected, strict=True):
        np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-5)


def test_the_client_gets_the_hypernetwork_that_an_embedding_is_pinned_to_and_verifies_it(
    tmp_path: Path, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Onboard(service.url, service.token, cache=tmp_path / "cache") as client:
        pins = client.embedding("mood@v2").pins
        assert pins.hypernetwork_version == 2
        path = client.hypernetwork(pins, tmp_path / "weights.safetensors")
        with service.place.services() as services:
            assert services.read(pins.hypernetwork_digest) == path.read_bytes()
        with refused("received-bytes-differ"):
            client.hypernetwork(replace(pins, hypernetwork_digest="sha256:0"), tmp_path / "other.safetensors")
        with pytest.raises(NotFoundError):
            client.hypernetwork(replace(pins, hypernetwork_version=9), tmp_path / "other.safetensors")
        assert client.predict([{**INPUTS[0], "ref": "v2"}])[0].version == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cache", "weights.safetensors"]
