"""Labeling in a tool, with learning at the same time: annotations are stored, used for answers, and published as
versions.

receiving.py   stores the annotations that the tool sends
learner.py     a readout of the current annotations, updated after every change
publishing.py  a job that learns the annotations
"""
