"""Rules of PyTorch's calls, one file for each family of them. Importing a file registers its rules."""
