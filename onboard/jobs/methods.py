"""What a submission asks of a method, held against its rows and its base before anything is queued."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from onboard.bases import Base
from onboard.data.splits import holdout
from onboard.domain.dataset import Dataset, label_key
from onboard.domain.init import InitKind
from onboard.domain.job import JobSpec
from onboard.domain.methods import AUTO, FROM_ADAPTERS, LINEAR, OWN_WEIGHTS
from onboard.domain.methods import require_method as require_known
from onboard.errors import InputError


def require_method(spec: JobSpec, dataset: Dataset, base: Base) -> None:
    """Raise InputError unless the job can be done with its method.

    Args:
        spec: what is asked; an empty method is the base's own.
        dataset: its rows, before any are held out.
        base: that the task is learned on.

    Raises:
        InputError: no such method, or not for this base or these rows; what else is asked has no meaning with it; or a
            setting that it has not, or of a size that does not fit.
        DamagedError: the base's config.json cannot be read.
    """
    require_known(spec.method, base.method, base.name)
    if not dataset.train:
        _require_names_do(spec)
        return
    if dataset.several_labels:
        _require_readout_does(spec)
        return
    if spec.fast:
        _require_alone(spec)
        return
    settings = spec.method_settings
    if settings and spec.method not in OWN_WEIGHTS:
        raise InputError("method-without-settings", method=spec.method, name=spec.method or base.method)
    if spec.method == AUTO and spec.tune_hypernetwork == "always":
        raise InputError("tune-with-auto-method", method=spec.method)  # fmt: skip
    if spec.without_embedding:
        _require_without_embedding(spec, dataset, base)


def _require_without_embedding(spec: JobSpec, dataset: Dataset, base: Base) -> None:
    _require_alone(spec)
    if spec.method == LINEAR:
        _require_two_rows(dataset, spec)
    else:
        from onboard.bases.load import require_fitting  # with torch, which other jobs are queued without

        if spec.starts_from_adapters:
            _require_one_task(spec, base)
        require_fitting(base, spec.method, spec.settings_on(base.document["reduction_factor"]))


def as_queued(spec: JobSpec, dataset: Dataset) -> JobSpec:
    """What the job is told: where no embedding is learned, no hypernetwork is tuned and nothing is probed; where there
    are no rows, its first version is its only one. Several labels per text are a readout's."""
    if not dataset.train:
        options = {name: value for name, value in spec.options.items() if name != "fast"}
        return replace(spec, method=LINEAR, tune_hypernetwork="never", init="random", options=options)
    if spec.fast or dataset.several_labels:
        return replace(spec, method=LINEAR, tune_hypernetwork="never", init="random")
    if not spec.without_embedding:
        return spec
    return replace(spec, tune_hypernetwork="never", init=spec.init if spec.starts_from_adapters else "random")


def _require_names_do(spec: JobSpec) -> None:
    """Raise InputError where something is asked for that takes labeled rows, of which there are none."""
    given = {
        f"--method {spec.method}": spec.method not in ("", LINEAR),
        "--method-setting": bool(spec.method_settings),
        f"--init {spec.init}": spec.start.is_given,
        "--probe exhaustive": spec.options.get("probe") not in (None, "race"),
        "--tune-hypernetwork always": spec.tune_hypernetwork == "always",
        "--readout never": spec.readout == "never",
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError("option-without-rows", field=option.split()[0].strip("-"), option=option)  # fmt: skip


def _require_readout_does(spec: JobSpec) -> None:
    """Raise InputError where something else than a readout is asked for, of rows with several labels."""
    given = {
        f"--method {spec.method}": spec.method not in ("", LINEAR),
        "--method-setting": bool(spec.method_settings),
        f"--init {spec.init}": spec.init not in ("auto", "random"),
        "--probe exhaustive": spec.options.get("probe") not in (None, "race"),
        "--tune-hypernetwork always": spec.tune_hypernetwork == "always",
        "--readout never": spec.readout == "never",
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError("option-with-sets", field=option.split()[0].strip("-"), option=option)


def _require_alone(spec: JobSpec) -> None:
    """Raise InputError where something is asked for that only an embedding has."""
    method, fast = spec.method, spec.fast
    alone = "--fast" if fast else f"--method {method}"
    asked = {
        f"--method {method}": (
            fast and method not in ("", LINEAR), "publishes a readout alone", "Leave --fast out, or --method."
        ),
        "--method-setting": (
            fast and bool(spec.method_settings), "publishes a readout alone", "Leave --method-setting out."
        ),
        f"--init {spec.init}": (
            spec.start.is_given and not spec.starts_from_adapters,
            "starts as its paper says, not from an embedding",
            f"Leave --init out, or start at an embedding's adapters: --method {FROM_ADAPTERS}.",
        ),
        "--probe exhaustive": (
            spec.options.get("probe") not in (None, "race"), "starts from no embedding, so none is probed",
            "Leave --probe out.",
        ),
        "--tune-hypernetwork always": (
            spec.tune_hypernetwork == "always", "has no part in a hypernetwork",
            f"Leave --tune-hypernetwork out, or {alone.split()[0]}.",
        ),
        "--readout never": (
            (fast or method == LINEAR) and spec.readout == "never", "is the readout alone", "Leave --readout out."
        ),
    }  # fmt: skip
    for option, (given, reason, remedy) in asked.items():
        if given:
            raise InputError(
                "option-with-method", method=method, option=option, alone=alone, reason=reason, remedy=remedy
            )


def _require_one_task(spec: JobSpec, base: Base) -> None:
    """Raise InputError unless the adapters that a hypernetwork makes of one task can be the start."""
    if spec.start.kind is not InitKind.NAMED or spec.init in {anchor.name for anchor in base.anchors}:
        raise InputError("init-with-method", method=spec.method, init=spec.init)
    made, asked = base.document["reduction_factor"], spec.method_settings.get("reduction_factor")
    if asked not in (None, made):
        raise InputError("init-reduction-factor-differs", method=spec.method, init=spec.init, made=made, asked=asked)


def _require_two_rows(dataset: Dataset, spec: JobSpec) -> None:
    """Raise InputError where a label has fewer than two rows to train on: none would be left to judge it by."""
    rows = Counter(label_key(row.label) for row in holdout(dataset, spec.seed).train)
    few = [label for label in dataset.labels if rows[label_key(label)] < 2]
    if few:
        more = f" (and {len(few) - 1} more labels)" if len(few) > 1 else ""
        raise InputError("label-needs-two-rows", label=few[0], more=more)  # fmt: skip
