"""Lookups: a dimension of which those elements are read that another tensor says, as a mixture of experts reads the
weights of the experts that a router has chosen.

The axes of such a dimension count the elements of the index, outermost first: what is read for the element number p
is the row `index[p]` of the dimension. All but addresses is as with a tensor that holds those rows, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import DType


@dataclass(frozen=True, slots=True)
class Lookup:
    """
    name:   of the index: a tensor of whole numbers that lies row by row, of as many elements as the dimension's axes
    dtype:  of its elements
    rows:   elements of the dimension in memory
    wraps:  a number below zero counts from the dimension's end, as in PyTorch's `x[index]`
    source: what the user's code calls the index

    Of a number that is none of a row PyTorch has no result; then the nearest row is read.
    """

    name: str
    dtype: DType
    rows: int
    wraps: bool = False
    source: str = ""

    @property
    def least(self) -> int:
        """The least number that is one of a row."""
        return -self.rows if self.wraps else 0

    def rows_at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows that are read for numbers of the index."""
        found = np.where(numbers < 0, numbers + self.rows, numbers) if self.wraps else numbers
        return np.clip(found, 0, self.rows - 1)
