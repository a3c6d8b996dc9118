"""The engine process behind the language server: `python -m mugraph.worker`."""
