"""Records go to Argilla with suggestions and come back with responses, through the files of its real SDK.

Argilla needs a server to show records, but not to read and write them.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine
from support.real_jobs import Desk, opinions, write_rows

from onboard.data.read import ReadOptions, read_dataset

EXCHANGE = """
import json, sys
from uuid import UUID
import argilla
from argilla.records._io import GenericIO, JsonIO

source, truth, folder = sys.argv[1:]
records = JsonIO._records_from_json(source)  # as `dataset.records.from_json`, which sends them to a server then
labels = json.load(open(truth))
sent = [record.api_model().model_dump(mode="json") for record in records]
for record in records:
    given = labels[record.fields["text"]]
    record.responses.add(argilla.Response("label", given, UUID(int=7), status="submitted"))
JsonIO.to_json(records, f"{folder}/to_json.json")
for flatten in (False, True):
    for orient in ("names", "index"):
        with open(f"{folder}/{orient}-{flatten}.json", "w") as stream:
            json.dump(GenericIO.to_dict(records, flatten=flatten, orient=orient), stream)
with open(f"{folder}/list.json", "w") as stream:
    json.dump(GenericIO.to_list(records, flatten=True), stream)
print(json.dumps(sent))
"""


def exchanged(source: Path, truth: dict[str, Any], folder: Path) -> Any:
    """What the SDK would send of a file's records; the folder gets its exports with these labels as responses."""
    python = os.environ.get("ARGILLA_PYTHON")
    if not python:
        pytest.skip("ARGILLA_PYTHON names no Python with the SDK (pip install argilla requests in another environment)")
    (folder / "truth.json").write_text(json.dumps(truth))
    exports = folder / "exports"
    exports.mkdir()
    command = [python, "-c", EXCHANGE, str(source), str(folder / "truth.json"), str(exports)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_records_come_back_labeled_in_every_form(
    desk: Desk, command_line: CommandLine, tmp_path: Path, several: bool
) -> None:
    rows = opinions(24)
    learned = [{"text": row["text"], "labels": [row["label"], "said"]} for row in rows] if several else rows
    if several:
        learned[0]["labels"] = ["said"]
    desk.learn(learned, method="linear") if not several else desk.learn(learned)
    command_line.at_home(desk.services.settings)
    command_line.monkeypatch.setenv("ONBOARD_START_WORKER", "false")
    texts = [{"id": f"record {place}", "text": row["text"]} for place, row in enumerate(opinions(6, start=900))]
    suggested = tmp_path / "suggested.json"
    words = ("--input", write_rows(tmp_path / "new.jsonl", texts), "--output", suggested, "--label-tool", "argilla")
    said = command_line("predict", "mood", *words)
    assert said.code == 0, said.err
    truth = {row["text"]: ["said", row["label"]] if several else row["label"] for row in opinions(6, start=900)}
    sent = exchanged(suggested, truth, tmp_path)
    assert [record["external_id"] for record in sent] == [row["id"] for row in texts]
    for record in sent:
        (suggestion,) = record["suggestions"]
        assert suggestion["agent"] == "onboard mood@v1"
        assert isinstance(suggestion["value"], list) == isinstance(suggestion["score"], list) == several
    for path in (tmp_path / "exports").iterdir():
        kind = "multilabel" if several else "auto"
        read = read_dataset(path, ReadOptions(suspects=False, kind=kind)).dataset
        labels = {row.text_a: json.loads(str(row.label)) if several else row.label for row in read.train}
        assert labels == {text: sorted(given) if several else given for text, given in truth.items()}, path.name
    export = tmp_path / "exports" / "index-False.json"
    added = command_line("add", "mood", export)
    assert added.code == 0, added.err


def test_suggestions_need_one_task_and_one_file(command_line: CommandLine, desk: Desk, tmp_path: Path) -> None:
    command_line.at_home(desk.services.settings)
    source = write_rows(tmp_path / "new.jsonl", [{"text": "a"}])
    (folder := tmp_path / "folder").mkdir()
    write_rows(folder / "new.jsonl", [{"text": "a"}])
    for words in (
        ["mood", "--input", source],
        ["mood", "--input", source, "--output", f"{tmp_path}/out/"],
        ["mood", "--input", folder, "--output", f"{tmp_path}/out"],
        ["--tasks", "mood,sst2", "--input", source, "--output", "x.json"],
    ):
        said = command_line("predict", *words, "--label-tool", "argilla", "--json")
        assert (said.code, said.error["type"]) == (2, "suggestions-without-file"), words
    said = command_line("predict", "mood", "--text", "a", "--output", "x.json", "--label-tool", "excel", "--json")
    assert (said.code, said.error["type"]) == (2, "unknown-label-tool")
