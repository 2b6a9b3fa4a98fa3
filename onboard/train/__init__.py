"""Few-shot training: 64 numbers learn a task, and nothing else moves."""
