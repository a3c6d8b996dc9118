"""What the rooms know of a device: its model, out of the table in `mugraph.targets`."""

from mugraph.targets import TARGETS, Target, figures_of

__all__ = ["TARGETS", "Target", "figures_of"]
