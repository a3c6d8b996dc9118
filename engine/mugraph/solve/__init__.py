"""A region, from its trace to a plan that is timed beside PyTorch: its steps, and those of a search unit."""
