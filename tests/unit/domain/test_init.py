"""The value of `--init`, read once."""

from __future__ import annotations

import pytest

from onboard.domain.init import Init, InitKind
from onboard.domain.job import JobSpec


@pytest.mark.parametrize(
    ("text", "kind", "is_given"),
    [
        ("auto", InitKind.AUTO, False), ("random", InitKind.RANDOM, False), ("mean", InitKind.MEAN, True),
        ("fingerprint", InitKind.FINGERPRINT, True), ("sst2", InitKind.NAMED, True), ("named", InitKind.NAMED, True),
        ("mood@v3", InitKind.NAMED, True),
    ],
)  # fmt: skip
def test_a_text_is_a_word_or_a_name(text: str, kind: InitKind, is_given: bool) -> None:
    init = Init.parse(text)
    assert (init.kind, init.is_given, str(init), init.reference) == (kind, is_given, text, text)


def test_a_name_keeps_the_version_that_it_stood_for() -> None:
    assert Init.parse("mood", "mood@v2").reference == "mood@v2"
    assert Init.parse("auto", "mood@v2").version is None


def test_a_pinned_spec_reads_back_and_differs_by_its_pin_alone() -> None:
    spec = JobSpec(task="new", dataset="sha256:0", init="mood", options={"probe": "race"})
    pinned = JobSpec.from_json(spec.pinned_to("mood@v2").to_json())
    assert pinned.start == Init(InitKind.NAMED, "mood", "mood@v2")
    assert pinned != spec
    assert pinned.pinned_to(None) == spec
    assert JobSpec.from_json(spec.to_json()).start == Init(InitKind.NAMED, "mood")
