"""Kernel graphs of several kernels, pre-defined ones among them, from the one-kernel search (Mirage §4.2)."""
