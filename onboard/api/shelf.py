"""Cache of immutable data: embeddings by their artifact's digest, as bytes and as documents."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Final

from onboard.contract.versions import CurrentEmbeddings, EmbeddingDocument, ListedEmbedding, VersionDocument
from onboard.data.labelled import CheckedRows
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.errors import NotFoundError
from onboard.hypernetworks.files import Manifests
from onboard.registry.search import Current
from onboard.registry.services import Services
from onboard.storage.cache import Cache
from onboard.storage.embedding import verified_embedding
from onboard.versions.compare import compare_versions
from onboard.versions.describe import current, named, published, resolve
from onboard.versions.fetch import verify
from onboard.versions.measure import evaluate_version

_KEPT: Final = 2048  # embeddings in each form; some kilobytes each
_KEPT_LISTS: Final = 4  # lists of all tasks, one per alias
_KEPT_COMPARISONS: Final = 128


class Shelf:
    """Embeddings of a service, verified when they are read, then cached in memory."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bytes = Cache[str, bytes](_KEPT)
        self._documents = Cache[str, bytes](_KEPT)
        self._lists = Cache[str, bytes](_KEPT_LISTS)
        self._comparisons = Cache[str, bytes](_KEPT_COMPARISONS)
        self.manifests = Manifests()

    def current(self, reference: Reference) -> Current:
        """Return the version that the reference names now, with one query. Raises NotFoundError."""
        return current(self._services.database, reference)

    def content(self, artifact: str) -> bytes:
        """Return a file by its digest. Raises DamagedError (also if it is missing), StorageError."""
        return self._bytes.get(artifact, lambda: self._services.read(artifact))

    def readout(self, reference: Reference) -> tuple[int, str]:
        """Return number and readout's digest of a version. Raises NotFoundError, also if it has no readout."""
        named_now = self.current(reference)
        (version,) = published(self._services.database, [(named_now.task, named_now.version)])
        if version.readout is None:
            raise NotFoundError("version-without-readout", version=version.reference, task=version.task)
        return version.version, version.readout

    def document(self, current: Current) -> bytes:
        """Return the version with its numbers as JSON. Raises like `content`."""
        key = f"{current.task}@v{current.version} {current.tag}"
        return self._documents.get(key, lambda: self._rendered(current))

    def everything(self, alias: str, files: bool = False) -> tuple[str, Callable[[], bytes]]:
        """Return the tag of the embeddings that the alias names in all tasks, and a function that renders them as JSON.

        Args:
            files: include the bytes of every `embedding.safetensors`.
        """
        present = named(self._services.database, alias)
        lines = "".join(f"{version.task}@v{version.version} {version.artifact}\n" for version in present)
        tag = "sha256:" + hashlib.sha256(f"{alias} {files}\n{lines}".encode()).hexdigest()
        numbers = [(version.task, version.version) for version in present]
        # it contains every task, and all clients request it at the same time
        return tag, lambda: self._lists.get_alone(tag, lambda: self._rendered_list(alias, numbers, files))

    def comparison(self, earlier: Reference, later: Reference) -> bytes:
        """Compare two versions, as JSON; measured results are cached permanently. Raises like `compare`."""
        a, b = resolve(self._services.database, earlier, later)
        key = _key(a, b)
        known = self._comparisons.find(key)
        if known is not None:
            return known
        comparison = compare_versions(self._services, a, b, self.manifests)
        document = comparison.to_document().model_dump_json().encode()
        if comparison.measured is not None:  # otherwise a base or rows may become available
            self._comparisons.keep(key, document)
        return document

    def comparison_at_hand(self, earlier: Reference, later: Reference) -> bytes | None:
        """Return a cached comparison, else None. Raises NotFoundError."""
        return self._comparisons.find(_key(*resolve(self._services.database, earlier, later)))

    def comparison_on(self, earlier: EmbeddingVersion, later: EmbeddingVersion, file: CheckedRows) -> bytes:
        """Compare two versions on the rows of a file, as JSON, without caching. Raises like `compare`."""
        comparison = compare_versions(self._services, earlier, later, self.manifests, file)
        return comparison.to_document().model_dump_json().encode()

    def evaluation(self, version: EmbeddingVersion, file: CheckedRows) -> bytes:
        """Measure a version on the rows of a file, as JSON, without caching. Raises like `evaluate_version`."""
        evaluated = evaluate_version(self._services, version, file, self.manifests)
        return evaluated.to_document().model_dump_json().encode()

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
        content = self.content(version.artifact)
        if version.has_embedding:
            return {**VersionDocument.of(version).to_json(), "z": verified_embedding(content, version).tolist()}
        verify(content, version)
        return {**VersionDocument.of(version).to_json(), "z": None}


def _key(earlier: EmbeddingVersion, later: EmbeddingVersion) -> str:
    return f"{earlier.reference} {later.reference}"
