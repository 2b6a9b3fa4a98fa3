"""Jobs on real workers while everything around them is killed, cut, filled up or set wrong; then all is checked.

`python -m bench.chaos --help` tells how. Which fault comes when is drawn from a seed; what happened is kept as JSON
lines. A checker that knows nothing of the faults reads registry and artifacts afterwards.
"""
