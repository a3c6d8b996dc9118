"""Values at axes, and the algebra's operators on them: what the rules of PyTorch's calls are made of."""
