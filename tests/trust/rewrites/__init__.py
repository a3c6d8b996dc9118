"""Right variants of right graphs, by kind: other ways to compute the same. The interpreter confirms each."""

from tests.trust.rewrites import algebra, constants, functions, sums, words
from tests.trust.rewrites.sites import REWRITES

__all__ = ["REWRITES", "algebra", "constants", "functions", "sums", "words"]
