"""Versions of tasks: describe, fetch, compare, promote, carry and delete them."""
