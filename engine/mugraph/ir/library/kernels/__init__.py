"""Pre-defined kernels, a file each; its KERNEL says what it matches, how it is called and what it costs (record.py)."""
