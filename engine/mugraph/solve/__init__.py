"""A region, from its search units to measured kernels: candidates ranked, verified, tuned and timed against PyTorch."""
