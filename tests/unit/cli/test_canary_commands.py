"""`onboard promote --share` and `rollback` as people see them, and the list of versions between them."""

from __future__ import annotations

import pytest
from support.command_line import CommandLine
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.registry.services import Services


def test_a_canary_starts_is_listed_and_ends(
    tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> None:
    for seed in (1, 2):
        add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(seed))
    command_line.at_home(tiny_services.settings)
    monkeypatch.setenv("ONBOARD_START_WORKER", "false")

    def said(words: str) -> str:
        code, out, error = command_line(*words.split())
        assert code == 0, error
        return out

    assert said("promote mood@v1 --alias production") == "mood@production is v1\n"
    assert said("promote mood@v2 --alias production --share 10%").splitlines() == [
        "mood@production is v1; v2 answers 10% of its texts",
        "compare them: onboard compare mood@v1 mood@v2",
    ]
    newest = next(line for line in said("versions mood").splitlines() if line.startswith("v2"))
    assert "production (10%)" in newest
    assert said("promote mood@v2 --alias production --share 0%") == "mood@production is v1; its canary has ended\n"
    said("promote mood@v2 --alias production --share 25%")
    assert said("rollback mood --alias production") == "mood@production is v1; its canary has ended\n"
    code, _, error = command_line(*["promote", "mood@v2", "--alias", "production", "--share", "101%"])
    assert code == 2
    assert "101%" in error
