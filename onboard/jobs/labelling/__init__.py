"""Labeling in a tool that learns meanwhile: annotations are kept, answered from, and published as versions.

receiving.py   what the tool sends is kept
learner.py     a readout of the annotations so far, made again whenever they change
publishing.py  a job that learns the annotations
"""
