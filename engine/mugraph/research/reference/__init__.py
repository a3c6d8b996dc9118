"""Mirage's Algorithm 1 as the paper writes it: the reference that the search proper is compared with.

Sizes are chosen first, then block operators are appended one at a time in increasing rank, and each prefix is checked
against the output's abstract expression (Mirage §4.1, §4.3). It covers what one graph-defined kernel can be; it is far
too slow to be used, and simple enough to be read: where its graphs and those of the search agree, the search has lost
none. `ablation` measures what separates the two.
"""

from mugraph.research.reference.algorithm import LiteralSearch
from mugraph.research.reference.canonical import canonical

__all__ = ["LiteralSearch", "canonical"]
