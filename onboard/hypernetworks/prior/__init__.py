"""The prior of a base: a hypernetwork in closed form, from the words of a label to its readout weights.

It only depends on the lessons of tasks (`onboard.statistics.prior`), so its numbers are not stored. A version is fitted
to its lessons on demand, which takes a second, and cached in memory.
"""
