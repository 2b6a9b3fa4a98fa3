"""What has been learned: versions of tasks are described, fetched, compared, promoted, carried and deleted."""
