"""What is wrong with a command is told with what mends it, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.program import Place
from support.refusals import require


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory, open_base: Path) -> Iterator[Place]:
    """A home to which everything that is submitted is wrong: no job may be in it at the end."""
    place = Place(tmp_path_factory.mktemp("refusing"), open_base)
    (place.folder / "folder.jsonl").mkdir()
    good = '{"text": "good film", "label": "a"}\n'
    for name, content in {
        "ok.jsonl": good.encode() + b'{"text": "bad film", "label": "b"}\n',
        "junk.jsonl": bytes(range(256)) * 20,
        "latin.csv": "text,label\ncafé,a\nx,b\n".encode("latin-1"),
        "broken.jsonl": good.encode() + b'{"text": "bad film",\n',
        "nan.jsonl": good.encode() + b'{"text": "bad film", "label": NaN}\n',
        "empty-text.jsonl": good.encode() + b'{"text": " ", "label": "b"}\n',
        "empty.jsonl": b"",
        "one-label.jsonl": good.encode() + b'{"text": "bad film", "label": "a"}\n',
        "no-label.jsonl": good.encode() + b'{"text": "bad film"}\n',
        "number.jsonl": good.encode() + b'{"text": 7, "label": "b"}\n',
        "Bad Name.jsonl": good.encode() + b'{"text": "bad film", "label": "b"}\n',
    }.items():
        (place.folder / name).write_bytes(content)
    yield place
    try:
        assert place.json("jobs", "list") == {"jobs": []}
        assert place.workers() == []
    finally:
        place.leave()


@pytest.fixture
def onboard(refusing: Place, command_line: CommandLine) -> CommandLine:
    """Commands in that home, run in this process: what they refuse is the same, and two seconds earlier."""
    return command_line.in_place(refusing)


@pytest.mark.parametrize(
    ("words", "type_", "facts"),
    [
        (["missing.jsonl"], "missing-file", {}),
        (["folder.jsonl"], "folder-without-rows", {}),
        (["junk.jsonl"], "binary", {}),
        (["latin.csv"], "not-utf8", {"row": 1}),
        (["broken.jsonl"], "bad-json", {"row": 2}),
        (["nan.jsonl"], "nan-label", {"row": 2}),
        (["empty-text.jsonl"], "empty-text", {"row": 2, "field": "text"}),
        (["one-label.jsonl"], "one-label", {}),
        (["no-label.jsonl"], "missing-label", {"row": 2}),
        (["number.jsonl"], "text-type", {"row": 2}),
        (["Bad Name.jsonl"], "file-name-without-letters", {}),
        (["ok.jsonl", "--task", "../../x"], "name-invalid", {"name": "../../x"}),
        (["ok.jsonl", "--init", "nothing"], "unknown-init", {"init": "nothing"}),
        (["ok.jsonl", "--init", "sst2@v9"], "unknown-init", {"init": "sst2@v9"}),
        (["ok.jsonl", "--queue", "../q"], "name-invalid", {"name": "../q"}),
        (["ok.jsonl", "--metric", "magic"], "unknown-metric-of-kind", {"metric": "magic"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_with_a_submission_is_told_with_what_mends_it(
    onboard: CommandLine, words: list[str], type_: str, facts: dict[str, object]
) -> None:
    said = onboard("submit", "--dataset", *words, "--json")
    assert said.code == 2, said.err
    require(said.error, type_, **facts)
    assert said.remedy


def test_the_program_itself_refuses_an_empty_file(refusing: Place) -> None:
    done = refusing.run("submit", "--dataset", "empty.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "empty.jsonl is empty" in done.stderr


def test_an_error_is_a_document_too_and_names_its_rows(refusing: Place) -> None:
    error = refusing.json("submit", "--dataset", "empty-text.jsonl", code=2)["error"]
    assert error["code"] == "dataset"
    assert error["problems"][0]["row"] == 2
    assert error["problems"][0]["field"] == "text"


def test_what_does_not_exist_is_not_found(onboard: CommandLine) -> None:
    for words in (
        ["predict", "nothing", "--text", "x"], ["fetch", "sst2@v7"], ["jobs", "show", "0123456789ab"],
        ["submit", "--dataset", "ok.jsonl", "--base", "no-such-base"],
    ):  # fmt: skip
        said = onboard(*words)
        assert said.code == 3, said.err
        assert said.remedy.startswith(("onboard ", "List "))


def test_a_bare_backbone_is_refused_with_the_command_that_makes_a_base(
    refusing: Place, onboard: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONBOARD_BASE", str(refusing.base / "backbone"))
    said = onboard("submit", "--dataset", "ok.jsonl")
    assert said.code == 2
    assert "onboard base train" in said.remedy
