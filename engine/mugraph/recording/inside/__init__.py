"""What runs inside the user's program while it is recorded.

This folder goes on the program's PYTHONPATH. The program's interpreter may be another than ours, without mugraph, so
nothing here imports anything but the standard library.
"""
