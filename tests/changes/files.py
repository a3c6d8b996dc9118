"""Changes of the program's files after --apply, before Python is started again."""

from __future__ import annotations

from tests.changes.case import GATED, Case, either_runs, original_runs


@original_runs(GATED, edits={"gated_parts.py": ("F.silu(", "F.relu(")})
def a_helpers_file_edited(case: Case) -> None:
    pass


@original_runs(GATED, edits={"gated_parts.py": ("torch.rsqrt(self._variance(x) + self.eps)", "torch.rsqrt(self.eps)")})
def a_norms_file_edited(case: Case) -> None:
    """It raises now."""


@original_runs(GATED, edits={"gated_parts.py": ("(self.weight + self.offset)", "(self.weight - self.offset) + 1")})
def a_forwards_file_edited(case: Case) -> None:
    pass


@original_runs(GATED, edits={"gated_parts.py": ("sharpness=1.0", "sharpness=1.25")})
def a_default_edited(case: Case) -> None:
    pass


@original_runs(GATED, edits={"gated_parts.py": ("multiplied(0.5)", "multiplied(0.25)")})
def a_call_at_import_edited(case: Case) -> None:
    pass


@original_runs(GATED, edits={"gated.py": ("return layer(x)", "return layer(x + 1)")})
def a_helper_of_the_same_file_edited(case: Case) -> None:
    pass


@original_runs(GATED, edits={"gated.py": ("RESIDUAL = 0.5", "RESIDUAL = 0.125")})
def a_number_edited(case: Case) -> None:
    pass


@original_runs(GATED, edits={"gated.py": ("h * self.strength", "h / self.strength")})
def a_method_edited(case: Case) -> None:
    pass


@original_runs(
    GATED, edits={"gated_parts.py": ("    def _norm(", "    @(lambda f: lambda *x: 2 * f(*x))\n    def _norm(")}
)
def a_decorator_added(case: Case) -> None:
    pass


@either_runs(
    GATED, edits={"gated_parts.py": ("STRENGTH = 2.0", "# What a gate's result is multiplied by\nSTRENGTH = 2.0")}
)
def a_comment_added(case: Case) -> None:
    pass
