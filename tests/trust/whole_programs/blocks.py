"""Statements with blocks: branches, loops, contexts, functions in functions."""

from __future__ import annotations

import re

from torch import nn

from tests.trust.whole_programs import flow, integers, state, statements
from tests.trust.whole_programs.body import Body, Statement
from tests.trust.whole_programs.expressions import expression

SIMPLE: tuple[tuple[Statement, int], ...] = (
    (statements.assignment, 12),
    (statements.alias, 2),
    (statements.in_place, 2),
    (statements.augmented, 3),
    (statements.slice_write, 1),
    (statements.unpacking, 2),
    (statements.container, 3),
    (statements.aside, 4),
    (statements.walrus, 2),
    (integers.indices, 3),
    (integers.read, 6),
    (integers.written, 2),
    (state.of_names, 4),
    (state.of_module, 8),
    (flow.called, 8),
)


_WITHOUT = re.compile(r"(?<!is )(?<!is not )(?<!\[)(?<!\[:, )\bNone\b")
"""Of an expression that there is none of; indices and comparisons apart."""


def draw(body: Body) -> None:
    """Adds one statement, if one of a few tries runs."""
    deep = body.depth >= 2
    kinds = SIMPLE if deep else SIMPLE + BLOCKS
    for _ in range(4):
        (kind,) = body.rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])
        lines = kind(body)
        if lines is not None and not _WITHOUT.search("\n".join(lines)) and body.attempt(lines):
            return


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines] or ["    pass"]


def _some(body: Body, setup: str = "", most: int = 3) -> list[str]:
    return indented(body.block(body.rng.randint(1, most), setup, draw))


def _condition(body: Body) -> str:
    name = body.pick() or "x"
    rank = len(body.shape(name))
    found = [
        f"{name}.dim() == {rank}", f"{name}.dim() > {rank}", f"{name}.shape[0] > 2", "COUNT >= 0", "SCALE > 1",
        "FLAGS['deep']",
        f"{name}.dtype == torch.float32", f"{name}.is_contiguous()", f"{name}.requires_grad", "torch.is_grad_enabled()",
        f"{name}.shape[-1] % 2 == 0 and {name}.numel() > 8", f"not {name}.is_cuda", f"len({name}) > 3",
    ]  # fmt: skip
    found += [one for one in body.names if isinstance(body.namespace.get(one), bool)] * 6
    found += [f"{one} is not None" for one in body.names if body.namespace.get(one) is None] * 3
    if "self" in body.names:
        found += ["self.training", "not self.training", "self.flag", "self.last is None", "self.count > 0"] * 3
    return body.rng.choice(found)


def branch(body: Body) -> list[str]:
    condition = _condition(body)
    lines = [f"if {condition}:", *_some(body)]
    if body.rng.random() < 0.3:
        lines += [f"elif {_condition(body)}:", *_some(body)]
    if body.rng.random() < 0.5:
        lines += ["else:", *_some(body)]
    return lines


def conditional(body: Body) -> list[str] | None:
    one, other = expression(body), expression(body)
    return [f"{body.fresh()} = {one} if {_condition(body)} else {other}"]


def early_return(body: Body) -> list[str] | None:
    if body.depth > 0:
        return None
    body.depth += 1  # a return of what runs now would end the function
    name, made = body.pick(), expression(body)
    body.depth -= 1
    condition = _condition(body)
    if name is None or made is None or body.value(condition) is not False or body.value(made) is None:
        return None
    body.lines += [f"if {condition}:", f"    return {body.rng.choice((made, name, f'({name}, {made})'))}"]
    return ["pass"] if body.rng.random() < 0.05 else ["# no early return"]


def loop(body: Body) -> list[str] | None:
    name = body.pick()
    if name is None:
        return None
    headers = [
        ("for _ in range(2):", "_ = 0"),
        ("for i in range(3):", "i = 0"),
        (f"for row in {name}.unbind(0):", f"row = {name}.unbind(0)[0]"),
        (f"for i, part in enumerate({name}.chunk(2, dim=-1)):", f"i, part = 0, {name}.chunk(2, dim=-1)[0]"),
        (f"for i in range({name}.shape[0]):", "i = 0"),
    ]
    module = body.namespace.get("self")
    if isinstance(module, nn.Module) and isinstance(getattr(module, "layers", None), nn.ModuleList):
        headers += [
            ("for layer in self.layers:", "layer = self.layers[0]"),
            ("for i, layer in enumerate(self.layers):", "i, layer = 0, self.layers[0]"),
            (
                "for layer, other in zip(self.layers, reversed(self.layers)):",
                "layer, other = self.layers[0], self.layers[1]",
            ),
        ] * 2
    header, setup = body.rng.choice(headers)
    lines = _some(body, setup)
    extra = body.rng.random()
    if extra < 0.1:
        lines += [f"    if {_condition(body)}:", "        continue", *indented(body.block(1, setup, draw))]
    elif extra < 0.2 and " i" in header:
        lines += ["    if i >= 1:", "        break"]
    if "layer" in setup:
        changed = body.pick()
        lines = [f"    {changed} = {changed} + layer({changed}) * 0.5", *lines]
    after = ["else:", "    NOTES.append('all')"] if extra > 0.93 else []
    if body.rng.random() < 0.3 and "unbind" in header:
        return [
            f"{body.unused('rows')} = []",
            header,
            *lines,
            "    rows.append(row * 0.5)",
            *after,
            f"{body.fresh()} = torch.stack(rows)",
        ]
    return [header, *lines, *after]


def while_loop(body: Body) -> list[str]:
    return [f"{body.unused('left')} = 2", "while left > 0:", "    left -= 1", *_some(body, "left = 1", 2)]


CONTEXTS = (
    "torch.no_grad()", "torch.enable_grad()", "torch.autocast('cpu', enabled=False)", "torch.set_grad_enabled(False)",
    "contextlib.nullcontext()", "noted('inside')", "torch.profiler.record_function('part')",
    "torch.autocast('cpu', torch.bfloat16)",
)  # fmt: skip


def context(body: Body) -> list[str]:
    if body.rng.random() < 0.25:
        last = (
            ["finally:", "    NOTES.append('ended')"]
            if body.rng.random() < 0.5
            else ["except ValueError:", "    NOTES.append('never')"]
        )
        return ["try:", *_some(body), *last]
    of_tensors = [f"torch.autocast({name}.device.type, enabled=False)" for name in (body.pick(),) if name is not None]
    return [f"with {body.rng.choice([*CONTEXTS, *of_tensors])}:", *_some(body)]


def nested(body: Body) -> list[str] | None:
    """A function in the function; it reads names that may be bound anew before it is called."""
    name, other = body.pick(), body.pick()
    if name is None or other is None:
        return None
    called = body.unused(body.rng.choice(("act", "inner", "apply_to")))
    if body.rng.random() < 0.4:
        value = expression(body, 1)
        forms = (
            f"lambda t: torch.tanh(t) + {other}.mean()",
            "lambda t, s=SCALE: t * s",
            f"lambda t: {value} * 0.5 + t.mean()",
            "lambda t: t",
        )
        return [f"{called} = {body.rng.choice(forms)}", f"{body.fresh()} = {called}({name})"]
    inner = body.block(body.rng.randint(1, 2), f"t = {name}", draw)
    inner = [line for line in inner if "global" not in line and "nonlocal" not in line]
    made = body.rng.choice(("t", f"t * 0.5 + {other}.mean()", "torch.tanh(t)", "(t + t.mean(-1, keepdim=True))"))
    return [
        f"def {called}(t):",
        *(indented(inner) if inner else []),
        f"    return {made}",
        f"{body.fresh()} = {called}({name})",
    ]


def match(body: Body) -> list[str] | None:
    name = body.pick()
    if name is None:
        return None
    rank = len(body.shape(name))
    return [f"match {name}.dim():", f"    case {rank}:", *indented(_some(body)), "    case _:", *indented(_some(body))]


BLOCKS: tuple[tuple[Statement, int], ...] = (
    (branch, 2),
    (conditional, 1),
    (early_return, 1),
    (loop, 2),
    (while_loop, 1),
    (context, 1),
    (nested, 2),
    (match, 1),
)
