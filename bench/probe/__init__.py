"""Costs and losses of the probe among 10 to 10,000 embeddings: the pool of them, the registry, the page."""
