"""Shapes from a run of the user's own program: `mugraph record -- python train.py`, and what is kept of it."""
