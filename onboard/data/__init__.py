"""Datasets: reading files, checking them, words for labels, splits, snapshots. `read.read_dataset` is the way in."""
