"""From a built graph of operators to a tensor program: its axes, its names, what is computed once."""
