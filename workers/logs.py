"""The log of a worker, set up in one place for parent, pool child and their threads.

Lines for people on a terminal, one JSON object a line elsewhere; always with the time in UTC, level, logger, message
and worker, and with job, task, attempt and stage where there is one.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, TextIO

from pythonjsonlogger.json import JsonFormatter

from onboard.domain.job import Job, Stage
from onboard.domain.moment import to_iso
from onboard.domain.printable import printable_json
from onboard.settings import LogFormat, Settings

FIELDS: Final = ("job", "task", "attempt", "stage", "worker")
_OURS: Final = ("onboard", "workers", "cli")
# Only their errors are logged. The upkeep logs lost children, with the job's id and without a traceback.
_TALKATIVE: Final = {
    "transformers": logging.ERROR,
    "huggingface_hub": logging.ERROR,
    "celery.worker.request": logging.CRITICAL,
}
_PASSWORD: Final = re.compile(
    r"""([a-z][a-z0-9+.-]*://[^\s"'\\/:@]*):[^\s"'\\]*@"""  # scheme://user:password@host
    r"""|(\b\w*password=)(?:'[^']*'|[^\s"'\\&]+)""",  # password=… of a query or of libpq's key words
    re.IGNORECASE,
)

_URL: Final = re.compile(r"""\b(?!hf://)[a-z][a-z0-9+.-]*://[^\s"'<>]+""", re.IGNORECASE)

_fields: ContextVar[dict[str, Any] | None] = ContextVar("fields", default=None)


def hide_passwords(text: str) -> str:
    """Replace passwords of URLs (database, broker, store) and `password=…` by `***`."""
    return _PASSWORD.sub(lambda match: f"{match[1]}:***@" if match[1] else f"{match[2]}***", text)


def hide_places(text: str, settings: Settings) -> str:
    """Replace URLs and the folders of the home and the store by `…`, for text that users can see."""
    folders = {str(settings.resolved_home), settings.resolved_artifact_url} - {"/"}
    for place in sorted(folders, key=len, reverse=True):
        text = text.replace(place, "…")
    return hide_passwords(_URL.sub("…", text))


def fields_of(job: Job) -> dict[str, Any]:
    """The fields of a log line about this attempt of a job, in addition to its message."""
    return {"job": job.id, "task": job.spec.task, "attempt": job.attempt}


@contextmanager
def log_fields(**fields: Any) -> Iterator[None]:
    """Within it every line carries `fields`: in this thread, and in threads that run in a copy of its context."""
    token = _fields.set(fields)
    try:
        yield
    finally:
        _fields.reset(token)


def log_stage(stage: Stage) -> None:
    """From now on lines within `log_fields` carry this stage, in all of its threads."""
    present = _fields.get()
    if present is not None:
        present["stage"] = stage.value


def set_up_logging(log_format: LogFormat, worker: str) -> None:
    """Log to standard error, in place of whatever was set up before.

    Args:
        log_format: json, text, or auto: text on a terminal, else json.
        worker: name that every line carries.
    """
    handler = make_handler(sys.stderr, log_format, worker)
    logging.root.handlers = [handler]
    logging.lastResort = handler  # for loggers that pass nothing on and have no handler, such as billiard's
    logging.root.setLevel(logging.WARNING)
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.excepthook = _log_what_nobody_caught
    threading.excepthook = lambda thrown: _log_what_nobody_caught(
        thrown.exc_type, thrown.exc_value, thrown.exc_traceback
    )
    take_over_loggers()


def take_over_loggers() -> None:
    """Libraries with their own handlers log through ours. Call it again after importing them."""
    for name in [*logging.root.manager.loggerDict]:
        logger = logging.getLogger(name)
        if logger.handlers:
            logger.handlers = []
            logger.propagate = True
    for name, level in _TALKATIVE.items():
        logging.getLogger(name).setLevel(level)


def quiet_celery() -> None:
    """Its banners for people go to a terminal's standard error; elsewhere they would stand between the lines."""
    from celery.apps import worker

    say = worker.safe_say
    worker.safe_say = lambda banner, *_: say(banner, sys.stderr) if sys.stderr.isatty() else None


def make_handler(stream: TextIO, log_format: LogFormat, worker: str) -> logging.Handler:
    """A handler that writes to `stream` as `set_up_logging` says."""
    as_text = log_format == "text" or (log_format == "auto" and stream.isatty())
    handler = _WithoutPasswords(stream)
    handler.setFormatter(_Text() if as_text else _Json())
    handler.addFilter(lambda record: _add_fields(record, worker))
    return handler


def _add_fields(record: logging.LogRecord, worker: str) -> bool:
    """A filter that passes every line. Fields from `extra` override those of the logging context."""
    for name, value in {"worker": worker, **(_fields.get() or {})}.items():
        if name not in record.__dict__:
            record.__dict__[name] = value
    return True


class _WithoutPasswords(logging.StreamHandler[TextIO]):
    """Hides passwords, whoever put them into a line or a trace."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_passwords(super().format(record))


class _Json(JsonFormatter):
    """`{"time": …, "level": …, "logger": …, "message": …, "job": …, …, "trace": …}`."""

    def __init__(self) -> None:
        names = {"asctime": "time", "levelname": "level", "name": "logger", "exc_info": "trace"}
        super().__init__(["asctime", "levelname", "name", "message"], rename_fields=names, json_ensure_ascii=False)

    def format(self, record: logging.LogRecord) -> str:
        """One line to every reader, also to those that end one at a line separator of Unicode."""
        return printable_json(super().format(record))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - theirs
        return str(to_iso(record.created))

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        return {**log_data, "message": log_data["message"].strip()}  # Celery's end with an empty line


class _Text(logging.Formatter):
    """`TIME LEVEL LOGGER: MESSAGE  [job=… attempt=…]`, then the trace."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - theirs
        said = " ".join(f"{name}={value}" for name in FIELDS if (value := getattr(record, name, None)))
        return f"{to_iso(record.created)} {record.levelname} {record.name}: {record.message.strip()}  [{said}]"


def _log_what_nobody_caught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    if error is not None and not issubclass(kind, KeyboardInterrupt | SystemExit):
        logging.getLogger(__name__).critical("Nobody caught: %s", error, exc_info=(kind, error, trace))
