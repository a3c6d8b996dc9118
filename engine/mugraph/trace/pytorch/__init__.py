"""What is known of PyTorch's callables: their names, which are pure, which have no effect."""
