"""PyTorch source to regions: DAGs of recorded calls with exact source ranges."""
