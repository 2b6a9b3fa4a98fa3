"""The requests that Label Studio sends while people label: labeling configuration, tasks and annotations.

Only choices for a whole text, or for a pair of texts, are labels here. Regions, images, HTML and audio are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from xml.etree import ElementTree

from onboard.data.limits import MAX_LABEL_CHARACTERS
from onboard.domain.annotation import DELETED_AT, Annotation, Text
from onboard.domain.dataset import in_canonical_order
from onboard.domain.label_set import is_set, set_text
from onboard.errors import InputError

CREATED: Final = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
DELETED: Final = "ANNOTATIONS_DELETED"
MOST_CONFIG_CHARACTERS: Final = 1_000_000
MOST_LABELS: Final = 1_000
MOST_NUMBER_CHARACTERS: Final = 100  # of an id
_SINGLE: Final = ("single", "single-radio")  # ways to choose
_SEVERAL: Final = "multiple"
_PAIR: Final = ("text_a", "text_b")  # fields whose two texts are read as a pair
_VARIABLE: Final = re.compile(r"\$([^\s$]+)")
Payload = Mapping[str, Any]


@dataclass(frozen=True)
class Config:
    """The part of a labeling configuration that is about texts.

    Args:
        control_name: name of the `<Choices>` tag.
        object_name: name of the `<Text>` tag that it labels.
        fields: of a task's data, the text or both texts of a pair.
    """

    control_name: str
    object_name: str
    fields: tuple[str, ...]
    labels: tuple[str, ...]
    several: bool = False

    @property
    def pairs(self) -> bool:
        """Whether a task has two texts."""
        return len(self.fields) > 1

    def text_of(self, data: object) -> Text | None:
        """The text of a task's data; None if there is none, as in a task with an image."""
        values = [data.get(field) if isinstance(data, Mapping) else None for field in self.fields]
        if not all(isinstance(value, str) and value.strip() and _is_storable(value) for value in values):
            return None
        return str(values[0]), str(values[1]) if self.pairs else None

    def label_in(self, results: object) -> str | None:
        """Return the label of the whole text among an annotation's results, or the text that represents its set.

        None if there is no usable choice, or several where only one counts.
        """
        choices: list[object] = []
        for result in results if isinstance(results, list) else ():
            if not isinstance(result, Mapping) or result.get("from_name") != self.control_name:
                continue
            value = result.get("value")
            if not isinstance(value, Mapping) or not isinstance(value.get("choices"), list) or _of_region(value):
                continue
            choices += value["choices"]
        if self.several:
            labels = [label for choice in choices if (label := _label(choice)) is not None]
            usable = 0 < len(labels) == len(choices) <= MOST_LABELS
            return set_text(in_canonical_order(labels)) if usable else None
        texts = [choice for choice in choices if isinstance(choice, str)]
        return _label(texts[0]) if len(texts) == 1 else None

    @property
    def missing(self) -> str:
        """Why an annotation gives no label."""
        return f"it has no {'usable' if self.several else 'single'} choice for the whole text"

    def results_of(self, labels: Sequence[str], score: float) -> list[dict[str, Any]]:
        """Return the answer to a text as a prediction of Label Studio; without labels it has no result."""
        if not labels:
            return []
        prediction = {
            "from_name": self.control_name, "to_name": self.object_name, "type": "choices",
            "value": {"choices": list(labels)}, "score": round(score, 4),
        }  # fmt: skip
        return [prediction]


def read_config(xml: str) -> Config:
    """Read a labeling configuration.

    Raises:
        InputError: it is not XML, or does not define choices about a text.
    """
    root = _parsed(xml)
    texts = {tag.get("name", ""): tag for tag in root.iter("Text")}
    controls = [tag for tag in root.iter("Choices") if tag.get("perRegion", "").lower() != "true"]
    controls = [tag for tag in controls if tag.get("toName", "") in texts]
    if len(controls) != 1:
        raise InputError("label-studio-choices-missing", field="label_config", found=len(controls))
    (control,) = controls
    choice = control.get("choice", "single")
    if choice not in (*_SINGLE, _SEVERAL):
        raise InputError(
            "label-studio-choice-unknown", field="label_config", control=control.get("name", ""), choice=choice
        )
    text = texts[control.get("toName", "")]
    if text.get("valueType", "text") == "url":
        raise InputError("label-studio-text-by-url", field="label_config", name=text.get("name", ""))
    labels = _labels_of(control)
    named = {field for tag in texts.values() if (field := _field_of(tag))}
    fields = _PAIR if set(_PAIR) <= named else (_field_of(text),)
    if not all(fields):
        raise InputError("label-studio-text-without-field", field="label_config", name=text.get("name", ""))
    return Config(control.get("name", ""), text.get("name", ""), fields, labels, choice == _SEVERAL)


def _parsed(xml: str) -> ElementTree.Element:
    if len(xml) > MOST_CONFIG_CHARACTERS:
        raise InputError("label-studio-config-unreadable", field="label_config", reason="it is too long")
    if "<!" in re.sub(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", "", xml, flags=re.DOTALL):  # entities may grow without end
        raise InputError("label-studio-config-unreadable", field="label_config", reason="it declares a document type")
    try:
        return ElementTree.fromstring(xml)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError("label-studio-config-unreadable", field="label_config", reason=str(error)) from error


def _labels_of(control: ElementTree.Element) -> tuple[str, ...]:
    labels = [(tag.get("alias") or tag.get("value") or "").strip() for tag in control.iter("Choice")]
    labels = list(dict.fromkeys(label for label in labels if label))
    if not 2 <= len(labels) <= MOST_LABELS or any(len(label) > MAX_LABEL_CHARACTERS for label in labels):
        raise InputError("label-studio-labels-missing", field="label_config", found=len(labels), most=MOST_LABELS)
    if lists := [label for label in labels if is_set(label)]:  # would be mistaken for a set of labels
        raise InputError("label-studio-label-is-list", field="label_config", label=lists[0])
    return tuple(labels)


def _label(choice: object) -> str | None:
    """Return a choice as a label; None if it is not usable as one."""
    label = choice.strip() if isinstance(choice, str) else ""
    usable = label and len(label) <= MAX_LABEL_CHARACTERS and _is_storable(label) and not is_set(label)
    return label if usable else None


def _field_of(text: ElementTree.Element) -> str:
    variable = _VARIABLE.fullmatch(text.get("value", "").strip())
    return variable[1] if variable else ""


def _is_storable(text: str) -> bool:
    """Whether every database takes it: no NUL, and no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _of_region(value: Payload) -> bool:
    """Whether a choice is about a part of a text or an image."""
    return any(name in value for name in ("start", "end", "x", "y", "points", "rle", "ranges"))


@dataclass(frozen=True)
class UnusedAnnotation:
    """An annotation, or a task, that gives no label, and why."""

    number: str
    reason: str


def annotations_in(body: Payload, config: Config | None) -> Iterator[Annotation | UnusedAnnotation]:
    """Yield the annotations in a webhook.

    Args:
        config: of its project; None where the webhook carries none, as one of a deletion may.
    """
    project = _project_of(body)
    if body.get("action") == DELETED:
        for annotation in _listed(body.get("annotations")):
            if (number := _number(annotation.get("id"))) is not None:
                yield Annotation(project, number, None, None, DELETED_AT)
        return
    tasks = _listed(body.get("task"))
    by_number = {_number(task.get("id")): task for task in tasks}
    for annotation in _listed(body.get("annotation")):
        number = _number(annotation.get("id"))
        if number is None:
            yield UnusedAnnotation("", "it has no id")
            continue
        task = by_number.get(_number(annotation.get("task")), tasks[0] if len(tasks) == 1 else {})
        text = None if config is None else config.text_of(task.get("data"))
        if config is None or text is None:
            yield UnusedAnnotation(number, "its task has no text")
            continue
        skipped = annotation.get("was_cancelled") is True
        label = None if skipped else config.label_in(annotation.get("result"))
        if label is None and not skipped:
            yield UnusedAnnotation(number, config.missing)
        yield Annotation(
            project, number, text, label, _moment(annotation.get("updated_at") or annotation.get("created_at"))
        )


def texts_in(tasks: object, config: Config) -> Sequence[Text | None]:
    """The text of each task; None for tasks without one."""
    return [config.text_of(task.get("data")) for task in _listed(tasks)]


def config_in(body: Payload) -> Config | None:
    """The configuration of a webhook's project; None if it has none. Raises InputError as `read_config`."""
    project = body.get("project")
    config = project.get("label_config") if isinstance(project, Mapping) else None
    return read_config(config) if isinstance(config, str) and config.strip() else None


def _project_of(body: Payload) -> str:
    project = body.get("project")
    number = project.get("id") if isinstance(project, Mapping) else project
    return _number(number) or ""


def _listed(value: object) -> list[Payload]:
    values = value if isinstance(value, list) else [value]
    return [value for value in values if isinstance(value, Mapping)]


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    number = str(value)[:MOST_NUMBER_CHARACTERS]
    return number if number and _is_storable(number) else None


def _moment(value: object) -> float:
    """Epoch seconds of an ISO time; 0 if it is missing or cannot be read."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
