"""Wrong variants of right graphs, JSON to JSON, by kind; some of them are right again, which the interpreter finds."""

from tests.trust.mutations import names, operators, reductions, schedules, tensors, threads
from tests.trust.mutations.edits import MUTATIONS

__all__ = ["MUTATIONS", "names", "operators", "reductions", "schedules", "tensors", "threads"]
