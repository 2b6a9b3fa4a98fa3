"""The prior of a base: a hypernetwork in closed form, from the words of a label to the weights of its readout.

It is a function of the lessons of tasks alone (`onboard.statistics.prior`), so its numbers are stored nowhere: whoever
needs a version fits it to the lessons that the registry names, in a second, and keeps it in memory.
"""
