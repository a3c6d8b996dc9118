"""What tests share. It is imported before anything imports PyTorch or numpy, and keeps both to one thread."""

import os

# Two workers on two cores: with threads of their own, small operators wait for each other. Children inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
