"""After an edit: which calls a program's kernels take, and whether what was written still holds."""
