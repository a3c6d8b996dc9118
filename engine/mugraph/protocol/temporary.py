"""The folder that the server gives an engine for temporary files: the engine makes and removes it, and the server
removes it where the engine was killed."""

VARIABLE = "MUGRAPH_TEMPORARY"
"""The environment variable that names the folder."""
