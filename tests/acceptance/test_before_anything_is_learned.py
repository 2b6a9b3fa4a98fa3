"""What a fresh installation answers: the shipped tasks, and the help at once."""

from __future__ import annotations

import subprocess
import sys

from support.program import Place


def test_an_empty_home_shows_the_shipped_tasks_and_they_answer(elsewhere: Place) -> None:
    tasks = {task["task"]: task for task in elsewhere.json("tasks", "list")["tasks"]}
    assert set(tasks) == {"sst2", "stsb"}
    assert tasks["sst2"]["labels"] == ["negative", "positive"]
    assert tasks["sst2"]["source"]
    assert tasks["sst2"]["version"] == 1
    answers = elsewhere.json("predict", "sst2", "--text", "a good film")["predictions"]
    assert answers[0]["label"] in ("negative", "positive")
    assert elsewhere.json("jobs", "list") == {"jobs": []}
    assert elsewhere.workers() == []


def test_help_imports_neither_torch_nor_the_database() -> None:
    program = "import sys; from cli.main import main; sys.argv = ['onboard', '--help']; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program], capture_output=True, text=True, check=True
    )
    assert "submit" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "cli.submit" in imported
    heavy = {"torch", "transformers", "sqlalchemy", "sklearn", "scipy", "numpy", "pyarrow", "celery", "safetensors"}
    assert not heavy & imported
