"""Measurements that can be rerun: a module or a folder a command, all on `harness`; their numbers lie in `results`."""
