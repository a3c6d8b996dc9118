"""e to the power of a value, less one, as of ELU: near zero the difference would leave few digits."""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Opaque

EXPM1 = Kind(
    "expm1",
    Role.ELEMENTWISE,
    1,
    opaque=Opaque(np.expm1, ("expm1",)),
    shown="exp({0}) - 1",
    symbol="expm1",
    title="_expm1",
    stem="power",
    instructions=20,
    ulps=3,
    argument_ulps=1,
    test_cost=4.0,
    # The Taylor series to x^9, whose next term is below half a unit in the last place up to 0.5.
    triton="tl.where(tl.abs({0:atom}) > 0.5, tl.exp({0:atom}) - 1.0, "
    "{0:atom} * (1.0 + {0:atom} * (0.5 + {0:atom} * (1.6666667e-1 + {0:atom} * (4.1666668e-2 + {0:atom} * "
    "(8.3333338e-3 + {0:atom} * (1.3888889e-3 + {0:atom} * (1.9841270e-4 + {0:atom} * (2.4801588e-5 + {0:atom} * "
    "2.7557319e-6)))))))))",
)
