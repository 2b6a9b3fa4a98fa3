"""How the hypernetwork is best tuned, what the guard takes of it, and the page about both."""
