"""Upload a dataset: files are streamed from disk, options are form fields with the names of the command's options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, isgeneratorfunction, signature
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, Final, ParamSpec, TypeVar

from onboard.client.frames import as_files
from onboard.domain.arguments import speaking_of_arguments
from onboard.domain.submission import asked, fields_of
from onboard.errors import DatasetError

_HUB: Final = "hf://"
_Self = TypeVar("_Self")
_Answer = TypeVar("_Answer")
_Submission = TypeVar("_Submission")
_Options = ParamSpec("_Options")


def taking(
    declaration: Callable[_Options, _Submission],
) -> Callable[[Callable[[_Self, _Submission], _Answer]], Callable[Concatenate[_Self, _Options], _Answer]]:
    """Let a method with a submission as argument be called with the submission's fields: submit("paws.jsonl", rows=32).

    In-memory datasets are accepted in place of files, see `onboard.client.frames`. Errors refer to arguments, unless
    the method's owner has `in_commands` set, like the command line.
    """
    declared = signature(declaration)

    def decorate(
        method: Callable[[_Self, _Submission], _Answer],
    ) -> Callable[Concatenate[_Self, _Options], _Answer]:
        @contextmanager
        def declared_by(self: _Self, args: Any, options: Any) -> Iterator[_Submission]:
            words = nullcontext() if getattr(self, "in_commands", False) else speaking_of_arguments()
            with words, as_files(declared.bind(*args, **options).arguments) as fields:
                yield declaration(**fields)  # type: ignore[call-arg]  # names of its fields

        @wraps(method)
        def call(self: _Self, /, *args: _Options.args, **options: _Options.kwargs) -> _Answer:
            with declared_by(self, args, options) as submission:
                return method(self, submission)

        @wraps(method)
        def steps(self: _Self, /, *args: _Options.args, **options: _Options.kwargs) -> Any:
            with declared_by(self, args, options) as submission:
                return (yield from method(self, submission))  # type: ignore[misc]  # a generator

        decorated: Any = steps if isgeneratorfunction(method) else call

        self_parameter, *_ = signature(method).parameters.values()
        named = [self_parameter.replace(kind=Parameter.POSITIONAL_ONLY), *declared.parameters.values()]
        decorated.__signature__ = signature(method).replace(parameters=named)  # for help()
        return decorated  # type: ignore[no-any-return]  # called as the method is, with the fields

    return decorate


@dataclass(frozen=True, slots=True)
class Upload:
    """The form of `POST /v1/jobs` and `POST /v1/check`.

    Args:
        files: dataset, validation, test, unlabelled, if they are local files.
        fields: all other fields; None and empty ones are left out.
        hub: hf://NAME[/CONFIG] if the dataset is on the hub, else empty.
    """

    files: Mapping[str, Path]
    fields: Mapping[str, Any] = field(default_factory=dict)
    hub: str = ""

    @classmethod
    def of(cls, submission: Any) -> Upload:
        """Return the upload of a submission without default values, which earlier releases may not support.

        Raises:
            DatasetError: a file is missing or cannot be read.
        """
        values = asked(submission)
        sent = [
            field for field in fields_of(type(submission)) if field.name in values and field.option.form is not None
        ]
        files = {field.name: Path(values[field.name]) for field in sent if field.is_file}
        fields = {field.name: values[field.name] for field in sent if not field.is_file}
        dataset = str(submission.dataset or "")
        on_hub = dataset.startswith(_HUB)
        if on_hub:
            del files["dataset"]
        for path in files.values():
            _require_readable(path)
        return cls(files, fields, dataset if on_hub else "")

    @contextmanager
    def opened(self) -> Iterator[Callable[[], dict[str, Any]]]:
        """Yield a function that makes `data` and `files` of a request, reading the files from their start each time."""
        with ExitStack() as stack:
            streams = {name: stack.enter_context(path.open("rb")) for name, path in self.files.items()}

            def build() -> dict[str, Any]:
                for stream in streams.values():
                    stream.seek(0)
                parts = {name: self._part(name, stream) for name, stream in streams.items()}
                named = {"dataset": (None, self.hub)} if self.hub else {}
                data = self._data()
                if not (parts or named) and data:  # httpx only sends multipart if there is at least one part
                    name = next(name for name, value in data.items() if isinstance(value, str))
                    named = {name: (None, data.pop(name))}
                return {"data": data, "files": {**parts, **named}}

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
        raise DatasetError("upload-file-unreadable", file=str(path), reason=error.strerror) from error


def _given(value: Any) -> bool:
    return value is not None and value != "" and value != () and value != [] and value is not False


def _text(value: Any) -> str | list[str]:
    if isinstance(value, list | tuple):
        return [str(part) for part in value]
    return "true" if value is True else str(value)
