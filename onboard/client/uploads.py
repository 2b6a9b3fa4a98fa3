"""A dataset on its way to a service: files are streamed from disk, options are form fields named as the flags are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypedDict

from onboard.errors import DatasetError

_HUB: Final = "hf://"


class DatasetOptions(TypedDict, total=False):
    """What is wanted of a dataset, in the words of `onboard check`. labels: "A,B,…", as one line of CSV."""

    kind: Literal["auto", "classification", "regression"]
    labels: str
    text_field: Sequence[str]
    label_field: str | None
    shots: int | None
    seed: int


class JobOptions(DatasetOptions, total=False):
    """What is wanted of a job, in the words of `onboard submit`. time_limit: seconds of an attempt."""

    init: str
    probe: Literal["race", "exhaustive"]
    tune_hypernetwork: Literal["never", "auto", "always"]
    method: str
    metric: str
    base: str | None
    new_labels: bool
    queue: str
    priority: int
    time_limit: float | None


@dataclass(frozen=True, slots=True)
class Upload:
    """What `POST /v1/jobs` and `POST /v1/check` are sent.

    Args:
        files: dataset, validation, test, unlabelled: those that are files here.
        fields: everything else; None and empty ones are left out.
        hub: hf://NAME[/CONFIG] where the dataset is no file here.
    """

    files: Mapping[str, Path]
    fields: Mapping[str, Any] = field(default_factory=dict)
    hub: str = ""

    @classmethod
    def of(cls, dataset: str | Path, more: Mapping[str, Path | None], fields: Mapping[str, Any]) -> Upload:
        """Of a file, or of hf://NAME[/CONFIG], which the service reads itself.

        Raises:
            DatasetError: a file is missing or cannot be read.
        """
        on_hub = str(dataset).startswith(_HUB)
        files = {name: path for name, path in more.items() if path is not None}
        if not on_hub:
            files = {"dataset": Path(dataset), **files}
        for path in files.values():
            _require_readable(path)
        return cls(files, fields, str(dataset) if on_hub else "")

    @contextmanager
    def opened(self) -> Iterator[Callable[[], dict[str, Any]]]:
        """Makes `data` and `files` of a request, from the beginning of the files each time it is called."""
        with ExitStack() as stack:
            streams = {name: stack.enter_context(path.open("rb")) for name, path in self.files.items()}

            def build() -> dict[str, Any]:
                for stream in streams.values():
                    stream.seek(0)
                parts = {name: self._part(name, stream) for name, stream in streams.items()}
                named = {"dataset": (None, self.hub)} if self.hub else {}  # as a part: without one it is no multipart
                return {"data": self._data(), "files": {**parts, **named}}

            yield build

    def _data(self) -> dict[str, Any]:
        return {name: _text(value) for name, value in self.fields.items() if _given(value)}

    def _part(self, name: str, stream: BinaryIO) -> tuple[str, BinaryIO]:
        return self.files[name].name, stream


def _require_readable(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read: {error.strerror}.",
            "Give a file that exists and that you may read.",
            file=str(path),
        ) from error


def _given(value: Any) -> bool:
    return value is not None and value != "" and value != () and value != [] and value is not False


def _text(value: Any) -> str | list[str]:
    if isinstance(value, list | tuple):
        return [str(part) for part in value]
    return "true" if value is True else str(value)
