"""The bench of the prior: it publishes, fits, deletes, and says whether what was deleted is forgotten exactly."""

from __future__ import annotations

import json
from pathlib import Path

from bench import prior
from onboard.bases import Base


def test_a_fit_and_a_deletion_are_timed_and_the_page_says_whether_it_is_exact(tiny_base: Base, tmp_path: Path) -> None:
    files = ["--output", str(tmp_path / "out.json"), "--table", str(tmp_path / "out.md")]
    assert prior.main(["--tasks", "9", "--base", str(tiny_base.folder), *files]) == 0
    measured = json.loads((tmp_path / "out.json").read_text())["measured"]
    assert (measured["tasks"], measured["exact"]) == (9, True)
    assert measured["fit_seconds"] > 0
    assert measured["delete_seconds"] > 0
    assert "the same, byte for byte" in (tmp_path / "out.md").read_text()
