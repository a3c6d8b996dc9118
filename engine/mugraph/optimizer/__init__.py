"""After verification: what changes how a μGraph runs and nothing of what it computes."""
