"""Multi-task training of a base on any T5 (arXiv 2106.04489, Eq. 2): hypernetwork, task embeddings, T5 norms.

recipe → sources, backbone → curriculum → `loop.run_stage` (checkpoints, validation, several processes) → `assemble`.
`make.py` defines the order, and the recipe all numbers.
"""
