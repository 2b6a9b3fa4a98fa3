"""Measurements that can be rerun; each module is a command and leaves its numbers under `bench/results`."""
