"""Use case: a map of all tasks in two dimensions by similarity, with the nearest tasks of each.

Similar tasks (`onboard.versions.likeness`) are placed near each other by t-SNE (van der Maaten and Hinton 2008),
because two linear directions explain too little. With very many tasks, only some are placed this way, and the others
relative to them. A layout takes seconds, so the last one is stored in the home folder.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from onboard.domain.names import LATEST
from onboard.domain.private import open_new, part_beside
from onboard.domain.release import code_version
from onboard.errors import NotFoundError, PinMismatchError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from onboard.domain.task import EmbeddingVersion
    from onboard.registry.services import Services
    from onboard.statistics.prior import Lesson
    from onboard.versions.likeness import Likeness, Traits

NEAREST: Final = 3  # nearest tasks listed for each task
FEWEST_NEIGHBOURS: Final = 12  # tasks; fewer are placed by two directions
MOST_NEIGHBOURS: Final = 600  # tasks placed jointly; more would take minutes
STORED: Final = "task-map.json"  # in the home folder
_PERPLEXITY: Final = 12.0  # approximate number of neighbors that determine a task's place
_STEPS: Final = 500
_CHUNK: Final = 512  # tasks compared with all others at once
_DIGITS: Final = 6
_EQUAL: Final = 1e-6  # differences below are rounding errors
_FAMILIES: Final = {  # families of the GLUE tasks, for bases without them; any other source is its own family
    "cola": "acceptability",
    "sst2": "sentiment",
    "mrpc": "paraphrase",
    "qqp": "paraphrase",
    "stsb": "paraphrase",
    "mnli": "inference",
    "qnli": "inference",
    "rte": "inference",
}


@dataclass(frozen=True, slots=True)
class Mapped:
    """A task's latest version with the traits that determine its place.

    Args:
        source: whether it was shipped with the base.
    """

    task: str
    version: int
    base_digest: str
    source: bool
    weak: bool
    traits: Traits


def present_map(services: Services, tag: str | None = None) -> dict[str, Any]:
    """Return the document of `map_tasks` for the latest versions, from the stored file if it is current.

    Args:
        tag: tag of the map, if already computed.

    Raises:
        DamagedError: the bytes of a version are missing or do not match.
        StorageError: the store cannot be reached.
    """
    from onboard.registry.versions import VersionRepository

    tag, path = tag or map_tag(services), services.settings.resolved_home / STORED
    stored = _read_stored(path, tag)
    if stored is not None:
        return stored
    with services.database.read() as session:
        latest = VersionRepository(session).list(latest_only=True)
    document = map_tasks(mapped_tasks(services, latest))
    _store(path, tag, document)
    return document


def map_tag(services: Services) -> str:
    """Return a digest (`sha256:…`) of everything that the map depends on: the latest versions and the release."""
    from onboard.versions.describe import named

    latest = named(services.database, LATEST, every=True)
    lines = [f"{version.task}@v{version.version} {version.artifact}\n" for version in latest]
    return "sha256:" + hashlib.sha256("".join([f"{code_version()}\n", *lines]).encode()).hexdigest()


def mapped_tasks(services: Services, latest: Sequence[EmbeddingVersion]) -> list[Mapped]:
    """Return these versions with their traits; those without any are left out.

    Raises:
        as `present_map`.
    """
    from onboard.storage.embedding import verified_embedding
    from onboard.versions.likeness import Traits
    from onboard.versions.readouts import readout_of

    lessons: dict[tuple[str, str], Lesson] = {}
    for digest in {version.base_digest for version in latest}:
        lessons |= {(digest, task): lesson for task, lesson in _lessons(services, digest).items()}
    tasks = []
    for version in latest:
        lesson = lessons.get((version.base_digest, version.task))
        z, weights = None, None
        if version.has_embedding:
            z = verified_embedding(services.read(version.artifact), version)
        elif lesson is None and (readout := readout_of(services, version)) is not None:
            weights = readout.weights
        traits = Traits(lesson, z, weights)
        if traits.basis:
            source = version.kind == "source"
            tasks.append(Mapped(version.task, version.version, version.base_digest, source, version.weak, traits))
    return tasks


def _lessons(services: Services, base_digest: str) -> Mapping[str, Lesson]:
    """Return the latest versions' lessons for the prior of a base; empty if the base is not available."""
    from onboard.hypernetworks.files import base_at_hand
    from onboard.hypernetworks.prior.lessons import present_lessons, read_taught

    with suppress(NotFoundError, PinMismatchError):
        base = base_at_hand(services, base_digest)
        with services.database.read() as session:
            taught = [lesson for of_form in present_lessons(session, base).values() for lesson in of_form]
        return {task: lesson for task, lesson in read_taught(services, base, taught).items() if lesson.is_finite}
    return {}


def _read_stored(path: Path, tag: str) -> dict[str, Any] | None:
    with suppress(OSError, ValueError, RecursionError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(stored, dict) and stored.get("of") == tag and isinstance(stored.get("map"), dict):
            return dict(stored["map"])
    return None


def _store(path: Path, tag: str, document: Mapping[str, Any]) -> None:
    """Store the map for later processes, if the home is writable."""
    part = part_beside(path)
    try:
        with open_new(part, mode=0o600) as file:
            file.write(json.dumps({"of": tag, "map": document}).encode())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)


def map_tasks(tasks: Sequence[Mapped]) -> dict[str, Any]:
    """Return the map as a JSON-compatible document.

    Numbers of different bases are not comparable, so the map shows the base of most tasks.

    Returns:
        `base`: its digest, None without any task. `left_out`: number of tasks on other bases. `layout`: `neighbours`,
            or `directions` for few tasks; then `explained` contains the share of the variance that each direction
            explains, else None. `families`: each with its number of `tasks`, the largest first. `tasks` by name, each
            with `x` and `y`, `placed_by` (`lesson`, `embedding` or `readout`), its `nearest` tasks with similarities,
            and its `family`: for a source its own, else that of the `nearest_source`; None if there is none.
    """
    bases = Counter(task.base_digest for task in tasks)
    base = max(bases, key=lambda digest: (bases[digest], digest), default=None)
    shown = sorted((task for task in tasks if task.base_digest == base), key=lambda task: task.task)
    placed, explained = _placed(shown) if shown else ([], (0.0, 0.0))
    families = Counter(task["family"] for task in placed if task["family"])
    return {
        "base": base,
        "left_out": len(tasks) - len(shown),
        "layout": "neighbours" if explained is None else "directions",
        "explained": None if explained is None else list(explained),
        "families": [
            {"family": family, "tasks": count}
            for family, count in sorted(families.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
        "tasks": placed,
    }


def _placed(shown: Sequence[Mapped]) -> tuple[list[dict[str, Any]], tuple[float, float] | None]:
    from onboard.versions.likeness import Likeness

    likeness = Likeness([task.traits for task in shown])
    places, explained = _places(likeness)
    tasks = []
    for task, place, (near, source) in zip(shown, places, _neighbours(shown, likeness), strict=True):
        of_family = task.task if task.source else source and source["task"]
        tasks.append(
            {
                "task": task.task,
                "version": task.version,
                "source": task.source,
                "weak": task.weak,
                "placed_by": task.traits.basis,
                "family": family_of(of_family) if of_family else None,
                "nearest_source": None if task.source else source,
                "x": round(float(place[0]), _DIGITS),
                "y": round(float(place[1]), _DIGITS),
                "nearest": near,
            }
        )
    return tasks, explained


@cache
def _named_families() -> Mapping[str, str]:
    """Return the families of the shipped bases' tasks."""
    from onboard.bases import shipped_bases

    sources = [(name, facts) for base in shipped_bases() for name, facts in base.document["sources"].items()]
    return {**_FAMILIES, **{name: facts["family"] for name, facts in sources if facts.get("family")}}


def family_of(source: str) -> str:
    """Return the family of a source task."""
    return _named_families().get(source, source)


def _places(likeness: Likeness) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Return a place (n, 2) for each task near similar ones, and None; or by directions, with their shares."""
    import numpy as np

    tasks = len(likeness)
    landmarks = np.arange(tasks)
    if tasks > MOST_NEIGHBOURS:
        landmarks = np.linspace(0, tasks - 1, MOST_NEIGHBOURS).round().astype(int)
    like = np.vstack([likeness.rows(place, place + 1)[:, landmarks] for place in landmarks.tolist()])
    places, explained = _by_directions(like)
    if tasks < FEWEST_NEIGHBOURS or not any(explained):
        return _every_place(likeness, landmarks, places), explained
    from sklearn.manifold import TSNE

    distances = np.clip(1.0 - like, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    begun = places / max(float(places[:, 0].std()), 1e-9) * 1e-4  # a fixed start, so that the map is reproducible
    perplexity = min(_PERPLEXITY, (len(places) - 1) / 3)
    layout = TSNE(metric="precomputed", init=begun, perplexity=perplexity, max_iter=_STEPS, random_state=0)
    placed = np.asarray(layout.fit_transform(distances), dtype=np.float64)
    centred = placed - placed.mean(axis=0)
    turned = centred @ _settled(np.linalg.svd(centred, full_matrices=False)[2].T)  # wider than high
    return _every_place(likeness, landmarks, turned), None


def _every_place(likeness: Likeness, landmarks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the places (n, 2) of all tasks: landmarks keep theirs, others go between their nearest."""
    import numpy as np

    if len(landmarks) == len(likeness):
        return places
    every = np.zeros((len(likeness), 2))
    for start in range(0, len(likeness), _CHUNK):
        like = likeness.rows(start, start + _CHUNK)[:, landmarks]
        nearest = np.argsort(-like, axis=1, kind="stable")[:, :NEAREST]
        weights = np.maximum(np.take_along_axis(like, nearest, 1), 1e-6)[..., None] ** 2
        every[start : start + len(like)] = (weights * places[nearest]).sum(1) / weights.sum(1)
    every[landmarks] = places
    return every


def _by_directions(like: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Return places (n, 2) by classical scaling of similarities (n, n), and the explained share of each direction."""
    import numpy as np

    centred = like - like.mean(axis=0) - like.mean(axis=1, keepdims=True) + like.mean()
    places = np.zeros((len(like), 2))
    if np.abs(centred).max() < _EQUAL:
        return places, (0.0, 0.0)
    values, directions = np.linalg.eigh((centred + centred.T) / 2)
    values, directions = np.maximum(values[::-1], 0.0), directions[:, ::-1]
    axes = min(2, len(values))
    places[:, :axes] = _settled(directions[:, :axes]) * np.sqrt(values[:axes])
    shares = [round(float(value), _DIGITS) for value in values[:axes] / values.sum()]
    return places, (shares[0], shares[1] if axes > 1 else 0.0)


def _settled(directions: np.ndarray) -> np.ndarray:
    """Return the directions (n, a) with the sign that makes the largest entry positive, for reproducible maps."""
    import numpy as np

    largest = np.abs(directions).argmax(axis=0)
    settled: np.ndarray = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    return settled


def _neighbours(
    shown: Sequence[Mapped], likeness: Likeness
) -> Iterable[tuple[list[dict[str, Any]], dict[str, Any] | None]]:
    """Yield the nearest tasks of each task, and the nearest source."""
    import numpy as np

    sources = np.flatnonzero([task.source for task in shown])
    for start in range(0, len(shown), _CHUNK):
        like = likeness.rows(start, start + _CHUNK)
        of_source: list[int] = like[:, sources].argmax(axis=1).tolist() if len(sources) else []
        row_numbers = np.arange(len(like))
        near_source = [_neighbour(shown[sources[best]], like[row, sources[best]]) for row, best in enumerate(of_source)]
        like[row_numbers, start + row_numbers] = -np.inf
        nearest = np.argpartition(-like, min(NEAREST, len(shown)) - 1, axis=1)[:, :NEAREST]
        for row, indices in enumerate(nearest):
            ranked = sorted((i for i in indices if np.isfinite(like[row, i])), key=lambda i: (-like[row, i], i))
            near = [_neighbour(shown[index], like[row, index]) for index in ranked]
            yield near, near_source[row] if near_source else None


def _neighbour(task: Mapped, similarity: float) -> dict[str, Any]:
    return {"task": task.task, "similarity": round(float(similarity), _DIGITS)}
