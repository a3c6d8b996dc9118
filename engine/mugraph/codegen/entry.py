"""What the user's file calls: two functions over the names its own code reads there (`self`, `x`).

    def norm_linear_fits(self, x): what tracing took for granted still holds, and the tensors are those it was made for
    def norm_linear(self, x):      the replacement, its parameters read where the user's code reads them

A region that reads nothing but plain names needs neither: its functions over tensors are called directly.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence

from mugraph.codegen.kernel import Rejected
from mugraph.codegen.names import Scope
from mugraph.codegen.plan import RegionPlan
from mugraph.codegen.wrapper_operator import call, returns


def arguments(plan: RegionPlan) -> tuple[str, ...]:
    """What the user's code passes: the live-ins in their order where they are called directly, else the names that
    live-ins and guards start from, those of its function first.

    Raises Rejected when one of them is no expression.
    """
    region = plan.region
    if is_direct(plan):
        return tuple(live_in.expression for live_in in region.live_ins)
    found: dict[str, None] = {}
    for expression in (*(live_in.expression for live_in in region.live_ins), *region.guards):
        found |= dict.fromkeys(_names_in(expression, region.function))
    first = [name for name in region.function_args if name in found]
    return (*first, *(name for name in found if name not in first))


def is_direct(plan: RegionPlan) -> bool:
    """Whether the user's code already has every tensor under a name, and nothing else has to hold."""
    return not plan.region.guards and all(live_in.expression.isidentifier() for live_in in plan.region.live_ins)


def on_tensors(plan: RegionPlan) -> str:
    """Name of the replacement as a function of the live-ins' tensors."""
    return plan.name if is_direct(plan) else f"_{plan.name}_on_tensors"


def tensors_fit(plan: RegionPlan) -> str:
    """Name of the test as a function of the live-ins' tensors."""
    return f"{plan.name}_fits" if is_direct(plan) else f"_{plan.name}_tensors_fit"


def entry_names(plan: RegionPlan) -> tuple[str, ...]:
    """Every name the region's functions bind in the kernel module."""
    names = (plan.name, f"{plan.name}_fits", f"_{plan.name}_reference", on_tensors(plan), tensors_fit(plan))
    return tuple(dict.fromkeys(names))


def entry_text(plan: RegionPlan, module_names: frozenset[str]) -> str:
    """The functions; "" for a region that is called directly. module_names: globals that no parameter may hide."""
    if is_direct(plan):
        return ""
    region, scope = plan.region, Scope(module_names)
    renamed = {name: name if name == "self" else scope.unique(name) for name in arguments(plan)}
    tensors = {live_in.expression for live_in in region.live_ins}
    parameters = [f"{new}: torch.Tensor" if old in tensors else new for old, new in renamed.items()]
    values = [_renamed(live_in.expression, renamed) for live_in in region.live_ins]
    checks = _shortened([_renamed(guard, renamed) for guard in region.guards])
    lines = [checks[0], *(f"and {check}" for check in checks[1:])] if checks else []
    lines += call("and " if checks else "", tensors_fit(plan), values, width=104)
    return "\n".join(
        [
            *call("def ", f"{plan.name}_fits", parameters, " -> bool:", width=110),
            f'    """Whether {plan.name} may run: all is as it was when {region.function} was analysed."""',
            "    return (",
            *(f"        {line}" for line in lines),
            "    )",
            "",
            "",
            *call("def ", plan.name, parameters, f" -> {returns(len(region.live_outs))}:", width=110),
            f'    """{region.function}; only where {plan.name}_fits says yes."""',
            *(f"    {line}" for line in call("return ", on_tensors(plan), values, width=104)),
        ]
    )


def _names_in(expression: str, function: str) -> list[str]:
    """In the order they are read. A builtin that is called (`type(...)`) is the builtin: guards are written so."""
    tree = _parsed(expression, function)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    nodes = [node for node in nodes if not (id(node) in called and hasattr(builtins, node.id))]
    return [node.id for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def _parsed(expression: str, function: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise Rejected(f"The condition {expression!r} of {function} is no Python expression.") from None


def _shortened(guards: Sequence[str]) -> list[str]:
    """One line for a module that is of its class and has no hooks; brackets around what `and` would tear apart."""
    known, said, lines = set(guards), set[str](), list[str]()
    for guard in guards:
        node = ast.parse(guard, mode="eval").body
        match node:
            case ast.Compare(
                ast.Attribute(ast.Call(ast.Name("type"), [module]), "__qualname__"),
                [ast.Eq()],
                [ast.Constant(str(kind))],
            ):
                path = ast.unparse(module)
                hooks = {f"not {path}._forward_hooks", f"not {path}._forward_pre_hooks"}
                if hooks <= known:
                    said |= hooks
                    guard = f'_is_plain({path}, "{kind}")'
            case ast.BoolOp() | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
                guard = f"({guard})"
            case _:
                pass
        lines.append(guard)
    return [line for line in lines if line not in said]


def _renamed(expression: str, names: Mapping[str, str]) -> str:
    if all(old == new for old, new in names.items()):
        return expression
    tree = ast.parse(expression, mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not (id(node) in called and hasattr(builtins, node.id)):
            node.id = names[node.id]
    return ast.unparse(tree)
