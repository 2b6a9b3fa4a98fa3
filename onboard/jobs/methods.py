"""Validate the method of a submission against its rows and base before it is queued."""

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
from onboard.domain.submission import field_of
from onboard.errors import InputError


def require_method(spec: JobSpec, dataset: Dataset, base: Base) -> None:
    """Raise InputError unless the job can use its method.

    Args:
        spec: the request; an empty method is the base's own.
        dataset: its rows, before the hold-out.
        base: the base that the task is learned on.

    Raises:
        InputError: the method does not exist or does not fit this base or these rows, other options have no meaning
            with it, or a setting is unknown or has an invalid size.
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
        from onboard.bases.load import require_fitting  # imports torch, which jobs of other methods do not need

        if spec.starts_from_adapters:
            _require_one_task(spec, base)
        require_fitting(base, spec.method, spec.settings_on(base.document["reduction_factor"]))


def as_queued(spec: JobSpec, dataset: Dataset) -> JobSpec:
    """Adjust a spec to its method before it is queued.

    Without an embedding, nothing is probed or tuned. Without rows, the first version is the only one. Several labels
    per text require a readout.
    """
    if not dataset.train:
        options = {name: value for name, value in spec.options.items() if name != "fast"}
        return replace(spec, method=LINEAR, tune_hypernetwork="never", init="random", options=options)
    if spec.fast or dataset.several_labels:
        return replace(spec, method=LINEAR, tune_hypernetwork="never", init="random")
    if not spec.without_embedding:
        return spec
    return replace(spec, tune_hypernetwork="never", init=spec.init if spec.starts_from_adapters else "random")


def _require_names_do(spec: JobSpec) -> None:
    """Raise InputError if an option requires labeled rows and there are none."""
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
            raise InputError("option-without-rows", field=field_of(option), option=option)


def _require_readout_does(spec: JobSpec) -> None:
    """Raise InputError if an option requires more than a readout, for rows with several labels."""
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
            raise InputError("option-with-sets", field=field_of(option), option=option)


def _require_alone(spec: JobSpec) -> None:
    """Raise InputError if an option requires an embedding."""
    method, fast = spec.method, spec.fast
    alone = "--fast" if fast else f"--method {method}"
    asked = {
        f"--method {method}": (
            fast and method not in ("", LINEAR), "publishes only a readout", "Leave out --fast or --method."
        ),
        "--method-setting": (
            fast and bool(spec.method_settings), "publishes only a readout", "Leave --method-setting out."
        ),
        f"--init {spec.init}": (
            spec.start.is_given and not spec.starts_from_adapters,
            "starts as described in its paper, not from an embedding",
            f"Leave --init out, or start from an embedding's adapters: --method {FROM_ADAPTERS}.",
        ),
        "--probe exhaustive": (
            spec.options.get("probe") not in (None, "race"), "does not start from an embedding, so nothing is probed",
            "Leave --probe out.",
        ),
        "--tune-hypernetwork always": (
            spec.tune_hypernetwork == "always", "does not use a hypernetwork",
            f"Leave --tune-hypernetwork out, or {alone.split()[0]}.",
        ),
        "--readout never": (
            (fast or method == LINEAR) and spec.readout == "never", "is only the readout", "Leave --readout out."
        ),
    }  # fmt: skip
    for option, (given, reason, remedy) in asked.items():
        if given:
            raise InputError(
                "option-with-method", method=method, option=option, alone=alone, reason=reason, remedy=remedy
            )


def _require_one_task(spec: JobSpec, base: Base) -> None:
    """Raise InputError unless the training can start at the adapters that a hypernetwork generates for one task."""
    if spec.start.kind is not InitKind.NAMED or spec.init in {anchor.name for anchor in base.anchors}:
        raise InputError("init-with-method", method=spec.method, init=spec.init)
    made, asked = base.document["reduction_factor"], spec.method_settings.get("reduction_factor")
    if asked not in (None, made):
        raise InputError("init-reduction-factor-differs", method=spec.method, init=spec.init, made=made, asked=asked)


def _require_two_rows(dataset: Dataset, spec: JobSpec) -> None:
    """Raise InputError if a label has fewer than two training rows: none would be left to judge it."""
    rows = Counter(label_key(row.label) for row in holdout(dataset, spec.seed).train)
    few = [label for label in dataset.labels if rows[label_key(label)] < 2]
    if few:
        more = f" (and {len(few) - 1} more labels)" if len(few) > 1 else ""
        raise InputError("label-needs-two-rows", label=few[0], more=more)  # fmt: skip
