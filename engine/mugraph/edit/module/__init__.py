"""The kernel module: the file beside the user's that holds kernels, their guards and their evidence."""
