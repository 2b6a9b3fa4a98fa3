"""A base's shared weights: the line of its hypernetworks, what is computed under each, and their files."""
