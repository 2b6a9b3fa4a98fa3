"""What a queue of 10,000 jobs costs; `loop` is one of the processes that claim them."""
