"""Command-line options for submissions, generated from the fields declared in `onboard.domain.submission`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, replace
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Final

import typer

from onboard.domain.addition import Addition
from onboard.domain.evaluation import Evaluation
from onboard.domain.submission import Field, Submission, fields_of
from onboard.errors import InputError

NOTHING: Final[Mapping[str, Any]] = {"unknown_labels": "refuse"}  # options of labeled rows if none are given


def submit_options(declaration: type[Any] = Submission) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the argument FILE and an option per field to a command. Its first argument is the submission."""
    dataset, *further = fields_of(declaration)
    named = replace(
        dataset, default=None, option=replace(dataset.option, help="FILE, as an option instead of an argument.")
    )
    return _with_options(declaration, [_file(dataset, None), _option(named), *map(_option, further)])


def check_options(declaration: type[Any] = Submission) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `submit_options`, but only with fields that describe the rows.

    The dataset is the command's argument FILE.
    """
    dataset, *further = [declared for declared in fields_of(declaration) if declared.option.checked]
    return _with_options(declaration, [_file(dataset, None), *map(_option, further)])


def labelled_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option per field of a labeled file to a command. Its last argument is `options`."""
    return _with_fields(command, Evaluation)


def addition_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option per field of added rows to a command. Its last argument is `options`."""
    return _with_fields(command, Addition)


def _with_fields(command: Callable[..., None], declaration: type[Any]) -> Callable[..., None]:
    _, *described = fields_of(declaration)
    *parameters, _ = signature(command, eval_str=True).parameters.values()

    def run(**values: Any) -> None:
        options = {declared.name: values.pop(declared.name) for declared in described}
        command(**values, options={name: value for name, value in options.items() if value is not None})

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {}
    named = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = Signature([*named, *map(_option, described)])  # type: ignore[attr-defined]  # what typer reads
    return run


def _with_options(
    declaration: type[Any], options: list[Parameter]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *parameters = signature(command, eval_str=True).parameters.values()

        def run(**values: Any) -> None:
            rest = {parameter.name: values.pop(parameter.name) for parameter in parameters}
            dataset = _dataset(values.pop("file"), values.pop("dataset", None), labels=bool(values.get("labels")))
            fields = {name: value for name, value in values.items() if value is not None}
            command(declaration(dataset=dataset, **fields), **rest)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {}
        run.__signature__ = Signature(  # type: ignore[attr-defined]  # what typer reads
            [*options, *(parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters)]
        )
        return run

    return decorate


def _file(dataset: Field, default: Any) -> Parameter:
    argument = typer.Argument(metavar="FILE", help=f"{dataset.option.help} Use - for standard input (JSONL).")
    return Parameter("file", Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[str | None, argument])


def _dataset(file: str | None, named: str | None, *, labels: bool) -> str | None:
    """Return the dataset; None if a label set replaces it."""
    if file is None and named is None and not labels:
        raise InputError("dataset-missing")
    if file is not None and named is not None:
        raise InputError("dataset-given-twice", file=file, named=named)
    return file or named


def _option(declared: Field) -> Parameter:
    kind, default = _type(declared), None if declared.repeated else declared.default
    metavar = "FILE" if declared.is_file else None
    names = [declared.flag] if kind is bool else []  # without a --no-… option
    return Parameter(
        declared.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if default is MISSING else default,
        annotation=Annotated[
            kind | None if default is None else kind,
            typer.Option(*names, help=declared.option.help, metavar=metavar, hidden=bool(declared.option.instead)),
        ],
    )


def _type(declared: Field) -> Any:
    if declared.repeated:
        return list[str]
    return declared.type if isinstance(declared.type, type) else str
