"""From a verified μGraph to text: Triton kernels, and the function that launches them."""
