"""What never changes, kept at hand: embeddings by their artifact's digest, as bytes and as documents."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from onboard.api.schemas.versions import ComparisonDocument, CurrentEmbeddings, EmbeddingDocument, ListedEmbedding
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.hypernetworks.files import Manifests
from onboard.registry.search import Current
from onboard.services import Services
from onboard.storage.embedding import verified_embedding
from onboard.versions.compare import compare_versions
from onboard.versions.describe import current, named, published, resolve

SAFETENSORS: Final = "application/octet-stream"
_KEPT: Final = 2048  # embeddings, of each form; some kilobytes each
_KEPT_LISTS: Final = 4  # of all tasks, one a name
_KEPT_COMPARISONS: Final = 128


class Kept:
    """Bytes that were asked for last, by key. Safe in threads; two of them may make the same at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, make: Callable[[], bytes]) -> bytes:
        """What belongs to the key, made if need be."""
        content = self.find(key)
        if content is None:
            content = make()
            self.keep(key, content)
        return content

    def find(self, key: str) -> bytes | None:
        """What belongs to the key, if it is here."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: str, value: bytes) -> None:
        """Have it here; what was not asked for longest leaves."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)


class Shelf:
    """Embeddings of a service, verified when they are read, then kept in memory.

    Args:
        services: where they lie.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bytes = Kept(_KEPT)
        self._documents = Kept(_KEPT)
        self._lists = Kept(_KEPT_LISTS)
        self._making_a_list = threading.Lock()
        self._comparisons = Kept(_KEPT_COMPARISONS)
        self.manifests = Manifests()

    def current(self, reference: Reference) -> Current:
        """What the reference names just now: one query. Raises NotFoundError."""
        return current(self._services.database, reference)

    def content(self, artifact: str) -> bytes:
        """`embedding.safetensors`. Raises DamagedError (its bytes are gone, too), StorageError."""
        return self._bytes.get(artifact, lambda: self._services.read(artifact))

    def document(self, current: Current) -> bytes:
        """The version with its numbers as JSON. Raises as `content` does."""
        key = f"{current.task}@v{current.version} {current.artifact}"
        return self._documents.get(key, lambda: self._rendered(current))

    def everything(self, alias: str, files: bool = False) -> tuple[str, Callable[[], bytes]]:
        """The tag of what the alias names in all tasks, and what makes the JSON document of it.

        Args:
            files: with the bytes of every `embedding.safetensors`.
        """
        present = named(self._services.database, alias)
        lines = "".join(f"{version.task}@v{version.version} {version.artifact}\n" for version in present)
        tag = "sha256:" + hashlib.sha256(f"{alias} {files}\n{lines}".encode()).hexdigest()
        numbers = [(version.task, version.version) for version in present]
        return tag, lambda: self._lists.find(tag) or self._list(tag, alias, numbers, files)

    def comparison(self, earlier: Reference, later: Reference) -> bytes:
        """Two versions side by side as JSON; what was once measured of them stays true. Raises as `compare` does."""
        a, b = resolve(self._services.database, earlier, later)
        key = f"{a.reference} {b.reference}"
        known = self._comparisons.find(key)
        if known is not None:
            return known
        comparison = compare_versions(self._services, a, b, self.manifests)
        document = ComparisonDocument(**comparison.to_json()).model_dump_json().encode()
        if comparison.measured is not None:  # else a base or rows may come to hand
            self._comparisons.keep(key, document)
        return document

    def _list(self, tag: str, alias: str, numbers: list[tuple[str, int]], files: bool) -> bytes:
        """One at a time is made: it holds every task, and all clients ask for it at the same moment."""
        with self._making_a_list:
            return self._lists.get(tag, lambda: self._rendered_list(alias, numbers, files))

    def _rendered(self, current: Current) -> bytes:
        (version,) = published(self._services.database, [(current.task, current.version)])
        return EmbeddingDocument(**self._with_numbers(version)).model_dump_json().encode()

    def _rendered_list(self, alias: str, numbers: list[tuple[str, int]], files: bool) -> bytes:
        embeddings = [
            ListedEmbedding(**self._with_numbers(version), file=self._encoded(version) if files else None)
            for version in published(self._services.database, numbers)
        ]
        return CurrentEmbeddings(ref=alias, embeddings=embeddings).model_dump_json().encode()

    def _encoded(self, version: EmbeddingVersion) -> str:
        return base64.b64encode(self.content(version.artifact)).decode()

    def _with_numbers(self, version: EmbeddingVersion) -> dict[str, object]:
        z = verified_embedding(self.content(version.artifact), version)
        return {**version.to_json(), "z": z.tolist()}
