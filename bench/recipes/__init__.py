"""How an embedding is best trained on few rows, and the page about it."""
