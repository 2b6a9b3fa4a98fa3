"""The order of the files of tests where several processes run them at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parents[1]
WAITING = ("acceptance", "integration", "migration")  # folders whose tests wait for servers, workers and programs
LONGEST = (  # files of these folders that take a minute or more
    "test_learning_from_the_command_line.py",
    "test_workers.py",
    "test_tutorial.py",
    "test_kills_and_a_full_disk.py",
    "test_tuned_jobs.py",
    "test_pages_in_a_browser.py",
    "test_tuned_attempts.py",
    "test_changing_a_task.py",
    "test_chaos.py",  # not the first, while everything else starts
    "test_detached_worker.py",
    "test_pages_with_a_worker.py",
    "test_deployment_commands.py",
    "test_s3.py",
    "test_hanging_jobs.py",
    "test_behind_nginx.py",
    "test_odd_streams.py",
    "test_base_training.py",
    "test_deleting.py",
    "test_unlearning.py",
    "test_migrations.py",
)
COMPUTING_BETWEEN = 3  # files that compute, after every one that waits


def places_of(files: Iterable[Path]) -> dict[Path, int]:
    """Return a number to sort each file by: files that wait and files that compute alternate, the longest first.

    Some processes compute while others wait. The computing files that are left over are many and quick, and fill the
    end.
    """
    each = list(dict.fromkeys(files))
    waiting = [file for file in each if file.relative_to(TESTS).parts[0] in WAITING]
    waiting.sort(key=lambda file: LONGEST.index(file.name) if file.name in LONGEST else len(LONGEST))
    places = {file: number * (COMPUTING_BETWEEN + 1) for number, file in enumerate(waiting)}
    computing = [file for file in each if file not in places]
    return places | {file: number + number // COMPUTING_BETWEEN + 1 for number, file in enumerate(computing)}
