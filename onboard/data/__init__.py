"""Datasets: read and check files, words for labels, splits, snapshots. The entry point is `read.read_dataset`."""
