"""Element-wise functions that are no operators of the algebra: what is known of each, and their numbers."""
