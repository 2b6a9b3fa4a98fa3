"""Short walks of the stream bench: three tasks, and the steps that a method leaves of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.stream.material import Material
from bench.stream.sharing import Journal, Stream
from bench.stream.walking import walk

NAMES = ("edos_sexism", "suggestion_mining", "it_ticket")


def walked(material: Material, journal: Journal, weights: Path, method: str, **more: Any) -> list[dict[str, Any]]:
    stream = Stream(0, method)
    walk(material, stream, NAMES, journal, weights, **more)
    return [{key: value for key, value in row.items() if key != "seconds"} for row in journal.steps().get(stream, [])]
