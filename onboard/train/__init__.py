"""Few-shot training: learn a task as an embedding of 64 numbers; all other weights are frozen."""
