"""Prometheus metrics of a deployment, read from its database at each scrape.

    registry = make_registry(services.database)     # for GET /metrics, or for prometheus_client's own server

Every registry of a deployment returns the same values, wherever it is scraped. Metrics that are common in Celery
deployments have their usual names and labels (`celery_…`); all others are named `onboard_…`.
"""

from __future__ import annotations

import logging
import math
import platform
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from onboard import __version__
from onboard.domain.drift import day_of, week_of
from onboard.domain.job import JobState
from onboard.domain.release import code_version
from onboard.domain.transition import BUCKET_SECONDS, LOST, Transition
from onboard.domain.webhook import EndpointState
from onboard.domain.worker import QueueStatus, WorkerRecord
from onboard.errors import OnboardError
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.drift import DriftRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.transitions import TransitionRepository
from onboard.registry.workers import QueueRepository, WorkerRepository

_logger = logging.getLogger(__name__)
_UNSUCCESSFUL: Final = (JobState.FAILED, JobState.DEAD)


def make_registry(database: Database) -> CollectorRegistry:
    """Return a registry with all metrics of the deployment behind `database`."""
    registry = CollectorRegistry()
    registry.register(ServiceCollector(database))
    return registry


class ServiceCollector(Collector):
    """Reads the database in one transaction. If unreachable, `onboard_database_up` is 0 and the rest is missing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._one_at_a_time = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        with self._one_at_a_time:
            scrape = self._look()
        build = [__version__, code_version(), platform.python_version()]
        yield _gauge(
            "onboard_build_info", "Version of the responding process.", ("version", "code", "python"), [(build, 1)]
        )
        yield _gauge("onboard_database_up", "Whether the database responded.", (), [((), scrape is not None)])
        if scrape is not None:
            for metrics in (
                _of_queues,
                _of_transitions,
                _of_durations,
                _of_workers,
                _of_hearing,
                _of_gpus,
                _of_webhooks,
                _of_drift,
            ):
                yield from metrics(scrape)

    def _look(self) -> _Seen | None:
        transitions: dict[str, list[Transition]] = defaultdict(list)
        try:
            with self._database.snapshot() as session:
                for transition in TransitionRepository(session).list():
                    transitions[transition.queue].append(transition)
                return _Seen(
                    jobs=TransitionRepository(session).standing(),
                    transitions=transitions,
                    queues={queue.name: queue for queue in QueueRepository(session).list()},
                    workers=WorkerRepository(session).list(),
                    endpoints=OutboxRepository(session).standing(),
                    drift=DriftRepository(session).weeks_now(week_of(day_of(read_clock(session)))),
                )
        except OnboardError as error:
            _logger.warning("No metrics: %s", error.message)
        except Exception:  # outermost edge of a scrape, such as a schema of another release
            _logger.exception("No metrics")
        return None


@dataclass(frozen=True, slots=True)
class _Seen:
    """The data of one scrape."""

    jobs: Mapping[tuple[str, JobState], int]
    transitions: Mapping[str, Sequence[Transition]]
    queues: Mapping[str, QueueStatus]
    workers: Sequence[WorkerRecord]
    endpoints: Sequence[EndpointState]
    drift: Sequence[tuple[str, int, int, bool]]

    @property
    def live(self) -> Sequence[WorkerRecord]:
        return [worker for worker in self.workers if worker.live]

    @property
    def queue_names(self) -> Sequence[str]:
        """All queues that appear anywhere, so that their counters start at zero."""
        served = {queue for worker in self.workers for queue in worker.queues}
        return sorted({*self.queues, *served, *(queue for queue, _ in self.jobs), *self.transitions})


def _of_queues(seen: _Seen) -> Iterator[Metric]:
    def waiting(queue: str) -> float:
        return seen.jobs.get((queue, JobState.QUEUED), 0)

    def oldest(queue: str) -> float:
        return (queue in seen.queues and seen.queues[queue].oldest_queued_seconds) or 0.0

    def paused(queue: str) -> bool:
        return queue in seen.queues and seen.queues[queue].paused

    def workers(queue: str) -> int:
        return sum(worker.takes_jobs and queue in worker.queues for worker in seen.workers)

    standing = [
        ((queue, state.value), seen.jobs.get((queue, state), 0)) for queue in seen.queue_names for state in JobState
    ]
    yield _gauge("onboard_jobs", "Jobs by queue and state.", ("queue", "state"), standing)
    for name, help_text, label, value in (
        ("celery_queue_length", "Waiting jobs.", "queue_name", waiting),
        (
            "onboard_oldest_queued_seconds",
            "Wait of the oldest waiting job in seconds; 0 if none waits.",
            "queue",
            oldest,
        ),
        ("onboard_queue_paused", "Whether the queue is paused.", "queue", paused),
        ("onboard_queue_workers", "Live workers that take its jobs, without draining ones.", "queue", workers),
    ):
        yield _gauge(name, help_text, (label,), [((queue,), value(queue)) for queue in seen.queue_names])


def _of_transitions(seen: _Seen) -> Iterator[Metric]:
    def count(name: str, help_text: str, label: str, counts: Callable[[Transition], bool]) -> Metric:
        family = CounterMetricFamily(name, help_text, labels=(label,))
        for queue in seen.queue_names:
            those = filter(counts, seen.transitions.get(queue, ()))
            family.add_metric([queue], sum(transition.count for transition in those))
        return family

    def entered(*states: JobState) -> Callable[[Transition], bool]:
        return lambda transition: transition.state in states

    def retried(transition: Transition) -> bool:
        return transition.state is JobState.QUEUED and transition.previous == JobState.RUNNING

    def received(transition: Transition) -> bool:
        return transition.state is JobState.QUEUED and not retried(transition)

    for name, help_text, counts in (
        ("received", "Submitted and manually retried jobs.", received),
        ("started", "Started attempts.", entered(JobState.RUNNING)),
        ("succeeded", "Jobs that published a version.", entered(JobState.SUCCEEDED)),
        ("failed", "Jobs that failed or are dead.", entered(*_UNSUCCESSFUL)),
        ("retried", "Attempts returned to the queue, after a temporary error or because the worker exited.", retried),
    ):
        yield count(f"celery_task_{name}", help_text, "queue_name", counts)
    yield count("onboard_dead_jobs", "Jobs that used up their attempts.", "queue", entered(JobState.DEAD))
    yield count(
        "onboard_lease_expired",
        "Attempts whose worker stopped responding or whose process died.",
        "queue",
        lambda e: e.previous == LOST,
    )


def _of_durations(seen: _Seen) -> Iterator[Metric]:
    yield _histogram(
        seen,
        "celery_task_queue_wait_time",
        "Seconds from when a job was due to the start of its attempt.",
        lambda transition: (transition.previous, transition.state) == (JobState.QUEUED, JobState.RUNNING),
    )
    yield _histogram(
        seen,
        "celery_task_runtime",
        "Run time in seconds of attempts that succeeded, failed, or were the last of a dead job.",
        lambda transition: (
            transition.previous == JobState.RUNNING and transition.state in (JobState.SUCCEEDED, *_UNSUCCESSFUL)
        ),
    )


def _of_workers(seen: _Seen) -> Iterator[Metric]:
    age: Callable[[WorkerRecord], float] = attrgetter("heartbeat_age_seconds")
    for name, help_text, label, value in (
        ("celery_worker_up", "Whether a worker that did not sign off is alive.", "hostname", attrgetter("live")),
        (
            "onboard_worker_faulty",
            "Whether the worker takes no jobs because it cannot load what they need.",
            "worker",
            attrgetter("faulty"),
        ),
        (
            "celery_worker_tasks_active",
            "Running jobs of the worker.",
            "hostname",
            lambda worker: worker.job is not None,
        ),
        ("onboard_worker_heartbeat_age_seconds", "Seconds since the last heartbeat of the worker.", "worker", age),
    ):
        yield _gauge(name, help_text, (label,), [((worker.name,), value(worker)) for worker in seen.workers])


def _of_hearing(seen: _Seen) -> Iterator[Metric]:
    """Yield metrics as reported by each worker. These counters start at zero with each worker."""
    deaf = [((worker.name,), worker.deaf_seconds) for worker in seen.workers]
    yield _gauge(
        "onboard_worker_deaf_seconds", "How long jobs have waited while the worker was idle.", ("worker",), deaf
    )
    for name, help_text, fact in (
        ("onboard_worker_renewals", "How often the worker was unresponsive and restarted.", "renewals"),
        ("onboard_dropped_messages", "Invalid broker messages that were dropped.", "dropped_messages"),
    ):
        family = CounterMetricFamily(name, help_text, labels=("worker",))
        for worker in seen.workers:
            family.add_metric([worker.name], worker.facts.get(fact) or 0)
        yield family


def _of_gpus(seen: _Seen) -> Iterator[Metric]:
    gpus = [
        ((worker.name, worker.host, _text(gpu.get("index")), _text(gpu.get("name"))), gpu)
        for worker in seen.live
        for gpu in worker.facts.get("gpus") or []
    ]
    for fact, help_text in (
        ("memory_used_bytes", "Memory in use on the GPU, by all processes."),
        ("memory_total_bytes", "Memory of the GPU."),
        ("utilization_ratio", "Share of time that the GPU was busy."),
        ("temperature_celsius", "Temperature of the GPU."),
    ):
        available = [(labels, gpu[fact]) for labels, gpu in gpus if gpu.get(fact) is not None]
        yield _gauge(f"onboard_gpu_{fact}", help_text, ("worker", "host", "gpu", "name"), available)


def _of_webhooks(seen: _Seen) -> Iterator[Metric]:
    counts = {
        "waiting": sum(endpoint.waiting - endpoint.failing for endpoint in seen.endpoints),
        "failing": sum(endpoint.failing for endpoint in seen.endpoints),
        "given_up": sum(endpoint.given_up for endpoint in seen.endpoints),
    }
    yield _gauge(
        "onboard_webhook_deliveries",
        "Undelivered webhook messages: not tried yet, failing, or given up in the last day.",
        ("state",),
        [((state,), count) for state, count in counts.items()],
    )


def _of_drift(seen: _Seen) -> Iterator[Metric]:
    """Yield metrics of versions that answered texts this week, which starts on Monday (UTC)."""
    labels = ("task", "version")
    texts = [((task, str(version)), count) for task, version, count, _ in seen.drift]
    alarms = [((task, str(version)), alarm) for task, version, _, alarm in seen.drift]
    yield _gauge("onboard_drift_texts", "Texts of this week that are checked for drift.", labels, texts)
    yield _gauge("onboard_drift_alarm", "Whether the texts of this week differ from earlier ones.", labels, alarms)


def _text(fact: object) -> str:
    return "" if fact is None else str(fact)


def _gauge(name: str, help_text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, float(value))
    return family


def _histogram(seen: _Seen, name: str, help_text: str, counts: Callable[[Transition], bool]) -> Metric:
    family = HistogramMetricFamily(name, help_text, labels=("queue_name",))
    for queue in seen.queue_names:
        those = list(filter(counts, seen.transitions.get(queue, ())))
        family.add_metric([queue], _buckets(those), sum(duration.seconds for duration in those))
    return family


def _buckets(those: Collection[Transition]) -> list[Any]:
    """Return cumulative counts by upper edge."""
    return [
        (
            "+Inf" if edge == math.inf else str(edge),
            sum(duration.count for duration in those if duration.up_to_seconds <= edge),
        )
        for edge in BUCKET_SECONDS
    ]
