"""From a verified μGraph to what stands in the user's files: Triton kernels, the module that launches them, edits."""
