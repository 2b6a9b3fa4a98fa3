"""The map of tasks: places and neighbours are right, and page and picture stand whatever the tasks are called."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.registry_samples import publish, register_sample_base
from typer.testing import CliRunner

from cli.main import app
from onboard.bases import shipped_bases
from onboard.domain.task import EmbeddingVersion
from onboard.registry.services import Services
from onboard.report.map_html import render_map
from onboard.report.map_layout import (
    COLOURS,
    HEIGHT,
    MOST_FAMILIES,
    NARROW,
    SHAPES,
    WIDTH,
    MapLayout,
    headline,
    lay_out,
)
from onboard.report.map_png import draw_map
from onboard.statistics.prior import Lesson
from onboard.versions.likeness import Traits
from onboard.versions.task_map import (
    FEWEST_NEIGHBOURS,
    STORED,
    Mapped,
    family_of,
    map_tag,
    map_tasks,
    present_map,
)

HOSTILE = "</title><script>alert(1)</script>\"'&\x1b[31m[red]\u202e" + "m" * 60
LETTER = 8.0  # pixels


def embedded(task: str, z: Sequence[float] | np.ndarray, *, source: bool = False, base: str = "b") -> Mapped:
    return Mapped(task, 1, base, source, False, Traits(z=np.array(z, dtype=np.float32)))


def layout_of(document: dict[str, Any]) -> MapLayout:
    return lay_out(document, lambda name, _: LETTER * len(name))


def many(tasks: int) -> list[Mapped]:
    numbers = np.random.default_rng(0).standard_normal((tasks, 64))
    return [embedded(f"task-{index}", z, source=index < 8) for index, z in enumerate(numbers)]


def test_the_two_directions_are_those_in_which_the_tasks_differ_most() -> None:
    tasks = [embedded(f"t{n}", z) for n, z in enumerate([(3, 0, 4), (-3, 0, 4), (0, 1, 24**0.5), (0, -1, 24**0.5)])]
    document = map_tasks(tasks)
    assert document["explained"] == pytest.approx([0.865, 0.096], abs=1e-3)
    places = [(abs(task["x"]), abs(task["y"])) for task in document["tasks"]]
    assert np.array(places) == pytest.approx(np.array([(0.6, 0), (0.6, 0), (0, 0.2), (0, 0.2)]), abs=1e-3)
    assert map_tasks(tasks[::-1]) == document  # the order does not matter, and signs are settled


def test_groups_that_two_directions_cannot_part_lie_apart() -> None:
    generator = np.random.default_rng(0)
    groups = np.eye(8)  # of a simplex any two directions show two or three sides
    tasks = [
        embedded(f"g{group}-{number}", groups[group] + generator.normal(0, 0.05, 8), source=number < 8)
        for group in range(8)
        for number in range(9)
    ]
    document = map_tasks(tasks)
    assert (document["layout"], document["explained"]) == ("neighbours", None)
    assert map_tasks(tasks[::-1]) == document  # the same every time
    places = {task["task"]: np.array([task["x"], task["y"]]) for task in document["tasks"]}
    for task, place in places.items():
        near = sorted(places, key=lambda other: float(np.linalg.norm(places[other] - place)))[1:9]
        assert {other[:2] for other in near} == {task[:2]}, task
    assert headline(document) == "72 tasks, 8 learned here, each close to similar ones."


def test_a_handful_of_tasks_is_placed_by_directions() -> None:
    assert map_tasks(many(FEWEST_NEIGHBOURS - 1))["layout"] == "directions"
    assert map_tasks(many(FEWEST_NEIGHBOURS))["layout"] == "neighbours"


def test_of_very_many_tasks_some_are_laid_out_and_the_others_stand_among_those_that_they_are_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("onboard.versions.task_map.MOST_NEIGHBOURS", 24)
    generator = np.random.default_rng(0)
    groups = np.eye(4)
    tasks = [
        embedded(f"g{group}-{number:02}", groups[group] + generator.normal(0, 0.05, 4))
        for group in range(4)
        for number in range(20)
    ]
    document = map_tasks(tasks)
    assert document["layout"] == "neighbours"
    places = {task["task"]: np.array([task["x"], task["y"]]) for task in document["tasks"]}
    middles = {group: np.mean([p for task, p in places.items() if task[:2] == group], axis=0) for group in ("g0", "g1")}
    for task, place in places.items():
        if task[:2] in middles:
            nearest = min(middles, key=lambda group: float(np.linalg.norm(middles[group] - place)))
            assert nearest == task[:2]


def taught(task: str, words: np.ndarray, weights: np.ndarray, z: np.ndarray | None = None) -> Mapped:
    lesson = Lesson(words.astype(np.float16), weights.astype(np.float16), 100)
    return Mapped(task, 1, "b", False, False, Traits(lesson, z))


def test_tasks_are_alike_if_like_words_go_with_like_weights_whatever_their_embeddings_say() -> None:
    generator = np.random.default_rng(0)
    words, weights, others = (generator.standard_normal((3, width)) for width in (12, 16, 16))
    one = taught("one", words, weights, np.array([1.0, 0.0]))
    same = taught("same", words[[2, 0, 1]], weights[[2, 0, 1]], np.array([0.0, 1.0]))  # labels in another order
    swapped = taught("swapped", words, others, np.array([1.0, 0.0]))
    far = taught("far", generator.standard_normal((3, 12)), others[::-1], np.array([1.0, 0.0]))
    document = map_tasks([one, same, swapped, far])
    first = next(task for task in document["tasks"] if task["task"] == "one")
    assert [near["task"] for near in first["nearest"]] == ["same", "swapped", "far"]
    assert first["nearest"][0]["similarity"] == pytest.approx(1.0, abs=1e-3)
    assert {task["placed_by"] for task in document["tasks"]} == {"lesson"}


def test_a_readout_alone_and_a_regression_are_on_the_map_beside_the_others() -> None:
    generator = np.random.default_rng(0)
    tasks = [
        taught(f"t{n}", generator.standard_normal((2, 12)), generator.standard_normal((2, 32)), np.eye(9)[n])
        for n in range(8)
    ]
    readout = Mapped("readout", 1, "b", False, False, Traits(weights=tasks[3].traits.lesson.weights))  # type: ignore[union-attr]
    regression = embedded("regression", np.eye(9)[5] + 0.01)
    pairs = taught("pairs", generator.standard_normal((2, 12)), generator.standard_normal((2, 64)))
    document = map_tasks([*tasks, readout, regression, pairs])
    near = {task["task"]: task["nearest"][0]["task"] for task in document["tasks"]}
    assert (near["readout"], near["regression"], "pairs" in near) == ("t3", "t5", True)
    bases = {task["task"]: task["placed_by"] for task in document["tasks"]}
    assert (bases["readout"], bases["regression"], bases["pairs"]) == ("readout", "embedding", "lesson")
    notes = " ".join(layout_of(document).notes)
    assert "Placed by weights only, because they lack such words: 1 task." in notes


def test_the_tasks_of_the_shipped_base_have_the_families_that_it_names() -> None:
    (mini,) = [base for base in shipped_bases() if base.name == "mini"]
    sources = mini.document["sources"]
    assert {family_of(name) for name in sources} <= {facts.get("family", name) for name, facts in sources.items()} | {
        "acceptability", "sentiment", "paraphrase", "inference",
    }  # fmt: skip
    assert family_of("fever_symmetric") == sources["fever_symmetric"]["family"]
    assert family_of("of another base") == "of another base"
    assert len({family_of(name) for name in sources}) <= MOST_FAMILIES  # so that none is gray


def test_neighbours_are_by_the_cosine_of_all_numbers() -> None:
    document = map_tasks(
        [embedded("a", (1, 0)), embedded("far", (0, 1)), embedded("long", (9, 1)), embedded("b", (1, 1))]
    )
    nearest = {task["task"]: [near["task"] for near in task["nearest"]] for task in document["tasks"]}
    assert nearest["a"] == ["long", "b", "far"]
    assert document["tasks"][0]["nearest"][1]["similarity"] == pytest.approx(2**-0.5, abs=1e-6)


def test_a_learned_task_has_the_family_of_its_nearest_source() -> None:
    shipped = [embedded("qqp", (1, 0), source=True), embedded("mine", (0, 1), source=True)]
    document = map_tasks(
        [*shipped, embedded("tickets", (9, 1)), embedded("mrpc", (0, 2))]
    )  # learned, whatever its name
    families = {task["task"]: task["family"] for task in document["tasks"]}
    assert families == {"qqp": "paraphrase", "mine": "mine", "tickets": "paraphrase", "mrpc": "mine"}
    assert document["families"] == [{"family": "mine", "tasks": 2}, {"family": "paraphrase", "tasks": 2}]
    page = render_map(document)
    assert "<th>nearest source family</th>" in page
    assert "which may not fit" in page


def test_tasks_of_another_base_are_counted_and_not_shown() -> None:
    document = map_tasks([embedded("a", (1, 0)), embedded("b", (0, 1)), embedded("c", (1, 2, 3), base="other")])
    assert ([task["task"] for task in document["tasks"]], document["left_out"]) == (["a", "b"], 1)
    assert "1 task is on another base" in render_map(document)


@pytest.mark.parametrize(("tasks", "said"), [
    ([], "0 tasks: nothing to compare yet."),
    ([embedded("only", (1, 2))], "1 task: nothing to compare yet."),
    ([embedded(name, (1, 2)) for name in "abcdef"], "6 tasks, which are all alike."),
    ([embedded(name, (0, 0)) for name in "ab"], "2 tasks, which are all alike."),
    ([embedded("a", (1,)), embedded("b", (-2,))], "2 tasks; across 100% and upwards 0%"),
])  # fmt: skip
def test_a_map_of_almost_nothing_is_a_map(tasks: list[Mapped], said: str) -> None:
    document = map_tasks(tasks)
    assert headline(document).startswith(said)
    assert said in render_map(document)
    assert draw_map(document).startswith(b"\x89PNG")
    assert all(0 <= mark.x <= WIDTH and 0 <= mark.y <= HEIGHT for mark in layout_of(document).marks)


def test_of_two_thousand_tasks_no_name_covers_another_or_a_mark() -> None:
    layout = layout_of(map_tasks(many(2_000)))
    assert len(layout.marks) == 2_000
    assert 20 < len(layout.names) < 100
    assert not any(name.source for name in layout.names)  # those that were learned here come first
    boxes = [(name.x, name.y - 7, name.x + LETTER * len(name.text), name.y + 7) for name in layout.names]
    assert not [pair for pair in combinations(boxes, 2) if overlap(*pair)]
    assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT for box in boxes)
    learned = [mark for mark in layout.marks if not mark.source]
    assert not [mark for mark in learned for box in boxes if overlap(box, (mark.x, mark.y, mark.x, mark.y))]
    assert "names have no room" in " ".join(layout.notes)


PHONE = 390  # pixels across
MARGINS = 40  # of the page, left and right


@pytest.mark.parametrize("tasks", [12, 60, 400])
def test_on_a_phone_names_can_be_read_and_cover_nothing(tasks: int) -> None:
    document = map_tasks(many(tasks))
    layout = lay_out(document, lambda name, _: LETTER * len(name), NARROW)
    assert NARROW.width <= PHONE - MARGINS  # letters are no smaller than they were drawn
    learned = [name.text for name in layout.names if not name.source]
    assert len(learned) >= 4
    assert len(learned) == tasks - 8 or "have no room" in " ".join(layout.notes)
    boxes = [(name.x, name.y - 7, name.x + LETTER * len(name.text), name.y + 7) for name in layout.names]
    assert not [pair for pair in combinations(boxes, 2) if overlap(*pair)]
    assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= NARROW.width and box[3] <= NARROW.height for box in boxes)
    assert all(0 <= mark.x <= NARROW.width and 0 <= mark.y <= NARROW.height for mark in layout.marks)
    page = render_map(document)
    assert f'viewBox="0 0 {NARROW.width} {NARROW.height}"' in page
    assert "@media (max-width: 40rem) { .wide { display: none; } .narrow { display: block; } }" in page
    assert ".map text { display: none" not in page


def test_names_at_the_rim_stay_inside() -> None:
    rim = [embedded(f"a-rather-long-name-{n}", (x, y)) for n, (x, y) in enumerate([(9, 1), (-9, 1), (0, 6), (0, -6)])]
    names = layout_of(map_tasks(rim)).names
    assert len(names) == 4
    assert all(
        name.x >= 0 and name.x + LETTER * len(name.text) <= WIDTH and 8 <= name.y <= HEIGHT - 8 for name in names
    )


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and a[2] > b[0] and a[1] < b[3] and a[3] > b[1]


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_names_stay_text_whatever_they_hold() -> None:
    sources = [embedded(f"{HOSTILE}{n}", (n, 1, 0), source=True) for n in range(9)]  # a service elsewhere may say so
    document = map_tasks([*sources, embedded(HOSTILE, (1, 2, 1))])
    page = render_map(document)
    elements = Elements(page)
    assert elements.found.count("script") == 0
    assert elements.found.count("title") == 1 + 2 * 10  # the page's, and one a mark, on each of the two maps
    assert elements.addresses == []
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page
    assert draw_map(document).startswith(b"\x89PNG")
    assert all(len(name.text) <= 24 for name in layout_of(document).names)


def test_a_page_is_drawn_for_light_and_dark_without_a_script() -> None:
    page = render_map(map_tasks(many(12)))
    assert "prefers-color-scheme: dark" in page
    assert "default-src 'none'" in page
    assert page.count("<g stroke-width") == 2 * 12


def test_the_picture_is_as_large_as_its_map() -> None:
    picture = draw_map(map_tasks(many(12)))
    width, height = struct.unpack(">II", picture[16:24])
    assert width == 2 * (WIDTH + 40)
    assert height > 2 * HEIGHT


# Machado, Oliveira and Fernandes 2009, severity 1; what a colour looks like in linear RGB
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_families_differ_in_colour_for_every_eye_and_in_shape(blindness: str) -> None:
    seen = [lab_of(colour, BLINDNESS[blindness]) for colour in COLOURS]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 10  # 2.3 is just noticeable
    assert len(set(SHAPES)) == len(SHAPES) == len(COLOURS)


def lab_of(colour: str, seen_as: Sequence[Sequence[float]]) -> np.ndarray:
    """CIE L*a*b* of a colour as it is seen."""
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(seen_as) @ linear, 0, 1)
    x, y, z = np.cbrt(np.maximum(np.array(TO_XYZ) @ seen / (0.9505, 1.0, 1.089), 0.0089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_families_beyond_the_palette_share_grey() -> None:
    count = MOST_FAMILIES + 3
    layout = layout_of(map_tasks([embedded(f"s{n:02}", np.eye(count)[n], source=True) for n in range(count)]))
    *families, other = layout.families
    assert [family.name for family in families] == [f"s{n:02}" for n in range(MOST_FAMILIES)]
    assert len({(family.colour, family.shape) for family in families}) == MOST_FAMILIES
    assert (other.name, other.tasks) == ("other", 3)


def test_a_source_task_called_other_is_a_family_of_its_own() -> None:
    layout = layout_of(map_tasks([embedded(name, np.eye(4)[n], source=True) for n, name in enumerate(("a", "other"))]))
    assert [(family.name, family.tasks) for family in layout.families] == [("a", 1), ("other", 1)]
    assert {mark.family.colour for mark in layout.marks} == {family.colour for family in layout.families}


def test_a_layout_is_stored_in_the_home_until_another_version_is_the_latest(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_sample_base(services.database)
    made: list[int] = []

    def mapped(_: Services, latest: Sequence[EmbeddingVersion]) -> list[Mapped]:
        made.append(len(latest))
        return [embedded(version.task, (n, 1)) for n, version in enumerate(latest)]

    monkeypatch.setattr("onboard.versions.task_map.mapped_tasks", mapped)
    document, before = present_map(services), map_tag(services)
    stored = services.settings.resolved_home / STORED
    assert (present_map(services), len(made), stored.stat().st_mode & 0o077) == (document, 1, 0)
    publish(services.database, "another")
    assert map_tag(services) != before
    assert "another" in [task["task"] for task in present_map(services)["tasks"]]
    stored.write_text('{"of": "damaged', encoding="utf-8")
    assert len(present_map(services)["tasks"]) == made[0] + 1
    assert len(made) == 3


@pytest.fixture
def service_map(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the service says."""
    document = map_tasks(many(12))
    monkeypatch.setattr("onboard.local.Onboard.map_document", lambda self: document)
    return document


@pytest.mark.parametrize("name", ["map.png", "map.HTML"])
def test_the_command_writes_a_picture_or_a_page(service_map: dict[str, Any], tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["tasks", "map", "--output", str(tmp_path / name)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / name).read_bytes()[:4] in (b"\x89PNG", b"<!do")


def test_the_command_prints_a_table_without_a_file(service_map: dict[str, Any]) -> None:
    done = CliRunner().invoke(app, ["tasks", "map"])
    assert done.exit_code == 0
    assert "12 tasks, 4 learned here" in done.output
    assert "task-11" in done.output
