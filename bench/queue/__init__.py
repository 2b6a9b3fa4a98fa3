"""The cost of a queue of 10,000 jobs; `loop` is one of the processes that claim them."""
