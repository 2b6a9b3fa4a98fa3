"""Plain dataclasses of the domain: jobs, tasks, versions, datasets. No torch, no SQL."""
