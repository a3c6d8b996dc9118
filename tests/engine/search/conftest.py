"""Makes the tile evaluator importable by the tests beside it (tests are collected by path, not as a package)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
