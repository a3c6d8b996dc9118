"""Element-wise functions that are no operators of the algebra: a file for each thing known of them, and their
numbers."""
