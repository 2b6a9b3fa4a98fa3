"""A base's shared weights: its hypernetwork versions, engines that use them, and their files."""
