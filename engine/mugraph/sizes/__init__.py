"""Kernels for a size in a range: schedules by size, what is fastest at which, and where the original code runs."""
