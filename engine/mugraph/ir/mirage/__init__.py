"""μGraphs that Mirage found, from the checkpoint files it writes (`mirage.superoptimize` with a checkpoint; its OSDI
artifact has some)."""

from mugraph.ir.mirage.checkpoint import Unreadable, is_checkpoint, read_checkpoint

__all__ = ["Unreadable", "is_checkpoint", "read_checkpoint"]
