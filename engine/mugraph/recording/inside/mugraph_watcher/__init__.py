"""Runs inside the user's program, whichever Python that is: needs nothing but the standard library."""
