"""Pages of the documentation that are made from the code."""
