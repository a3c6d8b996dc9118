"""What PyTorch calls mean: one file for each family of them, from recorded calls to tensor programs."""
