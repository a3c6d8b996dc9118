"""The logarithm, and that of one more than a value.

A logarithm undoes an exponential: of a sum of exponentials it is the same sum relative to a row's maximum, plus that
maximum (codegen/tile/softmax.py).
"""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Opaque

LOG = Kind(
    "log",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.log, ("log",), is_positive=True, undoes_exp=True),
    shown="log({0})",
    symbol="log",
    title="_log",
    stem="logarithm",
    instructions=12,
    ulps=2,
    test_cost=4.0,
    triton="tl.log({0})",
)

# log(1 + x) x / ((1 + x) - 1): what the sum loses of x, the quotient puts back (Higham, Accuracy and Stability of
# Numerical Algorithms, 1.14.1).
LOG1P = Kind(
    "log1p",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.log1p, ("log1p",), is_positive=True),
    shown="log(1 + {0})",
    symbol="log1p",
    title="_log1p",
    stem="logarithm",
    instructions=20,
    ulps=3,
    test_cost=4.0,
    triton='tl.where((1.0 + {0:atom} == 1.0) | ({0:atom} == float("inf")), {0:atom}, '
    "tl.log(1.0 + {0:atom}) * ({0:atom} / ((1.0 + {0:atom}) - 1.0)))",
)
