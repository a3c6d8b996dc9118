"""The library's entries: `mugraph.optimize(fn, *example_inputs)`, `mugraph.verify(kernel, fn, *example_inputs)`."""

from mugraph.api.optimize import Optimized as Optimized
from mugraph.api.optimize import optimize as optimize
from mugraph.api.verify import Verified as Verified
from mugraph.api.verify import verify as verify
