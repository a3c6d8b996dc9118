"""Random files of ordinary PyTorch, edited and run beside their originals: see __main__.py."""
