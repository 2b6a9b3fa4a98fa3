"""Workers: the Celery app, the shell around the pipeline, heartbeats, the reconciler, the detached start."""
