"""Where several processes run the tests at once, some compute while others wait."""

from __future__ import annotations

from support.order import COMPUTING_BETWEEN, LONGEST, TESTS, WAITING, places_of

FILES = sorted(TESTS.rglob("test_*.py"))


def test_every_file_has_a_place_of_its_own() -> None:
    places = places_of([*FILES, *FILES])
    assert sorted(places) == FILES
    assert len(set(places.values())) == len(FILES)


def test_the_longest_files_come_first_and_are_there() -> None:
    places = places_of(FILES)
    waiting = [file for file in sorted(FILES, key=places.__getitem__) if file.relative_to(TESTS).parts[0] in WAITING]
    assert tuple(file.name for file in waiting[: len(LONGEST)]) == LONGEST


def test_files_that_compute_stand_between_those_that_wait_and_at_the_end() -> None:
    places = places_of(FILES)
    kinds = [file.relative_to(TESTS).parts[0] in WAITING for file in sorted(FILES, key=places.__getitem__)]
    period = COMPUTING_BETWEEN + 1
    assert kinds[: 4 * period] == 4 * [True, *[False] * COMPUTING_BETWEEN]
    assert not any(kinds[-20:])
