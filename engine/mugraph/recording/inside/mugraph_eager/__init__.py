"""Runs inside the user's program: what it has compiled with torch.compile runs as it is written."""
