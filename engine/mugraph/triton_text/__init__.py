"""Runs the text of Triton kernels and their launcher over finite fields, without Triton and without PyTorch."""
