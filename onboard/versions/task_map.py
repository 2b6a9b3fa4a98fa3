"""Use case: every task's latest embedding in two dimensions, with its nearest tasks (the paper's Figure 3).

Tasks stand beside those that they are most like: t-SNE (van der Maaten and Hinton 2008) on the cosines of their
embeddings. Two straight directions explain too little of 64 numbers. They place a handful of tasks, and thousands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    import numpy as np

    from onboard.registry.services import Services

NEAREST: Final = 3  # tasks that are named beside each
FEWEST_NEIGHBOURS: Final = 12  # tasks; fewer are placed by two directions
MOST_NEIGHBOURS: Final = 1_500  # tasks; more would take minutes
_PERPLEXITY: Final = 12.0  # about how many neighbours of a task have a say where it stands
_STEPS: Final = 500
_CHUNK: Final = 512  # tasks that are compared with all others at once
_DIGITS: Final = 6
_NOTHING: Final = 1e-9  # lengths below are rounding
_FAMILIES: Final = {  # what the tasks of GLUE ask, where no base says it; a source of another name is its own family
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
class Embedded:
    """A task's latest version with its numbers.

    Args:
        source: whether it was shipped with the base.
        z: (t,) float32.
    """

    task: str
    version: int
    base_digest: str
    source: bool
    weak: bool
    z: np.ndarray

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """From an entry of `GET /v1/embeddings`."""
        import numpy as np

        z = np.array(document["z"], dtype=np.float32)
        source = document["kind"] == "source"
        return cls(document["task"], document["version"], document["base_digest"], source, document["weak"], z)


def embedded_tasks(services: Services) -> list[Embedded]:
    """The latest version of every task whose latest has an embedding.

    Raises:
        DamagedError: the bytes of one are gone, or others.
        StorageError: the store cannot be reached.
    """
    from onboard.registry.versions import VersionRepository
    from onboard.storage.embedding import verified_embedding

    with services.database.read() as session:
        latest = VersionRepository(session).list(latest_only=True)
    versions = [version for version in latest if version.has_embedding]
    return [
        Embedded(
            version.task, version.version, version.base_digest, version.kind == "source", version.weak,
            verified_embedding(services.read(version.artifact), version),
        )
        for version in versions
    ]  # fmt: skip


def map_tasks(embedded: Sequence[Embedded]) -> dict[str, Any]:
    """The map as a JSON-compatible document.

    Numbers of different bases mean different things: the map shows the base that most tasks are on.

    Returns:
        `base`: its digest, None without any task. `left_out`: tasks of other bases. `layout`: `neighbours`, or
        `directions` of a handful of tasks and of thousands; then `explained` is the share of the variance that each
        of the two tells, else None. `families`: each with its number of `tasks`, the largest first. `tasks`
        by name, each with `x` and `y`, its `nearest` tasks by the cosine of all numbers, and its `family`: of a source
        its own, else that of the `nearest_source`, which says little about what it asks (training moves the numbers
        little, so the nearest is often where it started); None where there is none.
    """
    bases = Counter(task.base_digest for task in embedded)
    base = max(bases, key=lambda digest: (bases[digest], digest), default=None)
    shown = sorted((task for task in embedded if task.base_digest == base), key=lambda task: task.task)
    tasks, explained = _placed(shown) if shown else ([], (0.0, 0.0))
    families = Counter(task["family"] for task in tasks if task["family"])
    return {
        "base": base,
        "left_out": len(embedded) - len(shown),
        "layout": "neighbours" if explained is None else "directions",
        "explained": None if explained is None else list(explained),
        "families": [
            {"family": family, "tasks": count}
            for family, count in sorted(families.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
        "tasks": tasks,
    }


def _placed(shown: Sequence[Embedded]) -> tuple[list[dict[str, Any]], tuple[float, float] | None]:
    import numpy as np

    numbers = np.stack([task.z for task in shown]).astype(np.float64)  # (n, t)
    places, explained = _places(numbers)
    nearest = _nearest(shown, numbers)
    of_source = _nearest_source(shown, numbers)
    tasks = []
    for embedded, place, near, source in zip(shown, places, nearest, of_source, strict=True):
        of_family = embedded.task if embedded.source else source and source["task"]
        tasks.append(
            {
                "task": embedded.task,
                "version": embedded.version,
                "source": embedded.source,
                "weak": embedded.weak,
                "family": family_of(of_family) if of_family else None,
                "nearest_source": None if embedded.source else source,
                "x": round(float(place[0]), _DIGITS),
                "y": round(float(place[1]), _DIGITS),
                "nearest": near,
            }
        )
    return tasks, explained


@cache
def _named_families() -> Mapping[str, str]:
    """What the tasks of the shipped bases ask, as their bases say it."""
    from onboard.bases import shipped_bases

    sources = [(name, facts) for base in shipped_bases() for name, facts in base.document["sources"].items()]
    return {**_FAMILIES, **{name: facts["family"] for name, facts in sources if facts.get("family")}}


def family_of(source: str) -> str:
    """What a source task asks: the name of its family."""
    return _named_families().get(source, source)


def _places(numbers: np.ndarray) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Each row's place (n, 2) beside the rows that it is most like, and None; or by directions, with their shares."""
    import numpy as np

    places, explained = _principal_components(numbers)
    many = FEWEST_NEIGHBOURS <= len(numbers) <= MOST_NEIGHBOURS
    if not many or not any(explained):
        return places, explained
    from sklearn.manifold import TSNE

    distances = np.clip(1.0 - _unit(numbers) @ _unit(numbers).T, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    begun = places / max(float(places[:, 0].std()), _NOTHING) * 1e-4  # so that the map is the same every time
    perplexity = min(_PERPLEXITY, (len(numbers) - 1) / 3)
    layout = TSNE(metric="precomputed", init=begun, perplexity=perplexity, max_iter=_STEPS, random_state=0)
    placed = np.asarray(layout.fit_transform(distances), dtype=np.float64)
    return _principal_components(placed)[0], None  # turned so that it is wider than high


def _principal_components(numbers: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Each row's place (n, 2), and the share of the variance that either direction tells."""
    import numpy as np

    centred = numbers - numbers.mean(axis=0)
    places = np.zeros((len(numbers), 2))
    if np.abs(centred).max() < _NOTHING:
        return places, (0.0, 0.0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    axes = min(2, len(values))
    largest = np.abs(directions[:axes]).argmax(axis=1)
    signs = np.sign(directions[np.arange(axes), largest])  # a direction's sign is arbitrary: the same map every time
    places[:, :axes] = centred @ (directions[:axes] * signs[:, None]).T
    shares = [round(float(value), _DIGITS) for value in values[:axes] ** 2 / (values**2).sum()]
    return places, (shares[0], shares[1] if axes > 1 else 0.0)


def _nearest(shown: Sequence[Embedded], numbers: np.ndarray) -> list[list[dict[str, Any]]]:
    import numpy as np

    unit = _unit(numbers)
    neighbours = []
    for start in range(0, len(unit), _CHUNK):
        cosines = unit[start : start + _CHUNK] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        nearest = np.argpartition(-cosines, min(NEAREST, len(unit)) - 1, axis=1)[:, :NEAREST]
        for row, indices in zip(cosines, nearest, strict=True):
            ranked = sorted((index for index in indices if np.isfinite(row[index])), key=lambda i: (-row[i], i))
            neighbours.append([_neighbour(shown[index], row[index]) for index in ranked])
    return neighbours


def _nearest_source(shown: Sequence[Embedded], numbers: np.ndarray) -> list[dict[str, Any] | None]:
    sources = [index for index, task in enumerate(shown) if task.source]
    if not sources:
        return [None] * len(shown)
    unit = _unit(numbers)
    cosines = unit @ unit[sources].T  # (n, sources)
    best = cosines.argmax(axis=1)
    return [_neighbour(shown[sources[index]], row[index]) for index, row in zip(best, cosines, strict=True)]


def _unit(numbers: np.ndarray) -> np.ndarray:
    """Rows of length one; zeros stay zeros, whose cosine with everything is 0."""
    import numpy as np

    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: np.ndarray = numbers / np.maximum(lengths, _NOTHING)
    return unit


def _neighbour(task: Embedded, cosine: float) -> dict[str, Any]:
    return {"task": task.task, "similarity": round(float(cosine), _DIGITS)}
