"""A folder that somebody sent: scripts in it are never run, and a link in it leads nowhere that was not meant."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import pytest
from dataset_rows import balanced
from support.refusals import refused

ROWS = balanced(12)
SCRIPT = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"


def scripts_into(folder: Path) -> None:
    for name in (f"{folder.name}.py", "__init__.py", "train.py", "dataset_infos.py"):
        (folder / name).write_text(SCRIPT)


def test_scripts_beside_saved_rows_are_not_run(tmp_path: Path, read) -> None:
    folder = tmp_path / "saved"
    datasets.Dataset.from_list(ROWS).save_to_disk(folder)
    scripts_into(folder)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "_format_type": "custom", "builder": "saved.py"}))
    assert len(read(folder).dataset.train) == len(ROWS)
    assert not (folder / "ran").exists()


def test_scripts_beside_files_of_rows_are_not_run(tmp_path: Path, read) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    scripts_into(folder)
    with refused("folder-not-a-dataset", reason="Dataset scripts are no longer supported, but found rows.py"):
        read(folder)
    (folder / "rows.py").unlink()
    assert len(read(folder).dataset.train) == len(ROWS)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("name", ["../secret.arrow", "/etc/passwd", "a/../../secret.arrow", ".."])
def test_a_saved_folder_names_no_file_outside_of_it(tmp_path: Path, read, name: str) -> None:
    folder = tmp_path / "saved"
    datasets.Dataset.from_list(ROWS).save_to_disk(folder)
    (path,) = folder.glob("*.arrow")
    path.rename(tmp_path / "secret.arrow")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    with refused("folder-file-name-invalid"):
        read(folder)
