"""Tiling expressions and their pruning, as MCFuser has them (§III), counted."""
